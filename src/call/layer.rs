//! Steps around the execution of a call, beside each other: policy, rates, journal, metrics.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::handle::RunningCall;
use super::request::{CallRequest, Caller};
use super::service::CallService;
use crate::outcome::Outcome;
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
    pub tool: Arc<Tool>,
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
