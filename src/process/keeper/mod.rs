//! The keeper: a small process above hostler that outlives it briefly, so that nothing remains whichever process is
//! killed.
//!
//! ```text
//! client ── keeper ── supervisor ── workers, builds, and what those start
//!             │           │
//!             └── pipe ───┘   carries the signals that the keeper received; closes when the keeper dies
//! ```
//!
//! The process that was started becomes the keeper, because clients and shells know its pid, and a child of it continues
//! as the supervisor. When the supervisor dies, for whatever reason, the keeper kills every process below and ends as the
//! supervisor did. When the keeper dies, the supervisor does the same and exits. Both adopt orphans below them, so no new
//! group, new session or double fork escapes.
//!
//! On macOS no process can adopt orphans or list its descendants: there the keeper forwards signals, and the supervisor
//! kills its workers' groups when the keeper is gone; workers of a killed supervisor end with their standard input.

mod beneath;
mod escalation;
mod keep;
mod say;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::process::{Pid, getpid, setpgid};
use rustix::stdio;
use rustix::termios::tcgetpgrp;

use super::cgroup::Group;
use super::{survive_notices, table};

pub use beneath::{finish, is_kept, keeper, unless_over};
pub(super) use beneath::{listen, open_for_starts};
pub use escalation::Limits;

/// Why no keeper was started.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// fork does not copy threads.
    #[error("start the keeper before any thread, as the first statement of main")]
    NotAlone,
    /// A system call failed.
    #[error("cannot start a keeper: {0}")]
    Refused(#[from] io::Error),
}

/// Puts a keeper above this process, for hostler and for programs that embed it.
///
/// Call it first in `main`: the calling process becomes the keeper and never returns, and a child returns in its place,
/// with everything the caller had. From then on the child adopts orphans below it, so it must run `reap_orphans`, and
/// hostler reaps every other child process too: a program that waits for its own children should start them through a
/// separate process. Call [`finish`] before the program ends.
///
/// Without a keeper, an orderly end of hostler kills its workers with their groups and descendants, and when hostler is
/// killed, the kernel kills the workers started from the main thread. But processes that workers started then live until
/// the next start of hostler finds them, and daemons of tools are not found while hostler lives.
pub fn start(limits: Limits) -> Result<(), KeeperError> {
    if !is_alone() {
        return Err(KeeperError::NotAlone);
    }
    // Children from before, as after `exec` in a shell, are not hostler's.
    let spared = table::children(getpid());
    // The keeper forwards USR1 at once, perhaps before the supervisor has a handler.
    survive_notices();
    // Both ends are close-on-exec: a copy in another process would hide the end of the pipe.
    let (reader, writer) = io::pipe()?;
    adopt_orphans();
    let keeper = getpid();
    let group = Group::create();
    if let Some(supervisor) = fork()? {
        drop(reader);
        keep::keep(supervisor, &writer.into(), limits, &spared, group);
    }
    drop(writer);
    adopt_orphans();
    leave_group();
    Ok(beneath::watch(reader.into(), keeper)?)
}

/// In a group of its own the supervisor survives a kill of the keeper's group, as some clients do, and cleans up. At a
/// terminal it keeps its group, because only the foreground group may read from the terminal.
fn leave_group() {
    let streams: [fn() -> BorrowedFd<'static>; 3] = [stdio::stdin, stdio::stdout, stdio::stderr];
    if !streams.into_iter().any(|stream| tcgetpgrp(stream()).is_ok()) {
        let _ = setpgid(None, None);
    }
}

#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // Supported since Linux 3.4; without it some orphans escape.
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() {}

/// Whether this is the only thread, as far as the system shows.
fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").map_or(true, |threads| threads.count() == 1)
}

/// Forks: returns the child's pid in the parent, and `None` in the child.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is a single thread, so no lock is held and no allocation is in progress that the child would
    // inherit half-done.
    #[expect(unsafe_code, reason = "fork; argued above, and looked at by `start`")]
    let number = unsafe { libc::fork() };
    match number {
        ..0 => Err(io::Error::last_os_error()),
        number => Ok(Pid::from_raw(number)),
    }
}
