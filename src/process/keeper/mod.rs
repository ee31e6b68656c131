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
mod small;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::process::{Pid, getpid, setpgid};
use rustix::stdio;
use rustix::termios::tcgetpgrp;

use super::{survive_notices, table};

pub use beneath::{finish, is_kept, unless_over};
pub(super) use beneath::{listen, open_for_starts};
pub use escalation::Limits;

/// Why there is no keeper.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// Threads cannot be taken along.
    #[error("a keeper must be started before any thread is: make it the first thing that main does")]
    NotAlone,
    /// The system said no.
    #[error("the system allows no keeper: {0}")]
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
    // Children that were here before, as after `exec` in a shell, are none of ours.
    let spared = table::children(getpid());
    // The keeper passes USR1 on as soon as it hears it, which may be before anybody below listens.
    survive_notices();
    // Neither end reaches what is started later: it would keep the other side from seeing the end.
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

/// In a group of its own the supervisor survives whoever kills the keeper's group, as clients do that lose patience, and
/// cleans up. At a terminal it stays: only the terminal's own group may read from it.
fn leave_group() {
    let streams: [fn() -> BorrowedFd<'static>; 3] = [stdio::stdin, stdio::stdout, stdio::stderr];
    if !streams.into_iter().any(|stream| tcgetpgrp(stream()).is_ok()) {
        let _ = setpgid(None, None);
    }
}

#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // Kernels since 3.4 know this; without it there is less to clean up after, not more.
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() {}

/// Whether this is the only thread, as far as the system tells.
fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").map_or(true, |threads| threads.count() == 1)
}

/// Makes a second process of this one: gives its number to the first, and nothing to the second.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, so nobody holds a lock or is within an allocation that would be torn in the child.
    #[expect(unsafe_code, reason = "fork; argued above, and looked at by `start`")]
    let number = unsafe { libc::fork() };
    match number {
        ..0 => Err(io::Error::last_os_error()),
        number => Ok(Pid::from_raw(number)),
    }
}
