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

pub use sessions::{OpenSession, SessionInfo, Sessions};
pub use workspace::Workspace;

use crate::config::Config;
use crate::executor::{PoolStore, caps};
use crate::pool::BrokerHandle;

/// The workers of a process, and the limits on all of them together.
pub struct Runtime {
    pub(crate) pools: Arc<PoolStore>,
    pub(crate) sessions: Arc<Sessions>,
    /// The last number that was given, if every workspace belongs to one session.
    last_session: Option<AtomicU64>,
    /// The person's configuration, whose limits are in force for all sessions. Locked only to copy or replace the pointer.
    person: Mutex<Option<Arc<Config>>>,
}

impl Runtime {
    /// A runtime with the `[limits]` of this configuration; those of its workspaces are ignored.
    pub fn new(config: &Config) -> Arc<Self> {
        Self::with(config, None)
    }

    /// A runtime for clients of one person: each workspace belongs to one session, whose secrets no other one's worker gets, and
    /// workers outlive the sessions that started them.
    pub(crate) fn shared(config: &Config) -> Arc<Self> {
        let runtime = Self::with(config, Some(AtomicU64::default()));
        *runtime.person.lock() = Some(Arc::new(config.clone()));
        runtime
    }

    fn with(config: &Config, last_session: Option<AtomicU64>) -> Arc<Self> {
        let broker = Arc::new(BrokerHandle::new(caps(config)));
        let pools = PoolStore::new(broker, last_session.is_some());
        Arc::new(Self { pools, sessions: Arc::default(), last_session, person: Mutex::default() })
    }

    /// A configuration file changed. The limits are those of a workspace, or of the person if it has sessions of several.
    fn limit(&self, changed: &Config) {
        if self.last_session.is_none() {
            return self.pools.broker.limit(caps(changed));
        }
        self.limit_by_person();
    }

    /// Puts the person's present limits in force, if they are those of all sessions. While there is none, nothing watches them.
    pub(crate) fn limit_by_person(&self) {
        let person = self.person.lock().clone();
        let Some(person) = person else { return };
        // Each session warns of what is wrong with it.
        let Ok(fresh) = person.load_person_again() else { return };
        self.pools.broker.limit(caps(&fresh));
        *self.person.lock() = Some(Arc::new(fresh));
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
