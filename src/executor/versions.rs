//! The pools of a tool file's versions: one takes new calls, older ones finish what they have.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::pool::Pool;
use crate::registry::FileEntry;

#[derive(Default)]
pub(super) struct Open {
    pub current: HashMap<PathBuf, Current>,
    /// Those of older versions: some have calls inside, some may be called again should the newer one not start.
    pub older: Vec<(PathBuf, Current)>,
    pub ended: bool,
}

pub(super) struct Current {
    pub pack: String,
    pub version: [u8; 32],
    pub pool: Arc<Pool>,
    pub config: Arc<RawValue>,
}

impl Current {
    pub fn serves(&self, entry: &FileEntry) -> bool {
        // One that is gone without having been told to is a bug of ours, and not to last.
        self.version == entry.version && !self.pool.is_told() && !self.pool.is_empty()
    }
}

impl Open {
    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.current.values().chain(self.older.iter().map(|(_, older)| older)).map(|one| &one.pool)
    }

    /// Has new calls of a file go to another pool. The one before finishes what it has. Where it has proven itself, it is
    /// kept until the new one has a worker: should that not start, it is taken back.
    pub fn replace(&mut self, path: &Path, fresh: Current) {
        let new = Arc::clone(&fresh.pool);
        if let Some(old) = self.current.insert(path.to_owned(), fresh) {
            tracing::debug!(file = %path.display(), "new calls go to another version's worker");
            if !old.pool.has_started() {
                old.pool.close();
            }
            self.older.push((path.to_owned(), old));
        }
        self.older.retain(|(_, older)| !older.pool.is_empty());
        let kept = self.older.iter().filter(|(of, older)| of == path && !older.pool.is_told());
        let kept: Vec<Arc<Pool>> = kept.map(|(_, older)| Arc::clone(&older.pool)).collect();
        if !kept.is_empty() {
            tokio::spawn(async move {
                if new.started().await {
                    for pool in kept {
                        pool.close();
                    }
                }
            });
        }
    }
}
