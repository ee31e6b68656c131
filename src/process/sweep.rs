//! The sweep at the start: ends what killed runs of hostler left behind.
//!
//! Some of it may start processes faster than a look at the process table takes, and some starts anew what was killed.
//! So everything is stopped first, until nothing new appears, and killed then.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid};

use super::cgroup;
use super::exit::ProcessHandle;
use super::mark::{Mark, Run, Standing};
use super::process_tree;
use super::table::{self, Row};

/// The time limit. What is left then is the next start's.
const LIMIT: Duration = Duration::from_secs(10);
/// After this many looks in a row that find nothing new, everything is stopped.
const QUIET: u32 = 2;
/// So many new processes during a look may be a chain: processes of which each starts the next and ends.
const CHAIN: i32 = 4;
/// How long the end of a chain is chased without a hit. A link lives a tenth of a millisecond and longer.
const CHASE: Duration = Duration::from_millis(40);
/// The pause between rounds: killed processes die within a moment.
const DYING: Duration = Duration::from_millis(2);

/// Ends every process of this user that carries the mark of a finished run, with its descendants; returns their number.
/// Processes of live or unknown runs are left alone.
///
/// It reads every process of the machine: do not call it on a thread with other work.
pub fn sweep() -> usize {
    let Some(own) = Run::own() else { return 0 };
    // A tool of such a run may be an ancestor of this hostler.
    let mut spared = table::ancestors(getpid());
    spared.push(getpid());
    let until = Instant::now() + LIMIT;
    let mut ended = HashSet::new();
    loop {
        let stopped = stop_all(own, &spared, until);
        for (pid, (row, run)) in &stopped {
            let killed = process_tree::kill_if(*pid, |now| now.started == row.started).is_some();
            if killed && ended.insert((*pid, row.started)) {
                tracing::warn!(%pid, name = row.name, run, "ended a process left behind by a killed hostler");
            }
        }
        if stopped.is_empty() || Instant::now() >= until {
            break;
        }
        std::thread::sleep(DYING);
    }
    let groups = cgroup::end_all_of(|run| is_left_over(own, own.standing_now(run), run));
    if groups > 0 {
        tracing::warn!(groups, "ended processes left behind by a killed hostler in its control group");
    }
    tracing::debug!(ended = ended.len(), "searched for processes left behind by killed hostlers");
    ended.len()
}

/// Stopped processes with the pid of their run's supervisor.
type Stopped = HashMap<Pid, (Row, i32)>;

/// Stops everything that finished runs left, until nothing new appears.
fn stop_all(own: &Run, spared: &[Pid], until: Instant) -> Stopped {
    let mut stopped = Stopped::new();
    let mut seen: HashSet<Pid> = spared.iter().copied().collect();
    let mut quiet = 0;
    while quiet < QUIET && Instant::now() < until {
        let (before, newest) = (stopped.len(), table::newest());
        // Of a chain only the last process lives.
        for pid in table::all().into_iter().rev() {
            if seen.insert(pid) {
                stop_left_over(own, pid, spared, &mut stopped);
            }
        }
        let grown = newest.zip(table::newest()).map_or(0, |(before, now)| now.saturating_sub(before).abs());
        if grown >= CHAIN {
            chase(own, spared, &mut stopped, until);
        }
        quiet = if stopped.len() == before { quiet + 1 } else { 0 };
    }
    stopped
}

/// Looks at the newest processes only, faster than a chain grows, until it is caught.
fn chase(own: &Run, spared: &[Pid], stopped: &mut Stopped, until: Instant) {
    let mut end = (Instant::now() + CHASE).min(until);
    while Instant::now() < end {
        let Some(newest) = table::newest() else { return };
        for pid in ((newest - CHAIN).max(1)..=newest).rev().filter_map(Pid::from_raw) {
            if !spared.contains(&pid) && !stopped.contains_key(&pid) && stop_left_over(own, pid, spared, stopped) {
                end = (Instant::now() + CHASE).min(until);
            }
        }
    }
}

/// Stops a process of a finished run with its descendants; `false` if it belongs to no finished run.
fn stop_left_over(own: &Run, pid: Pid, spared: &[Pid], stopped: &mut Stopped) -> bool {
    let Some(mark) = left_over(own, pid) else { return false };
    // Looked at again with the handle: the pid may have been reused.
    let Some(row) = stop(pid, |_| table::mark(pid).as_ref() == Some(&mark)) else { return false };
    stopped.insert(pid, (row, mark.run.pid));
    for (pid, row) in table::descendants(pid, spared, None) {
        if stop(pid, |now| now.started == row.started).is_some() {
            stopped.insert(pid, (row, mark.run.pid));
        }
    }
    true
}

/// Stops a process if `is_meant` holds.
fn stop(pid: Pid, is_meant: impl FnOnce(&Row) -> bool) -> Option<Row> {
    let held = ProcessHandle::on(pid).ok()?;
    let row = table::row(pid).filter(|row| !row.is_dead && is_meant(row))?;
    held.signal(Signal::STOP);
    Some(row)
}

/// The mark of a process of a finished run.
fn left_over(own: &Run, pid: Pid) -> Option<Mark> {
    table::mark(pid).filter(|mark| is_left_over(own, own.standing_now(&mark.run), &mark.run))
}

/// Whether to end a process with the mark of a run.
fn is_left_over(own: &Run, standing: Standing, run: &Run) -> bool {
    standing == Standing::Over && run != own
}

#[cfg(test)]
mod tests {
    use super::super::mark::tests::run;
    use super::*;

    #[test]
    fn only_finished_runs_are_swept() {
        let (own, other) = (run(1, 1), run(2, 2));
        assert!(is_left_over(&own, Standing::Over, &other));
        assert!(!is_left_over(&own, Standing::Living, &other));
        assert!(!is_left_over(&own, Standing::Elsewhere, &other), "another namespace's runs cannot be judged");
        assert!(!is_left_over(&own, Standing::Over, &own), "this run lives, whatever the table says");
    }
}
