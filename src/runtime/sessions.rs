//! The clients that one process serves, for reports and for ending one of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::call::{CallCounts, CallService};
use crate::mcp::ClientInfo;
use crate::process::SignalRelay;

/// A session, as `hostler status` shows it.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionInfo {
    /// Unique within the process.
    pub session: u64,
    /// The client's name and version, once it has said them.
    pub client: Option<String>,
    /// The attached process.
    pub pid: u32,
    /// Its working directory.
    pub directory: PathBuf,
    /// The configuration files in force, strongest first.
    pub configuration: Vec<PathBuf>,
    /// Tools that can be called.
    pub tools: usize,
    /// Tool files that cannot be served.
    pub broken: usize,
    /// Seconds since it was attached.
    pub up_s: u64,
    /// Its calls without an outcome.
    pub running: usize,
    /// Its calls with one.
    pub calls: CallCounts,
}

/// A client that is being served.
pub struct OpenSession {
    /// The attached process.
    pub pid: u32,
    /// What serves it.
    pub service: Arc<CallService>,
    /// What it says of itself.
    pub view: Box<dyn Fn() -> Option<ClientInfo> + Send>,
    /// Ends it.
    pub relay: SignalRelay,
    /// When it was attached.
    pub since: Instant,
}

impl OpenSession {
    fn info(&self, session: u64) -> SessionInfo {
        let (catalogue, config) = (self.service.registry.catalogue(), self.service.config());
        let client = (self.view)();
        SessionInfo {
            session,
            running: client.as_ref().map_or(0, |client| client.running),
            client: client.and_then(|client| client.client),
            pid: self.pid,
            directory: config.directory.clone(),
            configuration: config.files.clone(),
            tools: catalogue.ready().count(),
            broken: catalogue.files.iter().filter(|entry| entry.broken().is_some()).count(),
            up_s: self.since.elapsed().as_secs(),
            calls: self.service.counts(),
        }
    }
}

/// The sessions of a process.
pub struct Sessions {
    /// Locked only to look up, to add or to remove one.
    open: Mutex<BTreeMap<u64, OpenSession>>,
    /// How many there are, with those that were accepted and begin.
    count: watch::Sender<usize>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { open: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Sessions {
    /// Counts one that is being accepted, until the guard is dropped.
    pub fn accept(self: &Arc<Self>, number: u64) -> Present {
        self.count.send_modify(|count| *count += 1);
        Present { sessions: Arc::clone(self), number }
    }

    /// Counts something that goes on without a session, until the guard is dropped.
    pub fn hold(self: &Arc<Self>) -> Hold {
        self.count.send_modify(|count| *count += 1);
        Hold(Arc::clone(self))
    }

    /// What is known of each.
    pub fn list(&self) -> Vec<SessionInfo> {
        self.open.lock().iter().map(|(number, session)| session.info(*number)).collect()
    }

    /// Ends one as a signal to its process would. Whether it is there.
    pub fn end(&self, number: u64, why: &str) -> bool {
        self.open.lock().get(&number).is_some_and(|session| {
            session.relay.end(why);
            true
        })
    }

    /// Ends all of them.
    pub fn end_all(&self, why: &str) {
        self.open.lock().values().for_each(|session| session.relay.end(why));
    }

    /// Waits until some call of some session ends, or a session begins or ends.
    pub async fn next_end(&self) {
        let mut count = self.count.subscribe();
        let services: Vec<Arc<CallService>> =
            self.open.lock().values().map(|session| Arc::clone(&session.service)).collect();
        let mut ends = tokio::task::JoinSet::new();
        for service in services {
            ends.spawn(service.next_end());
        }
        tokio::select! {
            _ = count.changed() => {}
            Some(_) = ends.join_next() => {}
        }
    }

    /// How many there are, now and whenever that changes.
    pub fn counted(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }
}

/// Something for which the process stays.
pub struct Hold(Arc<Sessions>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

/// The presence of a session.
pub struct Present {
    sessions: Arc<Sessions>,
    number: u64,
}

impl Present {
    /// It begins: from here on it is listed and can be ended.
    pub fn begin(&self, session: OpenSession) {
        self.sessions.open.lock().insert(self.number, session);
        // Who waits for the calls of all sessions waits for its calls, too.
        self.sessions.count.send_modify(|_| {});
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.sessions.open.lock().remove(&self.number);
        self.sessions.count.send_modify(|count| *count -= 1);
    }
}
