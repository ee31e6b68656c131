//! The options of `hostler sandbox`.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::commands::limit;
use crate::cli::complete;

/// `hostler sandbox`
#[derive(Debug, Args)]
pub(in crate::cli) struct Sandboxing {
    #[command(subcommand)]
    pub what: SandboxOf,
}

/// What `hostler sandbox` does.
#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum SandboxOf {
    /// Call a tool without its sandbox, record what it reaches, and propose the smallest sandbox for it
    #[command(after_help = super::help(include_str!("../help/learn.txt")))]
    Learn(Learn),
}

/// `hostler sandbox learn`
#[derive(Debug, Args)]
pub(in crate::cli) struct Learn {
    /// The tool's name: pack.function, or its MCP name
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub tool: String,
    /// Arguments: key=value, or key:=JSON
    #[arg(value_name = "KEY=VALUE")]
    pub arguments: Vec<String>,
    /// All arguments as one JSON object, or - to read it from standard input
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// The time limit of the call, such as 10s or 2m
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub timeout: Option<Duration>,
    /// Keep what its table in hostler.toml allows already, and add what is missing
    #[arg(long)]
    pub add: bool,
    /// Write the proposal into hostler.toml, if the call succeeds
    #[arg(long)]
    pub write: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
