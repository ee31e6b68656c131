//! The writing half of a worker's pipes: frames in order, many with one system call.
//!
//! Writer and reader are independent tasks: with 64 KiB pipes, a host that only writes while it does not read would wait
//! for a worker that waits for the host.

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Writes frames to a worker, in order. Dropping the last one closes the worker's standard input.
#[derive(Debug, Clone)]
pub struct LinkWriter {
    frames: mpsc::UnboundedSender<Outgoing>,
}

/// What is done once a frame has been written.
type Afterwards = Box<dyn FnOnce() + Send>;

struct Outgoing {
    bytes: Vec<u8>,
    afterwards: Option<Afterwards>,
}

impl LinkWriter {
    /// Hands a frame over. A worker that is gone takes no frames; its death is told elsewhere.
    pub fn send(&self, frame: Vec<u8>) {
        let _ = self.frames.send(Outgoing { bytes: frame, afterwards: None });
    }

    /// The same, and something to do when the frame is in the pipe: a signal that says "look at your input" must not
    /// be faster than the input.
    pub fn send_then(&self, frame: Vec<u8>, afterwards: impl FnOnce() + Send + 'static) {
        let _ = self.frames.send(Outgoing { bytes: frame, afterwards: Some(Box::new(afterwards)) });
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
        (Self { frames }, written)
    }
}

/// Starts the writing half.
pub fn start_writer(pipe: impl AsyncWrite + Unpin + Send + 'static) -> LinkWriter {
    let (frames, queue) = mpsc::unbounded_channel();
    tokio::spawn(write_frames(pipe, queue));
    LinkWriter { frames }
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
