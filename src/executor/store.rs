//! The pools of a process, keyed by identity: callers that would start the same workers share a pool.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::discovery::SourceId;
use crate::pool::{BrokerHandle, Pool};
use crate::registry::FileEntry;

/// The identity that callers must have in common to share a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// The source of the tools.
    pub source: SourceId,
    /// The hash of its bytes and of the neighbours that it imports.
    pub version: [u8; 32],
    /// The hash of everything else that its workers are made of: environment variables, directory, secrets' identities,
    /// launcher, limits.
    pub effective: [u8; 32],
}

/// Hashes named parts; order and boundaries are part of the hash.
#[derive(Default)]
pub(super) struct Identity(Sha256);

impl Identity {
    pub fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        for part in [name.as_bytes(), value.as_ref()] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// Every pool of a process.
pub struct PoolStore {
    /// The shared resources: worker permits, run permits, memory.
    pub broker: Arc<BrokerHandle>,
    /// Locked only to look up or to add a pool.
    pools: Mutex<HashMap<PoolKey, Weak<SharedPool>>>,
}

/// A pool and its users.
struct SharedPool {
    pool: Pool,
    users: AtomicUsize,
    /// Receivers of type descriptions. Locked only to add or to copy.
    catalogues: Mutex<Vec<Describe>>,
    /// The type descriptions of a worker, for receivers added later.
    described: OnceLock<Box<RawValue>>,
}

/// Receives a worker's type descriptions as JSON text.
pub(super) type Describe = Arc<dyn Fn(&RawValue) + Send + Sync>;

impl PoolStore {
    /// An empty store.
    pub fn new(broker: Arc<BrokerHandle>) -> Arc<Self> {
        Arc::new(Self { broker, pools: Mutex::default() })
    }

    /// The pool of a key, created if needed. `start` receives the callback for type descriptions.
    pub(super) fn lease(&self, key: PoolKey, describe: Describe, start: impl FnOnce(Describe) -> Pool) -> PoolLease {
        let mut pools = self.pools.lock();
        pools.retain(|_, pool| pool.strong_count() > 0);
        let is_usable = |shared: &Arc<SharedPool>| !shared.pool.is_closing() && !shared.pool.is_empty();
        if let Some(shared) = pools.get(&key).and_then(Weak::upgrade).filter(is_usable) {
            shared.users.fetch_add(1, Ordering::AcqRel);
            if let Some(types) = shared.described.get() {
                describe(types);
            }
            shared.catalogues.lock().push(describe);
            return PoolLease { shared, is_released: AtomicBool::new(false) };
        }
        let shared = Arc::new_cyclic(|shared: &Weak<SharedPool>| {
            let shared = shared.clone();
            let tell: Describe = Arc::new(move |types| {
                let Some(shared) = shared.upgrade() else { return };
                let _ = shared.described.set(types.to_owned());
                for describe in shared.catalogues.lock().clone() {
                    describe(types);
                }
            });
            SharedPool {
                pool: start(tell),
                users: AtomicUsize::new(1),
                catalogues: Mutex::new(vec![describe]),
                described: OnceLock::new(),
            }
        });
        pools.insert(key, Arc::downgrade(&shared));
        PoolLease { shared, is_released: AtomicBool::new(false) }
    }
}

/// One workspace's use of a pool. The last user ends the pool.
pub(super) struct PoolLease {
    shared: Arc<SharedPool>,
    is_released: AtomicBool,
}

impl PoolLease {
    /// Releases the pool. After the last user, its calls are finished and its workers stop.
    pub fn close(&self) {
        if self.is_last() {
            self.shared.pool.close();
        }
    }

    /// Releases the pool. After the last user, its calls end with `SHUTTING_DOWN` and its workers are killed.
    pub fn end(&self) {
        if self.is_last() {
            self.shared.pool.end();
        }
    }

    /// Whether this lease is released.
    pub fn is_closing(&self) -> bool {
        self.is_released.load(Ordering::Acquire) || self.shared.pool.is_closing()
    }

    /// Waits until a pool without users is empty.
    pub async fn emptied(&self) {
        if self.shared.users.load(Ordering::Acquire) == 0 {
            self.shared.pool.emptied().await;
        }
    }

    /// Whether this user has nothing left to wait for.
    pub fn is_empty(&self) -> bool {
        self.shared.pool.is_empty()
            || self.is_released.load(Ordering::Acquire) && self.shared.users.load(Ordering::Acquire) > 0
    }

    /// Whether this was, or now is, the last user. A second release of one lease still counts, so that the user who
    /// closed a pool can end it.
    fn is_last(&self) -> bool {
        if self.is_released.swap(true, Ordering::AcqRel) {
            return self.shared.users.load(Ordering::Acquire) == 0;
        }
        self.shared.users.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Deref for PoolLease {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.shared.pool
    }
}

impl Drop for PoolLease {
    fn drop(&mut self) {
        self.close();
    }
}

#[derive(Default)]
pub(super) struct Open {
    pub current: HashMap<SourceId, Current>,
    /// Older versions: some hold calls, some may be called again if the newer one does not start.
    pub older: Vec<(SourceId, Current)>,
    pub ended: bool,
}

pub(super) struct Current {
    pub pack: String,
    pub version: [u8; 32],
    pub pool: Arc<PoolLease>,
    pub config: Arc<RawValue>,
    /// Whether another version has replaced it. It can be restored.
    pub is_older: Arc<AtomicBool>,
}

impl Current {
    pub fn serves(&self, entry: &FileEntry) -> bool {
        // A pool that ended without being closed is a bug; drop it.
        self.version == entry.version && !self.pool.is_closing() && !self.pool.is_empty()
    }
}

impl Open {
    pub fn pools(&self) -> impl Iterator<Item = &Arc<PoolLease>> {
        self.current.values().chain(self.older.iter().map(|(_, older)| older)).map(|one| &one.pool)
    }

    /// Closes the pools of deleted files.
    pub fn close_without(&mut self, is_there: impl Fn(&SourceId) -> bool) {
        let gone: Vec<SourceId> = self.current.keys().filter(|source| !is_there(source)).cloned().collect();
        for source in gone {
            if let Some(current) = self.current.remove(&source) {
                tracing::debug!(%source, "the file was deleted; its workers stop");
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

    /// Directs new calls of a file to another pool. The previous pool finishes its calls. If it has answered calls, it
    /// stays until the new pool has a worker, and is restored if the new one does not start.
    pub fn replace(&mut self, source: &SourceId, fresh: Current) {
        let new = Arc::clone(&fresh.pool);
        if let Some(old) = self.current.insert(source.clone(), fresh) {
            tracing::debug!(%source, "new calls go to another version's workers");
            old.is_older.store(true, Ordering::Relaxed);
            if !old.pool.has_started() {
                old.pool.close();
            }
            self.older.push((source.clone(), old));
        }
        self.older.retain(|(_, older)| !older.pool.is_empty());
        let kept = self.older.iter().filter(|(of, older)| of == source && !older.pool.is_closing());
        let kept: Vec<_> = kept.map(|(_, older)| (Arc::clone(&older.pool), Arc::clone(&older.is_older))).collect();
        if !kept.is_empty() {
            tokio::spawn(async move {
                if new.started().await {
                    // It was restored in the meantime.
                    for (pool, _) in kept.iter().filter(|(_, is_older)| is_older.load(Ordering::Relaxed)) {
                        pool.close();
                    }
                }
            });
        }
    }
}
