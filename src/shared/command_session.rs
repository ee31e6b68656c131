//! `hostler call` and `hostler list` as clients of the shared hostler.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::attach::{Link, Start};
use super::message::{self, LOG, Line, OPEN, Refusal, Said};
use super::start::{Unshared, find, find_or_start};
use crate::call::Elicited;
use crate::control::{ELICIT, EVENT, Event, LIST, ListParams, Question, RUN, RunParams, SHOW, ToolParams};
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

/// The same, of one that is started if none runs.
pub fn open_or_start(start: &Start<'_>) -> Result<Opened, Unshared> {
    let stream = find_or_start(&start.place()?, start.environment, &mut || false)?;
    let Link { stream, lines } = Link::open(stream, start, OPEN, &[])?;
    Ok(Opened { stream, lines })
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

/// A call that the shared hostler was sent.
#[derive(Debug)]
pub struct SentCall(u64);

/// The session of a command.
pub struct CommandSession {
    lines: Box<dyn AsyncBufRead + Unpin>,
    writer: Box<dyn AsyncWrite + Unpin>,
    last: u64,
}

/// Why a request has no result.
#[derive(Debug)]
pub enum Unanswered {
    /// The connection failed.
    Lost(io::Error),
    /// The method refused.
    Refused(Refusal),
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Unanswered> for io::Error {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Lost(error) => error,
            Unanswered::Refused(refusal) => io::Error::other(refusal.message),
        }
    }
}

impl CommandSession {
    /// Goes on with a session. Must be called within a tokio runtime.
    pub fn of(opened: Opened) -> io::Result<Self> {
        let Opened { stream, lines } = opened;
        stream.set_nonblocking(true)?;
        let (reader, writer) = tokio::net::UnixStream::from_std(stream)?.into_split();
        Ok(Self::over(BufReader::new(io::Cursor::new(lines).chain(reader)), writer))
    }

    /// A client on these streams.
    pub fn over(lines: impl AsyncBufRead + Unpin + 'static, writer: impl AsyncWrite + Unpin + 'static) -> Self {
        Self { lines: Box::new(lines), writer: Box::new(writer), last: 0 }
    }

    /// The list of tools.
    pub async fn list(&mut self, filter: Filter, hears: &impl Hears) -> io::Result<Listing> {
        self.request(LIST, ListParams { filter }, hears).await
    }

    /// The schema of a tool's arguments; `None` if there is no such tool.
    pub async fn schema(&mut self, tool: &str, hears: &impl Hears) -> io::Result<Option<Map<String, Value>>> {
        #[derive(Deserialize)]
        struct Shown {
            input_schema: Map<String, Value>,
        }
        match self.request(SHOW, ToolParams { tool: tool.to_owned() }, hears).await {
            Ok(Shown { input_schema }) => Ok(Some(input_schema)),
            // The call says why, in its own way.
            Err(error) if error.kind() == io::ErrorKind::Other => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a call. If that fails, the call is never begun. Dropping the session cancels it.
    pub async fn send_call(&mut self, params: RunParams) -> io::Result<SentCall> {
        self.send(RUN, params).await.map(SentCall)
    }

    /// The outcome of a call. If there is none, it is not known whether the call was begun.
    pub async fn outcome(&mut self, call: SentCall, hears: &impl Hears) -> io::Result<Outcome> {
        let result = self.answer(call.0, hears).await?;
        Ok(serde_json::from_str(result.get())?)
    }

    async fn request<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
        hears: &impl Hears,
    ) -> io::Result<T> {
        let id = self.send(method, params).await?;
        let result = self.answer(id, hears).await?;
        Ok(serde_json::from_str(result.get())?)
    }

    /// Calls any method.
    pub async fn ask(
        &mut self,
        method: &str,
        params: impl Serialize,
        hears: &impl Hears,
    ) -> Result<Box<RawValue>, Unanswered> {
        let id = self.send(method, params).await?;
        self.answer(id, hears).await
    }

    async fn send(&mut self, method: &str, params: impl Serialize) -> io::Result<u64> {
        self.last += 1;
        self.writer.write_all(&message::request(self.last, method, params)).await?;
        Ok(self.last)
    }

    async fn answer(&mut self, id: u64, hears: &impl Hears) -> Result<Box<RawValue>, Unanswered> {
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
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the shared hostler ended").into());
                    }
                }
            }
            let text = std::mem::take(&mut bytes);
            let line: Line<'_> = serde_json::from_slice(&text).map_err(io::Error::from)?;
            match (line.method.as_deref(), line.params) {
                (Some(LOG), Some(params)) => hears.say(&read::<Said>(params)?.text),
                (Some(EVENT), Some(params)) => hears.event(read(params)?),
                (Some(ELICIT), Some(params)) => {
                    questions.push_back((line.id.unwrap_or_default(), read(params)?));
                }
                (None, _) if line.id == Some(id) => {
                    return match (line.result, line.error) {
                        (Some(result), _) => Ok(result.to_owned()),
                        (None, Some(refusal)) => Err(Unanswered::Refused(refusal)),
                        (None, None) => Ok(RawValue::NULL.to_owned()),
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
