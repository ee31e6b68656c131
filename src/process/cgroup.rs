//! A control group for everything below one keeper, where this user may make one. What a tool does with its environment and
//! its parents, it cannot leave the group: so the next start finds it, also if keeper and supervisor were killed together.

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use rustix::fs::{Access, access};
    use rustix::process::Pid;

    use crate::process::mark::Run;
    use crate::process::proc_file;

    /// What the names of groups begin with; the run follows.
    const PREFIX: &str = "hostler.";
    /// The most folders that a search looks into.
    const MOST: usize = 4096;
    /// How long the death of a group's processes may take.
    const DYING: Duration = Duration::from_millis(500);
    const LOOK: Duration = Duration::from_millis(1);

    /// A group of one keeper.
    #[derive(Debug)]
    pub struct Group(PathBuf);

    impl Group {
        /// A group beneath the one that this process is in, named after this process. `None` where none can be made.
        pub fn create() -> Option<Self> {
            let folder = own_folder()?.join(format!("{PREFIX}{}", Run::read()?));
            fs::create_dir(&folder).ok()?;
            let group = Self(folder);
            // What cannot be ended as a whole is of no use (before Linux 5.14).
            let is_useful = group.0.join("cgroup.kill").exists();
            if !is_useful {
                group.remove();
            }
            is_useful.then_some(group)
        }

        /// Puts a process in it, which may take the kernel a while; what it starts from then on begins in it.
        pub fn take(&self, pid: Pid) {
            let _ = fs::write(self.0.join("cgroup.procs"), pid.to_string());
        }

        /// Ends everything in it and removes it. Whether there was something.
        pub fn end(self) -> bool {
            if self.remove() {
                return false;
            }
            let _ = fs::write(self.0.join("cgroup.kill"), "1");
            let until = Instant::now() + DYING;
            while !self.remove() && Instant::now() < until {
                std::thread::sleep(LOOK);
            }
            true
        }

        /// Removes it, if it is empty.
        fn remove(&self) -> bool {
            for folder in below(&self.0, MOST).iter().rev() {
                let _ = fs::remove_dir(folder);
            }
            fs::remove_dir(&self.0).is_ok() || !self.0.exists()
        }
    }

    /// Ends the groups of runs for which this holds; returns how many had processes left.
    pub fn end_all_of(is_over: impl Fn(&Run) -> bool) -> usize {
        let Some(top) = highest_of_ours() else { return 0 };
        let found = below(&top, MOST);
        let of_run = |folder: &PathBuf| {
            let name = folder.file_name()?.to_str()?.strip_prefix(PREFIX)?;
            Run::parse(name).filter(|run| is_over(run)).map(|_| Group(folder.clone()))
        };
        found.iter().filter_map(of_run).map(Group::end).filter(|had| *had).count()
    }

    /// The folder of the group that this process is in.
    fn own_folder() -> Option<PathBuf> {
        let mounts = proc_file::read_to_string("/proc/self/mountinfo").ok()?;
        let (mount, root) = mounts.lines().find_map(mount_of)?;
        let groups = proc_file::read_to_string("/proc/self/cgroup").ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let path = Path::new(path).strip_prefix(&root).ok()?;
        Some(mount.join(path))
    }

    /// The limits that hold for this process's group, by itself or by those above it: each once.
    pub fn own_limits() -> Vec<String> {
        const FILES: [&str; 4] = ["memory.max", "memory.high", "cpu.max", "pids.max"];
        let own = own_folder();
        let groups =
            own.iter().flat_map(|own| own.ancestors()).take_while(|folder| folder.join("cgroup.procs").exists());
        let set = groups.flat_map(|folder| {
            FILES.into_iter().filter_map(move |file| {
                let value = fs::read_to_string(folder.join(file)).ok()?;
                (!value.starts_with("max")).then(|| format!("{file}={}", value.trim()))
            })
        });
        set.collect::<std::collections::BTreeSet<String>>().into_iter().collect()
    }

    /// The mount point of the second version's groups, and which group is its root.
    fn mount_of(line: &str) -> Option<(PathBuf, PathBuf)> {
        let (fields, kind) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        kind.starts_with("cgroup2 ").then(|| (mount.into(), root.into()))
    }

    /// The highest group above this process's own in which this user may make groups: other hostlers' are beneath it.
    fn highest_of_ours() -> Option<PathBuf> {
        let own = own_folder()?;
        let is_ours = |folder: &Path| {
            folder.join("cgroup.procs").exists() && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
        };
        own.ancestors().take_while(|folder| is_ours(folder)).last().map(Path::to_owned)
    }

    /// The groups beneath one, parents before children.
    fn below(folder: &Path, most: usize) -> Vec<PathBuf> {
        let mut found = vec![folder.to_owned()];
        let mut next = 0;
        while let Some(folder) = found.get(next).filter(|_| found.len() < most) {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let folders: Vec<PathBuf> = entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path())
                .collect();
            found.extend(folders);
            next += 1;
        }
        found.remove(0);
        found
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_mount_of_the_second_version_is_found() {
            let line = "31 23 0:27 /a /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
            assert_eq!(mount_of(line), Some(("/sys/fs/cgroup/unified".into(), "/a".into())));
            assert_eq!(mount_of("31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"), None);
            assert_eq!(mount_of(""), None);
        }

        #[test]
        fn groups_below_one_are_listed_parents_first() {
            let top = tempfile::tempdir().unwrap();
            fs::create_dir_all(top.path().join("a/b")).unwrap();
            fs::create_dir(top.path().join("c")).unwrap();
            fs::write(top.path().join("file"), "").unwrap();
            let mut found = below(top.path(), MOST);
            assert_eq!(found.pop(), Some(top.path().join("a/b")));
            assert_eq!(found.len(), 2);
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) use system::{Group, end_all_of, own_limits};

/// Other systems have none.
#[cfg(not(target_os = "linux"))]
pub(super) struct Group;

#[cfg(not(target_os = "linux"))]
impl Group {
    pub fn create() -> Option<Self> {
        None
    }

    pub fn take(&self, _: rustix::process::Pid) {}

    pub fn end(self) -> bool {
        false
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_all_of(_: impl Fn(&super::mark::Run) -> bool) -> usize {
    0
}
