//! The processes below this one: children that hostler started, and orphans that it adopts from further down. A
//! worker's orphans live as long as the worker does.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, wait};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::confinement::INIT;
use super::mark::{Mark, Run, Standing};
use super::table::Row;
use super::{exit, table};

/// Children that hostler started and has not reaped.
static TREE: LazyLock<Mutex<ProcessTree>> = LazyLock::new(Mutex::default);
/// The wait for the lock when everything is being killed.
const BOOKS: Duration = Duration::from_millis(100);
/// The most adopted children checked in one pass.
const SLICE: usize = 32;
/// The pause between passes if there are more.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a killed process counts as dying and is only reaped.
const DYING: Duration = Duration::from_secs(1);
/// Notified when a child has ended, to search for its orphans.
static ENDED: Notify = Notify::const_new();

/// The children. Locked only to read or to change an entry.
#[derive(Debug, Default)]
struct ProcessTree {
    children: HashMap<Pid, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The number in its mark.
    child: Option<u64>,
    /// It has ended for hostler, though it may not be reaped; its remains are to be killed.
    has_ended: bool,
}

/// What to do with a child of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is awaited elsewhere, its worker lives, or its origin is unknown: such processes end with hostler.
    Leave,
    /// An adopted, dead process.
    Reap,
    /// The orphan of an ended worker.
    Kill,
}

impl ProcessTree {
    fn lives(&self, child: u64) -> bool {
        self.children.values().any(|entry| entry.child == Some(child) && !entry.has_ended)
    }

    /// Decides about a child: whether it is dead, and its mark with the state of that mark's run.
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

/// Registers a child that was just started.
pub(super) fn enter(pid: Pid, mark: Option<&Mark>) {
    let entry = Entry { child: mark.map(|mark| mark.child), has_ended: false };
    TREE.lock().children.insert(pid, entry);
}

/// A child has ended for hostler: everything with its mark is to be killed.
pub(super) fn has_ended(pid: Pid) {
    if let Some(entry) = TREE.lock().children.get_mut(&pid) {
        entry.has_ended = true;
    }
    ENDED.notify_one();
}

/// A child was reaped; its pid may be reused from now on.
pub(super) fn forget(pid: Pid) {
    TREE.lock().children.remove(&pid);
}

/// Kills the group of every child that hostler started, if the process table is unavailable. They are not reaped, so
/// the group ids are valid.
pub(super) fn kill_groups() {
    // A longer hold of the lock means a stuck thread, and there is no time.
    let Some(process_tree) = TREE.try_lock_for(BOOKS) else { return };
    for pid in process_tree.children.keys() {
        let _ = kill_process_group(*pid, Signal::KILL);
    }
}

/// Ends orphans after their worker, and reaps adopted processes, as long as hostler lives. Run it on the thread that
/// starts processes: it must not run between a start and its registration.
pub async fn reap_orphans() {
    let Ok(mut deaths) = signal(SignalKind::child()) else {
        tracing::warn!("cannot watch for exits of processes; processes left behind by tools stay until hostler exits");
        return;
    };
    let mut killed = HashMap::new();
    loop {
        tokio::select! {
            death = deaths.recv() => if death.is_none() { return },
            () = ENDED.notified() => {}
        }
        if look(&mut killed).await > SLICE {
            // Limits the frequency: each death causes a check of all others.
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Checks every child; returns the number that hostler did not start. `killed` lists killed processes with the time.
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
            // A tool may leave thousands, while calls continue. Listed processes are checked again below.
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
            // Descendants first: after the parent's death they are adopted here and may be unidentifiable.
            let below = table::descendants(pid, &[], None);
            for some in below.chunks(SLICE) {
                tokio::task::yield_now().await;
                kill(some, None);
            }
            kill_if(pid, |now| now.started == row.started);
            tracing::info!(%pid, name = row.name, below = below.len(), "ended a process left behind by a tool");
            let now = Instant::now();
            killed.extend(below.into_iter().map(|(pid, _)| pid).chain([pid]).map(|pid| (pid, now)));
        }
    }
}

/// The interval between checks of dying processes.
const LOOK: Duration = Duration::from_millis(1);

/// After this many empty listings in a row, remaining children are taken to be the spared ones.
const QUIET: u32 = 2;

/// The result of killing descendants.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Killed processes: pid and name.
    pub killed: Vec<(Pid, String)>,
    /// Processes that did not die in time, such as those blocked in the kernel.
    pub left: Vec<Pid>,
}

