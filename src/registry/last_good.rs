//! The last good version of each tool file. It answers while the file on disk is broken or its worker does not start.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::catalogue::Catalogue;
use super::file_entry::{FileEntry, version};
use crate::discovery::{Kind, SourceId, ToolFile};

/// How long a version that did not start is not tried again, doubled at each failure. What it lacks, such as a network, may
/// come without an edit.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// Why an earlier version answers and not the one on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// What is wrong with the file on disk.
    pub reason: String,
    /// When the version on disk is tried again, if the file does not change before.
    retry_at: Option<Instant>,
}

impl Stale {
    pub(super) fn is_due(&self) -> bool {
        self.retry_at.is_some_and(|at| Instant::now() >= at)
    }
}

/// The version that replaces a file of a scan.
#[derive(Debug)]
pub(super) struct StandIn {
    pub version: [u8; 32],
    pub stale: Stale,
    /// The helpers of the file on disk, whose change may repair it.
    pub helpers: Vec<PathBuf>,
}

/// The replacements of a scan.
pub(super) type StandIns = HashMap<SourceId, StandIn>;

/// What running versions has shown.
#[derive(Debug, Default)]
pub(super) struct LastGood {
    /// The version of each file that last answered a call.
    good: HashMap<SourceId, Arc<FileEntry>>,
    /// The version of each file whose worker last did not start.
    failed: HashMap<SourceId, Failed>,
}

#[derive(Debug)]
struct Failed {
    version: [u8; 32],
    reason: String,
    times: u32,
    until: Instant,
}

impl LastGood {
    /// Notes that a version answered.
    pub fn answered(&mut self, entry: &Arc<FileEntry>) {
        let source = entry.file.source();
        if self.failed.get(&source).is_some_and(|failed| failed.version == entry.version) {
            self.failed.remove(&source);
        }
        self.good.insert(source, Arc::clone(entry));
    }

    /// Notes that a version did not start. Returns whether another one has to replace it now.
    pub fn failed(&mut self, entry: &FileEntry, reason: &str, now: Instant) -> bool {
        let source = entry.file.source();
        if self.good.get(&source).is_none_or(|good| good.version == entry.version) {
            return false;
        }
        let earlier = self.failed.get(&source).filter(|failed| failed.version == entry.version);
        if earlier.is_some_and(|failed| now < failed.until) {
            return false;
        }
        let times = earlier.map_or(0, |failed| failed.times + 1);
        let until = now + FIRST_PAUSE.saturating_mul(1 << times.min(16)).min(LONGEST_PAUSE);
        self.failed.insert(source, Failed { version: entry.version, reason: reason.to_owned(), times, until });
        true
    }

    /// Replaces every file that cannot be served by its last good version.
    pub fn stand_in(&self, files: &mut [ToolFile], before: &Catalogue, now: Instant) -> StandIns {
        let mut stand_ins = StandIns::new();
        for file in files {
            let Some(stale) = self.why_not(file, now) else { continue };
            let source = file.source();
            let is_failed = |entry: &FileEntry| {
                self.failed.get(&source).is_some_and(|failed| failed.version == entry.version && now < failed.until)
            };
            let earlier = [before.entry_of(&source), self.good.get(&source)];
            let Some(entry) = earlier.into_iter().flatten().find(|entry| entry.file.is_ready() && !is_failed(entry))
            else {
                continue;
            };
            let on_disk = std::mem::replace(file, entry.file.clone());
            let beside = on_disk.beside.iter().flat_map(|beside| &beside.files).cloned();
            let helpers = on_disk.helpers.into_iter().chain(beside).collect();
            stand_ins.insert(source, StandIn { version: entry.version, stale, helpers });
        }
        stand_ins
    }

    /// Why the version on disk cannot be served.
    fn why_not(&self, file: &ToolFile, now: Instant) -> Option<Stale> {
        if matches!(file.kind, Kind::Executable | Kind::Builtin) {
            return None; // earlier versions of programs are not kept
        }
        if let Some(reason) = file.broken() {
            return Some(Stale { reason, retry_at: None });
        }
        let failed = self.failed.get(&file.source()).filter(|failed| now < failed.until)?;
        let is_it = version(file) == failed.version;
        is_it.then(|| Stale { reason: failed.reason.clone(), retry_at: Some(failed.until) })
    }
}
