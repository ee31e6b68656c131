//! A stream that keeps its blocking mode because others share it: a pipe that belongs to another user, a terminal, a file.
//!
//! It is read and written only when the system says that this does not block. No thread is needed, so a client is answered
//! also where the system gives no more threads.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A pipe that is ready accepts this much (`PIPE_BUF`); more could block.
const AT_ONCE: usize = 4096;

/// One direction of a stream.
pub(super) enum Polled {
    /// It is waited for.
    Waiting(AsyncFd<OwnedFd>),
    /// A file on a disk, which is always ready.
    Ready(OwnedFd),
}

impl Polled {
    pub fn reader(fd: OwnedFd) -> Self {
        Self::of(fd, Interest::READABLE)
    }

    pub fn writer(fd: OwnedFd) -> Self {
        Self::of(fd, Interest::WRITABLE)
    }

    fn of(fd: OwnedFd, interest: Interest) -> Self {
        match AsyncFd::try_with_interest(fd, interest) {
            Ok(fd) => Self::Waiting(fd),
            Err(refused) => Self::Ready(refused.into_parts().0),
        }
    }
}

/// Whether the other side has data, has room, or is gone.
fn is_ready(fd: impl AsFd, what: PollFlags) -> bool {
    matches!(poll(&mut [PollFd::new(&fd, what)], Some(&Timespec::default())), Ok(1..))
}

/// An interrupted call is made again.
fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

impl AsyncRead for Polled {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = match &*self {
            Self::Ready(fd) => again(|| read(fd, into.initialize_unfilled())),
            Self::Waiting(fd) => loop {
                let mut guard = ready!(fd.poll_read_ready(context))?;
                if is_ready(fd, PollFlags::IN) {
                    break again(|| read(fd, into.initialize_unfilled()));
                }
                guard.clear_ready();
            },
        };
        Poll::Ready(count.map(|count| into.advance(count)))
    }
}

impl AsyncWrite for Polled {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(match &*self {
            Self::Ready(fd) => again(|| write(fd, bytes)),
            Self::Waiting(fd) => loop {
                let mut guard = ready!(fd.poll_write_ready(context))?;
                if is_ready(fd, PollFlags::OUT) {
                    break again(|| write(fd, &bytes[..bytes.len().min(AT_ONCE)]));
                }
                guard.clear_ready();
            },
        })
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_pipe_that_blocks_is_written_and_read_without_blocking() {
        let (reader, writer) = io::pipe().unwrap();
        let (mut reader, mut writer) = (Polled::reader(reader.into()), Polled::writer(writer.into()));
        assert!(matches!((&reader, &writer), (Polled::Waiting(_), Polled::Waiting(_))));
        // One thread: if either side blocked, nothing would move. It is more than a pipe holds.
        let sent: Vec<u8> = (0..300_000_usize).map(|number| number.to_le_bytes()[0]).collect();
        let expected = sent.clone();
        let writing = async move { writer.write_all(&sent).await.unwrap() };
        let mut got = Vec::new();
        let reading = async { reader.read_to_end(&mut got).await.unwrap() };
        let both = async { tokio::join!(writing, reading) };
        tokio::time::timeout(std::time::Duration::from_secs(20), both).await.expect("nothing blocks");
        assert_eq!(got, expected);
    }

    #[tokio::test]
    async fn a_file_is_read_and_written_at_once() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = Polled::writer(file.reopen().unwrap().into());
        writer.write_all(b"one\ntwo\n").await.unwrap();
        let mut text = String::new();
        Polled::reader(file.reopen().unwrap().into()).read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "one\ntwo\n");
        io::Write::write_all(&mut file, b"").unwrap();
    }
}
