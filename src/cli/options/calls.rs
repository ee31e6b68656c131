//! The options of commands about calls that were made before.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::commands::{duration, limit};

/// `hostler calls`
#[derive(Debug, Args)]
pub(in crate::cli) struct Calls {
    #[command(subcommand)]
    pub what: Option<CallsOf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What `hostler calls` does; without one of them it lists.
#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum CallsOf {
    /// List calls that run, then calls that have ended, newest first
    List {
        /// Only calls of this tool, by its full name
        #[arg(long, value_name = "TOOL")]
        tool: Option<String>,
        /// Only calls that have not ended
        #[arg(long)]
        running: bool,
        /// Only calls that a rule or a person did not let run
        #[arg(long, conflicts_with = "running")]
        denied: bool,
        /// At most so many
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        limit: usize,
    },
    /// Show all that is known of a call
    Show {
        /// Its id, or the beginning of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Wait for the end of a background call, and print its result as `hostler call` does
    Wait {
        /// Its id, or the beginning of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
        /// Stop waiting after this time, such as 30s
        #[arg(long, value_name = "TIME", value_parser = limit)]
        timeout: Option<Duration>,
    },
    /// Make a call that has ended again, as a background call, and print its id
    Retry {
        /// Its id, or the beginning of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Cancel a running call
    Cancel {
        /// Its id, or the beginning of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Print what a call has printed, or what a running one prints from now on to its end
    Output {
        /// Its id, or the beginning of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
        /// Go on to its end
        #[arg(long, short)]
        follow: bool,
    },
    /// Remove calls that have ended, as hostler does by itself once an hour
    Prune {
        /// How long calls are kept from their end, such as 7d; else what `journal.keep` says
        #[arg(long, value_name = "TIME", value_parser = duration)]
        keep: Option<Duration>,
        /// How many calls are kept, the newest; else what `journal.keep_calls` says
        #[arg(long, value_name = "COUNT")]
        keep_calls: Option<u64>,
        /// Only say how many calls would go
        #[arg(long)]
        dry_run: bool,
    },
}

/// `hostler replay`
#[derive(Debug, Args)]
pub(in crate::cli) struct Replay {
    /// The id of the call, or the beginning of it
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub id: String,
    /// Use this tool file instead of the source as it was
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Make the call although its tool is not `pure`: what it did is done again
    #[arg(long, short)]
    pub yes: bool,
    /// Make no call; write a pytest file that makes it, into this folder
    #[arg(long, conflicts_with = "yes")]
    pub as_test: bool,
    /// Print JSON: `same`, `then` and `now`
    #[arg(long)]
    pub json: bool,
}
