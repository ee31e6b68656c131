//! Standard input and output, without blocking threads where possible.
//!
//! Python clients use pipes, Node clients sockets; hostler's end of both stops blocking. Files, terminals and pipes of
//! another user keep their mode, and are read and written when that does not block.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fstat};
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, open as open_path};
use rustix::net::{AddressFamily, getsockname};
use tokio::io::AsyncRead;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::polled::Polled;
use crate::config::Environment;
use crate::process::Writer;

/// Any stream that can be read.
type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// Both streams.
pub(super) struct Stdio {
    pub input: Reader,
    pub output: Writer,
    /// A separate descriptor for standard input, to check whether the client is there.
    pub input_fd: Option<OwnedFd>,
}

/// The kind of a stream.
enum Kind {
    Pipe,
    Socket,
    Other,
}

/// For the bench only: with this variable set to `blocking`, threads read and write every stream, as simple servers do.
const FORCED: &str = "HOSTLER_STDIO";

fn kind(fd: BorrowedFd<'_>) -> Kind {
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
pub(super) fn open(environment: &Environment) -> io::Result<Stdio> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let input_fd = stdin.as_fd().try_clone_to_owned().ok();
    if environment.text(FORCED) == Some("blocking") {
        return Ok(Stdio { input: Box::new(tokio::io::stdin()), output: Box::new(tokio::io::stdout()), input_fd });
    }
    Ok(Stdio { input: open_input(stdin.as_fd())?, output: open_output(stdout.as_fd())?, input_fd })
}

fn open_input(fd: BorrowedFd<'_>) -> io::Result<Reader> {
    match kind(fd) {
        Kind::Pipe => {
            if let Ok(own) = reopen(fd, "0", OFlags::RDONLY) {
                return Ok(Box::new(pipe::Receiver::from_owned_fd(own)?));
            }
        }
        Kind::Socket => return Ok(Box::new(socket(fd)?)),
        Kind::Other => {}
    }
    Ok(Box::new(Polled::reader(fd.try_clone_to_owned()?)))
}

fn open_output(fd: BorrowedFd<'_>) -> io::Result<Writer> {
    match kind(fd) {
        Kind::Pipe => {
            if let Ok(own) = reopen(fd, "1", OFlags::WRONLY) {
                return Ok(Box::new(pipe::Sender::from_owned_fd(own)?));
            }
        }
        Kind::Socket => return Ok(Box::new(socket(fd)?)),
        Kind::Other => {}
    }
    Ok(Box::new(Polled::writer(fd.try_clone_to_owned()?)))
}

/// Opens the pipe again: the non-blocking mode of the original would affect every process that shares it. A pipe of
/// another user cannot be opened again.
#[cfg(target_os = "linux")]
fn reopen(_: BorrowedFd<'_>, number: &str, access: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    Ok(open_path(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn reopen(fd: BorrowedFd<'_>, _: &str, _: OFlags) -> io::Result<OwnedFd> {
    fd.try_clone_to_owned()
}

/// A socket cannot be opened again. Its other end has its own mode, so only our side stops blocking.
fn socket(fd: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd.try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