/// Kills every descendant of this process except `spared`, and reaps until none is left. For a process that is about to
/// exit:
/// it reaps any child.
///
/// If this process adopts orphans, no child left means no descendant left, so processes started meanwhile are not
/// missed.
pub(super) fn end_all(spared: &[Pid], limit: Duration) -> Ended {
    let until = Instant::now() + limit;
    let mut ended = Ended::default();
    let mut known = HashSet::new();
    let mut quiet = 0;
    loop {
        let found = table::descendants(getpid(), spared, Some(until));
        for (pid, row) in kill(&found, Some(until)) {
            // It ends by itself a moment after its monitor.
            if known.insert(pid) && row.name != INIT {
                ended.killed.push((pid, row.name));
            }
        }
        let has_children = reap_all();
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        // A listing may miss processes while others start and end; an unreadable table lists none.
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

/// Reaps every dead child; `false` if there is no child left, dead or alive.
fn reap_all() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Kills the living descendants of a process; returns them.
pub(super) fn kill_below(root: Pid) -> Vec<(Pid, Row)> {
    kill(&table::descendants(root, &[], None), None)
}

/// Kills the living ones of these processes, parents first. All are listed before the first kill and identified by
/// their start time, because a kill changes the parents of the others.
pub(super) fn kill(found: &[(Pid, Row)], until: Option<Instant>) -> Vec<(Pid, Row)> {
    let living = found.iter().filter(|(_, row)| !row.is_dead);
    let in_time = living.take_while(|_| until.is_none_or(|until| Instant::now() < until));
    in_time.filter_map(|(pid, row)| Some((*pid, kill_if(*pid, |now| now.started == row.started)?))).collect()
}

/// Kills a process if `is_meant` holds. It opens a handle first, so that the pid cannot be reused between the check and
/// the kill.
pub(super) fn kill_if(pid: Pid, is_meant: impl FnOnce(&Row) -> bool) -> Option<Row> {
    let held = exit::ProcessHandle::on(pid).ok()?;
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
        assert_eq!(fate(11, true, Some(2)), Fate::Leave, "a dead worker that is about to be reaped");
        assert_eq!(fate(20, false, Some(1)), Fate::Leave, "a daemon of a live worker");
        assert_eq!(fate(20, false, Some(2)), Fate::Kill, "a daemon of an ended worker");
        assert_eq!(fate(20, false, Some(3)), Fate::Kill, "a daemon of one that was reaped long ago");
        assert_eq!(fate(20, true, Some(1)), Fate::Reap);
        assert_eq!(fate(20, true, None), Fate::Reap, "a dead process shows no mark");
        assert_eq!(fate(20, false, None), Fate::Leave, "its origin is unknown");
    }

    #[test]
    fn orphans_of_a_nested_hostler_end_with_that_hostler() {
        let (own, house) = (run(1, 1), process_tree(&[(10, 1, false)]));
        let mark = Mark { run: run(50, 5), child: 1 };
        let fate = |standing| house.fate(pid(20), false, Some(&mark), standing, &own);
        assert_eq!(fate(Standing::Living), Fate::Leave);
        assert_eq!(fate(Standing::Over), Fate::Kill);
        assert_eq!(fate(Standing::Elsewhere), Fate::Leave);
    }
}
