//! What a face asks for.

use std::sync::Arc;
use std::time::Duration;

use super::Arguments;
use super::host::Llm;
use crate::pool::{Deaf, Listener};

/// A call as it comes in.
pub struct CallRequest {
    /// Either name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// The caller's own limit, instead of the tool's.
    pub timeout: Option<Duration>,
    /// What is left of the time of the call that waits for this one.
    pub at_most: Option<Duration>,
    /// Who hears how it goes.
    pub listener: Arc<dyn Listener>,
    /// The caller's language model, where it lends one.
    pub llm: Option<Arc<dyn Llm>>,
    /// The tools whose calls this one is made within, outermost first.
    pub chain: Vec<String>,
}

impl CallRequest {
    /// A call that nobody listens to.
    pub fn new(tool: impl Into<String>, arguments: Arguments) -> Self {
        let (tool, listener) = (tool.into(), Arc::new(Deaf));
        Self { tool, arguments, timeout: None, at_most: None, listener, llm: None, chain: Vec::new() }
    }
}
