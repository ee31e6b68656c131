//! The process that a launcher was told to start, where that does not say who it is.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;

use super::child::{Child, Tracked};
use super::table;

/// Between two looks. A launcher takes some ten milliseconds.
const LOOK: Duration = Duration::from_millis(2);

impl Tracked {
    /// Waits for the process that runs another program than its launcher and whose last argument is this one. Where the
    /// system does not tell who descends from whom, it is the launcher itself, which dies with it.
    pub async fn launched_by(launcher: &Child, last: &OsStr) -> io::Result<Self> {
        let Some(root) = i32::try_from(launcher.pid()).ok().and_then(Pid::from_raw).filter(|_| table::tells()) else {
            return Self::behind(launcher, launcher.pid());
        };
        loop {
            let descendants = table::descendants(root, &[], None);
            let found = descendants.iter().find(|(pid, row)| !row.is_dead && runs(*pid, root, last));
            if let Some((pid, _)) = found {
                return Self::behind(launcher, pid.as_raw_pid().unsigned_abs());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Between fork and exec a child looks like the launcher, arguments and all, and may become anything.
fn runs(pid: Pid, launcher: Pid, last: &OsStr) -> bool {
    let program = |pid: Pid| -> Option<PathBuf> { std::fs::read_link(format!("/proc/{pid}/exe")).ok() };
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let ends_so = arguments.strip_suffix(b"\0").and_then(|all| all.rsplit(|byte| *byte == 0).next());
    ends_so == Some(last.as_encoded_bytes()) && program(pid).is_some_and(|own| Some(own) != program(launcher))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::process::Launch;

    #[tokio::test]
    async fn the_process_behind_a_launcher_is_found_by_what_it_was_told_to_run() {
        // A shell that stays, with a child that is another program, and one that is not meant.
        let script = "/bin/sleep 50 & /bin/sleep 60 & wait";
        let launcher = Child::spawn(&Launch::new("/bin/sh").args(["-c", script, "60"])).unwrap();
        let found = Tracked::launched_by(&launcher, OsStr::new("60")).await.unwrap();
        assert_ne!(found.pid(), launcher.pid());
        let arguments = std::fs::read(format!("/proc/{}/cmdline", found.pid())).unwrap();
        assert_eq!(arguments, b"/bin/sleep\x0060\0");
    }
}
