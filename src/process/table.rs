//! The process table as `/proc` shows it: parents, and environments at start.
//!
//! Everything read here may be outdated at once; callers that kill open a pidfd first and check again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::mark::Mark;

/// The most descendants returned at once. To kill more, list again.
const MOST: usize = 4096;

/// A row of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub parent: i32,
    /// Its start in kernel ticks since boot; identifies the process together with its pid.
    pub started: u64,
    /// Its number of threads; children are listed per thread.
    pub threads: u32,
    /// It is a zombie.
    pub is_dead: bool,
    /// Its name in the kernel.
    pub name: String,
}

/// Parses `/proc/PID/stat`. The name is second, in parentheses, and may contain anything, including parentheses.
#[cfg(any(target_os = "linux", test))]
fn parse(line: &str) -> Option<Row> {
    let (before, rest) = line.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    // State and parent are the third and fourth field, threads the twentieth, start the twenty-second.
    let threads = words.nth(15)?.parse().ok()?;
    let started = words.nth(1)?.parse().ok()?;
    // If only the first thread has ended, the others continue.
    let is_dead = matches!(state, "Z" | "X") && threads <= 1;
    Some(Row { parent, started, threads, is_dead, name })
}

/// When a process was started, in clock ticks since boot; 0 if the system does not show it.
pub fn started(pid: u32) -> u64 {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.and_then(row).map_or(0, |row| row.started)
}

/// All descendants of a process, parents before children, without `spared` and their descendants. Each is read once,
/// and none after `until`.
pub(super) fn descendants(of: Pid, spared: &[Pid], until: Option<Instant>) -> Vec<(Pid, Row)> {
    let mut seen: HashSet<Pid> = spared.iter().copied().collect();
    let mut found: Vec<(Pid, Row)> = Vec::new();
    let mut next = 0;
    let mut parent = (of, None);
    loop {
        let lists = if parent.1 == Some(1) { only_list(parent.0) } else { None };
        for pid in lists.unwrap_or_else(|| children(parent.0)) {
            // Its parent has changed: it was adopted, or its pid was reused.
            let row = row(pid).filter(|row| row.parent == parent.0.as_raw_pid() && seen.insert(pid));
            found.extend(row.map(|row| (pid, row)));
        }
        let is_late = until.is_some_and(|until| Instant::now() >= until);
        match found.get(next).filter(|_| found.len() < MOST && !is_late) {
            Some((pid, row)) => parent = (*pid, Some(row.threads)),
            None => return found,
        }
        next += 1;
    }
}

/// The ancestors of a process, nearest first.
pub(super) fn ancestors(of: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut at = of;
    // A longer chain changed while it was read.
    while let Some(parent) = row(at).and_then(|row| Pid::from_raw(row.parent)).filter(|_| found.len() < MOST) {
        found.push(parent);
        at = parent;
    }
    found
}

