//! What an attached process and a shared hostler say to each other: JSON-RPC, a message a line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::protocol::ProgressNote;
use crate::registry::Filter;

/// The version of these messages.
pub const PROTOCOL: u32 = 1;

/// The request that begins a session. Standard input and standard output of the client travel with it.
pub const ATTACH: &str = "session.attach";
/// The attached process has read that its session was accepted. The client's input is read from here on.
pub const BEGIN: &str = "session.begin";
/// A signal that the attached process received.
pub const SIGNAL: &str = "session.signal";
/// A text for standard error.
pub const LOG: &str = "session.log";
/// The session is over, and the shared hostler has closed the client's streams.
pub const ENDED: &str = "session.ended";

/// The request that begins a session of a command, whose streams stay with it. Its parameters are those of [`ATTACH`].
pub const OPEN: &str = "session.open";
/// A command's request for the list of tools: [`ListParams`], answered by a [`crate::registry::Listing`].
pub const LIST: &str = "tools.list";
/// A command's request for the schema of a tool's arguments: [`SchemaParams`], answered by an object, or `null` where there is no
/// such tool.
pub const SCHEMA: &str = "tools.schema";
/// A command's request for a call: [`CallParams`], answered by an [`crate::Outcome`].
pub const CALL: &str = "calls.run";
/// What happens during that call: [`Event`].
pub const EVENT: &str = "calls.event";
/// The shared hostler's question to the person at the terminal: [`Question`], answered by an [`crate::call::Elicited`].
pub const ELICIT: &str = "client.elicit";

/// Parameters of [`LIST`].
#[derive(Debug, Serialize, Deserialize)]
pub struct ListParams {
    /// What to list.
    pub filter: Filter,
}

/// Parameters of [`SCHEMA`].
#[derive(Debug, Serialize, Deserialize)]
pub struct SchemaParams {
    /// The tool's name.
    pub tool: String,
}

/// Parameters of [`CALL`].
#[derive(Debug, Serialize, Deserialize)]
pub struct CallParams {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Whether there is a person at a terminal.
    pub can_ask: bool,
}

/// Parameters of [`EVENT`], as a [`crate::pool::Listener`] receives them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A preparation.
    Note {
        /// For people.
        text: String,
    },
    /// It is over.
    GoesOn,
    /// Progress of the tool.
    Progress(ProgressNote),
    /// Output of the tool.
    Output {
        /// `stdout` or `stderr`.
        stream: String,
        /// The text.
        text: String,
    },
}

/// Parameters of [`ELICIT`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Question {
    /// The tool that was called.
    pub tool: String,
    /// What the person reads.
    pub message: String,
    /// The form, as a JSON Schema.
    pub schema: Value,
}

/// Parameters of [`ATTACH`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Attach {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The build of the attached process.
    pub build: String,
    /// Its working directory.
    pub directory: Words,
    /// `--config`.
    pub config: Option<Words>,
    /// `--tools`.
    pub tools: Vec<Words>,
    /// How often `-v` was given.
    pub verbose: u8,
    /// `--timeout`, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Its environment variables.
    pub variables: Vec<(Words, Words)>,
}

/// The result of [`ATTACH`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Attached {
    /// The session's number.
    pub session: u64,
    /// The shared hostler's process id.
    pub pid: u32,
}

/// Parameters of [`SIGNAL`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Signalled {
    /// The signal's number.
    pub number: i32,
}

/// Parameters of [`LOG`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Said {
    /// Whole lines.
    pub text: String,
}

/// Parameters of [`ENDED`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Over {
    /// The exit status of the attached process.
    pub status: u8,
}

/// A request or a notification.
#[derive(Debug, Serialize)]
pub struct Message<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

/// A line of either side. What is missing depends on what it is.
#[derive(Debug, Deserialize)]
pub struct Line<'a> {
    /// The id of a request or a response.
    pub id: Option<u64>,
    /// The method of a request or a notification.
    pub method: Option<String>,
    /// Its parameters.
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    /// The result of a response.
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    /// The error of a response.
    pub error: Option<Refusal>,
}

/// The error of a response.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// As in JSON-RPC.
    pub code: i32,
    /// For people.
    pub message: String,
}

/// A request as a line.
pub fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Message { jsonrpc: "2.0", id: Some(id), method, params })
}

/// A notification as a line.
pub fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Message { jsonrpc: "2.0", id: None, method, params })
}

/// A response as a line.
pub fn response(id: u64, result: Result<&impl Serialize, &Refusal>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a, R> {
        jsonrpc: &'static str,
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a R>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Refusal>,
    }
    line(&Response { jsonrpc: "2.0", id, result: result.ok(), error: result.err() })
}

fn line(message: &impl Serialize) -> Vec<u8> {
    // Maps with string keys and numbers cannot fail.
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Bytes of a path or a variable: a string where they are UTF-8, otherwise `{"hex": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(pub OsString);

impl<T: AsRef<OsStr> + ?Sized> From<&T> for Words {
    fn from(text: &T) -> Self {
        Self(text.as_ref().to_owned())
    }
}

impl From<Words> for PathBuf {
    fn from(words: Words) -> Self {
        words.0.into()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Bytes { hex: String },
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => Form::Bytes { hex: HEXLOWER.encode(self.0.as_bytes()) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Bytes { hex } => OsString::from_vec(HEXLOWER.decode(hex.as_bytes()).map_err(D::Error::custom)?),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_kind_round_trip() {
        for bytes in [&b"/home/a b"[..], b"", b"\xff\xfe", "ü\n\"".as_bytes()] {
            let words = Words(OsString::from_vec(bytes.to_vec()));
            let text = serde_json::to_string(&words).unwrap();
            assert_eq!(serde_json::from_str::<Words>(&text).unwrap(), words, "{text}");
        }
        assert!(serde_json::from_str::<Words>("{\"hex\": \"0\"}").is_err());
    }

    #[test]
    fn each_kind_of_line_is_read_back() {
        let asked = request(1, SIGNAL, Signalled { number: 15 });
        let read: Line<'_> = serde_json::from_slice(&asked).unwrap();
        assert_eq!(read.method.as_deref(), Some(SIGNAL));
        let refused = response(1, Err::<&Said, _>(&Refusal { code: -32000, message: "no".to_owned() }));
        let read: Line<'_> = serde_json::from_slice(&refused).unwrap();
        assert_eq!(read.error.unwrap().message, "no");
    }
}
