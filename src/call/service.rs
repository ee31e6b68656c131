//! The call pipeline, the same for every client interface and every kind of tool: resolve, validate, layers,
//! execute, check the result, record the outcome.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};

use super::audited::DecisionLog;
use super::background::BackgroundCalls;
use super::counted::Counted;
use super::finish::Finish;
use super::handle::{CallHandle, CancelOnDrop, RunningCall};
use super::heard::Redacting;
use super::host::AskContext;
use super::layer::{CallContext, CallCounts, CountLayer, Layer, Next, own_layers};
use super::loop_guard::LoopGuard;
use super::request::{CallIds, CallRequest};
use super::resolve::prepare;
use super::watch::{Watch, Watched};
use super::{hiding, result_rules, results, waits};
use crate::approvals::Approvals;
use crate::audit::Signing;
use crate::builtin::Builtins;
use crate::config::Config;
use crate::config::environment::state;
use crate::environment::Environments;
use crate::executor::{BuiltIns, Invocation, OneShots, Pools};
use crate::journal::Journal;
use crate::outcome::{Code, Fault, Metadata, Outcome};
use crate::policy::Calls;
use crate::pool::{Listener, SessionId, Settled};
use crate::rates::Rates;
use crate::registry::{Catalogue, Registry, Serving, Tool};
use crate::telemetry::{SpanExport, spawn};
use crate::threads::blocking_or_here;
use crate::worker::HostAccess;

/// What all workspaces of a process have together.
pub struct OfProcess {
    /// Sees their calls.
    pub watch: Arc<Watch>,
    /// Where their calls are written down.
    pub journal: Option<Arc<Journal>>,
    /// Their calls that wait for a person.
    pub approvals: Arc<Approvals>,
    /// Checkpoints of the audit log that are being made.
    pub signing: Signing,
}

/// Accepts and runs calls.
pub struct CallService {
    /// The catalogue of tools.
    pub registry: Arc<Registry>,
    /// The pools of workers.
    pub pools: Pools,
    one_shots: OneShots,
    built_ins: BuiltIns,
    layers: Vec<Arc<dyn Layer>>,
    counts: Arc<CountLayer>,
    /// How often tools were called.
    pub(super) rates: Arc<Rates>,
    /// The calls of the process that wait for a person.
    pub(super) approvals: Arc<Approvals>,
    /// Notices calls that are made again and again.
    pub(super) loops: LoopGuard,
    /// Files whose running calls wait for other files. Locked only briefly.
    pub(super) waits: Mutex<waits::WaitGraph>,
    /// Whether the minimum workers were started.
    is_warm: AtomicBool,
    ids: CallIds,
    /// Accepted calls without an outcome. Locked only briefly.
    pub(super) running: Mutex<HashMap<String, Arc<RunningCall>>>,
    /// Running calls that others may join. Locked only briefly.
    keyed: Mutex<HashMap<(SessionId, String), Weak<RunningCall>>>,
    /// Notified when a call has ended.
    pub(super) ended: Notify,
    /// Calls that have ended.
    counted: Arc<Counted>,
    /// Says that another configuration is in force.
    reconfigured: watch::Sender<()>,
    /// What exports the spans of calls that begin now. Locked only to copy or replace it.
    spans: RwLock<Option<SpanExport>>,
    /// Sees all calls of the process.
    pub(super) watch: Arc<Watch>,
    /// Where calls are written down.
    pub journal: Option<Arc<Journal>>,
    /// Starts calls that go on without their client.
    pub(super) background: OnceLock<Weak<dyn BackgroundCalls>>,
    /// The session that all calls are of, as reports number it.
    session: Option<u64>,
}

