//! The Landlock domain of its own that every process starts in, so that no tool reads the memory or the environment of
//! hostler, of another tool or of any other process outside.
//!
//! What protects is the domain itself: the kernel lets a process in a domain trace only processes in the same domain or
//! in one nested within it, and reading `/proc/PID/{environ,mem,maps,fd,…}` counts as tracing. The domain must deny as
//! little else as possible, and an empty one is not allowed. So it handles the one right that every domain over files
//! denies anyway, moving and linking files between folders, and grants it for every folder. The alternatives cost tools
//! more: a domain that handles no files but scopes signals or abstract sockets breaks `kill` and X11 clients, and a
//! program within that restricts itself by Landlock could no longer move files between folders. What it costs is
//! mounting, which the kernel denies to every domain over files; `new_privileges = true` opts a tool out.
//!
//! A core dump is a way around a domain: any program of a user may raise another one's limit for core files, without
//! tracing it, and end it with a signal that dumps its memory. So nothing that hostler starts dumps core.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[cfg(target_os = "linux")]
pub(super) use system::confine;
#[cfg(target_os = "linux")]
pub use system::is_supported;

/// Too small for a core file. Where the system passes dumps to a program, Linux takes this limit, and not 0, as a ban.
const NO_CORE: u64 = 1;

/// Makes a program start without core dumps, which only root can allow again.
pub(super) fn ban_core_dumps(command: &mut Command) {
    let lower = || {
        if getrlimit(Resource::Core).maximum.is_some_and(|most| most <= NO_CORE) {
            return Ok(());
        }
        setrlimit(Resource::Core, Rlimit { current: Some(NO_CORE), maximum: Some(NO_CORE) }).map_err(io::Error::from)
    };
    // SAFETY: between fork and exec only two system calls are made, and an error from a number.
    #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
    unsafe {
        command.pre_exec(lower);
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
    use std::sync::LazyLock;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;
    use rustix::thread::set_no_new_privs;

    use super::{Command, CommandExt};
    use crate::process::walls::{add_landlock_rule, landlock_version};

    /// `LANDLOCK_ACCESS_FS_REFER`: moving and linking between folders.
    const REFER: u64 = 1 << 13;
    /// The first version of Landlock's interface that has it (Linux 5.19). The one before denies it without exception.
    const FIRST_USABLE: u32 = 2;

    /// The rules of all domains. Each process that applies them gets a domain of its own.
    static RULESET: LazyLock<Option<OwnedFd>> = LazyLock::new(|| ruleset().ok().flatten());

    /// Whether the system has usable domains.
    pub fn is_supported() -> bool {
        RULESET.is_some()
    }

    /// Builds the rules; `None` where the kernel has no Landlock, has it disabled, or a filter of system calls hides it.
    #[expect(unsafe_code, reason = "Landlock's system calls have no wrapper; argued below")]
    fn ruleset() -> io::Result<Option<OwnedFd>> {
        if landlock_version() < FIRST_USABLE {
            return Ok(None);
        }
        let handled = REFER;
        // SAFETY: the first member of the attributes alone, of the size given; the kernel only reads it.
        let fd = checked(unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size_of::<u64>(), 0_u32)
        })?;
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just opened it, with close-on-exec, for this owner alone.
        let ruleset = unsafe { OwnedFd::from_raw_fd(fd) };
        let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        add_landlock_rule(ruleset.as_raw_fd(), root.as_fd(), REFER)?;
        Ok(Some(ruleset))
    }

    fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    /// Makes a program start in a domain of its own, where the system has them.
    pub(in crate::process) fn confine(command: &mut Command) {
        // Built here: between fork and exec nothing may allocate.
        let Some(ruleset) = RULESET.as_ref().map(AsRawFd::as_raw_fd) else { return };
        // SAFETY: between fork and exec only two system calls are made, and errors from numbers. The descriptor is never
        // closed in this process.
        #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
        unsafe {
            command.pre_exec(move || enter(ruleset));
        }
    }

    /// The system demands that a process in a domain gains no privileges by exec, since it would act for others there.
    fn enter(ruleset: libc::c_int) -> io::Result<()> {
        set_no_new_privs(true)?;
        // SAFETY: takes two numbers.
        #[expect(unsafe_code, reason = "Landlock's system calls have no wrapper; argued above")]
        let entered = checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) });
        match entered {
            // Domains nest 16 deep. Below that many, the program shares hostler's own, which is still a domain.
            Err(error) if error.raw_os_error() == Some(Errno::TOOBIG.raw_os_error()) => Ok(()),
            other => other.map(drop),
        }
    }
}

/// Whether the system has usable domains.
#[cfg(not(target_os = "linux"))]
pub fn is_supported() -> bool {
    false
}

/// This system has no domains.
#[cfg(not(target_os = "linux"))]
pub(super) fn confine(_: &mut Command) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process::{Launch, run};

    #[tokio::test]
    async fn a_program_cannot_look_into_the_one_that_started_it() {
        if !is_supported() {
            return;
        }
        // The link is closed to root's programs too, as long as they are in a domain.
        let look = || Launch::new("/bin/sh").args(["-c", "ls -l /proc/$PPID/exe && grep NoNewPrivs /proc/self/status"]);
        let confined = run(&look(), Duration::from_secs(20), |_| {}).await.unwrap();
        assert!(!confined.succeeded(), "{confined:?}");
        let free = run(&look().with_new_privileges(true), Duration::from_secs(20), |_| {}).await.unwrap();
        assert!(free.succeeded() && free.stdout.trim().ends_with('0'), "{free:?}");
    }
}