/// Whether the table belongs to this pid namespace; without its own `/proc`, pids in it are those of other processes.
#[cfg(target_os = "linux")]
fn is_ours() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    own.and_then(|own| own.to_str()?.parse().ok()) == Some(rustix::process::getpid().as_raw_pid())
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::HashMap;
    use std::os::unix::fs::MetadataExt;

    use super::{Mark, Pid, Row, is_ours, parse};
    use crate::process::proc_file;

    pub fn row(pid: Pid) -> Option<Row> {
        let text = proc_file::read(format!("/proc/{pid}/stat")).ok()?;
        parse(&String::from_utf8_lossy(&text))
    }

    /// Whether the table shows parents.
    pub fn tells() -> bool {
        is_ours()
    }

    /// The children of a single-threaded process, which takes two system calls fewer; `None` if not shown.
    pub fn only_list(of: Pid) -> Option<Vec<Pid>> {
        let text = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?;
        Some(numbers(&text).collect())
    }

    fn numbers(text: &str) -> impl Iterator<Item = Pid> {
        text.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?))
    }

    /// The children of a process. If they start and end meanwhile, one may be missed.
    pub fn children(of: Pid) -> Vec<Pid> {
        if !is_ours() {
            return Vec::new();
        }
        let mut found = Vec::new();
        // Each thread has its own children. The first living thread gets those of one that ends, so the first is read last.
        let threads: Vec<_> = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten().collect();
        for thread in threads.iter().rev() {
            let Ok(text) = std::fs::read_to_string(thread.path().join("children")) else {
                // The thread has just ended, or the kernel has no such lists.
                if thread.path().exists() {
                    return children_by_parent(of);
                }
                continue;
            };
            found.extend(numbers(&text));
        }
        found
    }

    fn children_by_parent(of: Pid) -> Vec<Pid> {
        let rows: HashMap<Pid, Row> = all().into_iter().filter_map(|pid| Some((pid, row(pid)?))).collect();
        rows.into_iter().filter(|(_, row)| row.parent == of.as_raw_pid()).map(|(pid, _)| pid).collect()
    }

    /// All processes of this user.
    pub fn all() -> Vec<Pid> {
        let user = rustix::process::geteuid().as_raw();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter(|_| is_ours());
        let own = entries.filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == user));
        own.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// The pid that was given last, in this namespace: the fifth word of `/proc/loadavg`.
    pub fn newest() -> Option<i32> {
        std::fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
    }

    /// The mark that a process was started with; `None` without one or without access.
    pub fn mark(pid: Pid) -> Option<Mark> {
        Mark::among(&std::fs::read(format!("/proc/{pid}/environ")).ok()?)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Mark, Pid, Row};

    pub fn row(_: Pid) -> Option<Row> {
        None
    }

    pub fn tells() -> bool {
        false
    }

    pub fn only_list(_: Pid) -> Option<Vec<Pid>> {
        None
    }

    pub fn children(_: Pid) -> Vec<Pid> {
        Vec::new()
    }

    pub fn all() -> Vec<Pid> {
        Vec::new()
    }

    pub fn newest() -> Option<i32> {
        None
    }

    pub fn mark(_: Pid) -> Option<Mark> {
        None
    }
}

use system::only_list;
pub(super) use system::{all, children, mark, newest, row, tells};

/// Resident bytes of a process and all its descendants; `None` if it has exited or this system does not show it. Shared
/// pages count once per process.
#[cfg(target_os = "linux")]
pub fn resident(pid: u32) -> Option<usize> {
    let own = resident_alone(pid)?;
    let below = rustix::process::Pid::from_raw(pid.cast_signed()).map(|pid| super::table::descendants(pid, &[], None));
    let below = below.into_iter().flatten().filter_map(|(pid, _)| resident_alone(pid.as_raw_pid().cast_unsigned()));
    Some(below.fold(own, usize::saturating_add))
}

/// Seconds of processor time of a process; children count once it has waited for them.
#[cfg(target_os = "linux")]
pub fn processor_time(pid: u32) -> Option<f64> {
    time_in(&format!("/proc/{pid}/stat"), 11..15).map(|time| time.as_secs_f64())
}

/// The sum of some of the times in a file like `/proc/PID/stat`.
#[cfg(target_os = "linux")]
fn time_in(stat: &str, fields: std::ops::Range<usize>) -> Option<Duration> {
    let text = std::fs::read_to_string(stat).ok()?;
    // The name may contain blanks and parentheses.
    let all: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = all.get(fields)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_micros(ticks * 1_000_000 / rustix::param::clock_ticks_per_second()))
}

/// The processor time of a process and everything below it, also of children that it has waited for. `None` if it has exited or this
/// system does not show it.
#[cfg(target_os = "linux")]
pub fn processor_time_below(pid: u32, children: Children) -> Option<Duration> {
    let of = |pid: u32| time_in(&format!("/proc/{pid}/stat"), 11..15);
    let below = || {
        let all = Pid::from_raw(pid.cast_signed()).map(|pid| descendants(pid, &[], None)).unwrap_or_default();
        all.into_iter().filter_map(|(pid, _)| of(pid.as_raw_pid().cast_unsigned())).sum::<Duration>()
    };
    Some(match children {
        Children::First => below() + of(pid)?,
        Children::Last => of(pid)? + below(),
    })
}

