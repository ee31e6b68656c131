//! One session of MCP behind HTTP: requests get numbers of its own, and what it says goes to the stream that it belongs to.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::frame::{Frame, Params, cancellation, of_subscription, on_one_line, spliced};
use super::stream::Stream;
use crate::call::{CallService, Session};
use crate::http::face::Attendance;
use crate::mcp::serve_session;
use crate::protocol::TraceContext;

/// What the streams to and from the session hold, and the lines on their way to it.
const WITHIN: usize = 64 << 10;
const ON_THE_WAY: usize = 64;
/// The streams that are kept after their end, for clients that come back.
const KEPT: usize = 64;
/// The most bytes of a session's streams: beyond that the oldest ones that ended are forgotten.
const MOST_KEPT: usize = 16 << 20;
/// The most requests without an answer.
const MOST_OPEN: usize = 1024;

/// A session of one client, or of all clients that have none.
pub struct Peer {
    lines: mpsc::Sender<String>,
    /// Whether its clients can come back for what they missed.
    is_kept: bool,
    /// Locked to look, to add or to remove.
    state: Mutex<State>,
}

struct State {
    last: u64,
    /// Requests without an answer, by the number that the session knows them by.
    open: BTreeMap<u64, OpenRequest>,
    /// Streams that a client may come back to, the oldest first.
    streams: BTreeMap<u64, Arc<Stream>>,
    /// What belongs to no request.
    rest: Arc<Stream>,
    used: Instant,
    is_over: bool,
}

struct OpenRequest {
    /// As its client knows it.
    id: Box<RawValue>,
    /// The token of its progress.
    token: Option<Box<RawValue>>,
    stream: Arc<Stream>,
}

/// Too many requests are open, or the session is over.
pub struct Full;

impl Peer {
    /// Begins a session. It ends when the peer is dropped.
    pub fn begin(service: Arc<CallService>, is_kept: bool, attendance: Arc<Attendance>) -> Arc<Self> {
        let (near, far) = tokio::io::duplex(WITHIN);
        let (input, output) = tokio::io::split(far);
        let (reader, mut writer) = tokio::io::split(near);
        let (lines, mut queued) = mpsc::channel::<String>(ON_THE_WAY);
        let rest = Stream::new(0, is_kept);
        let streams = BTreeMap::from([(0, Arc::clone(&rest))]);
        let state = State { last: 0, open: BTreeMap::new(), streams, rest, used: Instant::now(), is_over: false };
        let peer = Arc::new(Self { lines, is_kept, state: Mutex::new(state) });
        tokio::spawn(async move {
            let writing = async {
                while let Some(line) = queued.recv().await {
                    writer.write_all(line.as_bytes()).await?;
                }
                writer.shutdown().await
            };
            // Clients that cannot come back have no session of their own.
            let session = if is_kept { Session::open(service) } else { Session::of_many(service) };
            let serving = serve_session(session, input, output);
            tokio::select! {
                _ = async { tokio::join!(writing, serving) } => {}
                () = attendance.ended() => {}
            }
        });
        let own = Arc::downgrade(&peer);
        tokio::spawn(hear(BufReader::new(reader), own));
        peer
    }

    /// Passes a request on. What it is answered comes in the stream.
    pub async fn ask(
        &self,
        frame: &Frame<'_>,
        id: &RawValue,
        token: Option<&RawValue>,
        trace: Option<&TraceContext>,
    ) -> Result<(u64, Arc<Stream>), Full> {
        // Before it is entered: a client that goes meanwhile leaves nothing behind.
        let place = self.lines.reserve().await.map_err(|_| Full)?;
        let (number, stream) = {
            let mut state = self.state.lock();
            if state.open.len() >= MOST_OPEN || state.is_over {
                return Err(Full);
            }
            state.last += 1;
            let (number, stream) = (state.last, Stream::new(state.last, self.is_kept));
            let (id, token) = (id.to_owned(), token.map(ToOwned::to_owned));
            state.open.insert(number, OpenRequest { id, token, stream: Arc::clone(&stream) });
            if self.is_kept {
                state.streams.insert(number, Arc::clone(&stream));
            }
            state.forget();
            (number, stream)
        };
        place.send(frame.numbered(number, token, trace));
        Ok((number, stream))
    }

    /// Passes on what is no request: a notification, or an answer to a question of the session.
    pub async fn tell(&self, frame: &Frame<'_>, known: &Params<'_>, text: &str) {
        self.state.lock().used = Instant::now();
        let line = match frame.method.as_deref() {
            Some("notifications/cancelled") => {
                let Some(number) = known.request.and_then(|id| self.number_of(id)) else { return };
                // It is not answered.
                return self.left(number);
            }
            Some(_) => frame.line(),
            None => format!("{}\n", on_one_line(text)),
        };
        let _ = self.lines.send(line).await;
    }

