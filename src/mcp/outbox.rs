//! Standard output as a queue of whole messages: rmcp's and those of the express lane, in the order they were finished.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// Where messages for the client go. Copies share the queue.
#[derive(Clone)]
pub(super) struct Outbox {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    written: Arc<Written>,
}

#[derive(Default)]
struct Written {
    /// Bytes that were sent and not written.
    open: AtomicUsize,
    caught_up: Notify,
}

impl Outbox {
    /// Starts writing to a stream.
    pub fn new(stream: impl AsyncWrite + Unpin + Send + 'static) -> Self {
        let (queue, messages) = mpsc::unbounded_channel();
        let written = Arc::new(Written::default());
        tokio::spawn(write(stream, messages, Arc::clone(&written)));
        Self { queue, written }
    }

    /// Sends whole messages, each with its line end.
    pub fn send(&self, messages: Vec<u8>) -> io::Result<()> {
        let bytes = messages.len();
        self.written.open.fetch_add(bytes, Ordering::AcqRel);
        self.queue.send(messages).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Bytes that the client has not taken yet; none for a client that will never take them.
    pub fn waiting(&self) -> usize {
        if self.queue.is_closed() { 0 } else { self.written.open.load(Ordering::Acquire) }
    }

    /// Waits until everything that was sent has been written, or never will be.
    pub async fn caught_up(&self) {
        while self.waiting() > 0 {
            tokio::select! {
                () = self.written.caught_up.notified() => {}
                () = self.queue.closed() => {}
            }
        }
    }
}

async fn write(
    mut stream: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<Vec<u8>>,
    written: Arc<Written>,
) {
    while let Some(mut bytes) = messages.recv().await {
        // Messages that came meanwhile go with the same system call.
        while bytes.len() < 64 * 1024
            && let Ok(next) = messages.try_recv()
        {
            bytes.extend_from_slice(&next);
        }
        if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if written.open.fetch_sub(bytes.len(), Ordering::AcqRel) == bytes.len() {
            written.caught_up.notify_waiters();
            written.caught_up.notify_one();
        }
    }
}

/// The same queue as the stream that rmcp writes to: what it writes in pieces is sent when a message is whole.
pub(super) struct Stream {
    outbox: Outbox,
    begun: Vec<u8>,
}

impl Stream {
    pub fn into(outbox: Outbox) -> Self {
        Self { outbox, begun: Vec::new() }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.begun.extend_from_slice(bytes);
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            let rest = this.begun.split_off(this.begun.len() - (bytes.len() - end - 1));
            let whole = std::mem::replace(&mut this.begun, rest);
            this.outbox.send(whole)?;
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn messages_written_in_pieces_do_not_mix_with_others() {
        let (ours, mut client) = tokio::io::duplex(1024);
        let outbox = Outbox::new(ours);
        let mut stream = Stream::into(outbox.clone());
        stream.write_all(b"{\"half\":").await.unwrap();
        outbox.send(b"{\"whole\":1}\n".to_vec()).unwrap();
        stream.write_all(b"2}\n{\"next").await.unwrap();
        stream.write_all(b"\":3}\n").await.unwrap();
        outbox.caught_up().await;
        drop((outbox, stream));
        let mut seen = String::new();
        client.read_to_string(&mut seen).await.unwrap();
        assert_eq!(seen, "{\"whole\":1}\n{\"half\":2}\n{\"next\":3}\n");
    }

    #[tokio::test]
    async fn a_client_that_is_gone_holds_nobody_up() {
        let (ours, client) = tokio::io::duplex(16);
        let outbox = Outbox::new(ours);
        outbox.send(vec![b'x'; 1000]).unwrap();
        drop(client);
        outbox.caught_up().await;
        // Else the reader would wait for ever, awake, for a client that takes nothing any more.
        assert_eq!(outbox.waiting(), 0);
    }
}
