//! What is known of a call: while it runs, and after its end for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::details::CallDetails;
use super::event::CallError;
use crate::call::handle::RunningCall;
use crate::outcome::{Code, Outcome, milliseconds};
use crate::pool::Caller;
use crate::protocol::TraceContext;

/// Ended calls that are kept. One takes 300 bytes, with a fault, arguments and tags 5 KB at most.
const RECENT: usize = 1000;
/// The longest message of an error that is kept or sent.
const MAX_MESSAGE: usize = 1 << 10;
/// The most bytes of a caller's tags and names that are kept.
const MAX_CALLER: usize = 1 << 10;

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// It waits for its environment, a worker or its turn.
    Queued,
    /// It waits for a person's approval.
    #[serde(rename = "waiting_approval")]
    WaitingApproval,
    /// Its tool runs it.
    Running,
    /// It waits for an answer of its client.
    Asking,
    /// It has a result.
    Complete,
    /// It ended without a result.
    Error,
    /// It was cancelled.
    Cancelled,
    /// It was interrupted, or its retries are used up.
    Failed,
    /// The process that runs it shows no sign of life.
    Stale,
    /// A rule or a person did not let it run.
    Denied,
}

impl CallState {
    /// Those of calls that have not ended.
    pub const OPEN: [Self; 5] = [Self::Queued, Self::WaitingApproval, Self::Running, Self::Asking, Self::Stale];

    /// Whether the call has not ended.
    pub fn is_open(self) -> bool {
        Self::OPEN.contains(&self)
    }
}

/// A call as reports show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallInfo {
    /// Its id.
    pub call_id: String,
    /// The tool's full name, or the requested name if there is no such tool.
    pub tool: String,
    /// The number of its session.
    pub session: u64,
    /// The client's name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The caller's tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The caller's `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Its state.
    pub state: CallState,
    /// When it was accepted, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long it took, or has taken so far.
    pub duration_ms: f64,
    /// Why it has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// The beginning of a failed call's arguments, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Whether it goes on without its client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Its result, where it was kept; only of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
    /// The end of its output, where it was kept; only of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// How often it was sent to its tool.
    #[serde(default, skip_serializing_if = "is_at_most_one")]
    pub attempts: u64,
    /// When it is tried again, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<u64>,
    /// What else is written down of it; only of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<CallDetails>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_at_most_one(count: &u64) -> bool {
    *count <= 1
}

/// Which calls are listed: those that match every given member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallFilter {
    /// The beginning of its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The full name of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// One of the caller's tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The number of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// Their states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<CallState>>,
    /// The most calls to list, the newest: 1,000 if left out, and at most 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

impl CallFilter {
    pub(super) fn matches(&self, id: &str, tool: &str, caller: &Caller, session: u64, state: CallState) -> bool {
        self.call.as_ref().is_none_or(|begin| id.starts_with(begin))
            && self.tool.as_ref().is_none_or(|wanted| wanted == tool)
            && self.tag.as_ref().is_none_or(|tag| caller.tags.contains(tag))
            && self.session.is_none_or(|wanted| wanted == session)
            && self.states.as_ref().is_none_or(|states| states.contains(&state))
    }
}

/// An ended call, without its result.
pub(super) struct EndedCall {
    id: String,
    tool: Arc<str>,
    session: u64,
    caller: Arc<Caller>,
    error: Option<CallError>,
    arguments: Option<String>,
    started_ms: u64,
    duration: Duration,
    background: bool,
    attempts: u64,
    is_retried: bool,
    is_denied: bool,
}

impl EndedCall {
    pub fn of(call: &RunningCall, tool: Arc<str>, outcome: &Outcome, error: Option<CallError>, now_ms: u64) -> Self {
        let latency = u64::try_from(outcome.latency.as_millis()).unwrap_or(u64::MAX);
        let fault = outcome.ended.as_ref().err();
        Self {
            id: call.id.clone(),
            tool,
            session: call.watched.session(),
            caller: small(&call.caller),
            error,
            arguments: fault.and_then(|fault| fault.details.input.clone()),
            started_ms: now_ms.saturating_sub(latency),
            duration: outcome.latency,
            background: call.is_background(),
            attempts: outcome.metadata.attempt.into(),
            is_retried: call.retries.load(Ordering::Relaxed) > 0,
            is_denied: fault.is_some_and(|fault| call.watched.is_denied(fault.code)),
        }
    }

    fn state(&self) -> CallState {
        match &self.error {
            None => CallState::Complete,
            Some(error) if error.code == Code::Cancelled => CallState::Cancelled,
            Some(_) if self.is_denied => CallState::Denied,
            // As the journal has it: interrupted, or tried as often as it may be.
            Some(error) if self.is_retried || error.code == Code::ShuttingDown => CallState::Failed,
            Some(_) => CallState::Error,
        }
    }

    fn info(&self) -> CallInfo {
        let Caller { client, tags, trace, .. } = &*self.caller;
        CallInfo {
            call_id: self.id.clone(),
            tool: self.tool.to_string(),
            session: self.session,
            client: client.clone(),
            tags: tags.clone(),
            trace: trace.as_ref().map(|trace| trace.traceparent().to_owned()),
            state: self.state(),
            started_ms: self.started_ms,
            duration_ms: milliseconds(self.duration),
            error: self.error.clone(),
            arguments: self.arguments.clone(),
            background: self.background,
            result: None,
            output: None,
            attempts: self.attempts,
            retry_at_ms: None,
            details: None,
        }
    }
}

/// Ended calls, oldest first.
#[derive(Default)]
pub(super) struct Recent(VecDeque<EndedCall>);

impl Recent {
    pub fn add(&mut self, call: EndedCall) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back(call);
    }

    pub fn get(&self, id: &str) -> Option<CallInfo> {
        self.0.iter().rev().find(|call| call.id == id).map(EndedCall::info)
    }

    /// The newest first.
    pub fn list(&self, filter: &CallFilter) -> impl Iterator<Item = CallInfo> {
        let wanted = |call: &&EndedCall| filter.matches(&call.id, &call.tool, &call.caller, call.session, call.state());
        self.0.iter().rev().filter(wanted).map(EndedCall::info)
    }
}

/// A caller that may be kept: the caller itself, unless its client sent much.
fn small(caller: &Arc<Caller>) -> Arc<Caller> {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let tags: usize = caller.tags.iter().map(|tag| tag.len() + size_of::<String>()).sum();
    let state = caller.trace.as_ref().and_then(TraceContext::tracestate).map_or(0, str::len);
    if length(&caller.client) + state + tags <= MAX_CALLER {
        return Arc::clone(caller);
    }
    let cut = |text: &str| text[..text.floor_char_boundary(MAX_CALLER / 16)].to_owned();
    let tags = caller.tags.iter().take(8).map(|tag| cut(tag)).collect();
    let (client, trace) = (caller.client.as_deref().map(cut), caller.trace.as_ref().map(TraceContext::without_state));
    Arc::new(Caller { session: caller.session, is_of_many: caller.is_of_many, client, tags, trace })
}

/// A fault as it is kept and sent.
pub(super) fn error_of(code: Code, message: &str) -> CallError {
    let end = message.floor_char_boundary(MAX_MESSAGE);
    let message = if end < message.len() { format!("{}…", &message[..end]) } else { message.to_owned() };
    CallError { code, message }
}
