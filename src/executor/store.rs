//! The pools of a process, keyed by identity: callers that would start the same workers share a pool.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::identity::{Parts, PoolKey};
use crate::config::Config;
use crate::discovery::SourceId;
use crate::pool::{BrokerHandle, Pool, PoolStatus, Rules, SessionId};
use crate::registry::FileEntry;

/// Every pool of a process.
pub struct PoolStore {
    /// The shared resources: worker permits, run permits, memory.
    pub broker: Arc<BrokerHandle>,
    /// Locked only to look up or to add a pool.
    pools: Mutex<HashMap<PoolKey, Weak<SharedPool>>>,
    /// Whether workers outlive their last user, until they are idle for their time.
    outlives_users: bool,
}

/// A pool and its users.
struct SharedPool {
    pool: Pool,
    parts: Parts,
    /// How long it stays without users.
    stays: Option<Duration>,
    /// Locked only to add, to remove or to copy.
    users: Mutex<Users>,
    /// The type descriptions of a worker, for users added later.
    described: OnceLock<Box<RawValue>>,
}

#[derive(Default)]
struct Users {
    last: u64,
    present: BTreeMap<u64, User>,
    /// Closes the pool unless another user comes.
    closing: Option<AbortHandle>,
}

/// A workspace that uses a pool.
pub(super) struct User {
    /// The session that it belongs to, if each belongs to one.
    pub session: Option<u64>,
    /// Receives type descriptions.
    pub describe: Describe,
}

/// Receives a worker's type descriptions as JSON text.
pub(super) type Describe = Arc<dyn Fn(&RawValue) + Send + Sync>;

impl Users {
    fn add(&mut self, user: User) -> u64 {
        if let Some(closing) = self.closing.take() {
            closing.abort();
        }
        self.last += 1;
        self.present.insert(self.last, user);
        self.last
    }
}

impl PoolStore {
    /// An empty store.
    pub fn new(broker: Arc<BrokerHandle>, outlives_users: bool) -> Arc<Self> {
        Arc::new(Self { broker, pools: Mutex::default(), outlives_users })
    }

    /// The pool of a key, created if needed. `idle` is how long its workers stay without calls, if they do not stay forever;
    /// `start` receives the callback for type descriptions.
    pub(super) fn lease(
        &self,
        key: PoolKey,
        parts: Parts,
        user: User,
        idle: Option<Duration>,
        start: impl FnOnce(Describe) -> Pool,
    ) -> PoolLease {
        let mut pools = self.pools.lock();
        pools.retain(|_, pool| pool.strong_count() > 0);
        if let Some(shared) = pools.get(&key).and_then(Weak::upgrade) {
            let mut users = shared.users.lock();
            if !shared.pool.is_closing() && !shared.pool.is_empty() {
                if let Some(types) = shared.described.get() {
                    (user.describe)(types);
                }
                let user = users.add(user);
                drop(users);
                return PoolLease { shared, user, is_released: AtomicBool::new(false) };
            }
        }
        let mut users = Users::default();
        let user = users.add(user);
        let shared = Arc::new_cyclic(|shared: &Weak<SharedPool>| {
            let shared = shared.clone();
            let tell: Describe = Arc::new(move |types| {
                let Some(shared) = shared.upgrade() else { return };
                let _ = shared.described.set(types.to_owned());
                let users: Vec<Describe> =
                    shared.users.lock().present.values().map(|user| Arc::clone(&user.describe)).collect();
                for describe in users {
                    describe(types);
                }
            });
            // What is one session's own ends with it.
            let stays = self.outlives_users && !parts.is_of_one_session;
            // Also if its settings keep workers forever: without users, it would be until the end of the process.
            let stays = stays.then(|| idle.or(Rules::default().idle).unwrap_or_default());
            SharedPool { pool: start(tell), parts, stays, users: Mutex::new(users), described: OnceLock::new() }
        });
        pools.insert(key, Arc::downgrade(&shared));
        PoolLease { shared, user, is_released: AtomicBool::new(false) }
    }

