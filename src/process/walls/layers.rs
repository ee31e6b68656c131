//! The layers that walls are made of, and which of them this system has.

#[cfg(any(target_os = "linux", target_os = "macos"))]
use std::io;

#[cfg(any(target_os = "linux", target_os = "macos"))]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[cfg(target_os = "linux")]
use super::namespaces::{counts_processes, has_mounts, has_networks, has_pids};
#[cfg(target_os = "macos")]
use super::seatbelt::has_profiles;

/// What enforces a part of walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Reading and writing files.
    Files,
    /// The network, tracing, and what acts on the machine.
    SystemCalls,
    /// Signals to processes outside.
    Signals,
    /// A network of chosen hosts.
    Hosts,
    /// Files that are not seen, and attributes that are kept.
    Hiding,
    /// How many processes there are.
    Processes,
    /// Processes outside, which are not seen.
    OtherProcesses,
}

impl Layer {
    /// Every layer.
    pub(super) const ALL: [Self; 7] = [
        Self::Files,
        Self::SystemCalls,
        Self::Signals,
        Self::Hosts,
        Self::Hiding,
        Self::Processes,
        Self::OtherProcesses,
    ];

    /// Its word in lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::SystemCalls => "network and system calls",
            Self::Signals => "signals",
            Self::Hosts => "chosen hosts",
            Self::Hiding => "hidden files and attributes",
            Self::Processes => "number of processes",
            Self::OtherProcesses => "other processes",
        }
    }

    /// Whether this system has it. The kernel is asked, and not its version.
    pub fn is_here(self) -> bool {
        match self {
            // The versions before cannot keep a file from being emptied.
            Self::Files => landlock_version() >= 3 || has_profiles(),
            Self::Signals => landlock_version() >= 6 || has_pids() || has_profiles(),
            Self::SystemCalls => has_filters() || has_profiles(),
            Self::Hosts => has_networks(),
            Self::Hiding => has_mounts() || has_profiles(),
            Self::Processes => counts_processes(),
            Self::OtherProcesses => has_pids() || has_profiles(),
        }
    }

    /// What the system needs for it.
    fn needs(self) -> &'static str {
        match self {
            Self::Files => "Landlock, Linux 6.2",
            Self::SystemCalls => "seccomp",
            Self::Signals => "Landlock, Linux 6.12, or user and pid namespaces",
            Self::Hosts => "user and network namespaces",
            Self::Hiding => "user and mount namespaces",
            Self::OtherProcesses => "user and pid namespaces, and a whole /proc",
            Self::Processes => "user namespaces, Linux 5.14, and another user than root",
        }
    }
}

/// Every layer, and by what this system enforces it; `None` where it does not.
pub fn layers() -> [(Layer, Option<String>); 7] {
    Layer::ALL.map(|layer| {
        let by = match layer {
            _ if cfg!(target_os = "macos") => "sandbox-exec".to_owned(),
            Layer::Signals if landlock_version() < 6 => "namespaces".to_owned(),
            Layer::Files | Layer::Signals => format!("Landlock {}", landlock_version()),
            Layer::SystemCalls => "seccomp".to_owned(),
            Layer::Hosts | Layer::Hiding | Layer::Processes | Layer::OtherProcesses => "namespaces".to_owned(),
        };
        (layer, layer.is_here().then_some(by))
    })
}

/// Why a process that needs these layers does not start.
pub(super) fn lacking(missing: &[Layer]) -> String {
    let words: Vec<String> =
        missing.iter().map(|layer| format!("{} (needs {})", layer.word(), layer.needs())).collect();
    format!("its sandbox needs what this system does not have: {}", words.join(", "))
}

#[cfg(not(target_os = "macos"))]
fn has_profiles() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn landlock_version() -> u32 {
    super::files::version()
}

#[cfg(not(target_os = "linux"))]
fn landlock_version() -> u32 {
    0
}

#[cfg(target_os = "linux")]
fn has_filters() -> bool {
    super::system_calls::is_supported()
}

#[cfg(not(target_os = "linux"))]
fn has_filters() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn has_networks() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn has_mounts() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn counts_processes() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn has_pids() -> bool {
    false
}

/// Lowers the limits of the calling process, for good.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn lower(amounts: &[(Resource, Option<u64>)]) -> io::Result<()> {
    for &(resource, most) in amounts {
        let Some(most) = most else { continue };
        let most = getrlimit(resource).maximum.map_or(most, |hard| most.min(hard));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Gives up what makes root more than a user. Without new privileges, `exec` does not give it back.
#[cfg(target_os = "linux")]
pub(super) fn give_up_capabilities() -> io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

    set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
