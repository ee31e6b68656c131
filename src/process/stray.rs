//! Ends one process that a dead hostler left, known by its pid and its start: another process that has its pid is never hit.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::exit::ProcessHandle;
use super::table::started;

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Sends SIGTERM, and SIGKILL after a while. Blocks until the process is gone or was killed; whether there was one.
pub fn end_stray(pid: u32, began: u64, grace: Duration) -> bool {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let Ok(handle) = ProcessHandle::on(process) else { return false };
    let is_there = || began != 0 && started(pid) == began;
    // Only now: the handle is that of the process that is looked at.
    if !is_there() {
        return false;
    }
    handle.signal(Signal::TERM);
    let until = Instant::now() + grace;
    while is_there() && Instant::now() < until {
        sleep(LOOK);
    }
    if is_there() {
        handle.signal(Signal::KILL);
    }
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_ended_by_its_identity_and_never_by_its_number_alone() {
        let mut stubborn = Command::new("sh");
        let mut child = stubborn
            .args(["-c", "trap '' TERM; echo; while :; do sleep 1; done"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut line).unwrap();
        let began = started(child.id());
        assert!(!end_stray(child.id(), began + 1, Duration::ZERO), "a stranger with this number");
        assert!(!end_stray(child.id(), 0, Duration::ZERO));
        assert!(child.try_wait().unwrap().is_none());
        assert!(end_stray(child.id(), began, Duration::from_millis(50)));
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }
}
