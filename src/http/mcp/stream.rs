//! The messages of one request, or those of a session that belong to none: kept until they are read, and a while after that
//! where a client may come back for them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Frame};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::http::body::Body;

/// The most bytes that a reader may be behind: after that the stream ends. One message may be larger.
const MOST_UNREAD: usize = 64 << 20;
/// The most bytes that are kept of what was read.
const MOST_KEPT: usize = 1 << 20;
/// How often an idle stream says that it is there.
const IDLE: Duration = Duration::from_secs(15);

/// A message, or the empty one before the first by which a client can come back.
type Event = Arc<str>;

/// A stream of messages.
pub struct Stream {
    /// Its number in its session.
    pub number: u64,
    /// Whether its client can come back for what it missed.
    is_kept: bool,
    /// Locked to add or to copy one.
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// The number of the first of them.
    first: u64,
    /// The number of the first that was not read.
    unread: u64,
    unread_bytes: usize,
    kept_bytes: usize,
    is_over: bool,
    /// Who reads: only the newest reader goes on.
    reader: u64,
}

impl Stream {
    /// A stream of this number.
    pub fn new(number: u64, is_kept: bool) -> Arc<Self> {
        Arc::new(Self { number, is_kept, state: Mutex::default(), news: Notify::new() })
    }

    /// Adds a message. False if nothing reads it: the stream is over then.
    pub fn push(&self, message: String) -> bool {
        self.add(message, false)
    }

    /// Adds the last message.
    pub fn push_last(&self, message: String) {
        self.add(message, true);
    }

    fn add(&self, message: String, is_last: bool) -> bool {
        let mut state = self.state.lock();
        if state.is_over {
            return false;
        }
        let is_full = state.unread_bytes > MOST_UNREAD;
        if is_full {
            state.is_over = true;
        } else {
            state.unread_bytes += message.len();
            state.events.push_back(message.into());
            state.is_over = is_last;
        }
        drop(state);
        self.news.notify_waiters();
        !is_full
    }

    /// No message follows.
    pub fn end(&self) {
        self.state.lock().is_over = true;
        self.news.notify_waiters();
    }

    /// What it holds.
    pub fn bytes(&self) -> usize {
        let state = self.state.lock();
        state.unread_bytes + state.kept_bytes
    }

    /// Whether no message follows.
    pub fn is_over(&self) -> bool {
        self.state.lock().is_over
    }

    /// A reader from a message on, or from the first that was not read. Another one ends.
    pub fn read(self: &Arc<Self>, from: Option<u64>) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        let next = from.unwrap_or(state.unread).clamp(state.first, state.unread);
        let reader = Reader { stream: Arc::clone(self), turn: state.reader, next };
        drop(state);
        self.news.notify_waiters();
        reader
    }
}

/// Reads a stream.
pub struct Reader {
    stream: Arc<Stream>,
    turn: u64,
    /// The number of the next message.
    pub next: u64,
}

/// What a reader finds.
pub enum Read {
    /// A message and its number.
    Message(u64, Event),
    /// It is over, or another one reads.
    End,
}

impl Reader {
    /// The next message.
    pub async fn next(&mut self) -> Read {
        loop {
            let stream = Arc::clone(&self.stream);
            let news = stream.news.notified();
            if let Some(read) = self.look() {
                return read;
            }
            news.await;
        }
    }

    /// Whether nothing follows, as far as can be said now.
    pub fn is_done(&self) -> bool {
        let state = self.stream.state.lock();
        state.is_over && self.next >= state.first + state.events.len() as u64
    }