    /// No call of a session follows. Pools that its workspace has released may have workers that served it.
    pub(super) fn session_ended(&self, session: SessionId) {
        self.pools.lock().values().filter_map(Weak::upgrade).for_each(|shared| shared.pool.session_ended(session));
    }

    /// Ends every pool, also those without users, and waits until their workers are gone.
    pub async fn end(&self) {
        let all: Vec<Arc<SharedPool>> = self.pools.lock().values().filter_map(Weak::upgrade).collect();
        for shared in &all {
            shared.pool.end();
        }
        for shared in all {
            shared.pool.emptied().await;
        }
    }

    /// Lets the pools of one source, or all, finish their calls and end; the next call starts another. Returns how many there were.
    pub fn drain(&self, source: Option<&str>) -> usize {
        let pools = self.pools.lock();
        let wanted = pools.iter().filter(|(key, _)| source.is_none_or(|source| key.source.to_string() == source));
        let open = wanted.filter_map(|(_, pool)| pool.upgrade()).filter(|shared| !shared.pool.is_closing());
        open.map(|shared| shared.pool.close()).count()
    }

    /// The status of every pool, with its users.
    pub async fn shared(&self) -> Vec<SharedStatus> {
        let known: Vec<(PoolKey, Arc<SharedPool>)> = {
            let pools = self.pools.lock();
            pools.iter().filter_map(|(key, pool)| Some((key.clone(), pool.upgrade()?))).collect()
        };
        let mut found = Vec::new();
        for (key, shared) in &known {
            let Some(pool) = shared.pool.status().await else { continue };
            let mut sessions: Vec<u64> = shared.users.lock().present.values().filter_map(|user| user.session).collect();
            sessions.sort_unstable();
            sessions.dedup();
            let others = known.iter().filter(|(other, _)| other.source == key.source && other != key);
            let mut apart: Vec<String> = others
                .flat_map(|(other, pool)| {
                    if other.version == key.version {
                        shared.parts.differing(&pool.parts)
                    } else {
                        vec!["version".to_owned()]
                    }
                })
                .collect();
            apart.sort();
            apart.dedup();
            found.push(SharedStatus { source: key.source.to_string(), sessions, apart, pool });
        }
        found.sort_by(|left, right| (&left.source, &left.sessions).cmp(&(&right.source, &right.sessions)));
        found
    }
}

/// A pool of a process.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SharedStatus {
    /// What it serves.
    pub source: String,
    /// The sessions that use it.
    pub sessions: Vec<u64>,
    /// In what it differs from other pools of the same source, which is why they are not one.
    pub apart: Vec<String>,
    /// Its status.
    #[serde(flatten)]
    pub pool: PoolStatus,
}

/// One workspace's use of a pool. The last user ends the pool.
pub(super) struct PoolLease {
    shared: Arc<SharedPool>,
    user: u64,
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

    /// Releases the pool at the end of a workspace: its workers may stay for the next one. Whether they do.
    pub fn leave(&self) -> bool {
        let shared = &self.shared;
        let Ok(runtime) = Handle::try_current() else { return false };
        let Some(stays) = shared.stays.filter(|_| !shared.pool.is_closing()) else { return false };
        if self.is_last() {
            let closing = runtime.spawn(close_when_unused(Arc::clone(shared), stays)).abort_handle();
            if let Some(before) = shared.users.lock().closing.replace(closing) {
                before.abort();
            }
        }
        true
    }

    /// Whether this lease is released.
    pub fn is_closing(&self) -> bool {
        self.is_released.load(Ordering::Acquire) || self.shared.pool.is_closing()
    }

    /// Waits until a closed or ended pool without users is empty.
    pub async fn emptied(&self) {
        if self.shared.pool.is_closing() && self.has_no_users() {
            self.shared.pool.emptied().await;
        }
    }

