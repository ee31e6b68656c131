//! The options of `hostler audit`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::commands::limit;

/// `hostler audit`
#[derive(Debug, Args)]
pub(in crate::cli) struct Audit {
    #[command(subcommand)]
    pub what: Option<AuditOf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What `hostler audit` does; without one of them it lists.
#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum AuditOf {
    /// List decisions and changes of the mode, newest first
    List {
        /// Only decisions about this tool, by its full name
        #[arg(long, value_name = "TOOL")]
        tool: Option<String>,
        /// Only decisions about this call, by the beginning of its id
        #[arg(long, value_name = "ID")]
        call: Option<String>,
        /// Only decisions against a call
        #[arg(long)]
        denied: bool,
        /// Only those of the last time, such as 1h or 7d
        #[arg(long, value_name = "TIME", value_parser = limit)]
        since: Option<Duration>,
        /// At most so many
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        limit: usize,
    },
    /// Verify that no record was changed or is missing; exit status 1 if one was
    Verify {
        /// Compare with checkpoints that were kept elsewhere: lines that `hostler audit checkpoint` has printed
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
    /// Sign the log as it is, and print a line to keep elsewhere: with it, `verify` notices also a log that was replaced as a whole
    Checkpoint,
}
