//! What a process passes on to everything that it starts without a right being attached to it: priorities, processors, limits. The
//! workers of a shared hostler get those of the client that started it, so clients that differ in them must not share one.

use std::fs;
use std::io;

use super::{cgroup, proc_file};

/// What this process inherited and cannot undo for others, as text: name and value.
pub fn own_inheritance() -> io::Result<Vec<(&'static str, String)>> {
    let stat = proc_file::read_to_string("/proc/self/stat")?;
    // The third field follows the name; priorities are the 19th, 40th and 41st.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap_or_default().1.split_ascii_whitespace().collect();
    let priorities = [19, 40, 41].map(|field| fields.get(field - 3).copied().unwrap_or_default());
    let status = proc_file::read_to_string("/proc/self/status")?;
    let processors = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).unwrap_or_default();
    Ok(vec![
        // Without privileges a priority cannot be raised again.
        ("priorities", priorities.join(" ")),
        ("disks", priority_at_disks().to_string()),
        ("personality", format!("{:x}", personality())),
        // Each could be set to all processors, against what the person who restricts an agent wants.
        ("processors", processors.trim().to_owned()),
        ("limits", limits(&proc_file::read_to_string("/proc/self/limits")?)),
        // Which group it is in does not matter: each terminal has one. What ends all of it ends the shared hostler, and the
        // sessions go on with the next one. A limit of it holds for all that are in it.
        ("group", cgroup::own_limits().join(" ")),
    ])
}

/// The class and priority at disks (`ionice`); -1 where the system does not say.
fn priority_at_disks() -> libc::c_long {
    const OF_PROCESS: libc::c_int = 1;
    // SAFETY: it takes and returns numbers alone; 0 is the caller.
    #[expect(unsafe_code, reason = "a system call that rustix does not have; argued above")]
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, OF_PROCESS, 0) };
    priority
}

/// What the system pretends to be (`setarch`); -1 where it does not say.
fn personality() -> libc::c_int {
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: it takes and returns numbers alone, and this one changes nothing.
    #[expect(unsafe_code, reason = "a system call that rustix does not have; argued above")]
    let personality = unsafe { libc::personality(ASK) };
    personality
}

/// The limits that a shared hostler does not set by itself. It raises that of open files to the hard one, and nothing that is
/// started may dump its memory.
fn limits(table: &str) -> String {
    let is_kept = |line: &&str| !line.starts_with("Max core file size");
    let values = table.lines().skip(1).filter(is_kept).map(|line| match line.strip_prefix("Max open files") {
        Some(values) => values.split_ascii_whitespace().nth(1).unwrap_or_default().to_owned(),
        None => line.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
    });
    values.collect::<Vec<_>>().join("\n")
}

/// Makes the system's choice of what to end for want of memory that of a usual process. Clients that are made of several
/// processes offer theirs first; the shared one and its workers are others' too. Where it may not be lowered it stays, for it takes
/// nothing from anyone: a session goes on after a kill.
pub fn reset_oom_score() {
    let _ = fs::write("/proc/self/oom_score_adj", "0");
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn limits_are_compared_without_those_that_are_set() {
        let table = |core: &str, soft: &str, hard: &str, stack: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax core file size {core} unlimited bytes\nMax open files {soft} {hard} \
                 files\nMax stack size {stack} unlimited bytes\n"
            )
        };
        let usual = limits(&table("0", "1024", "4096", "8388608"));
        assert_eq!(usual, limits(&table("unlimited", "4096", "4096", "8388608")));
        assert_ne!(usual, limits(&table("0", "1024", "2048", "8388608")));
        assert_ne!(usual, limits(&table("0", "1024", "4096", "1024")));
        let own = own_inheritance().unwrap();
        assert!(own[..3].iter().all(|(_, value)| !value.is_empty()), "{own:?}");
    }
}