    fn look(&mut self) -> Option<Read> {
        let mut state = self.stream.state.lock();
        if state.reader != self.turn {
            return Some(Read::End);
        }
        let place = usize::try_from(self.next - state.first).unwrap_or(usize::MAX);
        let Some(event) = state.events.get(place).cloned() else { return state.is_over.then_some(Read::End) };
        let number = self.next;
        self.next += 1;
        if number >= state.unread {
            state.unread = number + 1;
            state.unread_bytes -= event.len();
            state.kept_bytes += event.len();
        }
        let most = if self.stream.is_kept { MOST_KEPT } else { 0 };
        while state.kept_bytes > most && state.first < state.unread {
            let Some(oldest) = state.events.pop_front() else { break };
            state.kept_bytes -= oldest.len();
            state.first += 1;
        }
        Some(Read::Message(number, event))
    }

    /// The body of an answer: events as browsers know them. `first` was read already; `guard` is dropped with the body.
    pub fn body(self, first: Vec<Bytes>, guard: impl Send + 'static) -> Body {
        let start = (self, VecDeque::from(first), guard);
        let events = futures_util::stream::unfold(start, async |(mut reader, mut first, guard)| {
            if let Some(bytes) = first.pop_front() {
                return Some((Ok::<_, Infallible>(Frame::data(bytes)), (reader, first, guard)));
            }
            let bytes = match timeout(IDLE, reader.next()).await {
                // A comment: it finds out whether the client is there.
                Err(_) => Bytes::from_static(b":\n\n"),
                Ok(Read::Message(number, event)) => reader.event(number, &event),
                Ok(Read::End) => return None,
            };
            Some((Ok(Frame::data(bytes)), (reader, first, guard)))
        });
        UnsyncBoxBody::new(StreamBody::new(events))
    }

    /// A message as an event.
    pub fn event(&self, number: u64, message: &str) -> Bytes {
        let id =
            if self.stream.is_kept { format!("id: {}-{}\n", self.stream.number, number + 1) } else { String::new() };
        format!("{id}event: message\ndata: {message}\n\n").into()
    }

    /// An event without a message, by which a client can come back for what follows from this number on, and when to do so.
    pub fn greeting(&self, from: u64) -> Bytes {
        format!("id: {}-{from}\nretry: 1000\ndata: \n\n", self.stream.number).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(reader: &mut Reader) -> Option<(u64, String)> {
        match reader.next().await {
            Read::Message(number, event) => Some((number, event.to_string())),
            Read::End => None,
        }
    }

    #[tokio::test]
    async fn what_was_read_can_be_read_again_where_it_is_kept() {
        for is_kept in [true, false] {
            let stream = Stream::new(1, is_kept);
            assert!(stream.push("a".to_owned()) && stream.push("b".to_owned()));
            let mut first = stream.read(None);
            assert_eq!(text(&mut first).await.unwrap(), (0, "a".to_owned()));
            let again = text(&mut stream.read(Some(0))).await.unwrap();
            assert_eq!(again.1, if is_kept { "a" } else { "b" });
            assert_eq!(text(&mut first).await, None, "another one reads");
            stream.end();
            assert!(!stream.push("c".to_owned()));
            let beyond = text(&mut stream.read(Some(9))).await;
            assert_eq!(beyond.map(|(number, _)| number), is_kept.then_some(1), "nothing that was not read is skipped");
        }
    }

    #[tokio::test]
    async fn a_stream_that_nothing_reads_ends() {
        let stream = Stream::new(1, true);
        assert!(stream.push("x".repeat(MOST_UNREAD + 1)), "one message may be larger");
        assert!(!stream.push("y".to_owned()));
        assert!(stream.is_over());
        let mut reader = stream.read(None);
        assert!(text(&mut reader).await.is_some());
        assert_eq!(text(&mut reader).await, None);
    }

    #[tokio::test]
    async fn of_what_was_read_a_megabyte_is_kept() {
        let stream = Stream::new(1, true);
        let mut reader = stream.read(None);
        for _ in 0..10 {
            assert!(stream.push("x".repeat(MOST_KEPT / 4)));
            text(&mut reader).await.unwrap();
        }
        assert_eq!(text(&mut stream.read(Some(0))).await.unwrap().0, 6);
    }
}
