//! Walls: what a process and everything below it may read, write and reach, enforced by the kernel.
//!
//! On Linux, Landlock limits files and signals, and a filter of system calls (seccomp) the network and what acts on other processes
//! or on the machine. Both are made before the fork and take effect in the child before `exec`: there nothing may allocate. A process
//! can add walls within its own, and never remove one.

#[cfg(target_os = "linux")]
mod files;
mod layers;
mod programs;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(target_os = "linux")]
mod temporary;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

#[cfg(target_os = "linux")]
pub(super) use files::version as landlock_version;
pub use layers::{Layer, layers};
pub use programs::{folder_of, installation_of, needed_by};
#[cfg(target_os = "linux")]
pub(super) use temporary::PrivateFolder;
#[cfg(target_os = "linux")]
pub use temporary::private_folders_removed;

#[cfg(target_os = "linux")]
use self::system_calls::Closing;
use crate::config::sandbox::Sandbox;

/// What a process may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walls {
    /// Each of these has to allow what it does.
    pub access: Vec<Access>,
    /// Files and folders that it can read whatever `access` says: the program itself and what that needs to run.
    pub own: Vec<PathBuf>,
    /// How many files each of its processes may have open.
    pub open_files: Option<u64>,
    /// How large the files that it writes may become, in bytes.
    pub file_size: Option<u64>,
    /// Whether it may not start where the kernel lacks a layer that it needs.
    pub is_required: bool,
}

/// Files and network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The files and folders it may read; `None` for all.
    pub read: Option<Vec<PathBuf>>,
    /// Those it may change, too; `None` for all. Its private folder for temporary files is always among them.
    pub write: Option<Vec<PathBuf>>,
    /// Whether it may open sockets of the internet.
    pub network: bool,
}

impl Access {
    /// No limit.
    pub const FULL: Self = Self { read: None, write: None, network: true };

    fn limits_files(&self) -> bool {
        self.read.is_some() || self.write.is_some()
    }

    /// Whether it may change files anywhere but in its private folder.
    #[cfg(target_os = "linux")]
    fn changes_files(&self) -> bool {
        self.write.as_ref().is_none_or(|folders| !folders.is_empty())
    }
}

impl Walls {
    /// Those that settings ask for, if they do. Each of them has to allow what the process does.
    pub fn of(sandboxes: &[Sandbox], own: Vec<PathBuf>) -> Option<Arc<Self>> {
        let least =
            |limit: fn(&Sandbox) -> Option<usize>| sandboxes.iter().filter_map(limit).min().map(|most| most as u64);
        let access = |one: &Sandbox| Access { read: one.read.clone(), write: one.write.clone(), network: one.network };
        let mut all: Vec<Access> = Vec::new();
        for one in sandboxes.iter().map(access).filter(|access| *access != Access::FULL) {
            // Landlock has 16 layers.
            if !all.contains(&one) {
                all.push(one);
            }
        }
        let walls = Self {
            access: all,
            own,
            open_files: least(|one| one.open_files),
            file_size: least(|one| one.file_size),
            is_required: sandboxes.iter().any(|one| one.is_required),
        };
        let limits = walls.limit_access() || walls.open_files.is_some() || walls.file_size.is_some();
        limits.then(|| Arc::new(walls))
    }

    /// Whether they limit files or the network, and not only amounts.
    pub fn limit_access(&self) -> bool {
        !self.access.is_empty()
    }

    /// Whether the network is closed.
    pub fn close_network(&self) -> bool {
        self.access.iter().any(|access| !access.network)
    }

    /// The layers that they need and that this system lacks.
    pub fn missing(&self) -> Vec<Layer> {
        let needs = |layer: &Layer| match layer {
            Layer::Files => self.access.iter().any(Access::limits_files),
            Layer::SystemCalls | Layer::Signals => self.limit_access(),
        };
        Layer::ALL.into_iter().filter(|layer| !layer.is_here() && needs(layer)).collect()
    }

    /// Whether it gets a private folder for temporary files.
    #[cfg(target_os = "linux")]
    fn need_private_folder(&self) -> bool {
        self.access.iter().any(|access| access.write.is_some())
    }
}

/// Makes a program start within walls. Returns its private folder for temporary files, if it has one.
#[cfg(target_os = "linux")]
pub(super) fn wall_in(
    walls: &Walls,
    command: &mut Command,
    within: &std::path::Path,
) -> io::Result<Option<PrivateFolder>> {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;

    let missing = walls.missing();
    if walls.is_required && !missing.is_empty() {
        return Err(io::Error::other(layers::lacking(&missing)));
    }
    let private = if walls.need_private_folder() { Some(PrivateFolder::create(within)?) } else { None };
    if let Some(private) = &private {
        for variable in ["TMPDIR", "TMP", "TEMP"] {
            command.env(variable, private.path());
        }
    }
    let limits_files = |access: &&Access| access.limits_files() && !missing.contains(&Layer::Files);
    let limited = walls.access.iter().filter(limits_files);
    let mut rulesets = limited
        .map(|access| files::ruleset(access, &walls.own, private.as_ref().and_then(PrivateFolder::folder)))
        .collect::<io::Result<Vec<_>>>()?;
    if walls.limit_access() && !missing.contains(&Layer::Signals) {
        rulesets.push(files::scopes()?);
    }
    let filters = if walls.limit_access() && !missing.contains(&Layer::SystemCalls) {
        system_calls::filters(Closing {
            network: walls.close_network(),
            attributes: !walls.access.iter().all(Access::changes_files),
            names: walls.access.iter().any(|access| access.read.is_some()),
        })
    } else {
        &[]
    };
    let (open_files, file_size, limits_access) = (walls.open_files, walls.file_size, walls.limit_access());
    let enter = move || {
        layers::lower(open_files, file_size)?;
        if limits_access {
            layers::give_up_capabilities()?;
        }
        rulesets.iter().try_for_each(|ruleset| files::enter(ruleset.as_raw_fd()))?;
        filters.iter().try_for_each(system_calls::enter)
    };
    // SAFETY: between fork and exec only system calls are made, and errors from numbers; all memory was allocated before.
    #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
    unsafe {
        command.pre_exec(enter);
    }
    Ok(private)
}

/// This system has no walls.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) struct PrivateFolder;

/// There are none.
#[cfg(not(target_os = "linux"))]
pub async fn private_folders_removed(_: std::time::Duration) {}

/// This system has no walls.
#[cfg(not(target_os = "linux"))]
pub(super) fn wall_in(walls: &Walls, _: &mut Command, _: &std::path::Path) -> io::Result<Option<PrivateFolder>> {
    if walls.is_required { Err(io::Error::other(layers::lacking(&walls.missing()))) } else { Ok(None) }
}
