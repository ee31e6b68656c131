//! Calls: requests, handles, the pipeline, and host access for tools.

mod approval;
mod audited;
mod attachment;
mod background;
mod client;
mod counted;
mod facts;
mod finish;
mod handle;
mod heard;
mod hiding;
mod host;
mod journaled;
mod kept_source;
mod keyed;
mod layer;
mod loop_guard;
mod nesting;
mod overview;
mod places;
mod policy;
mod request;
mod questions;
mod resolve;
mod retries;
mod result_rules;
mod results;
mod service;
mod session;
#[cfg(test)]
mod tests;
mod tries;
mod under_way;
mod validate;
mod waits;
mod watch;

pub use crate::pool::{Caller, SessionId};
pub use background::BackgroundCalls;
pub use client::{
    Answer, Asking, ClientError, ClientFeatures, Elicitation, Elicited, Feature, LlmImage, LlmMessage, LlmRequest,
    LlmRole, Root,
};
pub use facts::decide as decide_call;
pub(crate) use handle::Hearing;
pub use handle::{CallEvent, CallHandle};
pub(crate) use journaled::lost;
pub use layer::CallCounts;
pub use layer::{CallContext, Layer, LayerFuture, Next};
pub use nesting::{TOO_DEEP, deep_argument, is_too_deep, keys_to_the_depth};
pub use overview::Overview;
pub use request::{Arguments, CallRequest, Resumed};
pub use service::{CallService, OfProcess};
pub use session::Session;
#[cfg(feature = "bench")]
pub use validate::arguments as validate_arguments;
#[cfg(feature = "bench")]
pub use watch::bench::record_ends;
pub use watch::{
    AllMetrics, CallDetails, CallError, CallFilter, CallInfo, CallState, EventFilter, EventKind, Subscription,
    ToolMetrics, Watch,
};
