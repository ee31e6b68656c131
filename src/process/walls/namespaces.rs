//! Namespaces of a process's own, made between fork and exec: a network, and mounts. Without privileges that takes a namespace of users, in
//! which the process stays who it is.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, dumpable_behavior, getegid, geteuid, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::own_mounts::OwnMounts;
use super::own_network::OwnNetwork;
use crate::process::keeper;

/// The namespaces of a process, prepared before the fork.
pub(super) struct Namespaces {
    /// The lines by which the process stays the user and the group that it is.
    users: String,
    groups: String,
    network: Option<OwnNetwork>,
    mounts: Option<OwnMounts>,
}

impl Namespaces {
    /// `counts` says whether its processes are counted apart from the user's others, which takes a namespace of users alone.
    pub fn of(network: Option<OwnNetwork>, mounts: Option<OwnMounts>, counts: bool) -> Option<Self> {
        let line = |id: u32| format!("{id} {id} 1\n");
        let (users, groups) = (line(geteuid().as_raw()), line(getegid().as_raw()));
        (network.is_some() || mounts.is_some() || counts).then_some(Self { users, groups, network, mounts })
    }

    /// Makes them. Called between fork and exec.
    pub fn enter(&mut self) -> io::Result<()> {
        let mut kinds = UnshareFlags::NEWUSER;
        kinds.set(UnshareFlags::NEWNET, self.network.is_some());
        kinds.set(UnshareFlags::NEWNS, self.mounts.is_some());
        // SAFETY: this process has one thread, and keeps its table of files.
        #[expect(unsafe_code, reason = "argued above")]
        unsafe {
            unshare_unsafe(kinds)?;
        }
        self.keep_ids()?;
        self.network.iter().try_for_each(OwnNetwork::set_up)?;
        self.mounts.iter_mut().try_for_each(OwnMounts::set_up)
    }

    /// The files belong to root where a process may not be looked into, as a copy of hostler may not: for these writes it may. No tool in a
    /// domain can use that moment; other programs of this user can (docs/security.md).
    fn keep_ids(&self) -> io::Result<()> {
        let before = dumpable_behavior()?;
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        let files = [
            (c"/proc/self/setgroups", "deny"),
            (c"/proc/self/uid_map", &self.users),
            (c"/proc/self/gid_map", &self.groups),
        ];
        for (path, line) in files {
            let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            write(&file, line.as_bytes())?;
        }
        set_dumpable_behavior(before)?;
        Ok(())
    }
}

/// Whether a process can have a network of its own here.
pub(super) fn has_networks() -> bool {
    static KNOWN: Mutex<Option<bool>> = Mutex::new(None);
    known(&KNOWN, || {
        let Ok((network, _door)) = OwnNetwork::new() else { return None };
        can_enter(Namespaces::of(Some(network), None, false)?, || Ok(()))
    })
}

/// Whether a process can have mounts of its own here.
pub(super) fn has_mounts() -> bool {
    static KNOWN: Mutex<Option<bool>> = Mutex::new(None);
    known(&KNOWN, || {
        let (root, hidden) = (PathBuf::from("/"), ["/proc", "/dev/null"].map(PathBuf::from));
        let mounts = OwnMounts::new(&hidden, &[], Some(std::slice::from_ref(&root)), &root)?;
        can_enter(Namespaces::of(None, Some(mounts), false)?, || Ok(()))
    })
}

/// Whether the processes of a namespace are counted apart, and their number is limited. The limits of root's have no effect.
pub(super) fn counts_processes() -> bool {
    static KNOWN: Mutex<Option<bool>> = Mutex::new(None);
    known(&KNOWN, || {
        can_enter(Namespaces::of(None, None, true)?, || {
            setrlimit(Resource::Nproc, Rlimit { current: Some(1), maximum: Some(1) })?;
            // SAFETY: this process has one thread; the other one ends at once.
            #[expect(unsafe_code, reason = "argued above")]
            match unsafe { libc::fork() } {
                -1 => Ok(()),
                0 => unsafe { libc::_exit(0) },
                _ => Err(Errno::NOSYS),
            }
        })
    })
}

/// What is known, or found out now. What only failed for want of something is tried again the next time.
fn known(known: &Mutex<Option<bool>>, find_out: impl FnOnce() -> Option<bool>) -> bool {
    let mut known = known.lock();
    if known.is_none() {
        *known = find_out();
    }
    known.unwrap_or(false)
}

/// Whether a process can make such namespaces, and this holds in them; `None` if the attempt failed for another reason. A child tries it and
/// runs no program.
fn can_enter(
    mut namespaces: Namespaces,
    holds: impl Fn() -> Result<(), Errno> + Send + Sync + 'static,
) -> Option<bool> {
    let _open = keeper::open_for_starts();
    let mut command = Command::new("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec only system calls are made, and errors from numbers; all memory was allocated before.
    #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
    unsafe {
        command.pre_exec(move || {
            namespaces.enter()?;
            holds()?;
            Err(Errno::CANCELED.into())
        });
    }
    let error = command.spawn().err()?;
    match Errno::from_io_error(&error) {
        Some(Errno::CANCELED) => Some(true),
        Some(Errno::PERM | Errno::ACCESS | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Some(false),
        _ => None,
    }
}
