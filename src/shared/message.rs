//! What an attached process and a shared hostler say to each other: JSON-RPC, a message a line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use crate::control::{Line, Refusal, notification, request, response};

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

/// Parameters of [`ATTACH`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Attach {
    /// [`PROTOCOL`]; of programs other than hostler, nothing.
    #[serde(default)]
    pub protocol: Option<u32>,
    /// The build of the attached process, likewise.
    #[serde(default)]
    pub build: Option<String>,
    /// Its working directory.
    pub directory: Words,
    /// `--config`.
    #[serde(default)]
    pub config: Option<Words>,
    /// `--tools`.
    #[serde(default)]
    pub tools: Vec<Words>,
    /// How often `-v` was given.
    #[serde(default)]
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
}
