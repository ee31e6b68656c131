//! What is seen of all calls of a process: running and recent ones, their events, and metrics per tool.
//!
//! The parts of a call report here from where things happen. Nothing here keeps or holds up a call: what subscribers do not
//! read in time is dropped, and what is kept of ended calls is bounded.

#[cfg(feature = "bench")]
pub mod bench;
mod details;
mod event;
mod hub;
mod input;
mod metrics;
mod prometheus;
mod record;
mod span;
#[cfg(test)]
mod call_tests;
#[cfg(test)]
mod tests;
mod watched;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Value, json};

use self::event::{PlainEvent, Subject, as_json};
use self::hub::Hub;
use self::metrics::{MOST_TOOLS, Meters};
use self::record::Recent;
use super::handle::{CallHandle, RunningCall};
use super::service::CallService;
use crate::config::kept_mode::ModeInForce;
use crate::config::mode::Mode;
use crate::executor::PoolStore;
use crate::journal::{CallRow, Journal};
use crate::outcome::{Cancelled, Code};
use crate::pool::WorkerObserver;
use crate::registry::Catalogue;
use crate::telemetry::unix_ms;

pub use self::details::CallDetails;
pub(super) use self::event::span_of;
pub use self::event::{CallError, EventFilter, EventKind};
pub use self::hub::Subscription;
pub(super) use self::input::without_secrets;
pub use self::metrics::{AllMetrics, ToolMetrics};
pub use self::record::{CallFilter, CallInfo, CallState};
pub(super) use self::watched::Watched;

/// What is seen of all calls of a process.
pub struct Watch {
    hub: Arc<Hub>,
    meters: Meters,
    /// Locked only to add, to look up or to copy.
    recent: Mutex<Recent>,
    /// What accepts calls. Locked only to add or to copy.
    services: Mutex<Vec<Weak<CallService>>>,
    pools: Arc<PoolStore>,
}

impl Watch {
    /// Of calls that use these pools.
    pub fn new(pools: Arc<PoolStore>) -> Arc<Self> {
        let watch = Arc::new(Self {
            hub: Arc::default(),
            meters: Meters::default(),
            recent: Mutex::default(),
            services: Mutex::default(),
            pools,
        });
        let observer: Weak<Self> = Arc::downgrade(&watch);
        watch.pools.broker.observe(observer);
        watch
    }

    /// From here on the calls of this service are seen.
    pub(super) fn add(&self, service: &Arc<CallService>) {
        let mut services = self.services.lock();
        services.retain(|service| service.strong_count() > 0);
        services.push(Arc::downgrade(service));
    }

    /// Passes on an event that belongs to no call.
    fn publish(&self, event: EventKind, session: Option<u64>, detail: impl FnOnce() -> Value) {
        if self.hub.wants(event) {
            let subject = Subject { kind: event, call: None, tool: None, tags: &[], session };
            self.hub.publish(&subject, || {
                let event = PlainEvent { event, time_ms: unix_ms(), session, detail: detail() };
                as_json(&event)
            });
        }
    }

    pub(super) fn session_begins(&self, session: u64) {
        self.publish(EventKind::SessionBegun, Some(session), || json!({}));
    }

    pub(super) fn session_ends(&self, session: u64) {
        self.publish(EventKind::SessionEnded, Some(session), || json!({}));
    }

    /// A session's tool files were added, changed or removed.
    pub(super) fn catalogue_changes(&self, session: Option<u64>, catalogue: &Catalogue) {
        self.publish(EventKind::CatalogueChanged, session, || {
            let broken = catalogue.files.iter().filter(|entry| entry.broken().is_some()).count();
            json!({"tools": catalogue.ready().count(), "broken": broken})
        });
    }

    /// Another mode is in force for a session, or for all.
    pub(super) fn mode_changes(&self, session: Option<u64>, before: Mode, now: &ModeInForce) {
        self.publish(
            EventKind::ModeChanged,
            session,
            || json!({"mode": now.mode, "before": before, "origin": now.origin, "reason": now.reason}),
        );
    }

