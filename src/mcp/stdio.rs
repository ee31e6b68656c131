//! Standard input and output, without blocking threads where possible.
//!
//! Python clients use pipes, Node clients sockets; both are polled. Only files and terminals need a thread, which costs a
//! hand-over for every message.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fstat};
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, open as open_path};
use rustix::net::{AddressFamily, getsockname};
use tokio::io::AsyncRead;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

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

/// For the bench only: with this variable set to `blocking`, every stream is treated as a file.
const FORCED: &str = "HOSTLER_STDIO";

fn kind(fd: BorrowedFd<'_>, environment: &Environment) -> Kind {
    if environment.text(FORCED) == Some("blocking") {
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
pub(super) fn open(environment: &Environment) -> Stdio {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let input = match open_input(stdin.as_fd(), environment) {
        Ok(Some(stream)) => stream,
        _ => Box::new(tokio::io::stdin()),
    };
    let output = match open_output(stdout.as_fd(), environment) {
        Ok(Some(stream)) => stream,
        _ => Box::new(tokio::io::stdout()),
    };
    Stdio { input, output, input_fd: stdin.as_fd().try_clone_to_owned().ok() }
}

fn open_input(fd: BorrowedFd<'_>, environment: &Environment) -> io::Result<Option<Reader>> {
    Ok(match kind(fd, environment) {
        Kind::Pipe => Some(Box::new(pipe::Receiver::from_owned_fd(reopen(fd, "0", OFlags::RDONLY)?)?)),
        Kind::Socket => Some(Box::new(socket(fd)?)),
        Kind::Other => None,
    })
}

fn open_output(fd: BorrowedFd<'_>, environment: &Environment) -> io::Result<Option<Writer>> {
    Ok(match kind(fd, environment) {
        Kind::Pipe => Some(Box::new(pipe::Sender::from_owned_fd(reopen(fd, "1", OFlags::WRONLY)?)?)),
        Kind::Socket => Some(Box::new(socket(fd)?)),
        Kind::Other => None,
    })
}

/// Opens the pipe again: the non-blocking mode of the original would affect every process that shares it.
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
