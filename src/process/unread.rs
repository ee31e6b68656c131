//! Whether a process has begun to read its standard input, asked for through the end of the pipe that is written to.

use std::os::fd::OwnedFd;

use super::outbox::Progress;

/// The input of a process, to see whether it has begun to read it. As long as this exists, the process does not reach the end
/// of its input.
pub struct FirstInput {
    pipe: OwnedFd,
    progress: Progress,
}

impl FirstInput {
    /// Of the pipe that is written to, and how far it was written.
    pub fn of(pipe: OwnedFd, progress: Progress) -> Self {
        Self { pipe, progress }
    }

    /// Whether everything that was ever written is still there.
    pub fn is_unread(&self) -> bool {
        let unread = rustix::io::ioctl_fionread(&self.pipe).ok();
        unread.is_some() && unread == self.progress.written()
    }
}
