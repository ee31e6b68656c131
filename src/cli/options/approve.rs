//! The options of `hostler approve`.

use clap::{Args, ValueEnum};

/// `hostler approve`
#[derive(Debug, Args)]
pub(in crate::cli) struct Approve {
    /// The id of one approval, or its beginning; all that wait without one
    pub id: Option<String>,
    /// Approve without a prompt; says what the approval covers. Needs a terminal
    #[arg(long, value_enum, requires = "id", conflicts_with = "deny")]
    pub allow: Option<Allow>,
    /// Deny without a prompt
    #[arg(long, requires = "id")]
    pub deny: bool,
    /// Why it is denied; the model reads it
    #[arg(long, value_name = "TEXT", requires = "deny")]
    pub reason: Option<String>,
    /// List the calls that wait, or the approvals that are kept
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "waiting", conflicts_with_all = ["id", "allow", "deny", "reason", "forget", "watch"])]
    pub list: Option<Listed>,
    /// Go on asking about calls as they come; needs a terminal
    #[arg(long, conflicts_with_all = ["id", "forget", "json"])]
    pub watch: bool,
    /// Revoke a kept approval by its id, all of a tool by its name, or `all`
    #[arg(long, value_name = "ID|TOOL|all", conflicts_with = "id")]
    pub forget: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What an approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Allow {
    /// This call
    Once,
    /// Calls of this version of the tool in this session
    Session,
    /// Calls of this version of the tool with these arguments, for good
    Arguments,
    /// Calls of this version of the tool, for good
    Tool,
}

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Listed {
    /// Calls that wait
    Waiting,
    /// Approvals that are kept
    Kept,
}

impl Allow {
    /// Its word on the control face.
    pub fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Arguments => "arguments",
            Self::Tool => "tool",
        }
    }
}
