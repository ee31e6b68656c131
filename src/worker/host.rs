//! What a worker may ask of hostler. Defined here, answered by whoever owns the catalogue: the worker's floor knows
//! neither registry nor dispatch.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::protocol::{HostMethod, WireError};

/// A question from inside a call.
#[derive(Debug)]
pub struct Ask {
    /// What is asked.
    pub method: HostMethod,
    /// With what, a JSON object.
    pub params: Box<RawValue>,
    /// How much of the asking call's time is left.
    pub left: Duration,
}

/// Answers a call's questions.
pub trait HostAccess: Send + Sync {
    /// Answers one question; the error's message is what the tool's author reads.
    fn answer(&self, ask: Ask) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, WireError>> + Send + '_>>;
}
