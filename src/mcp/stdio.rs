//! Standard input and output, hostler's own or those of an attached process, without blocking threads where possible.
//!
//! Python clients use pipes, Node clients sockets; hostler's end of both stops blocking. Files, terminals and pipes of
//! another user keep their mode, and are read and written when that does not block.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
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
pub(super) type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// Both streams of a client.
pub struct Stdio {
    pub(super) input: Reader,
    pub(super) output: Writer,
    /// A separate descriptor for standard input, to check whether the client is there.
    pub(super) input_fd: Option<OwnedFd>,
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

/// Whether a stream can be passed to another process: pipes and Unix sockets share nothing with other processes but their bytes.
pub fn can_be_passed(fd: BorrowedFd<'_>) -> bool {
    !matches!(kind(fd), Kind::Other)
}

impl Stdio {
    /// This process's standard input and output.
    pub fn open(environment: &Environment) -> io::Result<Self> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        if environment.text(FORCED) == Some("blocking") {
            let input_fd = stdin.as_fd().try_clone_to_owned().ok();
            return Ok(Self { input: Box::new(tokio::io::stdin()), output: Box::new(tokio::io::stdout()), input_fd });
        }
        Self::of(stdin.as_fd(), stdout.as_fd())
    }

    /// These streams. They are duplicated.
    pub fn of(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Self> {
        let input_fd = input.try_clone_to_owned().ok();
        Ok(Self { input: open_input(input)?, output: open_output(output)?, input_fd })
    }
}

fn open_input(fd: BorrowedFd<'_>) -> io::Result<Reader> {
    match kind(fd) {
        Kind::Pipe => {
            if let Ok(own) = reopen(fd, OFlags::RDONLY) {
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
            if let Ok(own) = reopen(fd, OFlags::WRONLY) {
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
fn reopen(fd: BorrowedFd<'_>, access: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(open_path(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn reopen(fd: BorrowedFd<'_>, _: OFlags) -> io::Result<OwnedFd> {
    fd.try_clone_to_owned()
}

/// A socket cannot be opened again. Its other end has its own mode, so only our side stops blocking.
fn socket(fd: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd.try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
