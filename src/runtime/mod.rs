//! What exists once per process, and the workspaces in it.
//!
//! A [`Runtime`] holds the pools of workers and what they share. A [`Workspace`] is one effective configuration with its
//! catalogue. A runtime has any number of workspaces; their sessions share a worker only if both would start an
//! identical one (`executor::PoolKey`).

mod reload;
mod sessions;
mod workspace;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

pub use sessions::{OpenSession, Present, SessionInfo, Sessions};
pub use workspace::Workspace;

use crate::call::Watch;
use crate::config::Config;
use crate::executor::{PoolStore, caps};
use crate::pool::BrokerHandle;

/// The workers of a process, and the limits on all of them together.
pub struct Runtime {
    pub(crate) pools: Arc<PoolStore>,
    pub(crate) sessions: Arc<Sessions>,
    /// Sees the calls of all workspaces.
    pub(crate) watch: Arc<Watch>,
    /// The last number that was given, if every workspace belongs to one session.
    last_session: Option<AtomicU64>,
    /// The configuration whose limits are in force for all workspaces. Locked only to copy or replace the pointer.
    config: Mutex<Arc<Config>>,
}

impl Runtime {
    /// A runtime with the `[limits]` of this configuration; those of its workspaces are ignored.
    pub fn new(config: &Config) -> Arc<Self> {
        Self::with(config, None)
    }

    /// A runtime for clients of one person: each workspace belongs to one session, whose secrets no other one's worker gets, and
    /// workers outlive the sessions that started them.
    pub(crate) fn shared(config: &Config) -> Arc<Self> {
        Self::with(config, Some(AtomicU64::default()))
    }

    fn with(config: &Config, last_session: Option<AtomicU64>) -> Arc<Self> {
        let broker = Arc::new(BrokerHandle::new(caps(config)));
        let pools = PoolStore::new(broker, last_session.is_some());
        let config = Mutex::new(Arc::new(config.clone()));
        let watch = Watch::new(Arc::clone(&pools));
        Arc::new(Self { pools, sessions: Arc::default(), watch, last_session, config })
    }

    /// Puts the limits in force that its configuration has now: a file changed, or a session begins, before which nothing watched.
    pub(crate) fn limit_again(&self) {
        let config = Arc::clone(&self.config.lock());
        let is_of_person = self.last_session.is_some();
        let fresh = if is_of_person { config.load_person_again() } else { config.load_again() };
        // Each workspace warns of what is wrong with it.
        let Ok(fresh) = fresh else { return };
        self.pools.broker.limit(caps(&fresh));
        *self.config.lock() = Arc::new(fresh);
    }

    /// Waits until some call of some session ends.
    pub(crate) async fn next_end(self: Arc<Self>) {
        self.sessions.next_end().await;
    }

    /// Kills every worker, and waits for that at most this long.
    pub(crate) async fn end(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.pools.end()).await;
    }

    /// The number of the session that a new workspace belongs to.
    pub(crate) fn next_session(&self) -> Option<u64> {
        self.last_session.as_ref().map(|last| last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
