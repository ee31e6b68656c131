//! What exists once per process, and the workspaces in it.
//!
//! A [`Runtime`] holds the pools of workers and what they share. A [`Workspace`] is one effective configuration with its
//! catalogue. A runtime has any number of workspaces; their sessions share a worker only if both would start an
//! identical one (`executor::PoolKey`).

mod automatic;
mod background;
mod recovery;
mod reload;
mod sessions;
mod workspace;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

pub use background::Background;
pub use sessions::{OpenSession, Present, SessionInfo, Sessions};
pub use workspace::Workspace;

use crate::approvals::{Approvals, Remembered};
use crate::audit::Signing;
use crate::call::Watch;
use crate::config::Config;
use crate::executor::{PoolStore, caps};
use crate::journal::Journal;
use crate::pool::BrokerHandle;
use crate::process::{Barrier, private_folders_removed};

/// How long background calls have to end with hostler.
const LAST_CALLS: Duration = Duration::from_millis(300);
/// How long the end waits for the store. What it does not take then, another process brings there.
const LAST_RECORDS: Duration = Duration::from_millis(400);

/// The workers of a process, and the limits on all of them together.
pub struct Runtime {
    pub(crate) pools: Arc<PoolStore>,
    pub(crate) sessions: Arc<Sessions>,
    /// Sees the calls of all workspaces.
    pub(crate) watch: Arc<Watch>,
    /// Where the calls of all workspaces are written down.
    pub(crate) journal: Option<Arc<Journal>>,
    /// The calls of all workspaces that wait for a person.
    pub(crate) approvals: Arc<Approvals>,
    /// Calls that go on without their client.
    pub(crate) background: Background,
    /// Checkpoints of the audit log that are being made.
    signing: Signing,
    /// The last number that was given, if every workspace belongs to one session.
    last_session: Option<AtomicU64>,
    /// The configuration whose limits are in force for all workspaces. Locked only to copy or replace the pointer.
    config: Mutex<Arc<Config>>,
}

impl Runtime {
    /// A runtime with the `[limits]` of this configuration; those of its workspaces are ignored.
    pub fn new(config: &Config) -> Arc<Self> {
        Self::with(config, None, None)
    }

    /// The same, whose calls are written down.
    pub(crate) fn journaled(config: &Config, journal: Option<Arc<Journal>>) -> Arc<Self> {
        Self::with(config, None, journal)
    }

    /// A runtime for clients of one person: each workspace belongs to one session, whose secrets no other one's worker gets, and
    /// workers outlive the sessions that started them.
    pub(crate) fn shared(config: &Config, journal: Option<Arc<Journal>>) -> Arc<Self> {
        Self::with(config, Some(AtomicU64::default()), journal)
    }

    fn with(config: &Config, last_session: Option<AtomicU64>, journal: Option<Arc<Journal>>) -> Arc<Self> {
        let broker = Arc::new(BrokerHandle::new(caps(config)));
        if let Some(journal) = &journal {
            broker.write_behind(Arc::clone(journal) as Arc<dyn Barrier>);
        }
        let pools = PoolStore::new(broker, last_session.is_some());
        let config = Mutex::new(Arc::new(config.clone()));
        let watch = Watch::new(Arc::clone(&pools));
        let approvals = Approvals::new(Remembered::of(&config.lock().environment));
        Arc::new_cyclic(|own| {
            let background = Background::of(Weak::clone(own));
            let signing = Signing::default();
            let sessions = Arc::default();
            Self { pools, sessions, watch, journal, approvals, background, signing, last_session, config }
        })
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
        private_folders_removed(limit).await;
    }

    /// Brings to the store what was written down of calls. Nothing may call a tool any more.
    pub(crate) async fn end_journal(&self) {
        if let Some(journal) = &self.journal {
            self.background.end(LAST_CALLS).await;
            journal.end(LAST_RECORDS).await;
        }
        // Calls that end now are decided about as well.
        self.signing.end(LAST_RECORDS).await;
    }

    /// The number of the session that a new workspace belongs to.
    pub(crate) fn next_session(&self) -> Option<u64> {
        self.last_session.as_ref().map(|last| last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
