//! Messages to another process, a client or a worker: whole, and in the order in which they were finished.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

/// Any stream that can be written to.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// What comes before anything is written to another process: a journal is brought to its file.
pub trait Barrier: Send + Sync {
    /// Does it. Called before every write, so it costs nothing if there is nothing to do.
    fn pass(&self);
}

/// Sends messages to another process. Clones share the stream; after the last clone it is closed.
#[derive(Clone)]
pub struct Outbox(Arc<Senders>);

/// How far the stream of an outbox is written. It is no clone: the stream is closed without it.
pub struct Progress(Weak<Shared>);

impl Progress {
    /// The bytes that the stream has accepted; `None` after the last clone of its outbox.
    pub fn written(&self) -> Option<u64> {
        Some(self.0.upgrade()?.state.lock().accepted())
    }
}

/// Shared by all clones of an outbox. The writing task ends after the last clone.
struct Senders(Arc<Shared>);

struct Shared {
    /// Locked to write without waiting, or to extend the backlog.
    state: Mutex<State>,
    /// Notified when there is something to write, and after the last clone.
    wake: Notify,
    /// Notified when the stream has accepted something.
    caught_up: Notify,
    /// Notified when nothing more is written, whether the other process reads or not.
    given_up: Notify,
    /// Notified when the other process no longer reads.
    broken: Arc<Notify>,
}

struct State {
    stream: Writer,
    barrier: Option<Arc<dyn Barrier>>,
    /// Whole messages, of which the first `written` bytes are written.
    backlog: Vec<u8>,
    written: usize,
    /// All bytes ever queued.
    queued: u64,
    /// Bytes that the stream has accepted and not yet flushed: a thread writes standard output where it cannot be polled.
    unflushed: usize,
    /// The writing task is waiting for messages. While it waits for the stream instead, only it may poll the stream:
    /// streams wake the task that polled last.
    is_idle: bool,
    /// The other process no longer reads.
    is_closed: bool,
    /// The last clone is gone.
    is_over: bool,
}

impl Outbox {
    /// Starts writing to a stream.
    pub fn new(stream: Writer) -> Self {
        let state = State {
            stream,
            barrier: None,
            backlog: Vec::new(),
            written: 0,
            queued: 0,
            unflushed: 0,
            is_idle: false,
            is_closed: false,
            is_over: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            wake: Notify::new(),
            caught_up: Notify::new(),
            given_up: Notify::new(),
            broken: Arc::default(),
        });
        tokio::spawn(write(Arc::clone(&shared)));
        Self(Arc::new(Senders(shared)))
    }

    /// From now on, this comes before everything that is written.
    pub fn follow(&self, barrier: Arc<dyn Barrier>) {
        self.0.0.state.lock().barrier = Some(barrier);
    }

    /// Queues whole messages, each with its newline. They are written together with others queued before the next write.
    pub fn send(&self, messages: &[u8]) {
        let mut state = self.0.0.state.lock();
        if !state.is_closed {
            state.queue(messages);
            self.0.0.wake.notify_one();
        }
    }

    /// All bytes ever queued: the position behind the last message, for [`Outbox::caught_up_to`].
    pub fn queued(&self) -> u64 {
        self.0.0.state.lock().queued
    }

    /// The position up to which the stream has accepted what was queued.
    pub fn written(&self) -> u64 {
        self.0.0.state.lock().accepted()
    }

    /// The same, without keeping the stream open.
    pub fn progress(&self) -> Progress {
        Progress(Arc::downgrade(&self.0.0))
    }

    /// Writes whole messages immediately if the backlog is empty; what the stream does not accept is queued. For an answer
    /// that is probably the last for now: saves a hand-over to another task.
    pub fn send_now(&self, messages: &[u8]) {
        let mut state = self.0.0.state.lock();
        if state.is_closed {
            return;
        }
        if !state.is_idle || !state.backlog.is_empty() {
            state.queue(messages);
            self.0.0.wake.notify_one();
            return;
        }
        state.pass();
        let mut context = Context::from_waker(Waker::noop());
        let written = match Pin::new(&mut state.stream).poll_write(&mut context, messages) {
            Poll::Ready(Ok(written)) if written > 0 => written,
            Poll::Ready(_) => return self.0.0.close(&mut state),
            Poll::Pending => 0,
        };
        state.queued += written as u64;
        state.unflushed = written;
        if written < messages.len() || !state.is_flushed(&mut context) {
            // From here on the writing task polls the stream.
            state.is_idle = false;
            state.queue(&messages[written..]);
            self.0.0.wake.notify_one();
        }
    }

    /// Is notified once, when something was to be written and the other process no longer reads. It is no clone: the
    /// stream is closed without it.
    pub fn broken(&self) -> Arc<Notify> {
        Arc::clone(&self.0.0.broken)
    }

    /// Bytes that the stream has not accepted yet; 0 if it never will.
    pub fn waiting(&self) -> usize {
        self.0.0.state.lock().waiting()
    }

    /// Waits until everything has been written, or never will be.
    pub async fn caught_up(&self) {
        self.until(|state| state.waiting() == 0).await;
    }

    /// Waits until everything up to there has been written, or never will be.
    pub async fn caught_up_to(&self, position: u64) {
        self.until(|state| state.accepted() >= position || state.is_closed).await;
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let caught_up = self.0.0.caught_up.notified();
            if holds(&self.0.0.state.lock()) {
                return;
            }
            caught_up.await;
        }
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outbox").field("waiting", &self.waiting()).finish()
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.wake.notify_one();
    }
}

