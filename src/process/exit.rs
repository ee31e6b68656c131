//! Exit statuses, and the detection of exits, also where a launcher holds the pipes open.

use std::os::fd::AsFd;
use std::time::Duration;
use std::{fmt, io};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
    /// It is gone and its status is unknown (its launcher died first).
    Unknown,
}

impl Exit {
    /// The exit of the launched process, from its launcher's status: shells and `uv run` return 128 + signal.
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

    /// The exit status, if it exited by itself.
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

/// The exit of a child, if it has ended. It stays a zombie, so its pid and group are not reused.
pub(super) fn peek(pid: Pid) -> Option<Exit> {
    status_of(pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

/// Reaps a dead child; `false` if it is still alive.
pub(super) fn reap(pid: Pid) -> bool {
    status_of(pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_some()
}

/// The same, with the peak memory of it and the descendants it waited for, in bytes.
pub(super) fn reap_and_weigh(pid: Pid) -> (bool, Option<usize>) {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to local values that outlive the call; zeroes are a valid `rusage`.
    #[expect(unsafe_code, reason = "wait4 is the only call that tells of memory; argued above")]
    let (reaped, usage) = unsafe {
        let reaped = libc::wait4(pid.as_raw_pid(), &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (reaped, usage.assume_init())
    };
    // macOS counts bytes, other systems kilobytes.
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

    /// A handle to a process: signals reach only this process, even if its pid has been reused.
    #[derive(Debug)]
    pub struct ProcessHandle(OwnedFd);

    impl ProcessHandle {
        pub fn on(pid: Pid) -> io::Result<Self> {
            Ok(Self(pidfd_open(pid, PidfdFlags::NONBLOCK)?))
        }

        pub fn signal(&self, signal: Signal) {
            let _ = pidfd_send_signal(&self.0, signal);
        }
    }

    /// Reports the death of a process, child or not.
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
            // A pidfd becomes readable at death and stays so; an error here means the runtime is shutting down.
            let _ = self.fd.readable().await;
        }

        /// Signals this process only; has no effect after its death.
        pub fn signal(&self, signal: Signal) {
            let _ = pidfd_send_signal(self.fd.get_ref(), signal);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod watch {
    use std::time::Duration;

    use super::{Pid, Signal, io};

    /// A process by its pid: this system has no handles to processes.
    #[derive(Debug)]
    pub struct ProcessHandle(Pid);

    impl ProcessHandle {
        pub fn on(pid: Pid) -> io::Result<Self> {
            Ok(Self(pid))
        }

        pub fn signal(&self, signal: Signal) {
            let _ = rustix::process::kill_process(self.0, signal);
        }
    }

    /// Reports the death of a process by polling: this system has no pidfd.
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

pub(super) use watch::{DeathWatch, ProcessHandle};

/// The polling interval. A process that closes its output is rarely useful afterwards, but it is not urgent.
const LOOK: Duration = Duration::from_secs(1);

/// The other end of a pipe, in another process.
#[derive(Debug, Clone, Copy)]
pub struct PipeEnd {
    inode: u64,
}

impl PipeEnd {
    /// The other end of this pipe; `None` if the system does not show it.
    pub fn beyond(pipe: &impl AsFd) -> Option<Self> {
        rustix::fs::fstat(pipe).ok().map(|stat| Self { inode: stat.st_ino })
    }

    /// Waits until no descriptor of the process holds it; forever if the system does not show it.
    pub async fn closed_by(self, pid: u32) {
        let mut known = None;
        loop {
            tokio::time::sleep(LOOK).await;
            // It is most likely still at its last position.
            if known.is_some_and(|number| self.is_at(pid, number)) {
                continue;
            }
            match self.find(pid) {
                Some(number) => known = number,
                None => return,
            }
        }
    }

    fn is_at(self, pid: u32, number: u32) -> bool {
        let place = std::fs::read_link(format!("/proc/{pid}/fd/{number}"));
        place.is_ok_and(|place| place.as_os_str() == self.name().as_str())
    }

    /// Its descriptor in a process: `None` if there is none, `Some(None)` if unknown.
    #[expect(clippy::option_option, reason = "found, gone and unknown differ")]
    fn find(self, pid: u32) -> Option<Option<u32>> {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Some(None) };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.into_iter().find(|number| self.is_at(pid, *number)).map(Some)
    }

    fn name(self) -> String {
        format!("pipe:[{}]", self.inode)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_closed_end_is_detected_while_the_pipe_is_open() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let kept = writer.try_clone().unwrap();
        let end = PipeEnd::beyond(&reader).unwrap();
        let pid = std::process::id();
        let waits = tokio::time::timeout(LOOK * 3, end.closed_by(pid)).await;
        assert!(waits.is_err(), "it is open");
        drop((reader, writer));
        let waits = tokio::time::timeout(LOOK * 3, end.closed_by(pid)).await;
        assert!(waits.is_err(), "a second descriptor is open");
        drop(kept);
        end.closed_by(pid).await;
        tokio::time::timeout(LOOK * 3, end.closed_by(u32::MAX))
            .await
            .expect_err("an exited process is reported elsewhere");
    }
}

#[cfg(test)]
mod pipe_tests {
    use super::*;

    #[test]
    fn a_launchers_status_reveals_the_signal() {
        assert_eq!(Exit::Code(137).behind_launcher(), Exit::Signal(9));
        assert_eq!(Exit::Code(139).behind_launcher().signal_name().as_deref(), Some("SIGSEGV"));
        assert_eq!(Exit::Code(3).behind_launcher(), Exit::Code(3));
        assert_eq!(Exit::Code(255).behind_launcher(), Exit::Code(255));
        assert_eq!(Exit::Code(128).behind_launcher(), Exit::Code(128));
    }
}