impl CallService {
    /// A service over these parts. `layers` run inside those of hostler itself.
    pub fn new(
        registry: Arc<Registry>,
        pools: Pools,
        one_shots: OneShots,
        built_ins: BuiltIns,
        layers: Vec<Arc<dyn Layer>>,
        OfProcess { watch, journal, approvals, signing }: OfProcess,
    ) -> Arc<Self> {
        let environment = &registry.config().environment;
        let rates = Arc::new(Rates::in_folder(state(environment).join("rates")));
        let (counts, own) = own_layers(&rates, DecisionLog::of(environment, signing));
        let service = Arc::new(Self {
            session: pools.session(),
            pools,
            one_shots,
            built_ins,
            layers: own.into_iter().chain(layers).collect(),
            counts,
            rates,
            approvals,
            loops: LoopGuard::default(),
            waits: Mutex::default(),
            is_warm: AtomicBool::new(false),
            ids: CallIds::default(),
            running: Mutex::default(),
            keyed: Mutex::default(),
            ended: Notify::new(),
            counted: Counted::of(&registry.config().own_mode_file()),
            reconfigured: watch::Sender::new(()),
            spans: RwLock::new(exporter(&registry.config())),
            watch,
            journal,
            background: OnceLock::new(),
            registry,
        });
        service.watch.add(&service);
        service
    }

    /// Sets what starts calls that go on without their client.
    pub fn go_on_by(&self, background: Weak<dyn BackgroundCalls>) {
        let _ = self.background.set(background);
    }

    /// A session as reports number it.
    pub(super) fn number_of(&self, session: SessionId) -> u64 {
        self.session.unwrap_or(session.0)
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.registry.config()
    }

    /// Puts another configuration in force, with these built-in tools and these environments. Calls that run keep theirs.
    pub fn reconfigure(&self, config: Config, tools: Builtins, environments: Environments) {
        let files = tools.files();
        *self.spans.write() = exporter(&config);
        let (before, now) = (self.config().mode.value, config.mode_in_force());
        self.registry.reconfigure(Arc::new(config), files, |install| {
            self.built_ins.replace(tools);
            self.pools.build_in(environments, install);
        });
        self.reconfigured.send_replace(());
        if before != now.mode {
            let reason = now.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            tracing::info!("the mode is {} ({}){reason}", now.mode.word().to_uppercase(), now.origin);
            self.watch.mode_changes(self.session, before, &now);
        }
    }

    /// Hears of other configurations.
    pub fn reconfigurations(&self) -> watch::Receiver<()> {
        self.reconfigured.subscribe()
    }

    /// How many calls have ended so far, and how.
    pub fn counted(&self) -> Calls {
        self.counted.so_far()
    }

    /// Exports no span from here on. Whether it did before.
    pub fn close_spans(&self) -> bool {
        self.spans.write().take().is_some()
    }

    /// Starts the minimum workers. Runs with a client's first real request: some clients start a server only to
    /// inspect it, and then start another.
    pub fn keep_ready(&self) {
        if !self.is_warm.swap(true, Ordering::Relaxed) {
            self.start_minimum(&self.registry.catalogue());
        }
    }

    /// Adapts to changed tool files: workers of removed files leave, new files may start their minimum.
    pub fn changed(&self, catalogue: &Catalogue) {
        self.watch.catalogue_changes(self.session, catalogue);
        self.pools.close_without(catalogue);
        self.pools.follow(catalogue);
        self.one_shots.keep_those_of(catalogue);
        self.built_ins.keep_those_of(catalogue);
        if self.is_warm.load(Ordering::Relaxed) {
            self.start_minimum(catalogue);
        }
    }

    /// Starts the minimum workers anew, where they were started.
    pub fn start_minimum_again(&self) {
        if self.is_warm.load(Ordering::Relaxed) {
            self.start_minimum(&self.registry.catalogue());
        }
    }

    fn start_minimum(&self, catalogue: &Catalogue) {
        let has_minimum = catalogue
            .files
            .iter()
            .filter(|entry| entry.serving().has_workers() && entry.settings.min_workers.value > 0);
        has_minimum.filter(|entry| entry.broken().is_none()).for_each(|entry| self.pools.keep_ready(entry));
    }

    /// An id for a call that must be known before it is accepted.
    pub fn new_id(&self) -> String {
        self.ids.next()
    }

    /// Accepts a call. Its outcome is recorded once, even if no listener is left.
    pub fn start(self: &Arc<Self>, request: CallRequest) -> CallHandle {
        self.start_with(request, |handle| handle)
    }

