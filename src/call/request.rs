//! A call request.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::host::Llm;
use crate::pool::{Caller, Listener, NoopListener};

/// Call arguments, a JSON object.
pub type Arguments = Map<String, Value>;

/// A request for a call.
#[derive(Clone)]
pub struct CallRequest {
    /// The tool's full or short name.
    pub tool: String,
    /// The arguments.
    pub arguments: Arguments,
    /// The caller's time limit, instead of the tool's.
    pub timeout: Option<Duration>,
    /// The caller.
    pub caller: Arc<Caller>,
    /// A request with the key of a running call in the same session joins that call instead of starting another.
    pub key: Option<String>,
    /// Receives the call's events and its outcome.
    pub listener: Arc<dyn Listener>,
    /// The caller's language model, if it has one.
    pub llm: Option<Arc<dyn Llm>>,
    /// The time left to the outer call that waits for this one.
    pub(crate) at_most: Option<Duration>,
    /// The tools of the outer calls, outermost first.
    pub(crate) chain: Vec<String>,
}

impl CallRequest {
    /// A request without a listener.
    pub fn new(tool: impl Into<String>, arguments: Arguments) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            timeout: None,
            caller: Arc::default(),
            key: None,
            listener: Arc::new(NoopListener),
            llm: None,
            at_most: None,
            chain: Vec::new(),
        }
    }
}
