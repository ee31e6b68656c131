//! Who belongs to whom below this process: children that hostler started, and orphans that came to it because it adopts
//! what loses its parent further down. A worker's orphans live as long as the worker does.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, wait};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::mark::{Mark, Run, Standing};
use super::table::Row;
use super::{exit, table};

/// Children that hostler started and has not reaped yet.
static TREE: LazyLock<Mutex<ProcessTree>> = LazyLock::new(Mutex::default);
/// How long the books are waited for when everything has to end.
const BOOKS: Duration = Duration::from_millis(100);
/// So many adopted children are looked at in one go.
const SLICE: usize = 32;
/// Between two looks at more than that.
const PAUSE: Duration = Duration::from_millis(20);
/// For so long, who was killed counts as dying and is only reaped.
const DYING: Duration = Duration::from_secs(1);
/// Told when one of them has ended, so that its orphans are looked for.
static ENDED: Notify = Notify::const_new();

/// The books. Held only to read or to change an entry.
#[derive(Debug, Default)]
struct ProcessTree {
    children: HashMap<Pid, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The number in its mark.
    child: Option<u64>,
    /// It is over for hostler, though perhaps not reaped yet: what it left behind is to go.
    has_ended: bool,
}

/// What is to become of a child of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Somebody waits for it, or its worker lives, or nobody knows whose it is: those go when hostler goes.
    Leave,
    /// An adopted one that is dead.
    Reap,
    /// The orphan of somebody who is gone.
    Kill,
}

impl ProcessTree {
    fn lives(&self, child: u64) -> bool {
        self.children.values().any(|entry| entry.child == Some(child) && !entry.has_ended)
    }

    /// Decides over a child: whether it is dead, and the mark it carries, with how it stands with that mark's run.
    fn fate(&self, pid: Pid, is_dead: bool, mark: Option<&Mark>, standing: Standing, own: &Run) -> Fate {
        if self.children.contains_key(&pid) {
            return Fate::Leave;
        }
        if is_dead {
            return Fate::Reap;
        }
        let Some(mark) = mark else { return Fate::Leave };
        let is_orphan = if mark.run == *own { !self.lives(mark.child) } else { standing == Standing::Over };
        if is_orphan { Fate::Kill } else { Fate::Leave }
    }
}

/// Enters a child that was just started.
pub(super) fn enter(pid: Pid, mark: Option<&Mark>) {
    let entry = Entry { child: mark.map(|mark| mark.child), has_ended: false };
    TREE.lock().children.insert(pid, entry);
}

/// A child is over for hostler: whatever carries its mark is to go too.
pub(super) fn has_ended(pid: Pid) {
    if let Some(entry) = TREE.lock().children.get_mut(&pid) {
        entry.has_ended = true;
    }
    ENDED.notify_one();
}

/// A child was reaped; its number may be anybody's from now on.
pub(super) fn forget(pid: Pid) {
    TREE.lock().children.remove(&pid);
}

/// Kills the group of every child that hostler started, for when the table of processes shows nobody. They are not reaped,
/// so the groups are still theirs.
pub(super) fn kill_groups() {
    // Whoever holds the books for longer is stuck, and there is no time.
    let Some(process_tree) = TREE.try_lock_for(BOOKS) else { return };
    for pid in process_tree.children.keys() {
        let _ = kill_process_group(*pid, Signal::KILL);
    }
}

