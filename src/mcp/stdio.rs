//! Standard input and output without blocking threads, whatever they are.
//!
//! Python clients give their servers pipes, Node clients sockets; both go through the reactor. Only files and terminals
//! are read by a thread, which costs a hand-over for every message.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::net::{AddressFamily, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot};
use tokio_util::io::poll_read_buf;

use super::express::Express;
use super::outbox::Outbox;

/// Standard input; tells when it has ended, and ends early when it is told to. Each line is offered to the express lane
/// first; the reader gets the others.
pub(super) struct Input {
    stream: Box<dyn AsyncRead + Send + Unpin>,
    lane: Option<Arc<Express>>,
    /// What was read and not looked at: at most the beginning of a line.
    begun: Vec<u8>,
    /// What the reader is to get.
    passed: Vec<u8>,
    /// How much of that it has.
    given: usize,
    /// The beginning of the present line was passed already, because it is a long one.
    is_long: bool,
    outbox: Outbox,
    ended: Arc<Notify>,
    hang_up: oneshot::Receiver<()>,
}

/// A longer line is not held back until it is whole.
const LONG_LINE: usize = 1 << 20;
/// With this much unread by the client, it is not listened to.
const PATIENCE: usize = 64 << 20;
const CHUNK: usize = 16 * 1024;

/// Both streams, and the line's two ends.
pub(super) struct Stdio {
    pub input: Input,
    /// Standard output.
    pub outbox: Outbox,
    /// Told once, when standard input has ended.
    pub ended: Arc<Notify>,
    /// Ends standard input for whoever reads it, as if the client had.
    pub hang_up: oneshot::Sender<()>,
}

/// What the client gave us.
enum Kind {
    Pipe,
    Socket,
    Other,
}

/// For measurement only: with this variable set to `blocking`, every stream is treated as a file, so that the bench can
/// set what polling is worth beside what there would be without it.
const FORCED: &str = "HOSTLER_STDIO";

fn kind(fd: BorrowedFd<'_>) -> Kind {
    if std::env::var_os(FORCED).is_some_and(|wanted| wanted == "blocking") {
        return Kind::Other;
    }
    let Ok(stat) = fstat(fd) else { return Kind::Other };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Kind::Pipe,
        FileType::Socket if sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX) => Kind::Socket,
        _ => Kind::Other,
    }
}

/// Opens both streams.
pub(super) fn open_stdio() -> Stdio {
    let ended = Arc::new(Notify::new());
    let (hang_up, told_to_end) = oneshot::channel();
    let stdin = io::stdin();
    let reader: Box<dyn AsyncRead + Send + Unpin> = match open_input(stdin.as_fd()) {
        Ok(Some(stream)) => stream,
        _ => Box::new(tokio::io::stdin()),
    };
    let writer: Box<dyn AsyncWrite + Send + Unpin> = match open_output(io::stdout().as_fd()) {
        Ok(Some(stream)) => stream,
        _ => Box::new(tokio::io::stdout()),
    };
    let outbox = Outbox::new(writer);
    let input = Input {
        stream: reader,
        lane: None,
        begun: Vec::with_capacity(CHUNK),
        passed: Vec::new(),
        given: 0,
        is_long: false,
        outbox: outbox.clone(),
        ended: Arc::clone(&ended),
        hang_up: told_to_end,
    };
    Stdio { input, outbox, ended, hang_up }
}

fn open_input(fd: BorrowedFd<'_>) -> io::Result<Option<Box<dyn AsyncRead + Send + Unpin>>> {
    Ok(match kind(fd) {
        Kind::Pipe => Some(Box::new(pipe::Receiver::from_owned_fd(reopen(fd, "0", OFlags::RDONLY)?)?)),
        Kind::Socket => Some(Box::new(socket(fd)?)),
        Kind::Other => None,
    })
}

fn open_output(fd: BorrowedFd<'_>) -> io::Result<Option<Box<dyn AsyncWrite + Send + Unpin>>> {
    Ok(match kind(fd) {
        Kind::Pipe => Some(Box::new(pipe::Sender::from_owned_fd(reopen(fd, "1", OFlags::WRONLY)?)?)),
        Kind::Socket => Some(Box::new(socket(fd)?)),
        Kind::Other => None,
    })
}

/// A description of our own for the same pipe, so that not blocking is our affair alone and not that of everybody who
/// shares the stream.
#[cfg(target_os = "linux")]
fn reopen(_: BorrowedFd<'_>, number: &str, access: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    Ok(open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn reopen(fd: BorrowedFd<'_>, _: &str, _: OFlags) -> io::Result<OwnedFd> {
    fd.try_clone_to_owned()
}

/// A socket cannot be opened anew. Its other end is another description, so only our own side stops blocking.
fn socket(fd: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd.try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl Input {
    /// Offers every line to the lane from now on.
    pub fn offer_to(mut self, lane: Arc<Express>) -> Self {
        self.lane = Some(lane);
        self
    }

    /// Sorts the whole lines that were read.
    fn sort(&mut self) {
        let mut start = 0;
        while let Some(length) = self.begun[start..].iter().position(|byte| *byte == b'\n') {
            let end = start + length;
            let was_long = std::mem::take(&mut self.is_long);
            let taken = !was_long && self.lane.as_ref().is_some_and(|lane| lane.take(&self.begun[start..end]));
            if !taken {
                self.passed.extend_from_slice(&self.begun[start..=end]);
            }
            start = end + 1;
        }
        self.begun.drain(..start);
        if self.is_long || self.begun.len() > LONG_LINE {
            self.is_long = !self.begun.is_empty() || self.is_long;
            self.passed.append(&mut self.begun);
        }
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
            if this.outbox.waiting() > PATIENCE {
                this.outbox.wake_when_caught_up(cx.waker());
                return Poll::Pending;
            }
            this.begun.reserve(CHUNK);
            match poll_read_buf(Pin::new(&mut this.stream), cx, &mut this.begun) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => this.sort(),
                over @ Poll::Ready(_) => {
                    this.ended.notify_one();
                    return over.map_ok(|_| ());
                }
            }
        }
    }
}
