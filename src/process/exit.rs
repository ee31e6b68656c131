//! How a process ended, and how that is learned without a race: a pidfd for waiting, `waitid` for the status.

use std::fmt;
use std::io;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};

/// How a process ended: with an exit status or by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself with this status.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It is gone and nobody can say how (its launcher died first).
    Unknown,
}

impl Exit {
    /// What a launcher's exit status says of the process it launched: shells and `uv run` give 128 + signal.
    #[must_use]
    pub fn behind_launcher(self) -> Self {
        match self {
            Self::Code(code) if (129..=128 + 64).contains(&code) => Self::Signal(code - 128),
            other => other,
        }
    }

    /// The signal's name, `SIGKILL`.
    pub fn signal_name(self) -> Option<String> {
        let Self::Signal(number) = self else { return None };
        let name = match number {
            1 => "SIGHUP",
            2 => "SIGINT",
            3 => "SIGQUIT",
            4 => "SIGILL",
            6 => "SIGABRT",
            7 => "SIGBUS",
            8 => "SIGFPE",
            9 => "SIGKILL",
            11 => "SIGSEGV",
            13 => "SIGPIPE",
            14 => "SIGALRM",
            15 => "SIGTERM",
            24 => "SIGXCPU",
            25 => "SIGXFSZ",
            31 => "SIGSYS",
            _ => return Some(format!("signal {number}")),
        };
        Some(name.to_owned())
    }

    /// The exit status, when it ended by itself.
    pub const fn code(self) -> Option<i32> {
        if let Self::Code(code) = self { Some(code) } else { None }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(_) => f.write_str(&self.signal_name().unwrap_or_default()),
            Self::Unknown => f.write_str("unknown cause"),
        }
    }
}

impl From<WaitIdStatus> for Exit {
    fn from(status: WaitIdStatus) -> Self {
        let code = status.exit_status().map(Self::Code);
        let signal = || status.terminating_signal().map(Self::Signal);
        code.or_else(signal).unwrap_or(Self::Unknown)
    }
}

/// Asks how a child ended, if it has. It stays a zombie, so its pid and group cannot be taken by anybody else.
pub(super) fn peek(pid: Pid) -> Option<Exit> {
    status_of(pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

/// Takes the dead child off the process table; `false` when it has not died yet.
pub(super) fn reap(pid: Pid) -> bool {
    status_of(pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_some()
}

/// The same, and the most memory that it or a descendant it waited for ever held, in bytes.
pub(super) fn reap_and_weigh(pid: Pid) -> (bool, Option<usize>) {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to values of our own that live past the call; zeroes are a sound `rusage`.
    #[expect(unsafe_code, reason = "wait4 is the only call that tells of memory; argued above")]
    let (reaped, usage) = unsafe {
        let reaped = libc::wait4(pid.as_raw_pid(), &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (reaped, usage.assume_init())
    };
    // macOS counts bytes, others kilobytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let peak = usize::try_from(usage.ru_maxrss).ok().map(|size| size * unit).filter(|size| *size > 0 && reaped > 0);
    (reaped != 0, peak)
}

fn status_of(pid: Pid, options: WaitIdOptions) -> Option<Exit> {
    match waitid(WaitId::Pid(pid), options) {
        Ok(Some(status)) => Some(status.into()),
        Ok(None) => None,
        Err(_) => Some(Exit::Unknown),
    }
}

#[cfg(target_os = "linux")]
mod watch {
    use std::os::fd::OwnedFd;

    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::{Pid, Signal, io};

    /// A process held on to: signals reach this very one, even if its number has passed to another.
    #[derive(Debug)]
    pub struct Held(OwnedFd);

    impl Held {
        pub fn on(pid: Pid) -> io::Result<Self> {
            Ok(Self(pidfd_open(pid, PidfdFlags::NONBLOCK)?))
        }

        pub fn signal(&self, signal: Signal) {
            let _ = pidfd_send_signal(&self.0, signal);
        }
    }

    /// Tells when a process has died. Works for any process, not only for children.
    #[derive(Debug)]
    pub struct DeathWatch {
        fd: AsyncFd<OwnedFd>,
    }

    impl DeathWatch {
        pub fn on(pid: Pid) -> io::Result<Self> {
            let fd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
            // SAFETY: the AsyncFd owns the pidfd, which nothing else can close or replace while it lives.
            #[expect(unsafe_code, reason = "registering a descriptor for readiness; argued above")]
            let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
            Ok(Self { fd })
        }

        pub async fn died(&self) {
            // A pidfd becomes readable at death and stays so; an error here means the runtime is ending.
            let _ = self.fd.readable().await;
        }

        /// Signals this very process; nothing happens when it is gone, even if its number has passed to another.
        pub fn signal(&self, signal: Signal) {
            let _ = pidfd_send_signal(self.fd.get_ref(), signal);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod watch {
    use std::time::Duration;

    use super::{Pid, Signal, io};

    /// A process by its number: this system has no way to hold on to one.
    #[derive(Debug)]
    pub struct Held(Pid);

    impl Held {
        pub fn on(pid: Pid) -> io::Result<Self> {
            Ok(Self(pid))
        }

        pub fn signal(&self, signal: Signal) {
            let _ = rustix::process::kill_process(self.0, signal);
        }
    }

    /// Tells when a process has died, by asking: there is no pidfd on this system.
    #[derive(Debug)]
    pub struct DeathWatch {
        pid: Pid,
    }

    impl DeathWatch {
        pub fn on(pid: Pid) -> io::Result<Self> {
            Ok(Self { pid })
        }

        pub async fn died(&self) {
            let own_child_dead = || super::peek(self.pid).is_some_and(|exit| exit != super::Exit::Unknown);
            while !own_child_dead() && rustix::process::test_kill_process(self.pid).is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }

        pub fn signal(&self, signal: Signal) {
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }
}

pub(super) use watch::{DeathWatch, Held};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_that_hides_a_signal_is_seen_through() {
        assert_eq!(Exit::Code(137).behind_launcher(), Exit::Signal(9));
        assert_eq!(Exit::Code(139).behind_launcher().signal_name().as_deref(), Some("SIGSEGV"));
        assert_eq!(Exit::Code(3).behind_launcher(), Exit::Code(3));
        assert_eq!(Exit::Code(255).behind_launcher(), Exit::Code(255));
        assert_eq!(Exit::Code(128).behind_launcher(), Exit::Code(128));
    }
}
