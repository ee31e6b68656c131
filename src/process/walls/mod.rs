//! Walls: what a process and everything below it may read, write and reach, enforced by the kernel.
//!
//! On Linux, Landlock limits files and signals, and a filter of system calls (seccomp) the network and what acts on other processes
//! or on the machine. Both are made before the fork and take effect in the child before `exec`: there nothing may allocate. A process
//! can add walls within its own, and never remove one. Instead of limiting a process, walls can record what it reaches.
//!
//! On macOS, `sandbox-exec` starts the program within a profile.

#[cfg(target_os = "linux")]
mod addresses;
#[cfg(target_os = "linux")]
mod files;
mod layers;
#[cfg(target_os = "linux")]
mod mount_plan;
#[cfg(target_os = "linux")]
mod namespaces;
mod own;
#[cfg(target_os = "linux")]
mod own_mounts;
#[cfg(target_os = "linux")]
mod own_network;
#[cfg(target_os = "linux")]
mod own_pids;
#[cfg(target_os = "linux")]
mod prepared;
#[cfg(any(target_os = "macos", test))]
mod profile;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod programs;
#[cfg(target_os = "linux")]
mod recorded;
#[cfg(target_os = "linux")]
mod recording;
#[cfg(target_os = "linux")]
mod reported;
#[cfg(target_os = "macos")]
mod seatbelt;
#[cfg(target_os = "linux")]
mod shed;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(target_os = "linux")]
mod temporary;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unavailable;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(target_os = "linux")]
pub(super) use files::{add_rule as add_landlock_rule, version as landlock_version};
pub use layers::{Layer, layers};
pub use own::Own;
#[cfg(target_os = "linux")]
pub(super) use prepared::{Prepared, Surroundings};
#[cfg(target_os = "linux")]
pub use recording::can_record;
#[cfg(target_os = "macos")]
pub(super) use seatbelt::{Prepared, Surroundings};
#[cfg(target_os = "macos")]
pub use seatbelt::{can_record, private_folders_removed};
#[cfg(target_os = "linux")]
pub use temporary::private_folders_removed;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) use unavailable::{Prepared, Surroundings};
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use unavailable::{can_record, private_folders_removed};

use crate::config::Environment;
use crate::config::recorder::Recorder;
use crate::config::sandbox::{Network, Sandbox};
use crate::egress::AllowedHosts;

/// What a process may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walls {
    /// Each of these has to allow what it does.
    pub access: Vec<Access>,
    /// What it can read whatever `access` says: the program itself and what that needs to run.
    pub own: Vec<Own>,
    /// Where interpreters are looked for, and whose home it is.
    pub environment: Environment,
    /// Files and folders that it does not see.
    pub hidden: Vec<PathBuf>,
    /// How many processes and threads it may be together.
    pub processes: Option<u64>,
    /// How many files each of its processes may have open.
    pub open_files: Option<u64>,
    /// How large the files that it writes may become, in bytes.
    pub file_size: Option<u64>,
    /// Whether it may not start where the kernel lacks a layer that it needs.
    pub is_required: bool,
    /// What records the files and hosts that it reaches, instead of limiting them.
    pub recorder: Option<Arc<Recorder>>,
}

/// Files and network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The files and folders it may read; `None` for all.
    pub read: Option<Vec<PathBuf>>,
    /// Those it may change, too; `None` for all. Its private folder for temporary files is always among them.
    pub write: Option<Vec<PathBuf>>,
    /// How far the network is open.
    pub network: Network,
}

impl Access {
    /// No limit.
    pub const FULL: Self = Self { read: None, write: None, network: Network::On };

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
    pub fn of(sandboxes: &[Sandbox], own: Vec<Own>, environment: &Environment) -> Option<Arc<Self>> {
        let least =
            |limit: fn(&Sandbox) -> Option<usize>| sandboxes.iter().filter_map(limit).min().map(|most| most as u64);
        let access =
            |one: &Sandbox| Access { read: one.read.clone(), write: one.write.clone(), network: one.network.clone() };
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
            // It is part of what clients must have in common to share a worker.
            environment: environment.only(&["HOME", "PATH"]),
            hidden: sandboxes.iter().flat_map(|one| one.hide.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
            processes: least(|one| one.processes),
            open_files: least(|one| one.open_files),
            file_size: least(|one| one.file_size),
            is_required: sandboxes.iter().any(|one| one.is_required),
            recorder: None,
        };
        let amounts = [walls.processes, walls.open_files, walls.file_size];
        let limits = walls.limit_access() || amounts.iter().any(Option::is_some);
        limits.then(|| Arc::new(walls))
    }

