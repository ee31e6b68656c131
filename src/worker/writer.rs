//! The writing half of a worker's pipes: frames in order.
//!
//! Writer and reader are independent tasks: pipes hold 64 KiB, so a host that writes without reading would deadlock with
//! a worker that does the same.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::codec::Codec;
use crate::process::{Barrier, CallCount, Outbox, Progress, Writer};
use crate::protocol::{CallFrame, WireError};

/// Writes frames to a worker, in order. Dropping the last writer closes the worker's standard input.
#[derive(Debug, Clone)]
pub struct LinkWriter {
    frames: Outbox,
    codec: Codec,
    /// Locked only briefly, by requests and their replies alone.
    asked: Arc<Mutex<Asked>>,
    overwhelmed: Arc<Notify>,
    calls: Arc<CallCount>,
}

/// The id of pings, which no call has.
pub const PING_ID: u64 = 0;

/// Requests of a worker without an answer, and replies that it has not read.
#[derive(Debug, Default)]
struct Asked {
    open: usize,
    /// The position of the end of each unread reply, and its length.
    unread: VecDeque<(u64, usize)>,
    /// The lengths of both.
    bytes: usize,
}

/// The most requests of a worker that may be unanswered, or answered and unread.
pub(super) const MOST_REQUESTS: usize = 4096;
/// The most bytes of both. Several threads may wait for large results at once.
pub(super) const MOST_UNREAD: usize = 256 << 20;

impl Asked {
    fn is_full(&mut self, written: u64) -> bool {
        while let Some((_, length)) = self.unread.pop_front_if(|(end, _)| *end <= written) {
            self.bytes -= length;
        }
        self.open + self.unread.len() >= MOST_REQUESTS || self.bytes >= MOST_UNREAD
    }

    fn add(&mut self, end: u64, length: usize) {
        self.unread.push_back((end, length));
        self.bytes += length;
    }
}

/// A request of a worker that has no answer yet. Dropping it makes room for another.
#[derive(Debug)]
pub struct OpenRequest {
    writer: LinkWriter,
    /// The worker's own id of the request.
    id: Box<RawValue>,
    length: usize,
}

impl OpenRequest {
    /// Answers it.
    pub fn reply(self, answer: Result<&RawValue, &WireError>) {
        let (writer, id) = (self.writer.clone(), self.id.clone());
        // Its answer takes its place.
        drop(self);
        writer.reply(&id, answer);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut asked = self.writer.asked.lock();
        asked.open -= 1;
        asked.bytes -= self.length;
    }
}

impl LinkWriter {
    /// Writes to a worker's standard input.
    pub(super) fn new(pipe: Writer, codec: Codec, at_once: usize) -> Self {
        Self {
            frames: Outbox::new(pipe),
            codec,
            asked: Arc::default(),
            overwhelmed: Arc::default(),
            calls: Arc::new(CallCount::new(at_once)),
        }
    }

    /// From now on, this comes before every write.
    pub fn write_behind(&self, barrier: &Arc<dyn Barrier>) {
        self.frames.follow(Arc::clone(barrier));
    }

    /// Is notified when the worker no longer reads its input, though there is something to read.
    pub(super) fn broken(&self) -> Arc<Notify> {
        self.frames.broken()
    }

    /// How far the pipe is written, without keeping it open.
    pub(super) fn progress(&self) -> Progress {
        self.frames.progress()
    }

    /// Is notified when the worker has sent too many requests without reading the answers.
    pub(super) fn overwhelmed(&self) -> Arc<Notify> {
        Arc::clone(&self.overwhelmed)
    }

    /// Accepts a request of the worker. One that sends too many ends, as nothing else bounds them.
    pub fn accept(&self, id: Box<RawValue>, params: &RawValue) -> Option<OpenRequest> {
        let mut asked = self.asked.lock();
        if asked.is_full(self.frames.written()) {
            self.overwhelmed.notify_one();
            return None;
        }
        let length = params.get().len();
        asked.open += 1;
        asked.bytes += length;
        Some(OpenRequest { writer: self.clone(), id, length })
    }

    /// Queues bytes. If the worker has exited they are dropped; its death is reported elsewhere.
    pub(super) fn send(&self, bytes: &[u8]) {
        self.frames.send(bytes);
    }

    fn send_if(&self, bytes: Option<Vec<u8>>) {
        if let Some(bytes) = bytes {
            self.send(&bytes);
        }
    }

    /// Sends a call: immediately to an idle worker, otherwise together with what else is queued.
    pub fn call(&self, call: &CallFrame<'_>, is_idle: bool) {
        let frame = self.codec.call(call);
        self.calls.record_sent(call.id);
        if is_idle { self.frames.send_now(&frame) } else { self.frames.send(&frame) }
    }

    /// How many calls were sent and answered. Whoever knows which calls the worker holds counts the answers: it could send others.
    pub fn calls(&self) -> Arc<CallCount> {
        Arc::clone(&self.calls)
    }

