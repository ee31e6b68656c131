//! A namespace of pids of a process's own: it sees, signals and traces no process outside of it.
//!
//! ```text
//! hostler ── monitor ─┬─ init       the first process inside: it reaps orphans
//!                     └─ program    the second
//! ```
//!
//! A process cannot move itself into such a namespace, only its children. So the process that was forked becomes the monitor, which ends
//! as the program does, and whose pid hostler knows. The first process of a namespace ignores signals that it does not handle, and reaps
//! every orphan; a program expects neither, so it is the second. When the monitor ends, init does, and with it the kernel kills all that is
//! left inside. Both are forks without an exec, which would cost milliseconds, and keep none of hostler's memory.

use std::ffi::{CStr, CString};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, chdir, getpid, kill_process,
    set_dumpable_behavior, setpgid, setrlimit, waitpid,
};
use rustix::stdio::dup2_stdin;
use rustix::thread::set_name;

use super::layers::give_up_capabilities;
use super::shed::OwnMemory;
use crate::process::child::end_with;

/// A namespace of pids, before it is made.
#[derive(Debug)]
pub(super) struct OwnPids {
    /// Where this program has its arguments, which init would show inside.
    arguments: Option<Range<usize>>,
    /// The process with which the monitor ends.
    pub parent: Option<Pid>,
    /// The working directory of the program.
    pub directory: CString,
}

/// The names of the helpers. A name has at most 15 letters.
const MONITOR: &CStr = c"hostler-monitor";
const FIRST: &CStr = c"hostler-init";

impl OwnPids {
    /// How many processes run beside the program.
    pub const HELPERS: u64 = 2;

    pub fn new(directory: &Path) -> Self {
        static ARGUMENTS: LazyLock<Option<Range<usize>>> = LazyLock::new(arguments);
        // A name with a zero in it was refused before.
        let directory = CString::new(directory.as_os_str().as_bytes()).unwrap_or_default();
        Self { arguments: ARGUMENTS.clone(), parent: None, directory }
    }

    /// Starts the first process of the namespace that children of this one get, and goes on as the second. Called between fork and exec.
    pub fn step_inside(&self) -> io::Result<()> {
        // Here, because making the namespace of users has cleared it.
        if let Some(parent) = self.parent {
            end_with(parent)?;
        }
        // What the helpers need is tried before there are any: one that fails would end the program at any moment.
        close_from(libc::c_uint::MAX)?;
        // The handlers of hostler would use its memory.
        let mask = block_signals();
        // Init reads until the monitor has ended.
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // On the stack: init has that and the arguments alone.
        let arguments = self.arguments.clone();
        let shown = arguments.as_ref().map_or(0, |range| range.start);
        let memory = OwnMemory::find(shown);
        memory.share(false);
        let init = fork();
        if matches!(init, Ok(None)) {
            be_init(reader.as_fd(), arguments);
        }
        memory.share(true);
        let Some(init) = init? else { exit(1) };
        match fork() {
            Ok(None) => {
                // A group that the monitor is not in, and that it passes signals on to.
                setpgid(None, None)?;
                set_mask(&mask);
                Ok(())
            }
            Ok(Some(program)) => be_monitor(program, writer.as_fd(), &memory),
            Err(error) => {
                let _ = kill_process(init, Signal::KILL);
                Err(error)
            }
        }
    }
}

/// Where this process has its arguments, as the kernel shows them to others.
fn arguments() -> Option<Range<usize>> {
    let line = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may contain anything, come the third field and the following.
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    let range = field(48)?..field(49)?;
    (range.start > 0 && range.start < range.end).then_some(range)
}

/// Mounts a listing of the processes inside over that of all. For a process inside, with mounts of its own. Called between fork and exec.
pub(super) fn list_own_processes() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount(c"proc", c"/proc", c"proc", flags, None)?)
}

/// Enters the working directory anew: it may be in the listing of all. Called between fork and exec.
pub(super) fn enter_again(directory: &CStr) -> io::Result<()> {
    Ok(chdir(directory).or_else(|_| chdir(c"/"))?)
}

/// Waits until the monitor has ended. Whatever else is inside dies with this process. Orphans are not zombies: their signal is ignored.
fn be_init(end: BorrowedFd<'_>, arguments: Option<Range<usize>>) -> ! {
    if let Some(arguments) = arguments {
        // SAFETY: the kernel says that they are there, on the stack of the first thread, and nothing reads them any more.
        #[expect(unsafe_code, reason = "writing to memory that is nobody's; argued above")]
        unsafe {
            std::ptr::with_exposed_provenance_mut::<u8>(arguments.start).write_bytes(0, arguments.len());
        }
    }
    if become_helper(FIRST, end, true).is_ok() {
        while rustix::io::read(rustix::stdio::stdin(), &mut [0]) == Err(Errno::INTR) {}
    }
    exit(0)
}

