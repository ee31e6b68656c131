//! The options of `hostler policy`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::commands::limit;
use crate::cli::complete;

/// `hostler policy`
#[derive(Debug, Args)]
pub(in crate::cli) struct Policy {
    #[command(subcommand)]
    pub what: Option<PolicyOf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// `hostler mode`
#[derive(Debug, Args)]
pub(in crate::cli) struct SetMode {
    /// The mode to set, in any case: normal, alert, degraded, lockdown, recovery, or one of [policy.modes]
    #[arg(conflicts_with = "clear", add = ArgValueCompleter::new(complete::modes))]
    pub mode: Option<String>,
    /// End it after this time: 30m, 1h, 2d
    #[arg(long = "for", value_name = "DURATION", value_parser = limit, requires = "mode")]
    pub lasts: Option<Duration>,
    /// Why it is set; `hostler mode` shows it
    #[arg(long, value_name = "TEXT", requires = "mode")]
    pub reason: Option<String>,
    /// Go back to the mode in hostler.toml
    #[arg(long)]
    pub clear: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `hostler policy` does; without one of them it shows the rules in force.
#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum PolicyOf {
    /// Decide about a call without making it, and show the rules and the lines that decided
    Explain {
        /// The tool's name: pack.function, or its MCP name
        #[arg(add = ArgValueCompleter::new(complete::tools))]
        tool: String,
        /// Its arguments: key=value, or key:=JSON
        #[arg(value_name = "ARGUMENT")]
        arguments: Vec<String>,
        /// Decide as in this mode
        #[arg(long, add = ArgValueCompleter::new(complete::modes))]
        mode: Option<String>,
    },
    /// Compare decisions with a file of expected ones; exit status 1 if one differs
    Test {
        /// A TOML file with a table for each decision
        file: PathBuf,
    },
}
