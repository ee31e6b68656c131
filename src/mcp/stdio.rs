//! Standard input and output without blocking threads, whatever they are.
//!
//! Python clients give their servers pipes, Node clients sockets; both go through the reactor. Only files and terminals
//! are read by a thread, which costs a hand-over for every message.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, fstat};
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, open};
use rustix::net::{AddressFamily, getsockname};
use tokio::io::AsyncWrite;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot};

use super::input::{Input, Reading};
use super::outbox::Outbox;
use crate::config::Environment;

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

/// For measurement only: with this variable set to `blocking`, every stream is treated as a file; with `rmcp`, every
/// message is rmcp's as well. So the bench can set what polling and the lane are worth beside what there would be without.
const FORCED: &str = "HOSTLER_STDIO";

fn is_forced(environment: &Environment, to: &str) -> bool {
    environment.text(FORCED) == Some(to)
}

/// Whether calls may be taken before rmcp reads them.
pub(super) fn has_lane(environment: &Environment) -> bool {
    !is_forced(environment, "rmcp")
}

fn kind(fd: BorrowedFd<'_>, environment: &Environment) -> Kind {
    if is_forced(environment, "blocking") || is_forced(environment, "rmcp") {
        return Kind::Other;
    }
    let Ok(stat) = fstat(fd) else { return Kind::Other };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Kind::Pipe,
        FileType::Socket if getsockname(fd).is_ok_and(|own| own.address_family() == AddressFamily::UNIX) => {
            Kind::Socket
        }
        _ => Kind::Other,
    }
}

/// Opens both streams.
pub(super) fn open_stdio(environment: &Environment) -> Stdio {
    let ended = Arc::new(Notify::new());
    let (hang_up, told_to_end) = oneshot::channel();
    let stdin = io::stdin();
    let reader: Reading = match open_input(stdin.as_fd(), environment) {
        Ok(Some(stream)) => stream,
        _ => Box::new(tokio::io::stdin()),
    };
    let writer: Box<dyn AsyncWrite + Send + Unpin> = match open_output(io::stdout().as_fd(), environment) {
        Ok(Some(stream)) => stream,
        _ => Box::new(tokio::io::stdout()),
    };
    let outbox = Outbox::new(writer);
    let input = Input::new(reader, outbox.clone(), Arc::clone(&ended), told_to_end);
    Stdio { input, outbox, ended, hang_up }
}

fn open_input(fd: BorrowedFd<'_>, environment: &Environment) -> io::Result<Option<Reading>> {
    Ok(match kind(fd, environment) {
        Kind::Pipe => Some(Box::new(pipe::Receiver::from_owned_fd(reopen(fd, "0", OFlags::RDONLY)?)?)),
        Kind::Socket => Some(Box::new(socket(fd)?)),
        Kind::Other => None,
    })
}

fn open_output(
    fd: BorrowedFd<'_>,
    environment: &Environment,
) -> io::Result<Option<Box<dyn AsyncWrite + Send + Unpin>>> {
    Ok(match kind(fd, environment) {
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
