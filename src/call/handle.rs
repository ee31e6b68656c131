//! The handle of an accepted call: its listeners, its cancellation, and its outcome, which is recorded once.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};

use super::attachment::Attachment;
use super::client::ClientFeatures;
use super::heard::EventSender;
use super::host::AskContext;
use super::journaled::Journaled;
use super::request::{CallRequest, Resumed};
use super::watch::{Watched, span_of};
use crate::config::tool::Effects;
use crate::outcome::{Cancelled, Canceller, Fault, Outcome};
use crate::pool::{Caller, Cancellation, Listener};
use crate::protocol::{ProgressNote, TraceContext};
use crate::registry::Tool;
use crate::secrets::{Lease, LiveSecrets, Redactor};
use crate::worker::LogLine;

/// Events that a slow reader may leave unread before further ones are dropped.
const MAX_UNREAD_EVENTS: usize = 1024;

/// An accepted call. Dropping the handle detaches it from the call, which continues; [`CallHandle::cancel`] cancels
/// the call.
#[derive(Debug)]
pub struct CallHandle {
    call: Arc<RunningCall>,
    /// Whether this handle has cancelled.
    has_cancelled: AtomicBool,
}

/// The events of a call, without an interest in its outcome.
pub(crate) struct Hearing(Arc<RunningCall>);

impl Hearing {
    /// Adds a listener. If the call has ended, it receives the outcome at once.
    pub fn listen(&self, listener: &Arc<dyn Listener>) {
        self.0.listen(listener);
    }
}

/// An event of a call.
#[derive(Debug, Clone)]
pub enum CallEvent {
    /// A preparation before the tool runs: an environment is built, a worker starts.
    Note(String),
    /// Progress reported by the tool.
    Progress(ProgressNote),
    /// Output of the tool on `stdout` or `stderr`.
    Output {
        /// `stdout` or `stderr`.
        stream: String,
        /// The text, with the tool's secrets redacted.
        text: String,
    },
    /// A log line of the tool.
    Log(LogLine),
    /// The end of the call; the last event.
    Ended(Arc<Outcome>),
}

impl CallHandle {
    /// The call's id: random, unguessable, unique across runs.
    pub fn id(&self) -> &str {
        &self.call.id
    }

    /// The first caller.
    pub fn caller(&self) -> &Caller {
        &self.call.caller
    }

    /// The effect of repeating the call; `None` until its tool has been found.
    pub fn effects(&self) -> Option<Effects> {
        self.call.effects.get().copied()
    }

    /// Waits for the end of the call. Can be awaited repeatedly.
    pub async fn outcome(&self) -> Arc<Outcome> {
        self.call.outcome().await
    }

