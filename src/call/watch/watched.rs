//! What is watched of one call, from its acceptance to its outcome. Called from where it happens; without a subscriber, each of
//! these costs a load.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::value::RawValue;

use super::Watch;
use super::event::{CallError, CallEvent, Detail, EventKind, Subject, Trace, as_json};
use super::input::{Input, without_secrets};
use super::metrics::Meter;
use super::record::{CallFilter, CallInfo, CallState, EndedCall, error_of};
use crate::call::handle::RunningCall;
use crate::outcome::{Code, Outcome, milliseconds};
use crate::protocol::ProgressNote;
use crate::registry::{Serving, Tool};
use crate::secrets::Redactor;
use crate::telemetry::{SpanExporter, unix_ms};

/// The longest text of one event of output.
const CHUNK: usize = 32 << 10;
/// The longest result that an event holds.
const MAX_RESULT: usize = 1 << 20;
/// The longest name that no tool has and that is kept.
pub(super) const MAX_NAME: usize = 200;

/// What is watched of one call.
pub(in crate::call) struct Watched {
    watch: Arc<Watch>,
    session: u64,
    began: Instant,
    tool: OnceLock<WatchedTool>,
    input: OnceLock<Input>,
    /// Whether its tool has got it, so that its secrets are known.
    is_started: AtomicBool,
    state: AtomicU8,
    /// Pieces of output so far.
    chunks: AtomicU64,
    /// What exports its span.
    pub spans: Option<Arc<SpanExporter>>,
}

struct WatchedTool {
    meter: Arc<Meter>,
    has_secrets: bool,
    /// Whether it is a part of hostler, whose faults name what was asked for.
    is_built_in: bool,
}

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const ASKING: u8 = 2;
const WAITING_APPROVAL: u8 = 3;

impl Watched {
    pub fn new(watch: &Arc<Watch>, session: u64, began: Instant, spans: Option<Arc<SpanExporter>>) -> Self {
        Self {
            watch: Arc::clone(watch),
            session,
            began,
            tool: OnceLock::new(),
            input: OnceLock::new(),
            is_started: AtomicBool::new(false),
            state: AtomicU8::new(QUEUED),
            chunks: AtomicU64::new(0),
            spans,
        }
    }

    /// The number of the session as reports show it.
    pub fn session(&self) -> u64 {
        self.session
    }

    pub fn resolved(&self, tool: &Tool) {
        let has_secrets = !tool.entry.settings.secrets.value.is_empty();
        self.known_as(&tool.name, has_secrets, tool.entry.serving() == Serving::Inside);
    }

    pub(super) fn known_as(&self, tool: &str, has_secrets: bool, is_built_in: bool) {
        let _ = self.tool.get_or_init(|| WatchedTool { meter: self.watch.meters.of(tool), has_secrets, is_built_in });
    }

    /// Whether its faults are the words of a tool that somebody else wrote.
    pub(super) fn has_own_words(&self) -> bool {
        self.tool.get().is_some_and(|tool| !tool.is_built_in)
    }

    /// Its arguments as its tool gets them.
    pub fn takes(&self, arguments: &RawValue) {
        let _ = self.input.get_or_init(|| Input::of(arguments.get()));
    }

    /// Whether its tool runs it or has run it.
    fn has_begun(&self) -> bool {
        !matches!(self.state.load(Ordering::Relaxed), QUEUED | WAITING_APPROVAL)
    }

    pub fn begins(&self) {
        self.state.store(RUNNING, Ordering::Relaxed);
    }

