//! What a worker may say to its host.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::parse::maybe_whole;

/// A line that a worker wrote.
#[derive(Debug)]
pub enum Incoming {
    /// The answer to a request of ours.
    Reply {
        /// The request's id.
        id: u64,
        /// The result as JSON text, or the error.
        answer: Result<Box<RawValue>, WireError>,
    },
    /// Something the tool printed.
    Output(OutputNote),
    /// How far a call has come.
    Progress(ProgressNote),
    /// The worker asks something of the host.
    Ask {
        /// The worker's id for its request, to be sent back as it is.
        id: Box<RawValue>,
        /// The call that asks, as far as it says.
        call: Option<u64>,
        /// What it asks.
        method: HostMethod,
        /// With what.
        params: Box<RawValue>,
    },
    /// What the types are that `hello` asked to be described, as JSON text.
    Described(Box<RawValue>),
    /// A request that this version does not know: the worker waits for an answer.
    UnknownRequest {
        /// The worker's id for it, to be sent back as it is.
        id: Box<RawValue>,
        /// What it asks.
        method: String,
    },
    /// A notification that this version does not know; ignored, so that later workers may send more.
    Unknown(String),
}

/// What a worker may ask of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMethod {
    /// Call another tool.
    Call,
    /// List the catalogue.
    Tools,
    /// Read hostler's configuration (secrets left out).
    Config,
    /// Ask the client's language model.
    Llm,
    /// Look how hostler stands.
    Status,
    /// Look at all tools anew.
    Refresh,
}

impl HostMethod {
    /// The word in `hello`'s `host` list.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Tools => "tools",
            Self::Config => "config",
            Self::Llm => "llm",
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
    /// What else is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl WireError {
    /// A string field of `data`.
    pub fn detail(&self, key: &str) -> Option<&str> {
        self.data.as_ref()?.get(key)?.as_str()
    }
}

/// Text that the tool wrote while a call ran.
#[derive(Debug, Clone, Deserialize)]
pub struct OutputNote {
    /// The call, or none while the file was imported.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub id: Option<u64>,
    /// `stdout` or `stderr`.
    #[serde(default)]
    pub stream: String,
    /// What was written.
    pub text: String,
}

/// How far a call has come.
#[derive(Debug, Clone, Deserialize)]
pub struct ProgressNote {
    /// The call.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub id: Option<u64>,
    /// A number that grows.
    pub progress: f64,
    /// What it grows towards.
    #[serde(default)]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default)]
    pub message: Option<String>,
}