    /// Whether this user has nothing left to wait for.
    pub fn is_empty(&self) -> bool {
        self.shared.pool.is_empty() || self.is_released.load(Ordering::Acquire) && !self.has_no_users()
    }

    fn has_no_users(&self) -> bool {
        self.shared.users.lock().present.is_empty()
    }

    /// Whether this was, or now is, the last user. A second release of one lease still counts, so that the user who
    /// closed a pool can end it.
    fn is_last(&self) -> bool {
        self.is_released.store(true, Ordering::Release);
        let mut users = self.shared.users.lock();
        users.present.remove(&self.user);
        users.present.is_empty()
    }
}

/// Keeps a pool for later users until it was without any for this long.
async fn close_when_unused(shared: Arc<SharedPool>, stays: Duration) {
    tokio::time::sleep(stays).await;
    // A session may have begun in the meantime.
    let users = shared.users.lock();
    if users.present.is_empty() {
        shared.pool.close();
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
        if !self.is_released.load(Ordering::Acquire) && !self.leave() {
            self.close();
        }
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
    /// What its settings are from.
    pub configuration: Arc<Config>,
    pub pool: Arc<PoolLease>,
    pub config: Arc<RawValue>,
    /// Whether another version has replaced it. It can be restored.
    pub is_older: Arc<AtomicBool>,
}

impl Current {
    pub fn serves(&self, entry: &FileEntry) -> bool {
        // A pool that ended without being closed is a bug; drop it.
        let is_same = self.version == entry.version && Arc::ptr_eq(&self.configuration, &entry.config);
        is_same && !self.pool.is_closing() && !self.pool.is_empty()
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
        let (new, version) = (Arc::clone(&fresh.pool), fresh.version);
        if let Some(old) = self.current.insert(source.clone(), fresh) {
            tracing::debug!(%source, "new calls go to another version's workers");
            old.is_older.store(true, Ordering::Relaxed);
            // The same version with other settings will not do better.
            if !old.pool.has_started() || old.version == version {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Caps;
    use crate::worker::{EventSender, Launcher, StartNotes, Starting};

    struct NoWorkers;

    impl Launcher for NoWorkers {
        fn name(&self) -> &'static str {
            "none"
        }

        fn launch(&self, _: EventSender, _: StartNotes) -> Starting {
            unreachable!("no call is made")
        }
    }

    fn lease(store: &Arc<PoolStore>, idle: Option<Duration>) -> PoolLease {
        let key = PoolKey { source: SourceId::Python("a".into()), version: [0; 32], effective: [0; 32] };
        let user = User { session: Some(1), describe: Arc::new(|_| {}) };
        let broker = Arc::clone(&store.broker);
        store.lease(key, Parts::default(), user, idle, |_| {
            Pool::start("a".into(), &Rules::default(), Arc::new(NoWorkers), broker)
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_pool_without_users_ends_whatever_its_settings_say() {
        let caps = Caps { running: 1, workers: 1, waiting: 1, memory: None };
        let store = PoolStore::new(Arc::new(BrokerHandle::new(caps)), true);
        for (idle, stays) in [(Some(Duration::from_secs(3)), 3), (None, 600)] {
            let first = lease(&store, idle);
            let shared = Arc::clone(&first.shared);
            let tasks = Handle::current().metrics().num_alive_tasks();
            drop(first);
            for _ in 0..9 {
                tokio::time::sleep(Duration::from_secs(stays - 1)).await;
                // Each session that ends would leave a task otherwise.
                drop(lease(&store, idle));
                tokio::task::yield_now().await;
                assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks + 1);
            }
            tokio::time::sleep(Duration::from_secs(stays - 1)).await;
            assert!(!shared.pool.is_closing());
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert!(shared.pool.is_closing());
            shared.pool.emptied().await;
        }
    }
}
