//! A client of the control face, for the command line.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::message::Refusal;

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
    #[error(transparent)]
    Failed(#[from] io::Error),
    /// It refused.
    #[error("{}", .0.message)]
    Refused(Refusal),
}

#[derive(Deserialize)]
struct Response {
    result: Option<Value>,
    error: Option<Refusal>,
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
        let response: Response = serde_json::from_str(&self.line()?).map_err(io::Error::other)?;
        if let Some(refusal) = response.error {
            return Err(ControlError::Refused(refusal));
        }
        Ok(serde_json::from_value(response.result.unwrap_or_default()).map_err(io::Error::other)?)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended")),
            Ok(_) => Ok(line),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", LIMIT.as_secs())))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until there is something to read, which is true, or nothing reads `output`.
    fn is_heard_before_end_of(&self, output: BorrowedFd<'_>) -> io::Result<bool> {
        if !self.reader.buffer().is_empty() {
            return Ok(true);
        }
        let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        let mut asked =
            [PollFd::new(self.reader.get_ref(), PollFlags::IN), PollFd::from_borrowed_fd(output, PollFlags::empty())];
        while let Err(error) = poll(&mut asked, None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        Ok(!asked[1].revents().intersects(gone))
    }

    /// Subscribes to events, to be heard by [`Connection::events`].
    pub fn subscribe(&mut self, filter: &Value) -> Result<(), ControlError> {
        self.call::<Value>("events.subscribe", filter).map(drop)
    }

    /// Gives each event to `hear` until that returns false, or until nothing reads `output` any more, if it is given. The end of the
    /// connection before that is an error.
    pub fn events(
        mut self,
        output: Option<BorrowedFd<'_>>,
        mut hear: impl FnMut(Value) -> bool,
    ) -> Result<(), ControlError> {
        #[derive(Deserialize)]
        struct Notification {
            params: Params,
        }
        #[derive(Deserialize)]
        struct Params {
            result: Value,
        }
        self.reader.get_ref().set_read_timeout(None)?;
        loop {
            if let Some(output) = output
                && !self.is_heard_before_end_of(output)?
            {
                return Ok(());
            }
            let event: Notification = serde_json::from_str(&self.line()?).map_err(io::Error::other)?;
            if !hear(event.params.result) {
                return Ok(());
            }
        }
    }
}
