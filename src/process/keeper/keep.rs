//! What the keeper does: passes signals on, reaps, and cleans up when the supervisor has died.

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
use super::say::{say, told};
use super::small;
use crate::process::exit::Exit;
use crate::process::process_tree;

/// Signals that ask for the end, and are passed on.
const ENDING: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];
/// Those that the keeper needs for itself, and the one that asks the supervisor how it stands.
const OWN: [i32; 4] = [SIGCHLD, SIGTSTP, SIGCONT, SIGUSR1];
/// How long cleaning up may take. What is killed dies within milliseconds, if it can die at all.
const CLEAN_UP: Duration = Duration::from_millis(1500);

type Delivery = SignalDelivery<UnixStream, SignalOnly>;

/// Watches over a supervisor until it has died and nothing of it is left, then ends as it did.
pub(super) fn keep(supervisor: Pid, words: &OwnedFd, limits: Limits, spared: &[Pid]) -> ! {
    // The protocol's streams belong to the supervisor alone: their ends must be seen when it closes them.
    if let Ok(nothing) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"hostler-keeper");
    let delivery = deliver();
    // Last: what it took to get here is not needed again.
    small::give_back();
    let exit = match delivery {
        Ok(mut delivery) => watch(supervisor, words, limits, &mut delivery),
        Err(error) => {
            say(&format!("signals cannot be passed on: {error}"));
            wait_for(supervisor)
        }
    };
    let ended = process_tree::end_all(spared, CLEAN_UP);
    if let Some(text) = told(&ended) {
        say(&match exit {
            Exit::Signal(_) => format!("the supervisor was ended by {exit}; {text}"),
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
        // Before anything is waited for: it may have died before its death could be heard of.
        if let Some(exit) = reap(supervisor) {
            return exit;
        }
        let now = began.elapsed();
        if escalation.is_due(now) {
            say("the supervisor did not end in time and is killed");
            let _ = kill_process(supervisor, Signal::KILL);
        }
        let left = escalation.next().map(|at| at.saturating_sub(now));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // An interruption is a signal, which is looked at next.
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

/// Tells the supervisor of a signal by the pipe and not by the signal itself: at a terminal it has that already, and one
/// Ctrl-C must not count twice.
fn pass_on(words: &OwnedFd, number: i32) {
    if let Ok(word) = u8::try_from(number) {
        let _ = rustix::io::write(words, &[word]);
    }
}

/// Ctrl-Z: the supervisor may be in another group than the one that the terminal stops.
fn stop(supervisor: Pid) {
    let _ = kill_process(supervisor, Signal::STOP);
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Reaps every dead child; the supervisor's end, if it is among them.
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

/// Ends with the supervisor's exit status, or by the signal that it died of.
fn end_like(exit: Exit) -> ! {
    match exit {
        Exit::Code(code) => std::process::exit(code),
        Exit::Signal(number) => die_of(number),
        Exit::Unknown => std::process::exit(70),
    }
}

/// Dies of a signal; as the first process of a container, which is spared them, it ends with the status that shells give.
pub(super) fn die_of(number: i32) -> ! {
    // Where the supervisor's memory was written to a file, the keeper's need not be.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _: Result<Infallible, _> = match signal_hook::low_level::emulate_default_handler(number) {
        Ok(()) => Err(io::Error::other("it is still here")),
        Err(error) => Err(error),
    };
    std::process::exit(128 + number)
}