/// The processor times of the threads of a process.
#[cfg(target_os = "linux")]
pub fn thread_times(pid: u32) -> Vec<(NamedThread, Duration)> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let named = threads.filter_map(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?.trim_end().to_owned();
        let number = thread.file_name().to_str()?.parse().ok()?;
        Some((NamedThread { thread: number, name }, time_in(thread.path().join("stat").to_str()?, 11..13)?))
    });
    named.collect()
}

#[cfg(not(target_os = "linux"))]
pub fn processor_time(_: u32) -> Option<f64> {
    None
}

/// Unavailable on this system.
#[cfg(not(target_os = "linux"))]
pub fn processor_time_below(_: u32, _: Children) -> Option<Duration> {
    None
}

/// Unavailable on this system.
#[cfg(not(target_os = "linux"))]
pub fn thread_times(_: u32) -> Vec<(NamedThread, Duration)> {
    Vec::new()
}

/// When the times of children are read. The time of one that ends meanwhile is counted twice, or not at all.
#[derive(Debug, Clone, Copy)]
pub enum Children {
    /// Before their parent's, to which a child's time is added when it ends: too much rather than too little.
    First,
    /// After it: too little rather than too much.
    Last,
}

/// A thread, with the name that it has now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamedThread {
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub name: String,
}

/// Resident bytes of a process and its descendants: unavailable on this system.
#[cfg(not(target_os = "linux"))]
pub fn resident(_: u32) -> Option<usize> {
    None
}

/// Its resident memory without its descendants'.
#[cfg(not(target_os = "linux"))]
pub fn resident_alone(_: u32) -> Option<usize> {
    None
}

/// The same without its descendants.
#[cfg(target_os = "linux")]
pub fn resident_alone(pid: u32) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: usize = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{processor_time, resident};

    #[test]
    fn a_busy_process_uses_processor_time() {
        let before = processor_time(std::process::id()).unwrap();
        let began = std::time::Instant::now();
        while processor_time(std::process::id()).unwrap() < before + 0.02 {
            assert!(began.elapsed().as_secs() < 20, "no time passes");
        }
        assert_eq!(processor_time(u32::MAX), None);
    }

    #[test]
    fn a_process_holds_the_memory_it_has_touched() {
        let before = resident(std::process::id()).unwrap();
        let held = vec![1_u8; 64 << 20];
        let after = resident(std::process::id()).unwrap();
        assert!(after > before + (48 << 20), "{before} {after} {}", held.len());
        assert_eq!(resident(u32::MAX), None);
    }
}

#[cfg(test)]
mod memory_tests {
    use super::*;

    #[test]
    fn a_name_may_contain_anything() {
        let line = "17 (a) R (b c) Z 4 17 17 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let row = parse(line).unwrap();
        assert_eq!((row.parent, row.started, row.is_dead, row.name.as_str()), (4, 12345, true, "a) R (b c"));
        assert_eq!(row.threads, 1);
        let line = line.replace(" 20 0 1 ", " 20 0 2 ");
        assert!(!parse(&line).unwrap().is_dead, "the first thread has ended, another goes on");
        assert_eq!(parse("17 (cut"), None);
        assert_eq!(parse("17 (cut) S 4"), None);
        assert_eq!(parse(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_in_the_table() {
        let own = rustix::process::getpid();
        let row = row(own).unwrap();
        assert!(!row.is_dead && row.started > 0, "{row:?}");
        assert_eq!(Pid::from_raw(row.parent), rustix::process::getppid());
        assert!(all().contains(&own));
        assert!(ancestors(own).contains(&Pid::from_raw(row.parent).unwrap()) && !ancestors(own).contains(&own));
    }
}
