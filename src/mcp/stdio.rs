//! Standard input and output, hostler's own or those of an attached process, without blocking threads where possible.
//!
//! Python clients use pipes, Node clients sockets; hostler's end of both stops blocking. Files, terminals and pipes of
//! another user keep their mode, and are read and written when that does not block.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fstat};
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, open as open_path};
use rustix::net::{AddressFamily, getsockname};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::polled::Polled;
use crate::config::Environment;
use crate::process::Writer;

/// Any stream that can be read.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// Both streams of a client.
pub struct Stdio {
    pub(crate) input: Reader,
    pub(crate) output: Writer,
    /// A separate descriptor for standard input, to check whether the client is there.
    pub(super) input_fd: Option<OwnedFd>,
    pub(crate) far_end: FarEnd,
}

/// The end of standard output that the client reads.
pub(crate) struct FarEnd(Option<AsyncFd<OwnedFd>>);

impl FarEnd {
    /// Files have none, and where input and output are one socket, its end is that of the input.
    fn of(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Self {
        let place = |fd| fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
        let own = output.try_clone_to_owned().ok().filter(|_| place(input) != place(output));
        Self(own.and_then(|own| AsyncFd::try_with_interest(own, WATCHED).ok()))
    }

    /// Waits until it is closed. It wakes neither for a write nor for a read of the client.
    pub async fn closed(&self) {
        let Some(fd) = &self.0 else { return std::future::pending().await };
        while let Ok(mut ready) = fd.ready(WATCHED).await {
            if is_closed(fd.get_ref(), PollFlags::ERR | PollFlags::HUP) {
                return;
            }
            // A socket that the client still reads. This state would be reported again without end.
            if ready.ready().is_read_closed() {
                break;
            }
            ready.clear_ready();
        }
        std::future::pending::<()>().await;
    }
}

/// A hang-up is reported as an end of reading (sockets) or as an error (pipes).
const WATCHED: Interest = Interest::READABLE.add(Interest::ERROR);

/// Whether a stream has ended in one of these ways, even if unread bytes remain.
pub(super) fn is_closed(stream: &OwnedFd, how: PollFlags) -> bool {
    let mut asked = [PollFd::new(stream, how)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|_| asked[0].revents().intersects(how))
}

/// The kind of a stream.
enum Kind {
    Pipe,
    Socket,
    Other,
}

/// With this variable set to `blocking`, threads read and write every stream, as simple servers do.
#[cfg(feature = "bench")]
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
    #[cfg_attr(not(feature = "bench"), expect(unused_variables))]
    pub fn open(environment: &Environment) -> io::Result<Self> {
        #[cfg(feature = "bench")]
        if environment.text(FORCED) == Some("blocking") {
            let (input, output) = (Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout()));
            return Ok(Self { input, output, input_fd: None, far_end: FarEnd(None) });
        }
        Self::of(io::stdin().as_fd(), io::stdout().as_fd())
    }

    /// These streams. They are duplicated.
    pub fn of(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Self> {
        let input_fd = input.try_clone_to_owned().ok();
        let far_end = FarEnd::of(input, output);
        Ok(Self { input: open_input(input)?, output: open_output(output)?, input_fd, far_end })
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
