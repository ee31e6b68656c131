//! The events that subscribers receive: their kinds, what a filter asks for, and their JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::outcome::Code;
use crate::protocol::TraceContext;

/// What an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A call was accepted, its arguments fit, and it goes to its tool.
    ToolCallStarted,
    /// A call ended with a result.
    ToolCallCompleted,
    /// A call ended without a result.
    ToolCallFailed,
    /// A call was not permitted and never reached its tool.
    ToolCallBlocked,
    /// A call waits for a person's approval.
    ApprovalRequested,
    /// A person has decided on it, or nobody has in time.
    ApprovalAnswered,
    /// The result of a call. Only for subscribers that name this kind.
    ToolResult,
    /// A tool printed something.
    ToolOutput,
    /// A tool reported progress.
    ToolProgress,
    /// A worker is being started: its environment is built, for example.
    WorkerStarting,
    /// A worker said hello.
    WorkerStarted,
    /// A worker did not start.
    WorkerFailed,
    /// A worker exited.
    WorkerExited,
    /// Tool files were added, changed or removed.
    CatalogueChanged,
    /// Another mode is in force.
    ModeChanged,
    /// A client came.
    SessionBegun,
    /// A client left.
    SessionEnded,
}

impl EventKind {
    pub(super) const COUNT: usize = Self::SessionEnded as usize + 1;

    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The kinds that a filter without kinds asks for. Results may be large.
    pub(super) const USUAL: u32 = ((1 << Self::COUNT) - 1) & !Self::ToolResult.bit();
}

/// What a subscriber wants: events that match every given member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventFilter {
    /// The id of a call.
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
    /// The kinds of events; all except `tool_result` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<EventKind>>,
}

impl EventFilter {
    pub(super) fn kinds(&self) -> u32 {
        self.kinds.as_ref().map_or(EventKind::USUAL, |kinds| kinds.iter().fold(0, |all, kind| all | kind.bit()))
    }
}

/// An event as JSON. A text would be read once more to become this.
pub(super) fn as_json(event: &impl Serialize) -> Option<Box<RawValue>> {
    to_raw_value(event).ok()
}

/// What filters look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub kind: EventKind,
    pub call: Option<&'a str>,
    pub tool: Option<&'a str>,
    pub tags: &'a [String],
    pub session: Option<u64>,
}

/// An event of a call as JSON.
#[derive(Serialize)]
pub(super) struct CallEvent<'a> {
    pub event: EventKind,
    pub time_ms: u64,
    pub call_id: &'a str,
    pub tool_name: &'a str,
    pub session: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub tags: &'a [String],
    #[serde(flatten)]
    pub trace: Trace<'a>,
    #[serde(flatten)]
    pub detail: Detail<'a>,
}

/// What only events of one kind have.
#[derive(Default, Serialize)]
pub(super) struct Detail<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallError {
    /// The code.
    #[schemars(with = "String")]
    pub code: Code,
    /// What happened, without secrets; a long one is cut.
    pub message: String,
}

/// Where a call belongs in its caller's trace. Its span is the first half of its id; without a caller's trace it begins one of
/// its own, which is its id.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Trace<'a> {
    #[serde(rename = "trace_id")]
    of: &'a str,
    #[serde(rename = "span_id")]
    span: &'a str,
    #[serde(rename = "parent_span_id", skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
}

/// The span of the call with this id.
pub fn span_of(call: &str) -> &str {
    call.get(..16).unwrap_or(call)
}

impl<'a> Trace<'a> {
    pub fn of(call: &'a str, caller: Option<&'a TraceContext>) -> Self {
        let span = span_of(call);
        match caller {
            Some(outer) => Self { of: outer.trace_id(), span, parent: Some(outer.span_id()) },
            None => Self { of: call, span, parent: None },
        }
    }
}

/// An event that belongs to no call, as JSON.
#[derive(Serialize)]
pub(super) struct PlainEvent {
    pub event: EventKind,
    pub time_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    #[serde(flatten)]
    pub detail: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_belongs_to_its_callers_trace_or_begins_one() {
        let id = "0123456789abcdeffedcba9876543210";
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let given = TraceContext::read(&format!("00-{trace}-{parent}-01"), None);
        let expected = Trace { of: trace, span: "0123456789abcdef", parent: Some(parent) };
        assert_eq!(Trace::of(id, given.as_ref()), expected);
        assert_eq!(Trace::of(id, None), Trace { of: id, span: "0123456789abcdef", parent: None });
    }

    #[test]
    fn a_filter_names_kinds_as_events_do_and_nothing_else() {
        let filter: EventFilter = serde_json::from_str(r#"{"kinds": ["tool_output", "tool_result"]}"#).unwrap();
        assert_eq!(filter.kinds(), EventKind::ToolOutput.bit() | EventKind::ToolResult.bit());
        assert_eq!(EventFilter::default().kinds() & EventKind::ToolResult.bit(), 0, "results may be large");
        assert!(serde_json::from_str::<EventFilter>(r#"{"tols": "a.b"}"#).is_err());
    }
}
