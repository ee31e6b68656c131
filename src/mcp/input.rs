//! Standard input: each line is offered to the express lane first; the reader gets the others.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{Notify, oneshot};
use tokio_util::io::poll_read_buf;

use super::express::Express;
use super::outbox::Outbox;
use super::unreadable;

/// A stream that can be read, whatever it is.
pub(super) type Reading = Box<dyn AsyncRead + Send + Unpin>;

/// Standard input; tells when it has ended, and ends early when it is told to. Each line is offered to the express lane
/// first; the reader gets the others.
pub(super) struct Input {
    stream: Reading,
    lane: Option<Arc<Express>>,
    /// What was read and not looked at: at most the beginning of a line.
    begun: Vec<u8>,
    /// Up to where that is known to hold no end of a line.
    searched: usize,
    /// What the reader is to get.
    passed: Vec<u8>,
    /// How much of that it has.
    given: usize,
    /// The beginning of the present line was passed already, because it is a long one.
    is_long: bool,
    outbox: Outbox,
    /// Underway while the client is not listened to.
    pause: Option<Pin<Box<dyn Future<Output = Next> + Send>>>,
    ended: Arc<Notify>,
    hang_up: oneshot::Receiver<()>,
}

/// A longer line is not held back until it is whole: rmcp refuses it anyway.
const LONG_LINE: usize = super::serve::MAX_MESSAGE;
/// With this much unread by the client, it is not listened to.
const PATIENCE: usize = 64 << 20;
/// While the client is not listened to, somebody looks this often whether it is still there.
const LOOK: Duration = Duration::from_millis(50);
const CHUNK: usize = 16 * 1024;

/// What comes after a pause.
enum Next {
    Listen,
    /// The client has closed its end: what it still said is lost, as it would be with the process.
    Gone,
}

impl Input {
    /// Reads a stream. Tells `ended` when it has ended; ends early when it is told to by `hang_up`.
    pub fn new(stream: Reading, outbox: Outbox, ended: Arc<Notify>, hang_up: oneshot::Receiver<()>) -> Self {
        Self {
            stream,
            lane: None,
            begun: Vec::with_capacity(CHUNK),
            searched: 0,
            passed: Vec::new(),
            given: 0,
            is_long: false,
            outbox,
            pause: None,
            ended,
            hang_up,
        }
    }

    /// Offers every line to the lane from now on.
    pub fn offer_to(mut self, lane: Arc<Express>) -> Self {
        self.lane = Some(lane);
        self
    }

    /// Sorts the whole lines that were read.
    fn sort(&mut self) {
        let mut start = 0;
        while let Some(length) = self.begun[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            self.searched = end + 1;
            let was_long = std::mem::take(&mut self.is_long);
            let line = &self.begun[start..end];
            let taken = !was_long && (self.lane.as_ref().is_some_and(|lane| lane.take(line)) || self.refuse(line));
            if !taken {
                self.passed.extend_from_slice(&self.begun[start..=end]);
            }
            start = end + 1;
        }
        self.begun.drain(..start);
        self.searched = self.begun.len();
        if self.is_long || self.begun.len() > LONG_LINE {
            self.is_long = !self.begun.is_empty() || self.is_long;
            self.passed.append(&mut self.begun);
            self.searched = 0;
        }
    }

    /// The last line may lack its end.
    fn finish(&mut self) {
        if !self.begun.is_empty() {
            self.begun.push(b'\n');
            self.sort();
        }
    }

    /// Waits while the client has too much to read. Reading on would only fill the memory.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let outbox = &self.outbox;
        let pause = match &mut self.pause {
            Some(pause) => pause,
            None if outbox.waiting() <= PATIENCE => return Poll::Ready(Next::Listen),
            none => none.insert(Box::pin(pause(outbox.clone()))),
        };
        let next = ready!(pause.as_mut().poll(cx));
        self.pause = None;
        Poll::Ready(next)
    }

    /// Answers a line that nobody could read.
    fn refuse(&self, line: &[u8]) -> bool {
        unreadable::answer(line).is_some_and(|answer| self.outbox.send(answer).is_ok())
    }

    /// Gives the reader what was passed; false when there is nothing.
    fn give(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let length = buf.remaining().min(self.passed.len() - self.given);
        buf.put_slice(&self.passed[self.given..self.given + length]);
        self.given += length;
        if self.given == self.passed.len() {
            self.passed.clear();
            self.given = 0;
        }
        length > 0
    }
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.hang_up.is_terminated() && Pin::new(&mut this.hang_up).poll(cx) == Poll::Ready(Ok(())) {
            return Poll::Ready(Ok(()));
        }
        loop {
            if this.give(buf) {
                return Poll::Ready(Ok(()));
            }
            if let Next::Gone = ready!(this.poll_pause(cx)) {
                this.ended.notify_one();
                return Poll::Ready(Ok(()));
            }
            this.begun.reserve(CHUNK);
            match poll_read_buf(Pin::new(&mut this.stream), cx, &mut this.begun) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => this.sort(),
                over @ Poll::Ready(_) => {
                    this.finish();
                    if this.give(buf) {
                        return Poll::Ready(Ok(()));
                    }
                    this.ended.notify_one();
                    return over.map_ok(|_| ());
                }
            }
        }
    }
}

async fn pause(outbox: Outbox) -> Next {
    // A descriptor of its own: the pause may outlive the stream.
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok();
    loop {
        tokio::select! {
            () = outbox.caught_up() => return Next::Listen,
            () = tokio::time::sleep(LOOK) => {}
        }
        if stdin.as_ref().is_some_and(is_closed) {
            return Next::Gone;
        }
    }
}

/// Whether the other end of a pipe or socket is closed, though there may be something left to read.
fn is_closed(stream: &OwnedFd) -> bool {
    #[cfg(target_os = "linux")]
    let closed = PollFlags::HUP | PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let closed = PollFlags::HUP;
    let mut asked = [PollFd::new(stream, closed)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|_| asked[0].revents().intersects(closed))
}
