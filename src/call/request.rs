//! What a face asks for, and on whose behalf.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::host::Llm;
use crate::pool::{Listener, NoopListener};

/// Arguments as every face gives them.
pub type Arguments = Map<String, Value>;

/// One client's connection, unique within a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Who asks for a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The session; the default one belongs to the program itself.
    pub session: SessionId,
    /// The client as it calls itself: `claude-code 2.1`.
    pub client: Option<String>,
    /// The client's own tags, for the log and the journal.
    pub tags: Vec<String>,
    /// A W3C trace context (`traceparent`), passed on unread.
    pub trace: Option<String>,
}

/// A call as it comes in.
#[derive(Clone)]
pub struct CallRequest {
    /// Either name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// The caller's own limit, instead of the tool's.
    pub timeout: Option<Duration>,
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The same key in the same session joins the call that is running instead of starting another.
    pub key: Option<String>,
    /// Hears what happens during the call, and its outcome.
    pub listener: Arc<dyn Listener>,
    /// The caller's language model, where it lends one.
    pub llm: Option<Arc<dyn Llm>>,
    /// How much time the call that waits for this one has left.
    pub(crate) at_most: Option<Duration>,
    /// The tools whose calls this one is made within, outermost first.
    pub(crate) chain: Vec<String>,
}

impl CallRequest {
    /// A call without a listener.
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
