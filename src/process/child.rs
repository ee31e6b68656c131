//! A running process with its pipes, in a group of its own.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
#[cfg(target_os = "linux")]
use rustix::process::{getpid, getppid, set_parent_process_death_signal};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;

use super::exit::{self, DeathWatch, Exit};
use super::launch::{Launch, SpawnError};
use super::mark::{self, Mark};
use super::table::{self, Row};
use super::{keeper, ladder, process_tree};

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
    peak: Option<usize>,
    /// Who descended from it when it was last looked at.
    known: Vec<(Pid, Row)>,
}

impl Child {
    /// Starts a process. Under a keeper, call it on the main thread alone: what was started there dies with it, and what
    /// another thread starts would die with that thread, which may be long before.
    pub fn spawn(launch: &Launch) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError { program: launch.program.display().to_string(), source };
        // Once hostler has to go at once, nothing is started any more: this waits until it has gone.
        let _open = keeper::open_for_starts();
        may_start(keeper::is_kept(), is_main_thread()).map_err(failed)?;
        let mark = Mark::next();
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().envs(&launch.env).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        if let Some(mark) = &mark {
            command.env(mark::VARIABLE, mark.to_string());
        }
        die_with_us(&mut command);
        let mut started = command.spawn().map_err(failed)?;
        let streams = (started.stdin.take(), started.stdout.take(), started.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(failed(io::Error::other("its pipes were not made")));
        };
        let pid = Pid::from_child(&started);
        process_tree::enter(pid, mark.as_ref());
        let child = Self::adopt(pid, stdin.into(), stdout.into(), stderr.into());
        child.map_err(|error| {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = started.wait();
            process_tree::forget(pid);
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
            peak: None,
            known: Vec::new(),
        })
    }

    /// The process id of what was started; behind a launcher, the launcher's.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// The most memory that it or a process it waited for ever held, in bytes; known once it was cleaned up.
    pub fn peak_memory(&self) -> Option<usize> {
        self.peak
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

    /// Keeps in mind who descends from it, for when it has left by itself: they are somebody else's children then, and those
    /// without a mark could not be told from another's.
    pub(super) fn remember(&mut self) {
        self.known.extend(table::descendants(self.pid, &[], None));
    }

    /// Kills it with its group, and what descends from it wherever that went.
    pub fn kill(&self) {
        if !self.reaped {
            process_tree::kill_below(self.pid);
            process_tree::kill(&self.known, None);
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Kills what is left of it and takes it off the process table. What lost its way to it is looked for afterwards.
    pub fn clean_up(&mut self) {
        if self.reaped {
            return;
        }
        self.kill();
        self.reaped = true;
        process_tree::has_ended(self.pid);
        let (reaped, peak) = exit::reap_and_weigh(self.pid);
        self.peak = peak;
        if reaped {
            process_tree::forget(self.pid);
        } else {
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
            process_tree::forget(pid);
        });
    }
}

/// Refuses what would break a keeper's promise, in words: a panic would be that of a task, and its call would wait for good.
fn may_start(is_kept: bool, is_main: bool) -> io::Result<()> {
    let advice =
        "under a keeper only the main thread starts processes: run hostler there, on a runtime of a single thread";
    if is_kept && !is_main { Err(io::Error::other(advice)) } else { Ok(()) }
}

#[cfg(target_os = "linux")]
fn is_main_thread() -> bool {
    rustix::thread::gettid() == getpid()
}

#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    true
}

/// Has the kernel kill the process when the thread that starts it ends. Only the main thread is sure to last, so what any
/// other starts is not asked for: a program that embeds hostler may start from threads that come and go.
#[cfg(target_os = "linux")]
fn die_with_us(command: &mut Command) {
    if !is_main_thread() {
        return;
    }
    let own = getpid();
    let arrange = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // hostler may have died before that, and the signal would never come. Its number is compared, and not with 1: an
        // orphan's new parent is anybody, and in a container hostler may be 1 itself.
        if getppid() == Some(own) { Ok(()) } else { Err(io::Error::from_raw_os_error(Errno::SRCH.raw_os_error())) }
    };
    // SAFETY: between fork and exec only system calls are made: prctl and getppid, and an error of a bare number. Nothing
    // is allocated, no lock is taken and no environment is read.
    #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
    unsafe {
        command.pre_exec(arrange);
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_: &mut Command) {}

/// The group of a process; none where it has gone, or where its group is of another namespace and has no number here, as that
/// of a container's first process. `rustix` takes such a group for an impossible thing.
fn group_of(pid: Pid) -> Option<Pid> {
    // SAFETY: a number in, a number out.
    #[expect(unsafe_code, reason = "a system call without memory; argued above")]
    let group = unsafe { libc::getpgid(pid.as_raw_pid()) };
    if group > 0 { Pid::from_raw(group) } else { None }
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
        if pid != launcher.pid && group_of(pid) != Some(launcher.pid) {
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

    /// Signals the thread of it that goes by this name; where there is none, whichever the system chooses, which is the
    /// main thread.
    pub fn signal_thread(&self, name: &str, signal: Signal) {
        if !ladder::signal_named(self.pid, name, signal) {
            self.signal(signal);
        }
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

    #[test]
    fn under_a_keeper_other_threads_start_nothing_and_say_what_to_do() {
        assert!(may_start(true, true).is_ok() && may_start(false, false).is_ok());
        assert!(may_start(true, false).unwrap_err().to_string().contains("a runtime of a single thread"));
    }

    #[tokio::test]
    async fn only_a_process_of_its_own_group_is_taken_for_the_one_behind_a_launcher() {
        let sleeper = || Child::spawn(&Launch::new("/bin/sleep").arg("60")).unwrap();
        let (launcher, stranger) = (sleeper(), sleeper());
        assert_eq!(Tracked::behind(&launcher, launcher.pid()).unwrap().pid(), launcher.pid());
        let refused = Tracked::behind(&launcher, stranger.pid()).unwrap_err();
        assert_eq!(refused.to_string(), "not a process of this worker");
        assert_eq!(exit::peek(stranger.pid), None, "and it is not touched");
        assert!(Tracked::behind(&launcher, 0).is_err());
        assert!(Tracked::behind(&launcher, 1).is_err(), "whatever group the first process is in");
    }
}
