//! Answers that their client has not taken. Too many hold back further requests, and a client that takes nothing is not there.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::HeaderMap;
use hyper::body::{Body, Bytes, Frame};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

/// While this many bytes of a connection are unread, no further request is run.
const FULL: usize = 8 << 20;
/// How long a client may take nothing of what waits for it.
const SILENT: Duration = Duration::from_mins(1);
/// The bytes that are handed on at once. What a stream hands on, it holds until its client takes it.
const CHUNK: usize = 32 << 10;

/// The answers of one connection.
pub struct Unread {
    /// Locked to count.
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    bytes: usize,
    /// When something was taken, or began to wait.
    taken: Instant,
}

impl Unread {
    pub fn new() -> Arc<Self> {
        let state = State { bytes: 0, taken: Instant::now() };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    /// The body of an answer: a message, already framed, and that all went well.
    pub fn body(self: &Arc<Self>, message: Vec<u8>) -> Answer {
        let mut state = self.state.lock();
        if state.bytes == 0 {
            state.taken = Instant::now();
        }
        state.bytes += message.len();
        drop(state);
        self.changed.notify_waiters();
        let trailers = HeaderMap::from_iter([(Status::GRPC_STATUS, 0.into())]);
        Answer { rest: message.into(), trailers: Some(trailers), unread: Arc::clone(self) }
    }

    fn took(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.bytes -= bytes;
        state.taken = Instant::now();
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until a further request may be run.
    pub async fn has_room(&self) {
        self.until(|state| state.bytes <= FULL).await;
    }

    /// Waits until the client has taken nothing for a minute.
    pub async fn is_given_up(&self) {
        loop {
            self.until(|state| state.bytes > 0).await;
            let since = self.state.lock().taken;
            sleep_until(since + SILENT).await;
            let state = self.state.lock();
            if state.bytes > 0 && state.taken == since {
                return;
            }
        }
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(&self.state.lock()) {
                return;
            }
            changed.await;
        }
    }
}

/// The body of an answer.
pub struct Answer {
    rest: Bytes,
    trailers: Option<HeaderMap>,
    unread: Arc<Unread>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.rest.is_empty() {
            return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
        }
        let end = CHUNK.min(self.rest.len());
        let chunk = Chunk { bytes: self.rest.split_to(end), unread: Arc::clone(&self.unread) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.trailers.is_none()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.unread.took(self.rest.len());
    }
}

/// A part of an answer, until it is on its way.
struct Chunk {
    bytes: Bytes,
    unread: Arc<Unread>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.unread.took(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_not_taken_holds_back_and_then_gives_up() {
        let unread = Unread::new();
        assert!(unread.has_room().now_or_never().is_some());
        let mut large = unread.body(vec![7; FULL + CHUNK]);
        assert!(unread.has_room().now_or_never().is_none());
        let began = Instant::now();
        let chunk = large.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(chunk.len(), CHUNK);
        assert!(unread.has_room().now_or_never().is_none(), "it is handed on and not yet taken");
        drop(chunk);
        assert!(unread.has_room().now_or_never().is_some());
        unread.is_given_up().await;
        assert_eq!(began.elapsed(), SILENT);
        drop(large);
        assert_eq!(unread.state.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_something_each_minute_is_there() {
        let unread = Unread::new();
        let mut answer = unread.body(vec![7; 3 * CHUNK]);
        let mut given_up = Box::pin(unread.is_given_up());
        for _ in 0..3 {
            assert!(tokio::time::timeout(SILENT / 2, &mut given_up).await.is_err());
            answer.frame().await.unwrap().unwrap();
        }
        let last = answer.frame().await.unwrap().unwrap();
        assert_eq!(last.trailers_ref().unwrap()[Status::GRPC_STATUS], "0");
        assert!(answer.frame().await.is_none() && answer.is_end_stream());
        assert!(tokio::time::timeout(SILENT * 2, &mut given_up).await.is_err(), "nothing waits for it");
    }
}
