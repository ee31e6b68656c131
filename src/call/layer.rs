//! Steps around the execution of a call, beside each other: policy, rates, journal, metrics. Today there are two: the
//! log of outcomes, and their count.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::value::RawValue;

use super::handle::RunningCall;
use super::request::{CallRequest, Caller};
use super::service::CallService;
use crate::outcome::{Code, Outcome};
use crate::pool::Settled;
use crate::registry::Tool;

/// What a layer gives back.
pub type LayerFuture<'a> = Pin<Box<dyn Future<Output = Settled> + Send + 'a>>;

/// A step that every call passes on its way to the executor, and its end on the way back.
pub trait Layer: Send + Sync {
    /// Lets the call go on with [`Next::run`], or answers in its place. Passed once for each version of a tool file that
    /// is tried: a file whose newest version does not start falls back to its last good one ([`CallContext::version`]).
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        let _ = call;
        next.run()
    }

    /// The final outcome of a call, once for each, also of calls that never reached an executor. Must not block.
    fn recorded(&self, caller: &Caller, outcome: &Outcome) {
        let _ = (caller, outcome);
    }
}

/// One try of a call, as the layers see it.
pub struct CallContext {
    /// The tool, in the version that is to run.
    pub(crate) tool: Arc<Tool>,
    /// 1 for the first version of the tool that is tried, 2 for the fall-back.
    pub version: u32,
    pub(super) running: Arc<RunningCall>,
    pub(super) request: Arc<CallRequest>,
}

impl CallContext {
    /// The call's id, the same for every try.
    pub fn id(&self) -> &str {
        &self.running.id
    }

    /// The tool's full name, `pack.function`.
    pub fn tool_name(&self) -> &str {
        &self.tool.name
    }

    /// Who asks.
    pub fn caller(&self) -> &Caller {
        &self.running.caller
    }
}

/// The layers that are left, and the executor behind them.
pub struct Next<'a> {
    pub(super) layers: &'a [Arc<dyn Layer>],
    pub(super) service: &'a Arc<CallService>,
    pub(super) call: &'a CallContext,
    pub(super) arguments: Box<RawValue>,
}

impl<'a> Next<'a> {
    /// The arguments as they will reach the tool, a JSON object.
    pub fn arguments(&self) -> &RawValue {
        &self.arguments
    }

    /// Goes on.
    pub fn run(self) -> LayerFuture<'a> {
        match self.layers.split_first() {
            Some((first, rest)) => first.call(self.call, Self { layers: rest, ..self }),
            None => Box::pin(self.service.execute(self.call, self.arguments)),
        }
    }
}

/// Writes one line of the log for each call that ended without a result.
pub(super) struct LogLayer;

impl Layer for LogLayer {
    fn recorded(&self, caller: &Caller, outcome: &Outcome) {
        let (call_id, tool, session) = (&outcome.call_id, &outcome.tool, caller.session.0);
        let Err(fault) = &outcome.ended else {
            tracing::debug!(call_id, tool, session, "call ended");
            return;
        };
        let code = fault.code;
        if let Some(why) = &outcome.metadata.cancelled {
            tracing::info!(call_id, tool, session, %code, ended_by = %why, "call cancelled");
        } else {
            tracing::info!(call_id, tool, session, %code, message = fault.message, "call failed");
        }
    }
}

/// Calls that ended, since hostler started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCounts {
    /// All of them.
    pub ended: u64,
    /// Those without a result, cancelled ones not included.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
}

/// Counts calls that ended, each once, however many versions of its tool were tried.
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
