//! Signals for one thread of a process that hostler started.

use rustix::process::{Pid, Signal};

/// Signals the thread of a process that goes by a name, if there is one. Says whether there was.
#[cfg(target_os = "linux")]
pub(super) fn signal_named(process: Pid, name: &str, signal: Signal) -> bool {
    let process = process.as_raw_pid();
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let numbers = threads.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |thread: &libc::pid_t| {
        let told = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
        told.is_ok_and(|told| told.trim_end() == name)
    };
    let Some(thread) = numbers.into_iter().find(is_it) else { return false };
    // SAFETY: tgkill takes three numbers and touches no memory of ours. It reaches a thread of that very process or nobody.
    #[expect(unsafe_code, reason = "tgkill, which has no safe wrapper; argued above")]
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal.as_raw()) };
    sent == 0
}

/// Threads cannot be told apart from outside.
#[cfg(not(target_os = "linux"))]
pub(super) fn signal_named(_: Pid, _: &str, _: Signal) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_nobody_has_is_not_signalled() {
        let own = rustix::process::getpid();
        // Had it reached anybody, this process would be gone.
        assert!(!signal_named(own, "nobody has it", Signal::KILL));
    }
}
