//! The writing half of a worker's pipes: frames in order.
//!
//! Writer and reader are independent tasks: pipes hold 64 KiB, so a host that writes without reading would deadlock with
//! a worker that does the same.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::codec::Codec;
use crate::process::{Outbox, Writer};
use crate::protocol::{CallFrame, WireError};

/// Writes frames to a worker, in order. Dropping the last writer closes the worker's standard input.
#[derive(Debug, Clone)]
pub struct LinkWriter {
    frames: Outbox,
    codec: Codec,
}

impl LinkWriter {
    /// Writes to a worker's standard input.
    pub(super) fn new(pipe: Writer, codec: Codec) -> Self {
        Self { frames: Outbox::new(pipe), codec }
    }

    /// Is notified when the worker no longer reads its input, though there is something to read.
    pub(super) fn broken(&self) -> Arc<Notify> {
        self.frames.broken()
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
        if is_idle { self.frames.send_now(&frame) } else { self.frames.send(&frame) }
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

    /// Sends a ping.
    pub fn ping(&self, id: u64) {
        self.send_if(self.codec.ping(id));
    }

    /// Asks the worker to exit after its calls.
    pub fn shutdown(&self) {
        self.send_if(self.codec.shutdown());
    }

    /// Answers the worker's request.
    pub fn reply(&self, id: &RawValue, answer: Result<&RawValue, &WireError>) {
        self.send_if(self.codec.reply(id, answer));
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
        (Self::new(Box::new(pipe), Codec::V1), written)
    }
}
