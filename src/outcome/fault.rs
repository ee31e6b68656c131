//! A fault: a code, a message for people and models, and details for programs; and who cancelled a call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::Code;

/// Why a call has no result, and what to do about it.
#[derive(Debug, Clone, Deserialize)]
pub struct Fault {
    /// The code.
    pub code: Code,
    /// What happened and what to do next, in one or two sentences.
    pub message: String,
    /// Details for programs and for debugging.
    #[serde(default)]
    pub details: Box<Details>,
    /// The source error, for programs that embed hostler. Not part of the outcome.
    #[serde(skip)]
    pub source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The known details of a fault; all optional.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The exit status of a process that ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a process: `SIGKILL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The peak memory of a process that died, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<usize>,
    /// The last lines of stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The stack frames of the tool's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// The exception's type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// Names similar to the requested one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// For BUSY: when capacity is likely free. For `RATE_LIMITED`: when the next call is admitted, if none is made meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What the client lacks, by the name of the MCP capability: `sampling`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The wall of its sandbox that was in the way, as far as the error tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// The faults of the tries before, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// The beginning of the call's arguments, without secrets, for the log. Not part of the outcome.
    #[serde(skip)]
    pub input: Option<String>,
    /// Where arguments or a result do not fit, in the words of the tool's own schema, for spans. Not part of the outcome.
    #[serde(skip)]
    pub places: Vec<String>,
    /// The missing resource, from which advice is derived. Not part of the outcome.
    #[serde(skip)]
    pub missing: Option<Missing>,
}

/// A wall of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocked {
    /// A file may not be read or written.
    Files,
    /// The network is closed.
    Network,
    /// A system call is closed.
    SystemCalls,
}

/// Why an earlier try of a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The code.
    pub code: Code,
    /// What happened.
    pub message: String,
}

/// The longest message of a fault, in bytes.
const MAX_MESSAGE: usize = 8 << 10;
/// The longest traceback or standard error.
const MAX_TRACEBACK: usize = 64 << 10;

/// Keeps the beginning and the end: the end of a message often has the next step, that of a traceback the cause.
fn shorten(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let half = most / 2 - 16;
    let begin = text.floor_char_boundary(half);
    let end = text.ceil_char_boundary(text.len() - half);
    let cut = end - begin;
    text.replace_range(begin..end, &format!(" … [{cut} bytes] … "));
}

/// A resource that a tool needed and did not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// A declared secret, by name.
    Secret(String),
    /// A module, by its full name.
    Module(String),
    /// The declaration of a secret, by the secret's name.
    Declaration(String),
    /// A variable of its environment.
    Variable(String),
    /// Arguments of its program's command line.
    Arguments,
    /// Memory.
    Memory,
    /// Processor time.
    ProcessorTime,
}

impl Fault {
    /// A fault without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Box::default(), source: None }
    }

    /// Shortens its texts to what people and models can read: an exception may carry megabytes.
    pub fn shorten(&mut self) {
        shorten(&mut self.message, MAX_MESSAGE);
        let texts = [&mut self.details.traceback, &mut self.details.stderr, &mut self.details.exception];
        texts.into_iter().flatten().for_each(|text| shorten(text, MAX_TRACEBACK));
    }

    /// The same fault with its source error.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The same fault with details.
    #[must_use]
    pub fn with(mut self, details: Details) -> Self {
        self.details = Box::new(details);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shape<'a> {
            code: Code,
            message: &'a str,
            retryable: bool,
            details: &'a Details,
        }
        let Self { code, message, details, source: _ } = self;
        Shape { code: *code, message, retryable: code.retryable(), details }.serialize(serializer)
    }
}

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
    /// A program that steers hostler: `calls.cancel`.
    Operator,
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
            Canceller::Operator => "the operator cancelled it",
            Canceller::SessionEnd => "its session ended",
            Canceller::Shutdown => "hostler is shutting down",
            Canceller::Other => "for an unknown reason",
        })?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(formatter, " ({reason})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_keep_their_beginning_and_their_end() {
        let text = |size: usize| format!("begin{}end", "ä".repeat(size));
        let details = Details { traceback: Some(text(1 << 20)), ..Details::default() };
        let mut fault = Fault::new(Code::ToolError, text(5 << 20)).with(details);
        fault.shorten();
        let traceback = fault.details.traceback.unwrap();
        for (text, most) in [(&fault.message, 8 << 10), (&traceback, 64 << 10)] {
            assert!(text.len() <= most && text.len() > most - 64, "{}", text.len());
            assert!(text.starts_with("begin") && text.ends_with("end") && text.contains("bytes]"));
        }
        let mut short = Fault::new(Code::ToolError, "short");
        short.shorten();
        assert_eq!(short.message, "short");
    }
}