    /// Cancels the call, unless another handle to the same call still needs its outcome.
    pub fn cancel(&self, why: Cancelled) {
        if !self.has_cancelled.swap(true, Ordering::Relaxed) && self.call.interest.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.call.cancel(why);
        }
    }

    /// Whether the call goes on without its client.
    pub(crate) fn is_background(&self) -> bool {
        self.call.is_background()
    }

    /// Whether the call has its outcome.
    pub(crate) fn has_ended(&self) -> bool {
        self.call.has_ended()
    }

    /// Gives up this handle's interest in the call, which another handle keeps.
    pub(crate) fn release(&self) {
        if !self.has_cancelled.swap(true, Ordering::Relaxed) {
            self.call.interest.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Another handle, unless the call has ended or is being cancelled.
    pub(crate) fn join(&self) -> Option<CallHandle> {
        self.call.join()
    }

    /// Another handle, which has no part in whether the call goes on.
    pub(crate) fn observer(&self) -> CallHandle {
        self.call.observe()
    }

    /// Waits until the call will not be lost, whoever dies. Says why that cannot be.
    pub(crate) async fn remembered(&self) -> Result<(), String> {
        self.call.remembered().await
    }

    /// Lets the call go on without its client. When this returns, it will not be lost, and its listeners hear no more of it: its
    /// requests are answered otherwise. False if it has ended before. Says why it cannot be remembered.
    pub(crate) async fn detach(&self) -> Result<bool, String> {
        self.call.journal_detach().await
    }

    /// Removes all listeners.
    pub(crate) fn unheard(&self) {
        self.call.listeners.lock().clear();
    }

    /// Cancels the call, whoever else needs its outcome.
    pub(crate) fn end(&self, why: Cancelled) {
        self.call.cancel(why);
    }

    /// What its tool may ask.
    pub(crate) fn client(&self) -> Option<Arc<dyn ClientFeatures>> {
        self.call.client.clone()
    }

    /// Whether its tool may have begun it.
    pub(crate) fn was_sent(&self) -> bool {
        self.call.was_sent()
    }

    /// Adds listeners, wherever the handle goes.
    pub(crate) fn hearing(&self) -> Hearing {
        Hearing(Arc::clone(&self.call))
    }

    /// All further events, the outcome last. A reader that falls more than 1,024 events behind misses some.
    pub fn events(&self) -> mpsc::Receiver<CallEvent> {
        let (sender, events) = mpsc::channel(MAX_UNREAD_EVENTS);
        let sender: Arc<dyn Listener> = Arc::new(EventSender(sender));
        self.call.listen(&sender);
        events
    }
}

pub(super) struct RunningCall {
    pub id: String,
    pub caller: Arc<Caller>,
    /// Its own span, if it belongs to a trace.
    pub trace: Option<Arc<TraceContext>>,
    pub watched: Watched,
    /// What is written down of it; not before its tool is known.
    pub journaled: OnceLock<Journaled>,
    /// Whether it goes on without its client.
    pub(super) attachment: Attachment,
    /// Held while a client lets it go: a second one waits for what becomes of that.
    pub(super) detaching: AsyncMutex<()>,
    /// What its tool may ask.
    client: Option<Arc<dyn ClientFeatures>>,
    /// How often it was sent to its tool.
    pub attempts: AtomicU32,
    /// How often it was tried again.
    pub retries: AtomicU32,
    /// Whether it was tried before, or waited for room: the rules that it began with may be old.
    pub is_again: AtomicBool,
    /// Notified once that is so, or it was decided that nothing is.
    pub accepted: Notify,
    /// The MCP request that it answers.
    pub method: Option<&'static str>,
    /// Whether its span is the answering side of a request of another process.
    pub is_served: bool,
    /// Tool and arguments of a call that others may join.
    pub joinable: Option<(String, serde_json::Value)>,
    pub cancellation: Cancellation,
    effects: OnceLock<Effects>,
    /// What answers its requests; `None` before it runs and once it has ended. Locked only briefly.
    pub asks: Mutex<Option<AskContext>>,
    /// The secrets of its workspace.
    pub live: Arc<LiveSecrets>,
    /// Keeps its own secrets among these. Locked only to add.
    pub leases: Mutex<Vec<Arc<Lease>>>,
    /// Locked only to add or to copy.
    listeners: Mutex<Vec<Arc<dyn Listener>>>,
    /// Handles that have not cancelled.
    interest: AtomicUsize,
    outcome: OnceLock<Arc<Outcome>>,
    ended: Notify,
}

impl RunningCall {
    pub fn new(id: String, request: &CallRequest, watched: Watched, live: Arc<LiveSecrets>) -> Arc<Self> {
        let count = |of: fn(&Resumed) -> u64| {
            request.resumed.as_ref().map_or(0, |it| u32::try_from(of(it)).unwrap_or(u32::MAX))
        };
        let arguments = || serde_json::Value::Object(request.arguments.clone());
        Arc::new(Self {
            trace: own_span(&id, request, &watched),
            method: request.method,
            is_served: request.is_served,
            id,
            caller: Arc::clone(&request.caller),
            watched,
            journaled: OnceLock::new(),
            accepted: Notify::new(),
            attachment: Attachment::new(request.background),
            detaching: AsyncMutex::default(),
            client: request.client.clone(),
            attempts: AtomicU32::new(count(|resumed| resumed.attempts)),
            retries: AtomicU32::new(count(|resumed| resumed.retries)),
            is_again: AtomicBool::new(count(|resumed| resumed.retries) > 0),
            joinable: request.key.is_some().then(|| (request.tool.clone(), arguments())),
            cancellation: Cancellation::default(),
            effects: OnceLock::new(),
            asks: Mutex::new(None),
            live,
            leases: Mutex::default(),
            listeners: Mutex::new(vec![Arc::clone(&request.listener)]),
            interest: AtomicUsize::new(0),
            outcome: OnceLock::new(),
            ended: Notify::new(),
        })
    }

    /// Whether it goes on without its client.
    pub fn is_background(&self) -> bool {
        self.attachment.is_detached()
    }

    /// Whether it has neither ended nor been cancelled.
    pub fn is_wanted(&self) -> bool {
        self.cancellation.why().is_none() && !self.has_ended()
    }

    /// Another handle, unless the call has ended or is being cancelled.
    pub fn join(self: &Arc<Self>) -> Option<CallHandle> {
        let joined = self.interest.fetch_update(Ordering::AcqRel, Ordering::Acquire, |handles| {
            (handles > 0 && self.is_wanted()).then_some(handles + 1)
        });
        joined.ok().map(|_| CallHandle { call: Arc::clone(self), has_cancelled: AtomicBool::new(false) })
    }

    /// Another handle, with its own interest in the outcome.
    pub fn handle(self: &Arc<Self>) -> CallHandle {
        self.interest.fetch_add(1, Ordering::AcqRel);
        CallHandle { call: Arc::clone(self), has_cancelled: AtomicBool::new(false) }
    }

    /// A handle without an interest in the outcome: others can cancel the call.
    pub fn observe(self: &Arc<Self>) -> CallHandle {
        CallHandle { call: Arc::clone(self), has_cancelled: AtomicBool::new(true) }
    }

    /// A number that differs between calls.
    pub fn seed(&self) -> u64 {
        u64::from_str_radix(self.id.get(..16).unwrap_or_default(), 16).unwrap_or_default()
    }

    pub fn resolved(&self, tool: &Tool) {
        let _ = self.effects.set(tool.settings.effects.value);
        self.watched.resolved(tool);
    }

    /// Cancels the call regardless of other handles.
    pub fn cancel(&self, why: Cancelled) {
        self.journal_cancel(&why);
        self.cancellation.cancel(why);
    }

    pub fn listen(&self, listener: &Arc<dyn Listener>) {
        let outcome = {
            let mut listeners = self.listeners.lock();
            listeners.push(Arc::clone(listener));
            self.outcome.get().cloned()
        };
        if let Some(outcome) = outcome {
            listener.ended(&outcome);
        }
    }

    /// What finds the secrets of its workspace.
    pub fn secrets(&self) -> Option<Arc<Redactor>> {
        self.live.redactor()
    }

    /// Removes secrets from a fault. What is added to faults after the tool ended may name them.
    pub fn redact(&self, fault: &mut Fault) {
        if let Some(secrets) = self.secrets() {
            secrets.fault(fault);
        }
    }

    /// Whether everything that hears of its outcome writes behind the journal.
    pub fn answers_behind_journal(&self) -> bool {
        self.listeners.lock().iter().all(|listener| listener.is_behind_journal())
    }

    /// Records the outcome and passes it to every listener. A call ends once: later outcomes are ignored.
    pub fn end(&self, outcome: Outcome) {
        let outcome = Arc::new(outcome);
        let listeners = {
            // Listeners added from here on find the outcome.
            let mut listeners = self.listeners.lock();
            if self.outcome.set(Arc::clone(&outcome)).is_err() {
                return;
            }
            std::mem::take(&mut *listeners)
        };
        *self.asks.lock() = None;
        self.accepted.notify_waiters();
        for listener in listeners {
            listener.ended(&outcome);
        }
        self.ended.notify_waiters();
    }

    pub fn has_ended(&self) -> bool {
        self.outcome.get().is_some()
    }

    async fn outcome(&self) -> Arc<Outcome> {
        loop {
            let ended = self.ended.notified();
            if let Some(outcome) = self.outcome.get() {
                return Arc::clone(outcome);
            }
            ended.await;
        }
    }

    pub fn each(&self, tell: impl Fn(&dyn Listener)) {
        let listeners = self.listeners.lock().clone();
        for listener in listeners {
            tell(&*listener);
        }
    }
}

/// The span of a call: within its caller's, or of a trace of its own where spans are exported.
fn own_span(id: &str, request: &CallRequest, watched: &Watched) -> Option<Arc<TraceContext>> {
    let outer = request.caller.trace.as_ref();
    let root = || watched.spans.is_some().then(|| TraceContext::root(id, span_of(id)));
    outer.map(|outer| outer.child(span_of(id))).or_else(root).map(Arc::new)
}

impl std::fmt::Debug for RunningCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RunningCall")
            .field("id", &self.id)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// Cancels a call when its caller stops waiting.
pub(super) struct CancelOnDrop(pub CallHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if !self.0.call.has_ended() {
            self.0.cancel(Cancelled::by(Canceller::Caller));
        }
    }
}
