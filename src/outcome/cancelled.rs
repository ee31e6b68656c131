//! Why a call was cancelled, and by whom.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Code, Fault};

/// Why a call was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// The canceller.
    pub by: Canceller,
    /// The reason in the canceller's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who can cancel a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Canceller {
    /// The client: MCP's `notifications/cancelled`.
    Client,
    /// The client closed its connection.
    ClientGone,
    /// The program that made the call, or it dropped the future.
    Caller,
    /// A signal to the process that made the call, such as Ctrl-C.
    Signal,
    /// The call's session ended.
    SessionEnd,
    /// hostler shuts down.
    Shutdown,
    /// An unknown value, from a newer hostler.
    #[serde(other)]
    Other,
}

impl Cancelled {
    /// Without a reason.
    pub const fn by(by: Canceller) -> Self {
        Self { by, reason: None }
    }

    /// With a reason.
    pub fn because(by: Canceller, reason: impl Into<String>) -> Self {
        Self { by, reason: Some(reason.into()) }
    }

    /// The fault that the call's listeners receive.
    pub fn fault(&self, tool: &str) -> Fault {
        let code = if self.by == Canceller::Shutdown { Code::ShuttingDown } else { Code::Cancelled };
        Fault::new(code, format!("the call of {tool} was cancelled: {self}"))
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.by {
            Canceller::Client => "the client cancelled it",
            Canceller::ClientGone => "the client is gone",
            Canceller::Caller => "the caller cancelled it",
            Canceller::Signal => "interrupted by a signal",
            Canceller::SessionEnd => "its session ended",
            Canceller::Shutdown => "hostler is shutting down",
            Canceller::Other => "for an unknown reason",
        })?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(formatter, " ({reason})"))
    }
}