    /// Cancels a call.
    pub fn cancel(&self, call: u64) {
        self.send_if(self.codec.cancel(call));
    }

    /// The same, with an action after the frame is in the pipe: a signal to read the input must not overtake the input.
    /// Without a cancel frame the action runs at once.
    pub fn cancel_then(&self, call: u64, afterwards: impl FnOnce() + Send + 'static) {
        match self.codec.cancel(call) {
            Some(bytes) => {
                self.frames.send(&bytes);
                let position = self.frames.queued();
                let frames = self.frames.clone();
                tokio::spawn(async move {
                    frames.caught_up_to(position).await;
                    afterwards();
                });
            }
            None => afterwards(),
        }
    }

    /// Asks for a call back that the worker has not begun.
    pub fn recall(&self, call: u64) {
        self.send_if(self.codec.recall(call));
    }

    /// Says that no call of a session follows.
    pub fn session_ended(&self, session: u64) {
        self.send_if(self.codec.session_ended(session));
    }

    /// Sends a ping.
    pub fn ping(&self) {
        self.send_if(self.codec.ping(PING_ID));
    }

    /// Asks the worker to exit after its calls.
    pub fn shutdown(&self) {
        self.send_if(self.codec.shutdown());
    }

    /// Answers the worker's request. A worker that leaves too many answers unread ends, as nothing else bounds them.
    pub fn reply(&self, id: &RawValue, answer: Result<&RawValue, &WireError>) {
        let Some(frame) = self.codec.reply(id, answer) else { return };
        let mut asked = self.asked.lock();
        if asked.is_full(self.frames.written()) {
            return self.overwhelmed.notify_one();
        }
        self.frames.send(&frame);
        asked.add(self.frames.queued(), frame.len());
    }

    /// A writer whose frames go to a channel instead of a pipe, for tests of what stands above.
    #[cfg(test)]
    pub fn to_memory() -> (Self, tokio::sync::mpsc::UnboundedReceiver<String>) {
        use tokio::io::AsyncBufReadExt;

        let (pipe, worker) = tokio::io::duplex(64 * 1024);
        let (seen, written) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut lines = tokio::io::BufReader::new(worker).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = seen.send(line);
            }
        });
        (Self::new(Box::new(pipe), Codec::V1, 1), written)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    /// A writer to a worker with a small pipe, and the pipe's other end.
    fn writer() -> (LinkWriter, tokio::io::DuplexStream) {
        let (pipe, worker) = tokio::io::duplex(1 << 16);
        (LinkWriter::new(Box::new(pipe), Codec::V1, 1), worker)
    }

    async fn is_overwhelmed(writer: &LinkWriter) -> bool {
        tokio::time::timeout(Duration::ZERO, writer.overwhelmed().notified()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_reads_no_answers_is_sent_no_more() {
        let large = RawValue::from_string(format!("\"{}\"", "x".repeat(1 << 20))).unwrap();
        for (answer, least, most) in [(RawValue::NULL, MOST_REQUESTS, 2 * MOST_REQUESTS), (&*large, 200, 300)] {
            let (writer, _worker) = writer();
            let mut sent = 0;
            while !is_overwhelmed(&writer).await {
                writer.reply(RawValue::TRUE, Ok(answer));
                sent += 1;
                assert!(sent < most, "{sent} answers");
            }
            assert!(sent > least, "{sent} answers");
            let unread = writer.frames.waiting();
            writer.reply(RawValue::TRUE, Ok(answer));
            assert_eq!(writer.frames.waiting(), unread);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_all_calls_are_bounded_together() {
        let large = RawValue::from_string(format!("\"{}\"", "x".repeat(MOST_UNREAD / 16))).unwrap();
        for (params, most) in [(RawValue::NULL, MOST_REQUESTS), (&*large, 16)] {
            let (writer, _worker) = writer();
            let mut open: Vec<_> =
                (0..most).map(|_| writer.accept(RawValue::TRUE.to_owned(), params).unwrap()).collect();
            open.pop().unwrap().reply(Ok(RawValue::NULL));
            assert!(!is_overwhelmed(&writer).await, "an answer takes the place of its request");
            assert_eq!(writer.accept(RawValue::TRUE.to_owned(), params).is_some(), most < MOST_REQUESTS);
            drop(open);
            assert!(writer.accept(RawValue::TRUE.to_owned(), params).is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_reads_its_answers_is_sent_any_number() {
        let (writer, mut worker) = writer();
        for _ in 0..3 {
            (1..MOST_REQUESTS).for_each(|_| writer.reply(RawValue::TRUE, Ok(RawValue::NULL)));
            let position = writer.frames.queued();
            let read = async { while worker.read(&mut [0; 4096]).await.is_ok() {} };
            tokio::select! {
                () = read => {}
                () = writer.frames.caught_up_to(position) => {}
            }
        }
        assert!(!is_overwhelmed(&writer).await);
    }
}