    pub fn asks(&self) {
        let _ = self.state.compare_exchange(RUNNING, ASKING, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn goes_on(&self) {
        let _ = self.state.compare_exchange(ASKING, RUNNING, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn meter(&self) -> Option<&Arc<Meter>> {
        self.tool.get().map(|tool| &tool.meter)
    }

    pub(super) fn state(&self) -> CallState {
        match self.state.load(Ordering::Relaxed) {
            QUEUED => CallState::Queued,
            ASKING => CallState::Asking,
            WAITING_APPROVAL => CallState::WaitingApproval,
            _ => CallState::Running,
        }
    }

    /// Whether a rule or a person did not let it run, if it ended with this code.
    pub(in crate::call) fn is_denied(&self, code: Code) -> bool {
        code.is_denial() && !self.is_started.load(Ordering::Relaxed)
    }

    /// Whether everything that must not be shown of it is known.
    pub(in crate::call) fn knows_secrets(&self) -> bool {
        self.is_started.load(Ordering::Relaxed) || self.tool.get().is_none_or(|tool| !tool.has_secrets)
    }

    /// The beginning of its arguments, if they may be shown.
    pub fn input(&self, secrets: Option<&Redactor>) -> Option<String> {
        self.input.get().filter(|_| self.knows_secrets()).map(|input| input.text(secrets))
    }
}

/// What subscribers hear of it.
impl RunningCall {
    /// Its executor takes it: everything that must not be shown of it is known.
    pub fn watch_start(&self) {
        let watched = &self.watched;
        if !watched.is_started.swap(true, Ordering::Relaxed) && watched.watch.hub.wants(EventKind::ToolCallStarted) {
            self.publish(EventKind::ToolCallStarted, self.tool_name(), || {
                let arguments = watched.input.get().and_then(|input| input.json(self.secrets().as_deref()));
                Detail { arguments, ..Detail::default() }
            });
        }
    }

    pub fn watch_output(&self, stream: &str, text: &str) {
        let chunk = self.watched.chunks.fetch_add(1, Ordering::Relaxed);
        if !self.watched.watch.hub.wants(EventKind::ToolOutput) {
            return;
        }
        let mut rest = text;
        let mut chunk = chunk;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
            let (stream, text) = (Some(stream), Some(part));
            self.publish(EventKind::ToolOutput, self.tool_name(), || Detail {
                stream,
                text,
                chunk: Some(chunk),
                ..Detail::default()
            });
            rest = after;
            if !rest.is_empty() {
                chunk = self.watched.chunks.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A person is asked to approve it, or has answered.
    pub fn watch_approval(&self, kind: EventKind, message: &str) {
        let [from, to] = match kind {
            EventKind::ApprovalRequested => [QUEUED, WAITING_APPROVAL],
            _ => [WAITING_APPROVAL, QUEUED],
        };
        let _ = self.watched.state.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if self.watched.watch.hub.wants(kind) {
            self.publish(kind, self.tool_name(), || Detail { message: Some(message), ..Detail::default() });
        }
    }

    pub fn watch_progress(&self, note: &ProgressNote) {
        if self.watched.watch.hub.wants(EventKind::ToolProgress) {
            let (progress, total, message) = (Some(note.progress), note.total, note.message.as_deref());
            self.publish(EventKind::ToolProgress, self.tool_name(), || Detail {
                progress,
                total,
                message,
                ..Detail::default()
            });
        }
    }

    /// Counts it, keeps it among the recent ones, and passes its end on.
    pub fn watch_end(&self, outcome: &Outcome) {
        let (watched, watch) = (&self.watched, &self.watched.watch);
        let meter = watched.meter().unwrap_or(&watch.meters.unknown);
        let now_ms = unix_ms();
        meter.record(outcome, watched.has_begun(), now_ms);
        let error = outcome.ended.as_ref().err().map(|fault| {
            let is_safe = watched.knows_secrets();
            error_of(fault.code, if is_safe { &fault.message } else { "refused before its secrets were looked up" })
        });
        let requested = &outcome.tool[..outcome.tool.floor_char_boundary(MAX_NAME)];
        let name = watched.meter().map_or_else(|| Arc::from(requested), |meter| Arc::clone(&meter.name));
        self.publish_end(&name, outcome, error.as_ref());
        self.export(&name, outcome, error.as_ref());
        let ended = EndedCall::of(self, name, outcome, error, now_ms);
        watch.recent.lock().add(ended);
    }

    fn publish_end(&self, name: &str, outcome: &Outcome, error: Option<&CallError>) {
        let hub = &self.watched.watch.hub;
        let kind = match error {
            None => EventKind::ToolCallCompleted,
            Some(error) if self.watched.is_denied(error.code) => EventKind::ToolCallBlocked,
            Some(_) => EventKind::ToolCallFailed,
        };
        if hub.wants(kind) {
            let fault = outcome.ended.as_ref().err().filter(|_| self.watched.knows_secrets());
            self.publish(kind, name, || Detail {
                success: Some(error.is_none()),
                latency_ms: Some(milliseconds(outcome.latency)),
                error: error.cloned(),
                traceback: fault.and_then(|fault| fault.details.traceback.clone()),
                ..Detail::default()
            });
        }
        if let Ok(result) = &outcome.ended
            && hub.wants(EventKind::ToolResult)
        {
            self.publish(EventKind::ToolResult, name, || self.result(result));
        }
    }

    fn result(&self, result: &RawValue) -> Detail<'static> {
        if result.get().len() > MAX_RESULT {
            return Detail { omitted_bytes: Some(result.get().len()), ..Detail::default() };
        }
        Detail { result: without_secrets(result, self.secrets().as_deref()), ..Detail::default() }
    }

    pub(in crate::call) fn tool_name(&self) -> &str {
        self.watched.meter().map_or("", |meter| &meter.name)
    }

    fn publish<'d>(&self, event: EventKind, tool: &str, detail: impl FnOnce() -> Detail<'d>) {
        let (call, caller, session) = (self.id.as_str(), &self.caller, self.watched.session);
        let subject =
            Subject { kind: event, call: Some(call), tool: Some(tool), tags: &caller.tags, session: Some(session) };
        self.watched.watch.hub.publish(&subject, || {
            let event = CallEvent {
                event,
                time_ms: unix_ms(),
                call_id: call,
                tool_name: tool,
                session,
                client: caller.client.as_deref(),
                tags: &caller.tags,
                trace: Trace::of(call, caller.trace.as_ref()),
                detail: detail(),
            };
            as_json(&event)
        });
    }

    /// Whether a list of calls wants it.
    pub fn is_wanted_by(&self, filter: &CallFilter) -> bool {
        !self.has_ended()
            && filter.matches(&self.id, self.tool_name(), &self.caller, self.watched.session, self.watched.state())
    }

    /// The call as reports show it.
    pub fn watch_info(&self) -> CallInfo {
        let duration = self.watched.began.elapsed();
        let elapsed = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        CallInfo {
            call_id: self.id.clone(),
            tool: self.tool_name().to_owned(),
            session: self.watched.session,
            client: self.caller.client.clone(),
            tags: self.caller.tags.clone(),
            trace: self.caller.trace.as_ref().map(|trace| trace.traceparent().to_owned()),
            state: self.watched.state(),
            started_ms: unix_ms().saturating_sub(elapsed),
            duration_ms: milliseconds(duration),
            error: None,
            arguments: None,
            background: self.is_background(),
            result: None,
            output: None,
            attempts: self.attempts.load(Ordering::Relaxed).into(),
            retry_at_ms: None,
            details: None,
        }
    }
}
