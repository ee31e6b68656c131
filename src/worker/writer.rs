//! The writing half of a worker's pipes: frames in order, batched per system call.
//!
//! Writer and reader are independent tasks: pipes hold 64 KiB, so a host that writes without reading would deadlock
//! with
//! a worker that does the same.

use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::codec::Codec;
use crate::protocol::{CallFrame, WireError};

/// Writes frames to a worker, in order. Dropping the last writer closes the worker's standard input.
#[derive(Debug, Clone)]
pub struct LinkWriter {
    frames: mpsc::UnboundedSender<Outgoing>,
    codec: Codec,
}

/// Runs once a frame has been written.
type Afterwards = Box<dyn FnOnce() + Send>;

struct Outgoing {
    bytes: Vec<u8>,
    afterwards: Option<Afterwards>,
}

impl LinkWriter {
    /// Queues bytes. If the worker has exited they are dropped; its death is reported elsewhere.
    pub(super) fn send(&self, bytes: Vec<u8>) {
        let _ = self.frames.send(Outgoing { bytes, afterwards: None });
    }

    fn send_if(&self, bytes: Option<Vec<u8>>) {
        if let Some(bytes) = bytes {
            self.send(bytes);
        }
    }

    /// Sends a call.
    pub fn call(&self, call: &CallFrame<'_>) {
        self.send(self.codec.call(call));
    }

    /// Cancels a call.
    pub fn cancel(&self, call: u64) {
        self.send_if(self.codec.cancel(call));
    }

    /// The same, with an action after the frame is in the pipe: a signal to read the input must not overtake the input.
    /// Without a cancel frame the action runs at once.
    pub fn cancel_then(&self, call: u64, afterwards: impl FnOnce() + Send + 'static) {
        match self.codec.cancel(call) {
            Some(bytes) => drop(self.frames.send(Outgoing { bytes, afterwards: Some(Box::new(afterwards)) })),
            None => afterwards(),
        }
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
    pub fn to_memory() -> (Self, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (frames, mut queue) = mpsc::unbounded_channel::<Outgoing>();
        let (seen, written) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(outgoing) = queue.recv().await {
                let _ = seen.send(outgoing.bytes);
                if let Some(afterwards) = outgoing.afterwards {
                    afterwards();
                }
            }
        });
        (Self { frames, codec: Codec::V1 }, written)
    }
}

/// Starts the writing half.
pub fn start_writer(pipe: impl AsyncWrite + Unpin + Send + 'static, codec: Codec) -> LinkWriter {
    let (frames, queue) = mpsc::unbounded_channel();
    tokio::spawn(write_frames(pipe, queue));
    LinkWriter { frames, codec }
}

async fn write_frames(mut pipe: impl AsyncWrite + Unpin, mut queue: mpsc::UnboundedReceiver<Outgoing>) {
    while let Some(Outgoing { mut bytes, mut afterwards }) = queue.recv().await {
        // Frames that came meanwhile go with the same system call.
        while afterwards.is_none()
            && bytes.len() < 32 * 1024
            && let Ok(next) = queue.try_recv()
        {
            bytes.extend_from_slice(&next.bytes);
            afterwards = next.afterwards;
        }
        if pipe.write_all(&bytes).await.is_err() {
            return;
        }
        if let Some(afterwards) = afterwards {
            afterwards();
        }
    }
}
