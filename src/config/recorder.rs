//! What the processes of one tool do while they run without its sandbox, so that a sandbox can be proposed (`hostler sandbox learn`).
//! Filled from where processes are started, read when the call has ended.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::Mutex;

/// Collects what the processes of one pack do.
#[derive(Default)]
pub struct Recorder {
    /// Which pack; none before it is known.
    pack: OnceLock<String>,
    record: Mutex<Record>,
}

/// What was done. Paths are absolute and contain no link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The files that were opened, the folders that were listed, and the programs that were run.
    pub reads: BTreeSet<PathBuf>,
    /// The files that were changed, and the folders in which names were made or removed.
    pub writes: BTreeSet<PathBuf>,
    /// What a process in any sandbox can read.
    pub readable: BTreeSet<PathBuf>,
    /// What it can change, too.
    pub writable: BTreeSet<PathBuf>,
    /// The hosts and ports that were reached through the proxy, and private addresses behind their names.
    pub hosts: BTreeSet<String>,
    /// The addresses that were reached in another way.
    pub addresses: BTreeSet<SocketAddr>,
    /// Where the proxy listens, which is nothing that the tool needs.
    pub proxies: BTreeSet<SocketAddr>,
    /// Whether an address was taken to listen at.
    pub listens: bool,
    /// The Unix sockets that were connected to. No sandbox allows that.
    pub sockets: BTreeSet<PathBuf>,
    /// The folders and files that were watched for changes, which needs `read` without a limit.
    pub watched: BTreeSet<PathBuf>,
    /// How many calls could not be read.
    pub unread: u64,
}

impl Recorder {
    /// Records the processes of this pack that start from now on.
    pub fn begin(&self, pack: &str) {
        let _ = self.pack.set(pack.to_owned());
    }

    /// Whether it records the processes of a pack.
    pub fn is_of(&self, pack: &str) -> bool {
        self.pack.get().is_some_and(|own| own == pack)
    }

    /// Adds to the record. Only Linux reports what processes do.
    #[cfg(target_os = "linux")]
    pub fn add(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.record.lock());
    }

    /// What was done so far.
    pub fn record(&self) -> Record {
        self.record.lock().clone()
    }
}

impl Record {
    /// Whether any sandbox lets a process read a path.
    pub fn may_read(&self, path: &Path) -> bool {
        self.may_write(path) || is_beneath(path, &self.readable)
    }

    /// Whether any sandbox lets it change the path.
    pub fn may_write(&self, path: &Path) -> bool {
        is_beneath(path, &self.writable)
    }
}

fn is_beneath(path: &Path, all: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().any(|above| all.contains(above))
}

/// Each is another one.
impl PartialEq for Recorder {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Recorder {}

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recorder").field("pack", &self.pack).finish_non_exhaustive()
    }
}
