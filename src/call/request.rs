//! A call request, and the ids of calls.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};

use super::client::ClientFeatures;
use super::questions::OuterCall;
use crate::outcome::Attempt;
use crate::pool::{Caller, Listener, NoopListener};
use crate::registry::RoleKind;

/// Call arguments, a JSON object.
pub type Arguments = Map<String, Value>;

/// A request for a call.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
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
    /// What tools may ask the caller for; `None` if nothing.
    pub client: Option<Arc<dyn ClientFeatures>>,
    /// Whether it goes on without its client.
    pub(crate) background: bool,
    /// Whether its key and a `synced` tool need the journal. Without, a key only joins a running call, as in a program without a journal.
    pub(crate) needs_journal: bool,
    /// Whether it may go on without its client later: it is written down whatever its tool says.
    pub(crate) may_detach: bool,
    /// Where it can be run again, as it is written down.
    pub(crate) workspace: Option<String>,
    /// How often it may be tried again; what its tool's effects allow if nothing is said.
    pub(crate) max_retries: Option<u32>,
    /// A call that another process had begun.
    pub(crate) resumed: Option<Resumed>,
    /// The MCP request that it answers, for its span.
    pub(crate) method: Option<&'static str>,
    /// Whether its span is the answering side of a request of another process.
    pub(crate) is_served: bool,
    /// The role of the function that is called.
    pub(crate) role: RoleKind,
    /// The time left to the outer call that waits for this one.
    pub(crate) at_most: Option<Duration>,
    /// The tools of the outer calls, outermost first.
    pub(crate) chain: Vec<String>,
    /// The call that waits for this one.
    pub(crate) outer: Option<Arc<OuterCall>>,
}

/// A call that is gone on with.
#[derive(Debug, Clone, Default)]
pub struct Resumed {
    /// Its id.
    pub id: String,
    /// How often it was sent to its tool.
    pub attempts: u64,
    /// How often it was tried again.
    pub retries: u64,
    /// Why the tries before have failed.
    pub tries: Vec<Attempt>,
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
            client: None,
            background: false,
            needs_journal: false,
            may_detach: false,
            workspace: None,
            max_retries: None,
            resumed: None,
            method: None,
            is_served: false,
            role: RoleKind::Tool,
            at_most: None,
            chain: Vec::new(),
            outer: None,
        }
    }
}

/// Random ids: one session must not guess the ids of another.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    counter: AtomicU64,
    /// Two keys from the system's randomness, so that seen ids do not reveal others.
    keys: [RandomState; 2],
}

impl CallIds {
    pub fn next(&self) -> String {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let halves = [0, 1].map(|key: usize| self.keys[key].hash_one(number).to_be_bytes());
        data_encoding::HEXLOWER.encode(halves.as_flattened())
    }
}
