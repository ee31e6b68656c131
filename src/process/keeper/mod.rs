//! The keeper: a small process above hostler that outlives it by a moment, so that nothing of it is left whoever is
//! killed.
//!
//! ```text
//! client ── keeper ── supervisor ── workers, builds, and what those start
//!             │           │
//!             └── pipe ───┘   the keeper writes the signals it got; its end is the keeper's death
//! ```
//!
//! The process that was started becomes the keeper, since its number is the one that clients and shells know, and a
//! child of it goes on as the supervisor. When the supervisor dies, whatever it died of, the keeper kills every process
//! below and ends as the supervisor did. When the keeper dies, the supervisor does the same and leaves. Both adopt what
//! loses its parent further down, so neither a new group nor a new session nor a double fork leads out of the descendants.
//!
//! On macOS no process can adopt orphans or list its descendants: there the keeper passes signals on, and the supervisor
//! ends its workers' groups when the keeper is gone; what a killed supervisor leaves behind ends with its standard input.

mod beneath;
mod escalation;
mod keep;
mod say;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::process::{Pid, getpid, setpgid};
use rustix::stdio;
use rustix::termios::tcgetpgrp;

use super::{survive_notices, table};

pub use beneath::{finish, is_kept, unless_over};
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
/// It is to be the first thing that `main` does: the calling process becomes the keeper and never returns from here, and
/// a child of it returns in its place, with everything the caller had. From then on that child adopts what loses its
/// parent below it, so it must run `reap_orphans`, and every process that it starts besides is reaped
/// by hostler; a program that starts its own children and waits for them should start those through a process of their
/// own. It also has to call [`finish`] before it ends.
///
/// Without a keeper, hostler kills its workers with their groups and descendants when it ends in order, and the kernel
/// kills those it started from the main thread when it is killed; but what a worker started lives on then until the next
/// start of hostler finds it, and daemons that tools made are not found while hostler lives.
pub fn start(limits: Limits) -> Result<(), KeeperError> {
    if !is_alone() {
        return Err(KeeperError::NotAlone);
    }
    // Children from before, as after `exec` in a shell, are not hostler's.
    let spared = table::children(getpid());
    // The keeper forwards USR1 at once, perhaps before the supervisor has a handler.
    survive_notices();
    // Both ends are close-on-exec: a copy in another process would hide the end of the pipe.
    let (words, told) = io::pipe()?;
    adopt_orphans();
    let keeper = getpid();
    if let Some(supervisor) = fork()? {
        drop(words);
        keep::keep(supervisor, &told.into(), limits, &spared);
    }
    drop(told);
    adopt_orphans();
    leave_group();
    Ok(beneath::watch(words.into(), keeper)?)
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
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is a single thread, so no lock is held and no allocation is in progress that the child would
    // inherit half-done.
    #[expect(unsafe_code, reason = "fork; argued above, and looked at by `start`")]
    let number = unsafe { libc::fork() };
    match number {
        ..0 => Err(io::Error::last_os_error()),
        number => Ok(Pid::from_raw(number)),
    }
}
