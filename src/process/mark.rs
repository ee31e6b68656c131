//! The mark of a process: an environment variable of everything that hostler starts, inherited by descendants.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::table::{self, Row};

/// The variable that carries the mark.
pub(super) const VARIABLE: &str = "HOSTLER_RUN";

/// One run of hostler, identified by its supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Run {
    /// The kernel's id of this boot.
    boot: String,
    /// The pid namespace of the number below.
    namespace: u64,
    pub pid: i32,
    started: u64,
}

/// The mark of one child of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub run: Run,
    /// The child's number within the run; never reused.
    pub child: u64,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its supervisor lives.
    Living,
    /// Its supervisor is dead.
    Over,
    /// It belongs to another pid namespace or an earlier boot, so its state is unknown here.
    Elsewhere,
}

impl Run {
    /// This process as a run; `None` if the system does not identify processes.
    pub(super) fn own() -> Option<&'static Self> {
        static OWN: OnceLock<Option<Run>> = OnceLock::new();
        OWN.get_or_init(Self::read).as_ref()
    }

    /// The same, for a process that will fork: its child is another one.
    pub(super) fn read() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let pid = rustix::process::getpid();
        Some(Self { boot, namespace: namespace()?, pid: pid.as_raw_pid(), started: table::row(pid)?.started })
    }

    #[cfg(any(target_os = "linux", test))]
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let boot = parts.next().filter(|boot| !boot.is_empty())?.to_owned();
        let namespace = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok().filter(|pid| *pid > 0)?;
        let started = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { boot, namespace, pid, started })
    }

    /// The state of another run, given the table's row for its pid.
    pub(super) fn standing(&self, other: &Self, row: Option<&Row>) -> Standing {
        if self.boot != other.boot || self.namespace != other.namespace {
            return Standing::Elsewhere;
        }
        match row {
            Some(row) if !row.is_dead && row.started == other.started => Standing::Living,
            _ => Standing::Over,
        }
    }

    /// The current state of another run.
    pub(super) fn standing_now(&self, other: &Self) -> Standing {
        let pid = rustix::process::Pid::from_raw(other.pid);
        self.standing(other, pid.and_then(table::row).as_ref())
    }
}

/// The number of this process's pid namespace.
fn namespace() -> Option<u64> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

impl Mark {
    /// A mark for the next child of this run.
    pub(super) fn next() -> Option<Self> {
        static CHILDREN: AtomicU64 = AtomicU64::new(1);
        let run = Run::own()?.clone();
        Some(Self { run, child: CHILDREN.fetch_add(1, Ordering::Relaxed) })
    }

    /// Finds the mark among the variables of a process, as NUL-separated entries.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn among(variables: &[u8]) -> Option<Self> {
        let name = [VARIABLE, "="].concat();
        let value = variables.split(|byte| *byte == 0).find_map(|one| one.strip_prefix(name.as_bytes()))?;
        Self::parse(std::str::from_utf8(value).ok()?)
    }

    #[cfg(any(target_os = "linux", test))]
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (run, child) = text.rsplit_once(':')?;
        Some(Self { run: Run::parse(run)?, child: child.parse().ok()? })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boot, namespace, pid, started } = self;
        write!(f, "{boot}:{namespace}:{pid}:{started}")
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.run, self.child)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    pub(in crate::process) fn run(pid: i32, started: u64) -> Run {
        Run { boot: "b-1".to_owned(), namespace: 7, pid, started }
    }

    fn row(started: u64, is_dead: bool) -> Row {
        Row { parent: 1, started, threads: 1, is_dead, name: "x".to_owned() }
    }

    proptest! {
        #[test]
        fn a_mark_round_trips(pid in 1..i32::MAX, started in any::<u64>(), child in any::<u64>()) {
            let mark = Mark { run: run(pid, started), child };
            assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
        }

        #[test]
        fn nothing_else_is_read_as_a_mark(text in "[a-z0-9:=-]{0,40}") {
            if let Some(mark) = Mark::parse(&text) {
                // Marks except for leading zeros or a sign.
                assert_eq!(text.split(':').count(), 5, "{mark}");
            }
        }
    }

    #[test]
    fn a_mark_is_found_among_other_variables() {
        let mark = Mark { run: run(5, 9), child: 3 };
        let block = format!("A=1\0NOT_HOSTLER_RUN=x\0HOSTLER_RUN={mark}\0B=2\0");
        assert_eq!(Mark::among(block.as_bytes()), Some(mark));
        for none in
            ["", "A=HOSTLER_RUN=b:1:2:3:4\0", "HOSTLER_RUN=\0", "HOSTLER_RUN=b:1:0:3:4\0", "HOSTLER_RUN=b:1:2:3:4:5\0"]
        {
            assert_eq!(Mark::among(none.as_bytes()), None, "{none:?}");
        }
    }

    #[test]
    fn a_reused_pid_does_not_keep_a_run_alive() {
        let own = run(100, 1);
        let other = run(5, 9);
        assert_eq!(own.standing(&other, Some(&row(9, false))), Standing::Living);
        assert_eq!(own.standing(&other, Some(&row(10, false))), Standing::Over, "another process");
        assert_eq!(own.standing(&other, Some(&row(9, true))), Standing::Over, "a zombie");
        assert_eq!(own.standing(&other, None), Standing::Over);
    }

    #[test]
    fn a_run_of_another_namespace_or_boot_is_unknown() {
        let own = run(100, 1);
        let container = Run { namespace: 8, ..run(5, 9) };
        let before = Run { boot: "b-0".to_owned(), ..run(5, 9) };
        for other in [container, before] {
            assert_eq!(own.standing(&other, None), Standing::Elsewhere);
            assert_eq!(own.standing(&other, Some(&row(9, false))), Standing::Elsewhere);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_run_lives() {
        let own = Run::own().unwrap();
        assert_eq!(own.standing_now(own), Standing::Living);
        let (one, two) = (Mark::next().unwrap(), Mark::next().unwrap());
        assert!(one.run == *own && one.child != two.child);
    }
}