    fn number_of(&self, id: &RawValue) -> Option<u64> {
        let state = self.state.lock();
        state.open.iter().find(|(_, open)| open.id.get() == id.get()).map(|(number, _)| *number)
    }

    /// The client has left the stream of a request: without a way back to it, the answer is of no use.
    pub fn left(&self, number: u64) {
        let Some(open) = self.state.lock().open.remove(&number) else { return };
        open.stream.end();
        let lines = self.lines.clone();
        // One for each request at most.
        tokio::spawn(async move {
            let _ = lines.send(cancellation(number)).await;
        });
    }

    /// A request was answered whole: its client has no reason to come back.
    pub fn forget(&self, number: u64) {
        self.state.lock().streams.remove(&number);
    }

    /// The stream of this number, as long as it is kept. 0 is that of what belongs to no request.
    pub fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        let mut state = self.state.lock();
        state.used = Instant::now();
        state.streams.get(&number).cloned()
    }

    /// Whether nothing has happened for this long, and no stream is read.
    pub fn is_idle_for(&self, time: Duration) -> bool {
        let state = self.state.lock();
        let is_read = Arc::strong_count(&state.rest) > 2;
        state.is_over || (state.open.is_empty() && !is_read && state.used.elapsed() >= time)
    }

    /// Whether its session has ended.
    pub fn is_over(&self) -> bool {
        self.state.lock().is_over
    }

    /// When it was used last.
    pub fn used(&self) -> Instant {
        self.state.lock().used
    }

    /// Takes a line of the session to where it belongs.
    fn carry(&self, line: &str) {
        let Ok(frame) = serde_json::from_str::<Frame<'_>>(line) else { return };
        let mut state = self.state.lock();
        let Some(method) = frame.method.as_deref() else {
            let number = frame.id.and_then(|id| id.get().parse::<u64>().ok());
            if let Some(open) = number.and_then(|number| state.open.remove(&number)) {
                open.stream.push_last(frame.response(&open.id));
                state.used = Instant::now();
            }
            return;
        };
        let known = frame.known().unwrap_or_default();
        let (number, message) = if let Some(named) = known.meta.subscription {
            let number = named.get().parse::<u64>().ok();
            let open = number.and_then(|number| state.open.get(&number));
            (number, open.and_then(|open| of_subscription(line, &open.id)))
        } else {
            let number = state.place_of(method, known.token, frame.id.is_some());
            let token = number.and_then(|number| state.open.get(&number)?.token.as_ref());
            let text = match token {
                Some(token) => spliced(line.trim_end(), known.token, token.get()),
                None => line.trim_end().into(),
            };
            (number, Some(text.into_owned()))
        };
        let stream = match number {
            Some(number) => state.open.get(&number).map(|open| Arc::clone(&open.stream)),
            None => Some(Arc::clone(&state.rest)),
        };
        drop(state);
        if let (Some(stream), Some(message)) = (stream, message)
            && !stream.push(message)
            && let Some(number) = number
        {
            self.left(number);
        }
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.open.values().for_each(|open| open.stream.end());
        state.streams.values().for_each(|stream| stream.end());
        state.open.clear();
    }
}

impl State {
    /// The request that a message of the session belongs to, as far as it says so: progress by its token, questions and log lines
    /// to the newest request. Other notifications belong to none.
    fn place_of(&self, method: &str, token: Option<&RawValue>, is_question: bool) -> Option<u64> {
        if let Some(token) = token {
            return token.get().parse().ok();
        }
        let is_of_request = is_question || matches!(method, "notifications/message" | "notifications/cancelled");
        self.open.last_key_value().filter(|_| is_of_request).map(|(number, _)| *number)
    }

    /// Forgets streams that ended, but for the newest.
    fn forget(&mut self) {
        self.used = Instant::now();
        let bytes = |state: &Self| state.streams.values().map(|stream| stream.bytes()).sum::<usize>();
        while self.streams.len() > KEPT || bytes(self) > MOST_KEPT {
            let oldest = self.streams.iter().find(|(number, stream)| **number > 0 && stream.is_over());
            let Some(number) = oldest.map(|(number, _)| *number) else { break };
            self.streams.remove(&number);
        }
    }
}

/// Carries what the session says, until it ends.
async fn hear(mut lines: BufReader<impl tokio::io::AsyncRead + Unpin>, peer: Weak<Peer>) {
    let mut line = String::new();
    while matches!(lines.read_line(&mut line).await, Ok(1..)) {
        let Some(peer) = peer.upgrade() else { return };
        peer.carry(&line);
        line.clear();
    }
    if let Some(peer) = peer.upgrade() {
        peer.end();
    }
}
