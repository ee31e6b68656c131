//! A client of the control face, for the command line.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(5);

/// A connection to a hostler that runs.
pub struct Connection {
    reader: BufReader<UnixStream>,
    last: u64,
}

/// Why a method was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The connection failed.
    #[error("the shared hostler does not answer: {0}")]
    Failed(#[from] io::Error),
    /// It refused.
    #[error("{0}")]
    Refused(String),
}

#[derive(Deserialize)]
struct Response {
    result: Option<Value>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

impl Connection {
    /// A connection over this stream.
    pub fn over(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Self { reader: BufReader::new(stream), last: 0 })
    }

    /// Calls a method.
    pub fn call<T: DeserializeOwned>(&mut self, method: &str, params: &impl Serialize) -> Result<T, ControlError> {
        self.last += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let response: Response = serde_json::from_str(&line).map_err(io::Error::other)?;
        if let Some(error) = response.error {
            return Err(ControlError::Refused(error.message));
        }
        Ok(serde_json::from_value(response.result.unwrap_or_default()).map_err(io::Error::other)?)
    }
}
