//! What a file looks like without being read: enough to tell whether it is still the one that was read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// File systems tell time in ticks of up to two seconds: what was changed less than that ago can change again and look the
/// same.
const COARSEST_TICK: Duration = Duration::from_secs(2);

/// Times in seconds and nanoseconds, size in bytes, and which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    modified: (i64, i64),
    /// When anything about it changed. Nobody can set it, so an edit whose time was set back is seen all the same.
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

impl Stamp {
    /// What a path looks like now; nothing when there is nothing.
    pub fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|metadata| Self::from(&metadata))
    }

    /// Whether the file was left alone for long enough before that moment that every later change will show.
    pub(super) fn is_settled_at(&self, moment: SystemTime) -> bool {
        let Some(latest) = moment.checked_sub(COARSEST_TICK).and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        else {
            return false;
        };
        let is_before = |(seconds, _): (i64, i64)| u64::try_from(seconds).map_or(true, |at| at < latest.as_secs());
        is_before(self.modified) && is_before(self.changed)
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            size: metadata.size(),
            inode: metadata.ino(),
        }
    }
}