/// Ends orphans when their worker has ended, and reaps what was adopted, for as long as hostler lives. To be run on the
/// thread that starts processes: between a start and its entry nobody may look.
pub async fn reap_orphans() {
    let Ok(mut deaths) = signal(SignalKind::child()) else {
        tracing::warn!("deaths of processes cannot be heard of; what tools leave behind stays until hostler ends");
        return;
    };
    let mut killed = HashMap::new();
    loop {
        tokio::select! {
            told = deaths.recv() => if told.is_none() { return },
            () = ENDED.notified() => {}
        }
        if look(&mut killed).await > SLICE {
            // So many do not die at once, and each death would have all the others looked at.
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Looks at every child; tells how many there were that hostler did not start. `killed` are those that were killed, and when.
async fn look(killed: &mut HashMap<Pid, Instant>) -> usize {
    let Some(own) = Run::own() else { return 0 };
    killed.retain(|_, since| since.elapsed() < DYING);
    let mut adopted = 0;
    for pid in table::children(getpid()) {
        if TREE.lock().children.contains_key(&pid) {
            continue;
        }
        adopted += 1;
        if adopted % SLICE == 0 {
            // A tool may have left thousands, and calls go on meanwhile. What was listed is asked about anew below.
            tokio::task::yield_now().await;
        }
        if killed.contains_key(&pid) {
            exit::reap(pid);
        } else {
            decide(own, pid, killed).await;
        }
    }
    adopted
}

async fn decide(own: &Run, pid: Pid, killed: &mut HashMap<Pid, Instant>) {
    let Some(row) = table::row(pid).filter(|row| row.parent == own.pid) else { return };
    let mark = table::mark(pid);
    let standing = mark.as_ref().map_or(Standing::Elsewhere, |mark| own.standing_now(&mark.run));
    let fate = TREE.lock().fate(pid, row.is_dead, mark.as_ref(), standing, own);
    match fate {
        Fate::Leave => {}
        Fate::Reap => {
            exit::reap(pid);
        }
        Fate::Kill => {
            // Those below it first: once it is dead they are ours as well, and perhaps nobody can tell whose.
            let below = table::descendants(pid, &[], None);
            for some in below.chunks(SLICE) {
                tokio::task::yield_now().await;
                kill(some, None);
            }
            kill_if(pid, |now| now.started == row.started);
            tracing::info!(%pid, name = row.name, below = below.len(), "ended what a tool had left behind");
            let now = Instant::now();
            killed.extend(below.into_iter().map(|(pid, _)| pid).chain([pid]).map(|pid| (pid, now)));
        }
    }
}

/// Between two looks at who is still dying.
const LOOK: Duration = Duration::from_millis(1);

/// So many looks in a row that find nobody are believed, where there are children all the same: those that are spared.
const QUIET: u32 = 2;

/// What ending a descendants came to.
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

/// Kills those of a descendants that live, parents first. All were found before the first is killed, and each is known by when
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

#[cfg(test)]
mod tests {
    use super::super::mark::tests::run;
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    fn process_tree(entries: &[(i32, u64, bool)]) -> ProcessTree {
        let entry = |(number, child, has_ended): &(i32, u64, bool)| {
            (pid(*number), Entry { child: Some(*child), has_ended: *has_ended })
        };
        ProcessTree { children: entries.iter().map(entry).collect() }
    }

    #[test]
    fn an_orphan_lives_as_long_as_its_worker() {
        let (own, house) = (run(1, 1), process_tree(&[(10, 1, false), (11, 2, true)]));
        let fate = |number, dead, child: Option<u64>| {
            let mark = child.map(|child| Mark { run: own.clone(), child });
            house.fate(pid(number), dead, mark.as_ref(), Standing::Living, &own)
        };
        assert_eq!(fate(10, false, Some(1)), Fate::Leave, "a worker");
        assert_eq!(fate(11, true, Some(2)), Fate::Leave, "a dead worker that somebody is about to reap");
        assert_eq!(fate(20, false, Some(1)), Fate::Leave, "a daemon of a live worker");
        assert_eq!(fate(20, false, Some(2)), Fate::Kill, "a daemon of an ended worker");
        assert_eq!(fate(20, false, Some(3)), Fate::Kill, "a daemon of one that was reaped long ago");
        assert_eq!(fate(20, true, Some(1)), Fate::Reap);
        assert_eq!(fate(20, true, None), Fate::Reap, "a dead process shows no mark");
        assert_eq!(fate(20, false, None), Fate::Leave, "nobody knows whose it is");
    }

    #[test]
    fn orphans_of_a_hostler_that_a_tool_ran_go_with_that_hostler() {
        let (own, house) = (run(1, 1), process_tree(&[(10, 1, false)]));
        let mark = Mark { run: run(50, 5), child: 1 };
        let fate = |standing| house.fate(pid(20), false, Some(&mark), standing, &own);
        assert_eq!(fate(Standing::Living), Fate::Leave);
        assert_eq!(fate(Standing::Over), Fate::Kill);
        assert_eq!(fate(Standing::Elsewhere), Fate::Leave);
    }
}
