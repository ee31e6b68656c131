//! Ends whole families of processes: every descendant, whatever group or session it went to.

use std::collections::HashSet;
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
    let until = Instant::now() + limit;
    let mut ended = Ended::default();
    let mut known = HashSet::new();
    let mut quiet = 0;
    loop {
        let found = table::descendants(getpid(), spared, Some(until));
        for (pid, row) in kill(&found, Some(until)) {
            if known.insert(pid) {
                ended.killed.push((pid, row.name));
            }
        }
        let has_children = reap_all();
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        // The table may miss somebody while others come and go; where it cannot be read it shows nobody for ever.
        if !has_children || quiet > QUIET {
            return ended;
        }
        if Instant::now() >= until {
            let is_there = |(pid, row): &(Pid, Row)| table::row(*pid).is_some_and(|now| now.started == row.started);
            ended.left = found.into_iter().filter(is_there).map(|(pid, _)| pid).collect();
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
pub(super) fn kill_below(root: Pid) -> Vec<(Pid, Row)> {
    kill(&table::descendants(root, &[], None), None)
}

/// Kills those of a family that live, parents first. All were found before the first is killed, and each is known by when
/// it was started: whose parent has just been killed descends from somebody else now, and must not be missed for that.
pub(super) fn kill(found: &[(Pid, Row)], until: Option<Instant>) -> Vec<(Pid, Row)> {
    let living = found.iter().filter(|(_, row)| !row.is_dead);
    let in_time = living.take_while(|_| until.is_none_or(|until| Instant::now() < until));
    in_time.filter_map(|(pid, row)| Some((*pid, kill_if(*pid, |now| now.started == row.started)?))).collect()
}

/// Kills a process that `is_meant`. It is held on to before it is asked about, so that its number cannot pass to another
/// between the question and the kill.
pub(super) fn kill_if(pid: Pid, is_meant: impl FnOnce(&Row) -> bool) -> Option<Row> {
    let held = exit::Held::on(pid).ok()?;
    let row = table::row(pid).filter(|row| !row.is_dead && is_meant(row))?;
    held.signal(Signal::KILL);
    Some(row)
}