/// Passes signals on to the program's group until the program has ended, and ends as it did.
fn be_monitor(program: Pid, end: BorrowedFd<'_>, memory: &OwnMemory) -> ! {
    // The program does the same: a signal must not come before.
    let _ = setpgid(Some(program), Some(program));
    if become_helper(MONITOR, end, false).is_err() {
        let _ = kill_process(program, Signal::KILL);
    }
    memory.shed();
    loop {
        match waitpid(Some(program), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => end_like(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => exit(1),
        }
        let number = next_signal();
        if number > 0 && number != libc::SIGCHLD {
            // SAFETY: it takes two numbers.
            #[expect(unsafe_code, reason = "for every number, the library has no other way; argued above")]
            unsafe {
                libc::kill(-program.as_raw_pid(), number);
            }
        }
    }
}

/// The streams, the folder, the rights and the memory are not the helper's. It keeps one end of the pipe.
fn become_helper(name: &CStr, end: BorrowedFd<'_>, reaps: bool) -> io::Result<()> {
    reset_signals(reaps);
    dup2_stdin(end)?;
    close_from(1)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    chdir(c"/")?;
    give_up_capabilities()?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(set_name(name)?)
}

/// Closes every descriptor from this number on.
fn close_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: who calls it uses none of them again.
    #[expect(unsafe_code, reason = "a system call without memory; argued above")]
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if closed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Removes the handlers of hostler from a process whose signals are blocked. An orphan is no zombie where the signal about children is ignored.
fn reset_signals(reaps: bool) {
    for number in 1..=libc::SIGRTMAX() {
        let action = if number == libc::SIGCHLD && reaps { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: no handler is installed. What cannot be changed is refused.
        #[expect(unsafe_code, reason = "the library has no other way for every number; argued above")]
        unsafe {
            libc::signal(number, action);
        }
    }
}

/// Blocks every signal that can be blocked; returns which were before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are local, and one of zeros is a valid set.
    #[expect(unsafe_code, reason = "the library has no other way; argued above")]
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the set outlives the call.
    #[expect(unsafe_code, reason = "the library has no other way; argued above")]
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
    }
}

/// Waits for a signal that is blocked, and takes it. Not above 0, if there was none.
fn next_signal() -> i32 {
    // SAFETY: the set is local, and one of zeros is a valid set.
    #[expect(unsafe_code, reason = "the library has no other way; argued above")]
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigwaitinfo(&raw const all, std::ptr::null_mut())
    }
}

/// Ends this process as another one did: with its status, or by the signal that killed it.
fn end_like(status: WaitStatus) -> ! {
    if let Some(number) = status.terminating_signal() {
        // SAFETY: a set of zeros is empty, and no handler is installed.
        #[expect(unsafe_code, reason = "the end of a forked process; argued above")]
        unsafe {
            let none = std::mem::zeroed();
            libc::kill(getpid().as_raw_pid(), number);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
        exit(128 + number);
    }
    exit(status.exit_status().unwrap_or(1))
}

fn exit(status: i32) -> ! {
    // SAFETY: it ends this process and runs nothing.
    #[expect(unsafe_code, reason = "the end of a forked process; argued above")]
    unsafe {
        libc::_exit(status)
    }
}

/// Forks: the child's pid in the parent, and `None` in the child. The call itself, and not the library's, which takes locks.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the child gets a copy of this process, which has one thread and runs system calls until exec.
    #[expect(unsafe_code, reason = "a fork between fork and exec; argued above")]
    let number = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match i32::try_from(number) {
        Ok(number @ 0..) => Ok(Pid::from_raw(number)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use crate::process::confinement::INIT;

    #[test]
    fn the_arguments_of_this_process_are_found() {
        let range = super::arguments().unwrap();
        // SAFETY: the kernel says that they are there; nothing writes to them.
        #[expect(unsafe_code, reason = "argued above")]
        let bytes =
            unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(range.start), range.len()) };
        assert_eq!(bytes, std::fs::read("/proc/self/cmdline").unwrap());
    }

    #[test]
    fn init_has_the_name_by_which_it_is_known() {
        assert_eq!(super::FIRST.to_str().unwrap(), INIT);
    }
}
