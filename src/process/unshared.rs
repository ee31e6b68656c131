//! Parts of sharing one hostler that this system does not have: who is at the other end of a socket, what a process passes on, and memory
//! that outlives one. Each hostler serves alone here.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::Pid;

/// A process at the other end of a Unix socket. Never made here.
#[derive(Debug)]
pub struct Peer {
    /// Its user.
    pub user: u32,
    /// Its number.
    pub pid: Pid,
}

impl Peer {
    /// The system does not say which one it is.
    pub fn of(_: &impl AsFd) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Nothing is known of it.
    pub fn difference(&self) -> io::Result<Option<&'static str>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The system does not show it.
pub fn own_inheritance() -> io::Result<Vec<(&'static str, String)>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The system has no such score.
pub fn reset_oom_score() {}

/// Memory that outlives the process that writes it. Never made here.
pub struct SharedMemory(OwnedFd);

impl SharedMemory {
    /// Cannot be made.
    pub fn new(_: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Cannot be taken over.
    pub fn of(_: OwnedFd, _: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Nothing is given back.
    pub fn give_back(&mut self, _: Range<usize>) {}

    /// No bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut []
    }
}
