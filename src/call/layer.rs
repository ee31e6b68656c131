//! Layers around the execution of a call. There are three: the log of outcomes, their count, and the policy.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::audited::DecisionLog;
use super::handle::RunningCall;
use super::policy::PolicyLayer;
use super::request::CallRequest;
use super::service::CallService;
use crate::outcome::{Code, Outcome};
use crate::pool::{Caller, Settled};
use crate::protocol::TraceContext;
use crate::rates::Rates;
use crate::registry::Tool;

/// The result of a layer.
pub type LayerFuture<'a> = Pin<Box<dyn Future<Output = Settled> + Send + 'a>>;

/// A step that every call passes on its way to the executor and back.
pub trait Layer: Send + Sync {
    /// Continues the call with [`Next::run`], or answers in its place. Runs once per attempted version of a tool
    /// file: when the newest version does not start, hostler falls back to the last good one
    /// ([`CallContext::version`]).
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        let _ = call;
        next.run()
    }

    /// Receives the final outcome of a call, once per call, including calls that never reached an executor. Must
    /// not block.
    fn recorded(&self, caller: &Caller, outcome: &Outcome) {
        let _ = (caller, outcome);
    }
}

/// One attempt of a call, as the layers see it.
pub struct CallContext {
    /// The tool, in the version of this attempt.
    pub(crate) tool: Arc<Tool>,
    /// 1 for the first attempted version of the tool, 2 for the fallback.
    pub version: u32,
    pub(super) running: Arc<RunningCall>,
    pub(super) request: Arc<CallRequest>,
}

impl CallContext {
    /// The call's id, the same for every attempt.
    pub fn id(&self) -> &str {
        &self.running.id
    }

    /// The tool's full name, `pack.function`.
    pub fn tool_name(&self) -> &str {
        &self.tool.name
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.running.caller
    }
}

/// The remaining layers, and the executor behind them.
pub struct Next<'a> {
    pub(super) layers: &'a [Arc<dyn Layer>],
    pub(super) service: &'a Arc<CallService>,
    pub(super) call: &'a CallContext,
    pub(super) arguments: Box<RawValue>,
}

impl<'a> Next<'a> {
    /// The arguments as sent to the tool, a JSON object.
    pub fn arguments(&self) -> &RawValue {
        &self.arguments
    }

    /// Runs the next layer, or the executor after the last.
    pub fn run(self) -> LayerFuture<'a> {
        match self.layers.split_first() {
            Some((first, rest)) => first.call(self.call, Self { layers: rest, ..self }),
            None => Box::pin(self.service.execute(self.call, self.arguments)),
        }
    }
}

/// The layers of hostler itself, outermost first, and the one of them that the status reads.
pub(super) fn own_layers(rates: &Arc<Rates>, decisions: DecisionLog) -> (Arc<CountLayer>, Vec<Arc<dyn Layer>>) {
    let counts = Arc::<CountLayer>::default();
    let policy = PolicyLayer { rates: Arc::clone(rates), decisions };
    (Arc::clone(&counts), vec![Arc::new(LogLayer), counts, Arc::new(policy)])
}

/// Logs one line for each call that ended without a result.
pub(super) struct LogLayer;

impl Layer for LogLayer {
    fn recorded(&self, caller: &Caller, outcome: &Outcome) {
        let (call_id, tool, session) = (&outcome.call_id, &outcome.tool, caller.session.0);
        let Err(fault) = &outcome.ended else {
            tracing::debug!(call_id, tool, session, "call ended");
            return;
        };
        let (code, client) = (fault.code, caller.client.as_deref());
        let span = outcome.metadata.traceparent.as_deref().and_then(|own| TraceContext::read(own, None));
        let (trace_id, span_id) = (span.as_ref().map(TraceContext::trace_id), span.as_ref().map(TraceContext::span_id));
        let details = &fault.details;
        let (input, stderr) = (|| details.input.as_deref().map(beginning), || details.stderr.as_deref().map(end));
        // What a tool printed before it raised.
        let output = || outcome.metadata.output.as_deref().filter(|_| details.stderr.is_none()).map(end);
        if let Some(why) = &outcome.metadata.cancelled {
            tracing::info!(call_id, tool, session, client, trace_id, span_id, %code, ended_by = %why, input = input(), "call cancelled");
        } else {
            let error = &fault.message;
            let (input, stderr, output) = (input(), stderr(), output());
            tracing::info!(call_id, tool, session, client, trace_id, span_id, %code, error, input, stderr, output, "call failed");
        }
    }
}

/// The most of a call's arguments and of its output that the log shows, in bytes.
const LOGGED: usize = 512;

fn beginning(text: &str) -> String {
    let cut = text.floor_char_boundary(LOGGED);
    format!("{}{}", &text[..cut], if cut < text.len() { "…" } else { "" })
}

fn end(text: &str) -> String {
    let text = text.trim_end();
    let cut = text.ceil_char_boundary(text.len().saturating_sub(LOGGED));
    format!("{}{}", if cut > 0 { "…" } else { "" }, &text[cut..])
}

/// Calls that have ended since hostler started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallCounts {
    /// All of them.
    pub ended: u64,
    /// Calls without a result, except cancelled ones.
    pub failed: u64,
    /// Cancelled calls.
    pub cancelled: u64,
}

/// Counts ended calls, each once, however many versions of its tool were attempted.
#[derive(Debug, Default)]
pub(super) struct CountLayer {
    ended: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
}

impl CountLayer {
    pub fn counts(&self) -> CallCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CallCounts { ended: read(&self.ended), failed: read(&self.failed), cancelled: read(&self.cancelled) }
    }
}

impl Layer for CountLayer {
    fn recorded(&self, _: &Caller, outcome: &Outcome) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        match &outcome.ended {
            Ok(_) => return,
            Err(fault) if fault.code == Code::Cancelled => &self.cancelled,
            Err(_) => &self.failed,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}
