//! What a process may reach, as far as the system shows it: its user, its namespaces, its filters. Two processes that differ in
//! it must not act for each other.

use std::io;
use std::path::PathBuf;

use rustix::process::{Pid, getpid};

use super::{keeper, mark, proc_file, table};
use crate::config::Environment;

/// The lines of `/proc/PID/status` that say what a process may do. `NSpid` has a number for each pid namespace around it.
const FACTS: [&str; 13] = [
    "Umask",
    "Uid",
    "Gid",
    "Groups",
    "NSpid",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
];

/// The namespaces that decide what names mean: files, pids, addresses, users, shared memory, hosts, control groups; and clocks.
const NAMESPACES: [&str; 8] = ["mnt", "pid", "net", "user", "ipc", "uts", "cgroup", "time"];

/// What this process may reach, as text: name and value of each fact.
pub fn own_confinement() -> io::Result<Vec<(&'static str, String)>> {
    let mut facts = visible_facts(getpid())?;
    for namespace in NAMESPACES {
        let link = match std::fs::read_link(format!("/proc/self/ns/{namespace}")) {
            // Some systems are built without it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => PathBuf::new(),
            link => link?,
        };
        facts.push((namespace, link.to_string_lossy().into_owned()));
    }
    facts.push(("root", std::fs::read_link("/proc/self/root")?.to_string_lossy().into_owned()));
    Ok(facts)
}

/// Whether this process may gain no privileges.
#[cfg(target_os = "linux")]
pub fn gains_no_privileges() -> io::Result<bool> {
    Ok(rustix::thread::no_new_privs()?)
}

#[cfg(not(target_os = "linux"))]
pub fn gains_no_privileges() -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What the system shows of any process.
pub(super) fn visible_facts(pid: Pid) -> io::Result<Vec<(&'static str, String)>> {
    let facts = facts(&proc_file::read_to_string(format!("/proc/{pid}/status"))?);
    // The profile of AppArmor or SELinux, if there is one.
    let profile = proc_file::read_to_string(format!("/proc/{pid}/attr/current")).unwrap_or_default();
    let profile = ("profile", profile.trim_end_matches(['\0', '\n']).to_owned());
    Ok(facts.into_iter().chain([profile]).collect())
}

fn facts(status: &str) -> [(&'static str, String); FACTS.len()] {
    let lines: Vec<(&str, &str)> = status.lines().filter_map(|line| line.split_once(':')).collect();
    let value = |name: &str| lines.iter().find(|(found, _)| *found == name).map(|(_, value)| value.trim());
    FACTS.map(|name| {
        let value = value(name).unwrap_or_default();
        // The numbers themselves are the process's own; how many there are is not.
        let value = if name == "NSpid" { value.split_whitespace().count().to_string() } else { value.to_owned() };
        (name, value)
    })
}

/// Whether a process was started by this hostler: a worker, or what one started.
pub fn is_below_us(pid: Pid) -> bool {
    let above = table::ancestors(pid);
    // Not its present parent: if the keeper was killed, that is everybody's.
    above.contains(&getpid()) || keeper::keeper().is_some_and(|keeper| above.contains(&keeper))
}

/// Whether another hostler is above this process: a tool of its has started it, by whatever ways.
pub fn is_below_hostler() -> bool {
    let name = |pid: Pid| proc_file::read_to_string(format!("/proc/{pid}/comm")).ok();
    // That of the shared hostler, which was started as `/proc/self/exe`.
    let is_exe = |name: &Option<String>| name.as_deref().is_some_and(|name| name.trim_end() == "exe");
    let program = |pid: Pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let (own_name, own_program) = (name(getpid()), program(getpid()));
    // A hostler that serves shows its name, and its program to nobody. A script of that name shows a shell.
    let is_named = |name: Option<String>| name == own_name || is_exe(&name);
    let is_one = |above: Pid| is_named(name(above)) && program(above).is_none_or(|other| Some(other) == own_program);
    // Its own keeper has this program, too, and another name only a moment after the fork.
    let own_keeper = keeper::keeper();
    // From a namespace of pids, only the first process of that is seen.
    let is_secluded = name(Pid::INIT).is_some_and(|name| name.trim_end() == INIT);
    is_secluded || table::ancestors(getpid()).into_iter().filter(|above| Some(*above) != own_keeper).any(is_one)
}

/// The name of the first process in a namespace of pids that a hostler has made.
pub(super) const INIT: &str = "hostler-init";

/// Whether these variables belong to a process that some hostler started.
pub fn is_marked(environment: &Environment) -> bool {
    environment.raw(mark::VARIABLE).is_some()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_confined_as_itself_and_other_than_init() {
        let names: Vec<&str> = own_confinement().unwrap().iter().map(|(name, _)| *name).collect();
        assert_eq!(names[..FACTS.len()], FACTS);
        assert!(names.ends_with(&["user", "ipc", "uts", "cgroup", "time", "root"]));
        assert!(!is_below_us(getpid()));
    }

    #[test]
    fn each_set_of_capabilities_is_compared() {
        let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
        let status = |changed: &str| {
            let line = |set: &str| format!("{set}:\t{}\n", if set == changed { "0" } else { "1fffeffffff" });
            sets.map(line).concat()
        };
        let usual = facts(&status("none"));
        for set in sets {
            let differing: Vec<&str> = usual
                .iter()
                .zip(facts(&status(set)))
                .filter(|(one, other)| **one != *other)
                .map(|(one, _)| one.0)
                .collect();
            assert_eq!(differing, [set]);
        }
    }

    #[tokio::test]
    async fn what_this_process_started_is_below_it() {
        let launch = super::super::Launch::new("/bin/cat");
        let child = super::super::Child::start(&launch).await.unwrap();
        let pid = Pid::from_raw(i32::try_from(child.pid()).unwrap()).unwrap();
        assert!(is_below_us(pid));
    }
}
