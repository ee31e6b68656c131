//! The pools of a tool file's versions: one takes new calls, older ones finish what they have.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::value::RawValue;

use super::store::PoolLease;
use crate::discovery::SourceId;
use crate::registry::FileEntry;

#[derive(Default)]
pub(super) struct Open {
    pub current: HashMap<SourceId, Current>,
    /// Those of older versions: some have calls inside, some may be called again should the newer one not start.
    pub older: Vec<(SourceId, Current)>,
    pub ended: bool,
}

pub(super) struct Current {
    pub pack: String,
    pub version: [u8; 32],
    pub pool: Arc<PoolLease>,
    pub config: Arc<RawValue>,
    /// Whether another version took its place. It may be taken back.
    pub is_older: Arc<AtomicBool>,
}

impl Current {
    pub fn serves(&self, entry: &FileEntry) -> bool {
        // One that is gone without having been told to is a bug of ours, and not to last.
        self.version == entry.version && !self.pool.is_told() && !self.pool.is_empty()
    }
}

impl Open {
    pub fn pools(&self) -> impl Iterator<Item = &Arc<PoolLease>> {
        self.current.values().chain(self.older.iter().map(|(_, older)| older)).map(|one| &one.pool)
    }

    /// Closes the pools of files that are no more.
    pub fn close_without(&mut self, is_there: impl Fn(&SourceId) -> bool) {
        let gone: Vec<SourceId> = self.current.keys().filter(|source| !is_there(source)).cloned().collect();
        for source in gone {
            if let Some(current) = self.current.remove(&source) {
                tracing::debug!(%source, "the file is gone, and its workers leave");
                current.is_older.store(true, Ordering::Relaxed);
                current.pool.close();
                self.older.push((source, current));
            }
        }
        for (_, older) in self.older.iter().filter(|(source, _)| !is_there(source)) {
            older.pool.close();
        }
        self.older.retain(|(_, older)| !older.pool.is_empty());
    }

    /// Has new calls of a file go to another pool. The one before finishes what it has. Where it has proven itself, it is
    /// kept until the new one has a worker: should that not start, it is taken back.
    pub fn replace(&mut self, source: &SourceId, fresh: Current) {
        let new = Arc::clone(&fresh.pool);
        if let Some(old) = self.current.insert(source.clone(), fresh) {
            tracing::debug!(%source, "new calls go to another version's worker");
            old.is_older.store(true, Ordering::Relaxed);
            if !old.pool.has_started() {
                old.pool.close();
            }
            self.older.push((source.clone(), old));
        }
        self.older.retain(|(_, older)| !older.pool.is_empty());
        let kept = self.older.iter().filter(|(of, older)| of == source && !older.pool.is_told());
        let kept: Vec<_> = kept.map(|(_, older)| (Arc::clone(&older.pool), Arc::clone(&older.is_older))).collect();
        if !kept.is_empty() {
            tokio::spawn(async move {
                if new.started().await {
                    // One that was taken back meanwhile serves again.
                    for (pool, _) in kept.iter().filter(|(_, is_older)| is_older.load(Ordering::Relaxed)) {
                        pool.close();
                    }
                }
            });
        }
    }
}
