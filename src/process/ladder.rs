//! The kill ladder: ask, wait, TERM, wait, KILL. Returns how the process ended.

use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::timeout;

use super::child::Child;
use super::exit::Exit;

/// The time for each rung. Zero skips the rung.
#[derive(Debug, Clone, Copy)]
pub struct Grace {
    /// From closing standard input to TERM.
    pub to_leave: Duration,
    /// From TERM to KILL.
    pub to_obey: Duration,
}

impl Grace {
    /// For a worker that is no longer needed.
    pub const RETIRE: Self = Self { to_leave: Duration::from_secs(2), to_obey: Duration::from_secs(1) };
    /// For a worker that is stuck or whose resources are needed.
    pub const NONE: Self = Self { to_leave: Duration::ZERO, to_obey: Duration::ZERO };
}

/// Ends a process and its group. When this returns, only processes that left the group may remain.
pub async fn stop(child: &mut Child, grace: Grace) -> Exit {
    child.remember();
    drop(child.stdin.take());
    let exit = climb(child, grace).await;
    child.clean_up();
    exit
}

async fn climb(child: &Child, grace: Grace) -> Exit {
    if let Ok(exit) = timeout(grace.to_leave, child.exited()).await {
        return exit;
    }
    if !grace.to_obey.is_zero() {
        child.signal_group(Signal::TERM);
        if let Ok(exit) = timeout(grace.to_obey, child.exited()).await {
            return exit;
        }
    }
    child.kill();
    child.exited().await
}

/// Signals the thread with this name. Returns whether there is one.
#[cfg(target_os = "linux")]
pub(super) fn signal_named(process: Pid, name: &str, signal: Signal) -> bool {
    let process = process.as_raw_pid();
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let numbers = threads.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |thread: &libc::pid_t| {
        let found = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
        found.is_ok_and(|found| found.trim_end() == name)
    };
    let Some(thread) = numbers.into_iter().find(is_it) else { return false };
    // SAFETY: tgkill takes three numbers and accesses no memory of this process. It reaches a thread of that process or
    // none.
    #[expect(unsafe_code, reason = "tgkill, which has no safe wrapper; argued above")]
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal.as_raw()) };
    sent == 0
}

/// This system does not identify threads from outside.
#[cfg(not(target_os = "linux"))]
pub(super) fn signal_named(_: Pid, _: &str, _: Signal) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_missing_thread_is_not_signalled() {
        let own = rustix::process::getpid();
        // A delivered signal would kill this process.
        assert!(!signal_named(own, "no such thread", Signal::KILL));
    }
}

#[cfg(test)]
mod thread_tests {
    use super::*;
    use crate::process::Launch;

    #[tokio::test]
    async fn a_process_is_asked_before_it_is_killed() {
        let mut launch = Launch::new("/bin/sh");
        // It exits on TERM, and reports when it is ready for that.
        launch = launch.args(["-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"]);
        let mut child = Child::start(&launch).await.unwrap();
        let mut ready = [0; 6];
        let mut stdout = child.stdout.take().unwrap();
        tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut ready).await.unwrap();
        let grace = Grace { to_leave: Duration::ZERO, to_obey: Duration::from_mins(1) };
        assert_eq!(stop(&mut child, grace).await, Exit::Code(7));
    }

    #[tokio::test]
    async fn a_process_that_exits_with_its_input_gets_no_signal() {
        let mut child = Child::start(&Launch::new("/bin/cat")).await.unwrap();
        let grace = Grace { to_leave: Duration::from_mins(1), to_obey: Duration::ZERO };
        assert_eq!(stop(&mut child, grace).await, Exit::Code(0));
    }
}
