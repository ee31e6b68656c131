//! A running process with its pipes, in a process group of its own.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process_group};
#[cfg(target_os = "linux")]
use rustix::process::{getppid, set_parent_process_death_signal};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;

use super::exit::{self, DeathWatch, Exit};
use super::launch::{Launch, SpawnError};
use super::mark::{self, Mark};
use super::table::{self, Row};
use super::walls::{Prepared, Surroundings};
use super::{domain, keeper, ladder, process_tree};

/// A process that hostler started. Dropping it kills its group.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    watch: DeathWatch,
    /// Its standard input; dropping it closes the pipe.
    pub stdin: Option<pipe::Sender>,
    /// Its standard output.
    pub stdout: Option<pipe::Receiver>,
    /// Its standard error.
    pub stderr: Option<pipe::Receiver>,
    reaped: bool,
    peak: Option<usize>,
    /// Its descendants when last listed.
    known: Vec<(Pid, Row)>,
    /// What is kept for it, if it is within walls.
    around: Option<Box<Surroundings>>,
}

impl Child {
    /// Starts a process. Under a keeper, call it on the main thread only: the kernel kills a child when the thread that
    /// started it ends.
    pub async fn start(launch: &Launch) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError { program: launch.program.display().to_string(), source };
        let walls = Prepared::of(launch).await.map_err(failed)?;
        Self::spawn(launch, walls).map_err(failed)
    }

    fn spawn(launch: &Launch, mut walls: Option<Prepared>) -> io::Result<Self> {
        // During an immediate shutdown nothing is started: this waits until hostler has exited.
        let _open = keeper::open_for_starts();
        may_start(keeper::is_kept(), is_main_thread())?;
        let mark = Mark::next();
        let mut command = walls.as_ref().map_or_else(|| launch.command(), |walls| walls.command(launch));
        command.env_clear().envs(&launch.env).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        if let Some(mark) = &mark {
            command.env(mark::VARIABLE, mark.to_string());
        }
        let parent = is_main_thread().then(getpid);
        if let Some(walls) = &mut walls {
            walls.depart(&mut command, parent);
        }
        if !walls.as_ref().is_some_and(Prepared::has_monitor) {
            die_with(parent, &mut command);
        }
        domain::ban_core_dumps(&mut command);
        if !launch.new_privileges || launch.walls.is_some() {
            domain::confine(&mut command);
        }
        let around = walls.map(|walls| Box::new(walls.surround(&mut command)));
        let mut started = command.spawn()?;
        let streams = (started.stdin.take(), started.stdout.take(), started.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(io::Error::other("no pipes were created"));
        };
        let pid = Pid::from_child(&started);
        process_tree::enter(pid, mark.as_ref());
        let child = Self::adopt(pid, stdin.into(), stdout.into(), stderr.into(), around);
        child.inspect_err(|_| {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = started.wait();
            process_tree::forget(pid);
        })
    }

    fn adopt(
        pid: Pid,
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
        mut around: Option<Box<Surroundings>>,
    ) -> io::Result<Self> {
        around.iter_mut().try_for_each(|around| around.open())?;
        Ok(Self {
            pid,
            watch: DeathWatch::on(pid)?,
            stdin: Some(pipe::Sender::from_owned_fd(stdin)?),
            stdout: Some(pipe::Receiver::from_owned_fd(stdout)?),
            stderr: Some(pipe::Receiver::from_owned_fd(stderr)?),
            reaped: false,
            peak: None,
            known: Vec::new(),
            around,
        })
    }

    /// The process id of the started program; with a launcher, the launcher's.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Whether it runs in a namespace of pids of its own, below a monitor that ends as it does.
    pub fn has_monitor(&self) -> bool {
        self.around.as_ref().is_some_and(|around| around.has_monitor())
    }

    /// The program itself, where the started process is its monitor.
    pub fn program(&self) -> u32 {
        if !self.has_monitor() {
            return self.pid();
        }
        // The monitor starts init first, and the program then.
        let rows =
            table::children(self.pid).into_iter().filter_map(|pid| Some((table::row(pid)?.started, pid.as_raw_pid())));
        rows.max().map_or(self.pid(), |(_, pid)| pid.unsigned_abs())
    }

    /// The peak memory of it and the processes it waited for, in bytes; known after cleanup.
    pub fn peak_memory(&self) -> Option<usize> {
        self.peak
    }

    /// Waits for its death. It stays a zombie until [`Child::clean_up`], so its group id is not reused.
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

    /// Lists its descendants, for the time after its exit: they are reparented then, and those without a mark could not
    /// be identified.
    pub fn remember(&mut self) {
        self.known.extend(table::descendants(self.pid, &[], None));
    }

    /// Kills it with its group and its descendants.
    pub fn kill(&self) {
        if !self.reaped {
            process_tree::kill_below(self.pid);
            process_tree::kill(&self.known, None);
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Kills what is left of it and reaps it. Reparented descendants are found later.
    pub fn clean_up(&mut self) {
        if self.reaped {
            return;
        }
        self.kill();
        self.reaped = true;
        process_tree::has_ended(self.pid);
        let (reaped, peak) = exit::reap_and_weigh(self.pid);
        self.peak = peak;
        self.around = None;
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

/// It was just killed; without a reap it would stay a zombie as long as hostler lives.
fn reap_later(pid: Pid) {
    if let (Ok(runtime), Ok(watch)) = (Handle::try_current(), DeathWatch::on(pid)) {
        runtime.spawn(async move {
            watch.died().await;
            exit::reap(pid);
            process_tree::forget(pid);
        });
    }
}

/// Returns an error instead of a panic for a misuse under a keeper: a panicking task would leave its call waiting.
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

/// Makes the kernel kill the process when the thread that starts it ends. Only the main thread is sure to last, so this
/// is not set for others: an embedding program may start processes from short-lived threads.
#[cfg(target_os = "linux")]
fn die_with(parent: Option<Pid>, command: &mut Command) {
    let Some(parent) = parent else { return };
    // SAFETY: between fork and exec only system calls are made: prctl and getppid, and an error from a number. Nothing
    // allocates, locks or reads the environment.
    #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
    unsafe {
        command.pre_exec(move || end_with(parent));
    }
}

/// Makes the kernel kill this process when the thread of its parent that started it ends. Called between fork and exec.
#[cfg(target_os = "linux")]
pub(super) fn end_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before that, and no signal would follow. Compare with its pid, not with 1: an orphan's new parent may be any
    // process, and in a container hostler may be 1 itself.
    if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(Errno::SRCH.raw_os_error())) }
}

