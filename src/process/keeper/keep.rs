//! The keeper's work: forwards signals, reaps, and cleans up after the supervisor's death.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, kill_process, setrlimit, wait};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::escalation::{Escalation, Limits};
use super::say::{say, summary};
use crate::process::cgroup::Group;
use crate::process::exit::Exit;
use crate::process::process_tree;
use crate::process::trim::{Which, release};

/// Termination signals, which are forwarded.
const ENDING: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];
/// Signals for the keeper itself, and the one that asks the supervisor for its status.
const OWN: [i32; 4] = [SIGCHLD, SIGTSTP, SIGCONT, SIGUSR1];
/// The time limit for cleanup. Killed processes die within milliseconds, if they can die at all.
const CLEAN_UP: Duration = Duration::from_millis(1500);

type Delivery = SignalDelivery<UnixStream, SignalOnly>;

/// Watches a supervisor until it and its descendants are gone, then ends as it did.
pub(super) fn keep(supervisor: Pid, words: &OwnedFd, limits: Limits, spared: &[Pid], group: Option<Group>) -> ! {
    // The protocol's streams belong to the supervisor alone: clients must see it close them.
    if let Ok(nothing) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"hostler-keeper");
    let delivery = deliver();
    // Here, because it may take the kernel milliseconds; the supervisor goes on meanwhile.
    if let Some(group) = &group {
        group.take(supervisor);
    }
    // Last, because pages used up to here are not needed again.
    release(&Which::All);
    let exit = match delivery {
        Ok(mut delivery) => watch(supervisor, words, limits, &mut delivery),
        Err(error) => {
            say(&format!("cannot forward signals: {error}"));
            wait_for(supervisor)
        }
    };
    let ended = process_tree::end_all(spared, CLEAN_UP);
    if let Some(group) = group {
        group.end();
    }
    if let Some(text) = summary(&ended) {
        say(&match exit {
            Exit::Signal(_) => format!("the supervisor was killed by {exit}; {text}"),
            _ => text,
        });
    }
    end_like(exit)
}

fn deliver() -> io::Result<Delivery> {
    let (read, write) = UnixStream::pair()?;
    SignalDelivery::with_pipe(read, write, SignalOnly, ENDING.iter().chain(&OWN))
}

fn watch(supervisor: Pid, words: &OwnedFd, limits: Limits, delivery: &mut Delivery) -> Exit {
    let began = Instant::now();
    let mut escalation = Escalation::new(limits);
    loop {
        // Before the first wait: the supervisor may have died before its signal was handled.
        if let Some(exit) = reap(supervisor) {
            return exit;
        }
        let now = began.elapsed();
        if escalation.is_due(now) {
            say("the supervisor did not exit in time; killing it");
            let _ = kill_process(supervisor, Signal::KILL);
        }
        let left = escalation.next().map(|at| at.saturating_sub(now));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // An interruption is a signal, which is handled next.
        let _ = poll(&mut [PollFd::new(delivery.get_read(), PollFlags::IN)], left.as_ref());
        for number in delivery.pending() {
            match number {
                SIGTSTP => stop(supervisor),
                SIGCONT => {
                    let _ = kill_process(supervisor, Signal::CONT);
                }
                SIGUSR1 => {
                    let _ = kill_process(supervisor, Signal::USR1);
                }
                number if ENDING.contains(&number) => {
                    escalation.heard(began.elapsed());
                    pass_on(words, number);
                }
                _ => {}
            }
        }
    }
}

/// Forwards a signal through the pipe, not as a signal: a terminal already sends it to the supervisor, and one Ctrl-C
/// must not count twice.
fn pass_on(words: &OwnedFd, number: i32) {
    if let Ok(word) = u8::try_from(number) {
        let _ = rustix::io::write(words, &[word]);
    }
}

/// Ctrl-Z: the supervisor may be outside the group that the terminal stops.
fn stop(supervisor: Pid) {
    let _ = kill_process(supervisor, Signal::STOP);
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Reaps every dead child; returns the supervisor's exit, if it is among them.
fn reap(supervisor: Pid) -> Option<Exit> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == supervisor => return Some(read(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return None,
            Err(_) => return Some(Exit::Unknown),
        }
    }
}

fn wait_for(supervisor: Pid) -> Exit {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == supervisor => return read(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Exit::Unknown,
        }
    }
}

fn read(status: WaitStatus) -> Exit {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal)).unwrap_or(Exit::Unknown)
}

/// Exits with the supervisor's status, or by the signal that killed it.
fn end_like(exit: Exit) -> ! {
    match exit {
        Exit::Code(code) => std::process::exit(code),
        Exit::Signal(number) => die_of(number),
        Exit::Unknown => std::process::exit(70),
    }
}

/// Dies of a signal; a container's first process is immune and exits with 128 + signal instead, as shells do.
pub(super) fn die_of(number: i32) -> ! {
    // The supervisor may already have dumped its core; the keeper must not dump too.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _: Result<Infallible, _> = match signal_hook::low_level::emulate_default_handler(number) {
        Ok(()) => Err(io::Error::other("it is still here")),
        Err(error) => Err(error),
    };
    std::process::exit(128 + number)
}