    /// Walls that limit nothing: what the process reaches is recorded.
    pub fn recording(recorder: &Arc<Recorder>, own: Vec<Own>, environment: &Environment) -> Arc<Self> {
        let (recorder, environment) = (Some(Arc::clone(recorder)), environment.only(&["HOME", "PATH"]));
        Arc::new(Self { own, environment, recorder, ..Self::default() })
    }

    /// Whether they limit files or the network, and not only amounts.
    pub fn limit_access(&self) -> bool {
        !self.access.is_empty() || !self.hidden.is_empty()
    }

    /// The folders and files that it may change, as they are now: what lies in a folder of each access. `None` for everything.
    #[cfg(target_os = "linux")]
    fn writable(&self) -> Option<Vec<PathBuf>> {
        let real =
            |list: &Vec<PathBuf>| -> Vec<PathBuf> { list.iter().filter_map(|path| path.canonicalize().ok()).collect() };
        let lists: Vec<Vec<PathBuf>> =
            self.access.iter().filter_map(|access| access.write.as_ref().map(real)).collect();
        let is_in_all = |path: &&PathBuf| lists.iter().all(|list| list.iter().any(|folder| path.starts_with(folder)));
        let common: BTreeSet<PathBuf> = lists.iter().flatten().filter(is_in_all).cloned().collect();
        let has_all = common.iter().any(|folder| folder.parent().is_none());
        (!lists.is_empty() && !has_all).then(|| common.into_iter().collect())
    }

    /// Whether it has folders to write to, beside which attributes could be changed. Without one, the filter of system calls closes that.
    fn keep_attributes(&self) -> bool {
        let mut lists = self.access.iter().filter_map(|access| access.write.as_ref()).peekable();
        let has_all = |list: &&Vec<PathBuf>| list.iter().any(|folder| folder.parent().is_none());
        lists.peek().is_some() && lists.clone().all(|list| !list.is_empty()) && !lists.all(|list| has_all(&list))
    }

    /// Whether the network is closed.
    pub fn close_network(&self) -> bool {
        self.access.iter().any(|access| access.network == Network::Off)
    }

    /// The hosts that may be reached, if the network is open for chosen ones.
    pub fn hosts(&self) -> Option<AllowedHosts> {
        let of_access = |access: &Access| match &access.network {
            Network::Hosts(hosts) => Some(hosts.clone()),
            Network::Off | Network::On => None,
        };
        let lists: Vec<_> = self.access.iter().filter_map(of_access).collect();
        (!lists.is_empty() && !self.close_network()).then_some(AllowedHosts(lists))
    }

    /// The layers that they need and that this system lacks.
    pub fn missing(&self) -> Vec<Layer> {
        let needs = |layer: &Layer| match layer {
            Layer::Files => self.access.iter().any(Access::limits_files),
            Layer::SystemCalls | Layer::Signals => self.limit_access(),
            Layer::Hosts => self.hosts().is_some(),
            Layer::Processes => self.processes.is_some(),
            // It is never a condition: the layers of files and signals close more.
            Layer::OtherProcesses => false,
            Layer::Hiding => !self.hidden.is_empty() || (self.is_required && self.keep_attributes()),
        };
        Layer::ALL.into_iter().filter(|layer| needs(layer) && !layer.is_here()).collect()
    }

    /// Whether they name files or folders. Those of a preset are the system's and the program's own.
    #[cfg(target_os = "linux")]
    fn name_paths(&self) -> bool {
        let lists = self.access.iter().flat_map(|access| access.read.iter().chain(&access.write));
        !self.hidden.is_empty() || lists.into_iter().any(|list| !list.is_empty())
    }

    /// Whether nothing starts within them where these layers are missing.
    pub fn are_refused_without(&self, missing: &[Layer]) -> bool {
        // A network that is open for all hosts is no substitute for one that is open for some, nor a file that is seen for a hidden one.
        let has_no_substitute = |layer: &Layer| matches!(layer, Layer::Hosts | Layer::Hiding);
        !missing.is_empty() && (self.is_required || missing.iter().any(has_no_substitute))
    }

    /// Whether it gets a private folder for temporary files.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn need_private_folder(&self) -> bool {
        self.recorder.is_some() || self.access.iter().any(|access| access.write.is_some())
    }
}