    /// What accepts calls in this process.
    pub fn services(&self) -> Vec<Arc<CallService>> {
        self.services.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn running(&self, id: &str) -> Option<Arc<RunningCall>> {
        self.services().iter().find_map(|service| service.running_call(id))
    }

    /// Running calls and the last 1,000 ended ones, newest first.
    pub fn calls(&self, filter: &CallFilter) -> Vec<CallInfo> {
        let running: Vec<Arc<RunningCall>> = self.services().iter().flat_map(|one| one.running_calls()).collect();
        let mut calls: Vec<CallInfo> = {
            let wanted = |call: &&Arc<RunningCall>| call.is_wanted_by(filter);
            running.iter().filter(wanted).map(|call| call.watch_info()).collect()
        };
        calls.sort_by_key(|call| std::cmp::Reverse(call.started_ms));
        let ended: Vec<CallInfo> = self.recent.lock().list(filter).collect();
        // One may have ended meanwhile.
        let known: HashSet<&str> = ended.iter().map(|call| call.call_id.as_str()).collect();
        calls.retain(|call| !known.contains(call.call_id.as_str()));
        drop(known);
        calls.extend(ended);
        calls.truncate(filter.limit.unwrap_or(usize::MAX));
        calls
    }

    /// A running call, or one of the last 1,000.
    pub fn call(&self, id: &str) -> Option<CallInfo> {
        let running = self.running(id).map(|call| call.watch_info());
        self.recent.lock().get(id).or(running)
    }

    /// What is written down of a call, also of one that has just ended here.
    pub async fn kept(&self, journal: &Journal, id: &str) -> Option<CallRow> {
        let has_ended = self.recent.lock().get(id).is_some();
        if has_ended {
            journal.caught_up().await;
        }
        journal.call(id).await
    }

    /// A running call, to wait for it and to hear it. Its cancellation is [`Watch::cancel`].
    pub fn handle(&self, id: &str) -> Option<CallHandle> {
        self.running(id).map(|call| call.observe())
    }

    /// Cancels a running call, even if handles wait for it. Whether there is one.
    pub fn cancel(&self, id: &str, why: Cancelled) -> bool {
        self.running(id).map(|call| call.cancel(why)).is_some()
    }

    /// Events from now on.
    pub fn subscribe(&self, filter: EventFilter) -> Subscription {
        self.hub.subscribe(filter)
    }

    /// Of every tool that was called or could be, by name.
    pub async fn metrics(&self) -> Vec<ToolMetrics> {
        let mut metrics = self.meters.all();
        let services = self.services();
        for call in services.iter().flat_map(|service| service.running_calls()) {
            let Some(meter) = call.watched.meter() else { continue };
            let tool = metrics.entry(meter.name.to_string()).or_default();
            match call.watched.state() {
                CallState::Queued | CallState::WaitingApproval => tool.queued += 1,
                _ => tool.active += 1,
            }
        }
        let mut sources: HashMap<String, HashSet<String>> = HashMap::new();
        for service in &services {
            for tool in &service.registry.catalogue().tools {
                if metrics.len() < MOST_TOOLS || metrics.contains_key(&tool.name) {
                    metrics.entry(tool.name.clone()).or_default();
                    sources.entry(tool.name.clone()).or_default().insert(tool.entry.file.source().to_string());
                }
            }
        }
        let mut memory: BTreeMap<String, usize> = BTreeMap::new();
        for pool in self.pools.shared().await {
            let resident = pool.pool.workers.iter().filter_map(|worker| worker.rss);
            *memory.entry(pool.source).or_default() += resident.sum::<usize>();
        }
        let complete = |(name, metrics): (String, ToolMetrics)| {
            let of_its_files = sources.get(&name).into_iter().flatten().filter_map(|source| memory.get(source));
            let memory = of_its_files.copied().reduce(|all, one| all + one);
            ToolMetrics { tool: name, memory, ..metrics }
        };
        metrics.into_iter().map(complete).collect()
    }

    /// The metrics of all tools together, and of each.
    pub async fn all_metrics(&self) -> AllMetrics {
        AllMetrics::of(self.metrics().await)
    }

    /// The metrics in the text format of `OpenMetrics`, which Prometheus reads.
    pub async fn prometheus(&self) -> String {
        prometheus::text(self.metrics().await)
    }
}

impl WorkerObserver for Watch {
    fn starting(&self, file: &Path, message: &str) {
        self.publish(EventKind::WorkerStarting, None, || json!({"file": file, "message": message}));
    }

    fn started(&self, file: &Path, pid: u32) {
        self.publish(EventKind::WorkerStarted, None, || json!({"file": file, "pid": pid}));
    }

    fn failed(&self, file: &Path, code: Code) {
        self.publish(EventKind::WorkerFailed, None, || json!({"file": file, "code": code}));
    }

    fn exited(&self, file: &Path, pid: Option<u32>, how: &str, why: Option<&str>) {
        self.publish(EventKind::WorkerExited, None, || json!({"file": file, "pid": pid, "exit": how, "why": why}));
    }
}
