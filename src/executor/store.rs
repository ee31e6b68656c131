//! The pools of a process, shared by whatever would start the same workers: by identity, not by path.

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

/// What decides whether two callers may share a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// What offers the tools.
    pub source: SourceId,
    /// Its bytes, and those of the neighbours it imports.
    pub version: [u8; 32],
    /// Everything its workers are made of besides: environment variables, directory, secrets' identities, launcher, limits.
    pub effective: [u8; 32],
}

/// Hashes named parts, so that neither order nor borders can be mistaken.
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
    /// What they share: places for workers, admission to run, memory.
    pub broker: Arc<BrokerHandle>,
    /// Held only to look one up or to add it.
    pools: Mutex<HashMap<PoolKey, Weak<SharedPool>>>,
}

/// A pool, whoever uses it.
struct SharedPool {
    pool: Pool,
    users: AtomicUsize,
    /// Catalogues that learn what its workers told of their types. Held only to add or to copy.
    catalogues: Mutex<Vec<Describe>>,
    /// What a worker told of its types, for catalogues that come later.
    told: OnceLock<Box<RawValue>>,
}

/// Takes what a worker told of its types, as JSON text.
pub(super) type Describe = Arc<dyn Fn(&RawValue) + Send + Sync>;

impl PoolStore {
    /// No pools yet.
    pub fn new(broker: Arc<BrokerHandle>) -> Arc<Self> {
        Arc::new(Self { broker, pools: Mutex::default() })
    }

    /// The pool of a key: the one there is, or a new one. `start` gets where its workers tell of their types.
    pub(super) fn lease(&self, key: PoolKey, describe: Describe, start: impl FnOnce(Describe) -> Pool) -> PoolLease {
        let mut pools = self.pools.lock();
        pools.retain(|_, pool| pool.strong_count() > 0);
        let is_usable = |shared: &Arc<SharedPool>| !shared.pool.is_told() && !shared.pool.is_empty();
        if let Some(shared) = pools.get(&key).and_then(Weak::upgrade).filter(is_usable) {
            shared.users.fetch_add(1, Ordering::AcqRel);
            if let Some(told) = shared.told.get() {
                describe(told);
            }
            shared.catalogues.lock().push(describe);
            return PoolLease { shared, is_released: AtomicBool::new(false) };
        }
        let shared = Arc::new_cyclic(|shared: &Weak<SharedPool>| {
            let shared = shared.clone();
            let tell: Describe = Arc::new(move |told| {
                let Some(shared) = shared.upgrade() else { return };
                let _ = shared.told.set(told.to_owned());
                for describe in shared.catalogues.lock().clone() {
                    describe(told);
                }
            });
            SharedPool {
                pool: start(tell),
                users: AtomicUsize::new(1),
                catalogues: Mutex::new(vec![describe]),
                told: OnceLock::new(),
            }
        });
        pools.insert(key, Arc::downgrade(&shared));
        PoolLease { shared, is_released: AtomicBool::new(false) }
    }
}

/// The use of a pool by one workspace. The last one to let go ends it.
pub(super) struct PoolLease {
    shared: Arc<SharedPool>,
    is_released: AtomicBool,
}

impl PoolLease {
    /// Lets go of the pool. With the last user its calls are finished and its workers leave.
    pub fn close(&self) {
        if self.is_last() {
            self.shared.pool.close();
        }
    }

    /// Lets go of the pool. With the last user its calls end with `SHUTTING_DOWN` and its workers are killed.
    pub fn end(&self) {
        if self.is_last() {
            self.shared.pool.end();
        }
    }

    /// Whether this use of the pool is over.
    pub fn is_told(&self) -> bool {
        self.is_released.load(Ordering::Acquire) || self.shared.pool.is_told()
    }

    /// Waits until a pool that nobody uses any more is empty.
    pub async fn emptied(&self) {
        if self.shared.users.load(Ordering::Acquire) == 0 {
            self.shared.pool.emptied().await;
        }
    }

    /// Whether nothing of it is left for this user to wait for.
    pub fn is_empty(&self) -> bool {
        self.shared.pool.is_empty()
            || self.is_released.load(Ordering::Acquire) && self.shared.users.load(Ordering::Acquire) > 0
    }

    /// Whether this was, or is with this, the last user. A second word of one that let go still counts, so that who closed
    /// a pool can end it.
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