    /// The same, for a caller that must know the call before it runs, and may ask something.
    pub fn start_with<T>(self: &Arc<Self>, mut request: CallRequest, register: impl FnOnce(CallHandle) -> T) -> T {
        let mut refusal = None;
        if let Some(key) = &request.key {
            // Both names of a tool are the same request.
            if let Ok(tool) = self.find(request.role, &request.tool) {
                request.tool.clone_from(&tool.name);
            }
            match self.join(key, &request) {
                Some(Ok(handle)) => return register(handle),
                Some(Err(fault)) => refusal = Some(fault),
                None => {}
            }
        }
        let began = Instant::now();
        let spans = self.spans.read().as_ref().map(SpanExport::exporter);
        let watched = Watched::new(&self.watch, self.number_of(request.caller.session), began, spans);
        let id = request.resumed.as_ref().map_or_else(|| self.ids.next(), |resumed| resumed.id.clone());
        let running = RunningCall::new(id, &request, watched, Arc::clone(&self.pools.secrets.live));
        let handle = running.handle();
        self.running.lock().insert(running.id.clone(), Arc::clone(&running));
        if let Some(key) = request.key.as_ref().filter(|_| refusal.is_none()) {
            self.keyed.lock().insert((request.caller.session, key.clone()), Arc::downgrade(&running));
        }
        let mut finish = Finish { service: Arc::clone(self), running, refusal, tool: request.tool.clone(), began };
        let registered = register(handle);
        // Boxed: the future of a call is large, and spawning copies a task several times.
        spawn(async move { Box::pin(finish.run(request)).await });
        registered
    }

    /// Runs a call to its end. Dropping the future cancels the call.
    pub async fn call(self: &Arc<Self>, request: CallRequest) -> Arc<Outcome> {
        let handle = CancelOnDrop(self.start(request));
        handle.0.outcome().await
    }

    /// Joins the running call with the same key in the same session. Running another request under the key would run the work of
    /// one of them twice when it is repeated. A call that is being cancelled is not joined.
    fn join(&self, key: &str, request: &CallRequest) -> Option<Result<CallHandle, Fault>> {
        let found = self.keyed.lock().get(&(request.caller.session, key.to_owned()))?.upgrade()?;
        let is_same = found.joinable.as_ref().is_some_and(|(tool, arguments)| {
            *tool == request.tool && arguments.as_object() == Some(&request.arguments)
        });
        if !is_same && found.is_wanted() {
            let text = format!(
                "the idempotency key {key:?} belongs to a running call with another tool or other arguments; use another key, or \
                 wait for that call"
            );
            return Some(Err(Fault::new(Code::InvalidParams, text)));
        }
        let handle = found.join().filter(|_| is_same)?;
        found.listen(&request.listener);
        Some(Ok(handle))
    }

    /// Calls that have ended, by how they ended.
    pub fn counts(&self) -> CallCounts {
        self.counts.counts()
    }

    /// All attempts of a call: the current version of the tool, and its last good version if that one does not
    /// start.
    pub(super) async fn attempts(
        self: &Arc<Self>,
        tool: Arc<Tool>,
        arguments: Box<RawValue>,
        running: &Arc<RunningCall>,
        request: &Arc<CallRequest>,
    ) -> Settled {
        // Only a version that has never answered may fail to start because of its content.
        let spare = (!Registry::is_known_good(&tool.entry)).then(|| arguments.clone());
        let context = |tool: &Arc<Tool>, version| CallContext {
            tool: Arc::clone(tool),
            version,
            running: Arc::clone(running),
            request: Arc::clone(request),
        };
        let settled = self.through_layers(&context(&tool, 1), arguments).await;
        match (spare, &settled.ended) {
            (Some(arguments), Err(fault)) if did_not_start(&settled, fault) => {
                match self.fall_back(&tool, fault.message.clone(), &arguments).await {
                    Some((other, arguments)) => self.through_layers(&context(&other, 2), arguments).await,
                    None => settled,
                }
            }
            _ => settled,
        }
    }

    async fn through_layers(self: &Arc<Self>, call: &CallContext, arguments: Box<RawValue>) -> Settled {
        let next = Next { layers: &self.layers, service: self, call, arguments };
        let mut settled = next.run().await;
        let has_begun = !settled.ended.as_ref().is_err_and(|fault| fault.code == Code::StartupFailed);
        if settled.metadata.worker.is_some() && has_begun {
            self.registry.answered(&call.tool.entry);
        }
        settled.metadata.stale = call.tool.entry.stale.as_ref().map(|stale| stale.reason.clone());
        settled.ended = settled.ended.and_then(|raw| results::check(&call.tool, raw));
        settled.ended = settled.ended.map(|raw| hiding::hide(self, call, raw));
        result_rules::keep(&call.tool, &mut settled);
        settled
    }