#[cfg(not(target_os = "linux"))]
fn die_with(_: Option<Pid>, _: &mut Command) {}

/// The group of a process; `None` if it has exited, or if its group belongs to another pid namespace and has no number
/// here, as for a container's first process. `rustix` treats such a group as impossible.
fn group_of(pid: Pid) -> Option<Pid> {
    // SAFETY: takes and returns a number.
    #[expect(unsafe_code, reason = "a system call without memory; argued above")]
    let group = unsafe { libc::getpgid(pid.as_raw_pid()) };
    if group > 0 { Pid::from_raw(group) } else { None }
}

/// A process behind a launcher: not a child of hostler, but watched and signalled as reliably.
#[derive(Debug)]
pub struct Tracked {
    pid: Pid,
    watch: DeathWatch,
}

impl Tracked {
    /// Tracks a process that claims to be launched by `launcher`; refuses any other.
    pub fn behind(launcher: &Child, pid: u32) -> io::Result<Self> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = raw.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a process id"))?;
        let watch = DeathWatch::on(pid)?;
        if pid != launcher.pid && group_of(pid) != Some(launcher.pid) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a process of this worker"));
        }
        Ok(Self { pid, watch })
    }

    /// Tracks the program that a process is, or that it monitors.
    pub fn program_of(child: &Child) -> io::Result<Self> {
        if child.has_monitor() {
            let pid = i32::try_from(child.program()).ok().and_then(Pid::from_raw);
            return Self::of(pid.ok_or(io::ErrorKind::NotFound)?);
        }
        Self::behind(child, child.pid())
    }

    /// Tracks this process, which its caller has found below a launcher.
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, watch: DeathWatch::on(pid)? })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Waits for its death.
    pub async fn died(&self) {
        self.watch.died().await;
    }

    /// Signals this process only, even if its pid has been reused.
    pub fn signal(&self, signal: Signal) {
        self.watch.signal(signal);
    }

    /// Signals the thread with this name; without one, a thread that the system chooses, which is the main thread.
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
    fn under_a_keeper_only_the_main_thread_starts_processes() {
        assert!(may_start(true, true).is_ok() && may_start(false, false).is_ok());
        assert!(may_start(true, false).unwrap_err().to_string().contains("a runtime of a single thread"));
    }

    #[tokio::test]
    async fn only_a_process_of_its_group_is_accepted_behind_a_launcher() {
        let sleeper = Launch::new("/bin/sleep").arg("60");
        let (launcher, stranger) = (Child::start(&sleeper).await.unwrap(), Child::start(&sleeper).await.unwrap());
        assert_eq!(Tracked::behind(&launcher, launcher.pid()).unwrap().pid(), launcher.pid());
        let refused = Tracked::behind(&launcher, stranger.pid()).unwrap_err();
        assert_eq!(refused.to_string(), "not a process of this worker");
        assert_eq!(exit::peek(stranger.pid), None, "and it is not signalled");
        assert!(Tracked::behind(&launcher, 0).is_err());
        assert!(Tracked::behind(&launcher, 1).is_err(), "whatever group the first process is in");
    }
}