impl Outbox {
    /// Writes nothing more, and closes the stream: what was not read is dropped.
    pub fn close(&self) {
        let mut state = self.0.0.state.lock();
        self.0.0.close(&mut state);
        state.stream = Box::new(tokio::io::sink());
        self.0.0.given_up.notify_one();
    }
}

impl Shared {
    fn close(&self, state: &mut State) {
        // What the stream has not accepted, it never will.
        state.queued = state.accepted();
        state.is_closed = true;
        state.backlog = Vec::new();
        (state.written, state.unflushed) = (0, 0);
        self.caught_up.notify_waiters();
        self.wake.notify_one();
        self.broken.notify_one();
    }
}

impl State {
    /// The position up to which the stream has accepted what was queued.
    fn accepted(&self) -> u64 {
        self.queued - self.waiting() as u64
    }

    fn pass(&self) {
        if let Some(barrier) = &self.barrier {
            barrier.pass();
        }
    }

    fn queue(&mut self, messages: &[u8]) {
        self.backlog.extend_from_slice(messages);
        self.queued += messages.len() as u64;
    }

    fn waiting(&self) -> usize {
        if self.is_closed { 0 } else { self.backlog.len() - self.written + self.unflushed }
    }

    fn is_flushed(&mut self, context: &mut Context<'_>) -> bool {
        let is_flushed = Pin::new(&mut self.stream).poll_flush(context).is_ready();
        if is_flushed {
            self.unflushed = 0;
        }
        is_flushed
    }

    /// Writes as much of the backlog as the stream accepts.
    fn poll_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pass();
        while self.written < self.backlog.len() {
            match Pin::new(&mut self.stream).poll_write(context, &self.backlog[self.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => {
                    self.written += written;
                    self.unflushed += written;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.is_flushed(context);
                    return self.wait();
                }
            }
        }
        self.backlog.clear();
        self.written = 0;
        if self.backlog.capacity() > KEPT {
            self.backlog = Vec::new();
        }
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        self.unflushed = 0;
        Poll::Ready(flushed)
    }

    /// Frees the written part if it is large, so that a slow reader costs only what it has not read.
    fn wait(&mut self) -> Poll<io::Result<()>> {
        if self.written > KEPT {
            self.backlog.drain(..self.written);
            self.written = 0;
        }
        Poll::Pending
    }
}

/// The buffer kept between messages, in bytes.
const KEPT: usize = 1 << 20;

