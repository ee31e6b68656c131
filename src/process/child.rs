//! A running process with its pipes, in a group of its own.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;

use super::exit::{self, DeathWatch, Exit};
use super::launch::{Launch, SpawnError};

/// A process that hostler started. Dropping it kills its whole group.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    watch: DeathWatch,
    /// Its standard input; dropped, it reads the end of the file.
    pub stdin: Option<pipe::Sender>,
    /// Its standard output.
    pub stdout: Option<pipe::Receiver>,
    /// Its standard error.
    pub stderr: Option<pipe::Receiver>,
    reaped: bool,
}

impl Child {
    /// Starts a process. Call it on the runtime's own thread, which lives as long as hostler does.
    pub fn spawn(launch: &Launch) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError { program: launch.program.display().to_string(), source };
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().envs(&launch.env).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        let mut started = command.spawn().map_err(failed)?;
        let streams = (started.stdin.take(), started.stdout.take(), started.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(failed(io::Error::other("its pipes were not made")));
        };
        let pid = Pid::from_child(&started);
        let child = Self::adopt(pid, stdin.into(), stdout.into(), stderr.into());
        child.map_err(|error| {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = started.wait();
            failed(error)
        })
    }

    fn adopt(pid: Pid, stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            pid,
            watch: DeathWatch::on(pid)?,
            stdin: Some(pipe::Sender::from_owned_fd(stdin)?),
            stdout: Some(pipe::Receiver::from_owned_fd(stdout)?),
            stderr: Some(pipe::Receiver::from_owned_fd(stderr)?),
            reaped: false,
        })
    }

    /// The process id of what was started; behind a launcher, the launcher's.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Waits for its death. The process stays on the table until [`Child::clean_up`], so its group is still its own.
    pub async fn exited(&self) -> Exit {
        loop {
            if let Some(exit) = exit::peek(self.pid) {
                return exit;
            }
            self.watch.died().await;
        }
    }

    /// Signals every process of its group.
    pub fn signal_group(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Kills what is left of its group and takes it off the process table.
    pub fn clean_up(&mut self) {
        if self.reaped {
            return;
        }
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.reaped = true;
        if !exit::reap(self.pid) {
            reap_later(self.pid);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.clean_up();
    }
}

/// KILL was sent a moment ago: the process dies soon, and would stay a zombie for as long as hostler lives.
fn reap_later(pid: Pid) {
    if let (Ok(runtime), Ok(watch)) = (Handle::try_current(), DeathWatch::on(pid)) {
        runtime.spawn(async move {
            watch.died().await;
            exit::reap(pid);
        });
    }
}

/// A process behind a launcher: not our child, but watched and signalled as exactly as one.
#[derive(Debug)]
pub struct Tracked {
    pid: Pid,
    watch: DeathWatch,
}

impl Tracked {
    /// Takes up a process that says it was launched by `launcher`; refuses one that was not.
    pub fn behind(launcher: &Child, pid: u32) -> io::Result<Self> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = raw.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a process id"))?;
        let watch = DeathWatch::on(pid)?;
        if pid != launcher.pid && rustix::process::getpgid(Some(pid))? != launcher.pid {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a process of this worker"));
        }
        Ok(Self { pid, watch })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Waits for its death.
    pub async fn died(&self) {
        self.watch.died().await;
    }

    /// Signals it alone, and never another that got its number.
    pub fn signal(&self, signal: Signal) {
        self.watch.signal(signal);
    }
}

impl Drop for Tracked {
    /// A tool may have left the group that dies with its launcher.
    fn drop(&mut self) {
        self.watch.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_process_of_its_own_group_is_taken_for_the_one_behind_a_launcher() {
        let sleeper = || Child::spawn(&Launch::new("/bin/sleep").arg("60")).unwrap();
        let (launcher, stranger) = (sleeper(), sleeper());
        assert_eq!(Tracked::behind(&launcher, launcher.pid()).unwrap().pid(), launcher.pid());
        let refused = Tracked::behind(&launcher, stranger.pid()).unwrap_err();
        assert_eq!(refused.to_string(), "not a process of this worker");
        assert_eq!(exit::peek(stranger.pid), None, "and it is not touched");
        assert!(Tracked::behind(&launcher, 0).is_err());
    }
}
