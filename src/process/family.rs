//! Ends whole families of processes: every descendant, whatever group or session it went to.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, wait};

use super::exit;
use super::table::{self, Row};

/// Between two looks at who is still dying.
const LOOK: Duration = Duration::from_millis(1);

/// So many looks in a row that find nobody are believed, where there are children all the same: those that are spared.
const QUIET: u32 = 2;

/// What ending a family came to.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Who was killed: number and name.
    pub killed: Vec<(Pid, String)>,
    /// Who would not die in time: a process within the kernel does not, until it comes out.
    pub left: Vec<Pid>,
}

/// Kills every descendant of this process but `spared`, and reaps, until none is left. For a process that is about to go:
/// it reaps whatever child there is.
///
/// Where this process adopts the orphans below it, no child left means no descendant left, so nothing is missed that came
/// to be while others were killed.
pub(super) fn end_all(spared: &[Pid], limit: Duration) -> Ended {
    let began = Instant::now();
    let mut ended = Ended::default();
    let mut quiet = 0;
    loop {
        for (pid, row) in kill_below(getpid(), spared) {
            if !ended.killed.iter().any(|(known, _)| *known == pid) {
                ended.killed.push((pid, row.name));
            }
        }
        let has_children = reap_all();
        ended.left = table::descendants(getpid(), spared);
        quiet = if ended.left.is_empty() { quiet + 1 } else { 0 };
        // The table may miss somebody while others come and go; where it cannot be read it shows nobody for ever.
        if !has_children || quiet > QUIET || began.elapsed() > limit {
            return ended;
        }
        std::thread::sleep(LOOK);
    }
}

/// Takes every dead child off the table; `false` when there is no child left, dead or alive.
fn reap_all() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Kills the living descendants of a process; tells who they were.
pub(super) fn kill_below(root: Pid, spared: &[Pid]) -> Vec<(Pid, Row)> {
    let found = table::descendants(root, spared).into_iter();
    found.filter_map(|pid| Some((pid, kill_if(pid, |_| table::is_below(pid, root))?))).collect()
}

/// Kills a process that `is_meant`. It is held on to before it is asked about, so that its number cannot pass to another
/// between the question and the kill.
pub(super) fn kill_if(pid: Pid, is_meant: impl FnOnce(&Row) -> bool) -> Option<Row> {
    let held = exit::Held::on(pid).ok()?;
    let row = table::row(pid).filter(|row| !row.is_dead && is_meant(row))?;
    held.signal(Signal::KILL);
    Some(row)
}
