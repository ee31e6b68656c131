//! Frames from worker to host.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::parse::maybe_whole;

/// A line from a worker.
#[derive(Debug)]
pub enum Incoming {
    /// The answer to a request of the host.
    Reply {
        /// The request's id.
        id: u64,
        /// The result as JSON text, or the error.
        answer: Result<Box<RawValue>, WireError>,
    },
    /// Output of the tool.
    Output(OutputNote),
    /// Progress of a call.
    Progress(ProgressNote),
    /// Fields that were removed from a result.
    Dropped(DroppedNote),
    /// A request to the host.
    Ask {
        /// The worker's own id of the request, returned unchanged.
        id: Box<RawValue>,
        /// The requesting call, if the request names it.
        call: Option<u64>,
        /// The method.
        method: HostMethod,
        /// The parameters.
        params: Box<RawValue>,
    },
    /// The descriptions of the types in `hello`, as JSON text.
    Described(Box<RawValue>),
    /// A request that this version does not know; the worker waits for an answer.
    UnknownRequest {
        /// The worker's own id of the request, returned unchanged.
        id: Box<RawValue>,
        /// The method.
        method: String,
    },
    /// A notification that this version does not know; ignored, so that later workers may send more.
    Unknown(String),
}

/// The methods that a worker may request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMethod {
    /// Call another tool.
    Call,
    /// List the catalogue.
    Tools,
    /// Read hostler's configuration without secrets.
    Config,
    /// Ask the client's language model.
    Llm,
    /// Ask the client's user.
    Elicit,
    /// Ask the client for the folders that it works in.
    Roots,
    /// Get hostler's status.
    Status,
    /// Refresh all tools.
    Refresh,
}

impl HostMethod {
    /// Whether the client answers, which may take a person's time.
    pub const fn asks_client(self) -> bool {
        matches!(self, Self::Llm | Self::Elicit | Self::Roots)
    }

    /// The word in `hello`'s `host` list.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Tools => "tools",
            Self::Config => "config",
            Self::Llm => "llm",
            Self::Elicit => "elicit",
            Self::Roots => "roots",
            Self::Status => "status",
            Self::Refresh => "refresh",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "host.call" => Some(Self::Call),
            "host.tools" => Some(Self::Tools),
            "host.config" => Some(Self::Config),
            "host.llm" => Some(Self::Llm),
            "host.elicit" => Some(Self::Elicit),
            "host.roots" => Some(Self::Roots),
            "host.status" => Some(Self::Status),
            "host.refresh" => Some(Self::Refresh),
            _ => None,
        }
    }
}

/// The error object of a reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WireError {
    /// One of [`super::wire_code`].
    pub code: i64,
    /// `Type: text` for an exception, a sentence otherwise.
    pub message: String,
    /// Further data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl WireError {
    /// A string field of `data`.
    pub fn detail(&self, key: &str) -> Option<&str> {
        self.data.as_ref()?.get(key)?.as_str()
    }
}

/// Output of the tool during a call.
#[derive(Debug, Clone, Deserialize)]
pub struct OutputNote {
    /// The call; `None` while the file was imported.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub id: Option<u64>,
    /// `stdout` or `stderr`.
    #[serde(default)]
    pub stream: String,
    /// The text.
    pub text: String,
}

/// Fields that were removed from the result of a call, because the return annotation does not declare them.
#[derive(Debug, Clone, Deserialize)]
pub struct DroppedNote {
    /// The call.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub id: Option<u64>,
    /// The fields, as `Class.field`.
    pub fields: Vec<String>,
}

/// Progress of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProgressNote {
    /// The call.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub id: Option<u64>,
    /// A growing number.
    pub progress: f64,
    /// Its final value.
    #[serde(default)]
    pub total: Option<f64>,
    /// The current step.
    #[serde(default)]
    pub message: Option<String>,
}
