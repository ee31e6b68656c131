//! The process that a worker means by its pid, which it counts in a namespace of pids that its launcher may have made.

use std::io;

use rustix::process::Pid;

use super::child::{Child, Tracked};
use super::{proc_file, table};

impl Tracked {
    /// Tracks the process below a launcher whose pid is this one, in whatever namespace it lives. `None` where there is no such process
    /// here: a container's is below another program, and perhaps on another machine.
    pub fn below(launcher: &Child, claimed: u32) -> Option<io::Result<Self>> {
        let root = i32::try_from(launcher.pid()).ok().and_then(Pid::from_raw)?;
        let found = table::descendants(root, &[], None).into_iter().find(|(pid, _)| own_pid(*pid) == Some(claimed));
        let Some((pid, row)) = found else {
            // It may have become the program itself. Its own pid counts last: in a container of hostler's, a pid of another could be the same.
            return (launcher.pid() == claimed).then(|| Self::of(root));
        };
        let tracked = Self::of(pid);
        // From here on, the pid cannot be given to another process unnoticed.
        let is_same = table::row(pid).is_some_and(|now| now.started == row.started);
        is_same.then_some(tracked)
    }
}

/// The pid by which a process knows itself.
fn own_pid(pid: Pid) -> Option<u32> {
    let status = proc_file::read(format!("/proc/{pid}/status")).ok()?;
    innermost(&String::from_utf8_lossy(&status))
}

/// `NSpid` lists its pids from the reader's namespace to its own.
fn innermost(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pid_is_the_processes_own() {
        assert_eq!(innermost("Name:\tx\nNSpid:\t4711\t12\t2\nNSsid:\t1\n"), Some(2));
        assert_eq!(innermost("NSpid:\t4711\n"), Some(4711));
        assert_eq!(innermost("Pid:\t4711\n"), None, "an old kernel does not tell");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_a_process_below_the_launcher_is_found() {
        use crate::process::Launch;
        let script = Launch::new("/bin/sh").args(["-c", "/bin/sleep 50 & wait"]);
        let (launcher, stranger) = (Child::start(&script).await.unwrap(), Child::start(&script).await.unwrap());
        assert_eq!(Tracked::below(&launcher, launcher.pid()).unwrap().unwrap().pid(), launcher.pid());
        assert!(Tracked::below(&launcher, stranger.pid()).is_none());
        assert!(Tracked::below(&launcher, 1).is_none());
    }
}