    /// The last good version of a tool whose worker did not start, and the arguments checked against it.
    async fn fall_back(
        self: &Arc<Self>,
        tool: &Arc<Tool>,
        reason: String,
        arguments: &RawValue,
    ) -> Option<(Arc<Tool>, Box<RawValue>)> {
        let (registry, failed, name) = (Arc::clone(&self.registry), Arc::clone(tool), tool.name.clone());
        // Reads files, which can block.
        let look = move || {
            registry.failed(&failed.entry, &reason);
            registry.find_as(failed.role_kind(), &name).ok()
        };
        let other = blocking_or_here(look).await?;
        if other.entry.version == tool.entry.version {
            return None;
        }
        let arguments = serde_json::from_str(arguments.get()).ok()?;
        let arguments = prepare(&other, arguments).ok()?;
        Some((other, arguments))
    }

    /// After the last layer: the executor for the tool's kind.
    pub(super) async fn execute(self: &Arc<Self>, call: &CallContext, kwargs: Box<RawValue>) -> Settled {
        let (tool, request, running) = (&call.tool, &call.request, &call.running);
        if running.needs_admission()
            && let Err(fault) = Box::pin(running.journal_admits()).await
        {
            return Settled { ended: Err(fault), metadata: Metadata::default() };
        }
        let timeout = request.timeout.unwrap_or(tool.settings.timeout.value);
        // Bounded by the time left to the outer call.
        let timeout = request.at_most.map_or(timeout, |most| timeout.min(most));
        running.watched.takes(&kwargs);
        *running.asks.lock() = Some(AskContext {
            service: Arc::downgrade(self),
            running: Arc::downgrade(running),
            tool: Arc::clone(tool),
            request: Arc::clone(request),
        });
        let has_pool = tool.entry.serving().has_workers();
        let listener: Arc<dyn Listener> =
            if has_pool { Arc::clone(running) as _ } else { Arc::new(Redacting(Arc::clone(running))) };
        let listener = result_rules::heard(tool, listener);
        let invocation = Invocation {
            call_id: running.id.clone(),
            caller: Arc::clone(&running.caller),
            trace: running.trace.clone(),
            kwargs,
            timeout,
            nested: !request.chain.is_empty(),
            background: request.background,
            listener,
            host: Some(Arc::clone(running) as Arc<dyn HostAccess>),
            cancellation: running.cancellation.clone(),
        };
        // Boxed: the future of a warm call would be five times as large.
        let mut settled = match tool.entry.serving() {
            Serving::EachCall => Box::pin(self.one_shots.call(tool, invocation)).await,
            Serving::Inside => Box::pin(self.built_ins.call(tool, invocation)).await,
            Serving::Shim | Serving::Itself | Serving::Program(_) => self.pools.call(tool, invocation).await,
        };
        if let Err(fault) = &mut settled.ended {
            running.redact(fault);
        }
        if let (false, Some(output), Some(secrets)) = (has_pool, &mut settled.metadata.output, running.secrets())
            && let Cow::Owned(clean) = secrets.text(output)
        {
            *output = clean;
        }
        settled
    }

    pub(super) fn finish(&self, running: &RunningCall, outcome: Outcome) {
        running.watch_end(&outcome);
        self.counted.add(running, &outcome);
        for layer in &self.layers {
            layer.recorded(&running.caller, &outcome);
        }
        running.end(outcome);
        self.running.lock().remove(&running.id);
        if running.joinable.is_some() {
            self.keyed.lock().retain(|_, call| call.upgrade().is_some_and(|call| !call.has_ended()));
        }
        self.ended.notify_waiters();
    }
}

fn exporter(config: &Config) -> Option<SpanExport> {
    config.telemetry.collector.as_ref().map(SpanExport::to)
}

/// Whether no worker started for the call, for a reason that may lie in this version.
fn did_not_start(settled: &Settled, fault: &Fault) -> bool {
    settled.metadata.worker.is_none() && matches!(fault.code, Code::StartupFailed | Code::EnvironmentFailed)
}