/// Writes the backlog until the other process or the last clone is gone.
async fn write(shared: Arc<Shared>) {
    loop {
        shared.state.lock().is_idle = false;
        let step = std::future::poll_fn(|context| {
            let step = shared.state.lock().poll_backlog(context);
            shared.caught_up.notify_waiters();
            step
        });
        let step = tokio::select! {
            step = step => step,
            () = shared.given_up.notified() => return,
        };
        if step.is_err() {
            return shared.close(&mut shared.state.lock());
        }
        let (is_empty, is_last) = {
            let mut state = shared.state.lock();
            state.is_idle = state.backlog.is_empty();
            (state.is_idle, state.is_over || state.is_closed)
        };
        if is_empty {
            if is_last {
                return;
            }
            shared.wake.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn messages_keep_their_order_whichever_way_they_go() {
        let (ours, mut client) = tokio::io::duplex(8);
        let outbox = Outbox::new(Box::new(ours));
        for number in 0..100 {
            let message = format!("{{\"n\":{number}}}\n");
            if number % 3 == 0 { outbox.send_now(message.as_bytes()) } else { outbox.send(message.as_bytes()) }
        }
        let read = tokio::spawn(async move {
            let mut seen = String::new();
            client.read_to_string(&mut seen).await.unwrap();
            seen
        });
        outbox.caught_up().await;
        assert_eq!(outbox.waiting(), 0);
        drop(outbox);
        let expected: Vec<String> = (0..100).map(|number| format!("{{\"n\":{number}}}\n")).collect();
        assert_eq!(read.await.unwrap(), expected.concat());
    }

    /// Like standard output written by a thread: it accepts bytes immediately and flushes them later.
    #[tokio::test]
    async fn a_stream_that_passes_bytes_on_later_is_waited_for_by_the_writing_task() {
        let (ours, mut client) = tokio::io::duplex(8);
        let outbox = Outbox::new(Box::new(tokio::io::BufWriter::new(ours)));
        tokio::task::yield_now().await;
        outbox.send_now(&[b'a'; 64]);
        tokio::task::yield_now().await;
        outbox.send_now(&[b'b'; 64]);
        assert_eq!(outbox.waiting(), 128, "nothing counts as written that is not passed on");
        let mut read = vec![0; 128];
        let reading = tokio::time::timeout(std::time::Duration::from_secs(5), client.read_exact(&mut read));
        reading.await.expect("the writing task goes on").unwrap();
        outbox.caught_up().await;
        assert_eq!((read, outbox.waiting()), ([[b'a'; 64], [b'b'; 64]].concat(), 0));
    }

    struct Witness(tokio::sync::mpsc::UnboundedSender<()>);

    impl Barrier for Witness {
        fn pass(&self) {
            let _ = self.0.send(());
        }
    }

    #[tokio::test]
    async fn a_barrier_comes_before_every_write() {
        let (ours, mut client) = tokio::io::duplex(64);
        let (sender, mut passed) = tokio::sync::mpsc::unbounded_channel();
        let outbox = Outbox::new(Box::new(ours));
        outbox.follow(Arc::new(Witness(sender)));
        tokio::task::yield_now().await;
        while passed.try_recv().is_ok() {}
        for send in [Outbox::send, Outbox::send_now] {
            send(&outbox, b"x");
            let mut byte = [0];
            client.read_exact(&mut byte).await.unwrap();
            assert!(passed.try_recv().is_ok(), "it was passed before the byte could be read");
        }
    }

    #[tokio::test]
    async fn a_message_is_not_waited_for_longer_than_until_it_is_written() {
        let (ours, mut reader) = tokio::io::duplex(16);
        let outbox = Outbox::new(Box::new(ours));
        outbox.send(&[b'a'; 8]);
        let position = outbox.queued();
        outbox.send(&[b'b'; 1000]);
        outbox.caught_up_to(position).await;
        assert!(outbox.waiting() > 900, "nothing reads the other messages");
        let later = outbox.queued();
        let pending = tokio::time::timeout(std::time::Duration::from_millis(50), outbox.caught_up_to(later));
        assert!(pending.await.is_err(), "they are not written");
        let read = tokio::spawn(async move { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await });
        outbox.caught_up_to(later).await;
        drop(outbox);
        assert_eq!(read.await.unwrap().unwrap(), 1008);
    }

    #[tokio::test]
    async fn a_client_that_is_gone_blocks_nothing() {
        let (ours, client) = tokio::io::duplex(16);
        let outbox = Outbox::new(Box::new(ours));
        outbox.send(&[b'x'; 1000]);
        drop(client);
        outbox.caught_up().await;
        outbox.broken().notified().await;
        outbox.send_now(b"more\n");
        outbox.send(b"more\n");
        assert_eq!(outbox.waiting(), 0, "else the reader would wait for a client that takes nothing any more");
    }
}
