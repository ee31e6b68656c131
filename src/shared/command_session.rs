//! `hostler call` and `hostler list` as clients of the shared hostler.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Chain};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::attach::{Link, Start};
use super::message::{
    self, CALL, CallParams, ELICIT, EVENT, Event, LIST, LOG, Line, ListParams, OPEN, Question, SCHEMA, Said,
    SchemaParams,
};
use super::start::{Unshared, find};
use crate::call::Elicited;
use crate::outcome::Outcome;
use crate::registry::{Filter, Listing};

/// A session that a running shared hostler has opened for this command.
#[derive(Debug)]
pub struct Opened {
    stream: UnixStream,
    /// What was read of it.
    lines: Vec<u8>,
}

/// Asks the shared hostler for a session, if one runs. None is started.
pub fn open_session(start: &Start<'_>) -> Result<Option<Opened>, Unshared> {
    let Some(stream) = find(&start.place()?)? else { return Ok(None) };
    let Link { stream, lines } = Link::open(stream, start, OPEN, &[])?;
    Ok(Some(Opened { stream, lines }))
}

/// What a command does with what happens before an answer.
pub trait Hears {
    /// Lines for standard error.
    fn say(&self, text: &str);
    /// Something happens during the call.
    fn event(&self, event: Event);
    /// The tool asks the person.
    fn elicit(&self, question: Question) -> impl Future<Output = Elicited>;
}

/// The session of a command.
pub struct CommandSession {
    lines: BufReader<Chain<io::Cursor<Vec<u8>>, OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    last: u64,
}

impl CommandSession {
    /// Goes on with a session. Must be called within a tokio runtime.
    pub fn of(opened: Opened) -> io::Result<Self> {
        let Opened { stream, lines } = opened;
        stream.set_nonblocking(true)?;
        let (reader, writer) = tokio::net::UnixStream::from_std(stream)?.into_split();
        Ok(Self { lines: BufReader::new(io::Cursor::new(lines).chain(reader)), writer, last: 0 })
    }

    /// The list of tools.
    pub async fn list(&mut self, filter: Filter, hears: &impl Hears) -> io::Result<Listing> {
        self.request(LIST, ListParams { filter }, hears).await
    }

    /// The schema of a tool's arguments; `None` if there is no such tool.
    pub async fn schema(&mut self, tool: &str, hears: &impl Hears) -> io::Result<Option<Map<String, Value>>> {
        self.request(SCHEMA, SchemaParams { tool: tool.to_owned() }, hears).await
    }

    /// Calls a tool. Dropping the session cancels the call.
    pub async fn call(&mut self, params: CallParams, hears: &impl Hears) -> io::Result<Outcome> {
        self.request(CALL, params, hears).await
    }

    async fn request<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
        hears: &impl Hears,
    ) -> io::Result<T> {
        self.last += 1;
        let id = self.last;
        self.writer.write_all(&message::request(id, method, params)).await?;
        let mut bytes = Vec::new();
        // The person is asked one question at a time, while the end of the shared hostler is heard.
        let (mut asking, mut questions) = (pin!(None), VecDeque::new());
        loop {
            if asking.is_none()
                && let Some((id, question)) = questions.pop_front()
            {
                asking.set(Some(async move { message::response(id, Ok(&hears.elicit(question).await)) }));
            }
            tokio::select! {
                answer = answered(asking.as_mut()) => {
                    asking.set(None);
                    self.writer.write_all(&answer).await?;
                    continue;
                }
                count = self.lines.read_until(b'\n', &mut bytes) => {
                    if count? == 0 {
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the shared hostler ended"));
                    }
                }
            }
            let text = std::mem::take(&mut bytes);
            let line: Line<'_> = serde_json::from_slice(&text)?;
            match (line.method.as_deref(), line.params) {
                (Some(LOG), Some(params)) => hears.say(&read::<Said>(params)?.text),
                (Some(EVENT), Some(params)) => hears.event(read(params)?),
                (Some(ELICIT), Some(params)) => {
                    questions.push_back((line.id.unwrap_or_default(), read(params)?));
                }
                (None, _) if line.id == Some(id) => {
                    return match (line.result, line.error) {
                        (Some(result), _) => read(result),
                        (None, Some(refusal)) => Err(io::Error::other(refusal.message)),
                        (None, None) => serde_json::from_str("null").map_err(Into::into),
                    };
                }
                _ => {}
            }
        }
    }
}

/// Waits for the answer to a question, if one is asked.
async fn answered(asking: Pin<&mut Option<impl Future<Output = Vec<u8>>>>) -> Vec<u8> {
    match asking.as_pin_mut() {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

fn read<T: DeserializeOwned>(json: &RawValue) -> io::Result<T> {
    Ok(serde_json::from_str(json.get())?)
}
