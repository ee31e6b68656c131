//! Namespaces of a process's own, made between fork and exec: pids, a network, and mounts. Without privileges that takes a namespace of users,
//! in which the process stays who it is.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, dumpable_behavior, getegid, geteuid, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::own_mounts::OwnMounts;
use super::own_network::OwnNetwork;
use super::own_pids::{OwnPids, enter_again, list_own_processes};
use crate::process::{keeper, table};

/// The namespaces of a process, prepared before the fork.
pub(super) struct Namespaces {
    /// The lines by which the process stays the user and the group that it is.
    users: String,
    groups: String,
    pids: Option<OwnPids>,
    network: Option<OwnNetwork>,
    mounts: Option<OwnMounts>,
}

impl Namespaces {
    /// `counts` says whether its processes are counted apart from the user's others, which takes a namespace of users alone.
    pub fn of(
        pids: Option<OwnPids>,
        network: Option<OwnNetwork>,
        mounts: Option<OwnMounts>,
        counts: bool,
    ) -> Option<Self> {
        let line = |id: u32| format!("{id} {id} 1\n");
        let (users, groups) = (line(geteuid().as_raw()), line(getegid().as_raw()));
        let is_needed = pids.is_some() || network.is_some() || mounts.is_some() || counts;
        is_needed.then_some(Self { users, groups, pids, network, mounts })
    }

    /// Makes the process end with this one, if it will have another parent.
    pub fn end_with(&mut self, parent: Option<Pid>) {
        if let Some(pids) = &mut self.pids {
            pids.parent = parent;
        }
    }

    /// Makes them. Called between fork and exec.
    pub fn enter(&mut self) -> io::Result<()> {
        let mut kinds = UnshareFlags::NEWUSER;
        kinds.set(UnshareFlags::NEWPID, self.pids.is_some());
        unshare(kinds)?;
        self.keep_ids()?;
        // The others are for the program alone, and not for what runs beside it.
        self.pids.iter().try_for_each(OwnPids::step_inside)?;
        let mut kinds = UnshareFlags::empty();
        kinds.set(UnshareFlags::NEWNET, self.network.is_some());
        kinds.set(UnshareFlags::NEWNS, self.mounts.is_some() || self.pids.is_some());
        unshare(kinds)?;
        self.network.iter().try_for_each(OwnNetwork::set_up)?;
        if let Some(pids) = &self.pids {
            list_own_processes()?;
            enter_again(&pids.directory)?;
        }
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

fn unshare(kinds: UnshareFlags) -> io::Result<()> {
    // SAFETY: this process has one thread, and keeps its table of files.
    #[expect(unsafe_code, reason = "argued above")]
    Ok(unsafe { unshare_unsafe(kinds) }?)
}

/// Whether a process can have a namespace of pids of its own here, and a listing of the processes in it.
pub(super) fn has_pids() -> bool {
    static KNOWN: Mutex<Known> = Mutex::new(Known { answer: None, tried: None });
    // From the listing of another namespace, no process below is found.
    table::tells()
        && known(&KNOWN, || {
            can_enter(Namespaces::of(Some(OwnPids::new(Path::new("/"))), None, None, false)?, || Ok(()))
        })
}

/// Whether a process can have a network of its own here.
pub(super) fn has_networks() -> bool {
    static KNOWN: Mutex<Known> = Mutex::new(Known { answer: None, tried: None });
    known(&KNOWN, || {
        let Ok((network, _door)) = OwnNetwork::new() else { return None };
        can_enter(Namespaces::of(None, Some(network), None, false)?, || Ok(()))
    })
}

/// Whether a process can have mounts of its own here.
pub(super) fn has_mounts() -> bool {
    static KNOWN: Mutex<Known> = Mutex::new(Known { answer: None, tried: None });
    known(&KNOWN, || {
        let (root, hidden) = (PathBuf::from("/"), ["/proc", "/dev/null"].map(PathBuf::from));
        let mounts = OwnMounts::new(&hidden, &[], Some(std::slice::from_ref(&root)), &root)?;
        can_enter(Namespaces::of(None, None, Some(mounts), false)?, || Ok(()))
    })
}

/// Whether the processes of a namespace are counted apart, and their number is limited. The limits of root's have no effect.
pub(super) fn counts_processes() -> bool {
    static KNOWN: Mutex<Known> = Mutex::new(Known { answer: None, tried: None });
    known(&KNOWN, || {
        can_enter(Namespaces::of(None, None, None, true)?, || {
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

/// What is known of this system.
struct Known {
    answer: Option<bool>,
    /// When it was tried without an answer.
    tried: Option<Instant>,
}

/// How long something counts as missing that could not be found out, as where the number of namespaces is limited: trying it takes a process.
const AGAIN: Duration = Duration::from_secs(1);

/// What is known, or found out now. What only failed for want of something is tried again later.
fn known(known: &Mutex<Known>, find_out: impl FnOnce() -> Option<bool>) -> bool {
    let mut known = known.lock();
    if known.answer.is_none() && known.tried.is_none_or(|tried| tried.elapsed() >= AGAIN) {
        known.answer = find_out();
        known.tried = Some(Instant::now());
    }
    known.answer.unwrap_or(false)
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
    let error = match command.spawn() {
        Err(error) => error,
        Ok(mut child) => {
            let _ = child.wait();
            return None;
        }
    };
    match Errno::from_io_error(&error) {
        Some(Errno::CANCELED) => Some(true),
        Some(Errno::PERM | Errno::ACCESS | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Some(false),
        _ => None,
    }
}
