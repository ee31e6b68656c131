//! What every call ends with: a result, or a fault with a code. Shapes only; sentences are written where a fault is raised.

mod code;
mod envelope;
mod fault;
mod file;
mod scrub;

pub use code::Code;
pub use envelope::{envelope_schema, fault_in_envelope, in_envelope};
pub use fault::{Details, Fault, Lack};
pub use file::{File, each_file, may_hold_files, without_bytes};
pub use scrub::Scrub;

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

/// How a call went, whatever it ended with.
#[derive(Debug, Clone, Serialize)]
pub struct Metadata {
    /// Whether the call had to wait for a worker to start.
    pub cold: bool,
    /// Milliseconds spent waiting behind other calls.
    pub queue_ms: f64,
    /// Milliseconds spent on building the environment and starting the worker.
    pub start_ms: f64,
    /// Milliseconds in the worker, from the writing of the request to its answer.
    pub run_ms: f64,
    /// The worker's process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// 1 for the first try.
    pub attempt: u32,
    /// Why an earlier version of the tool file answered, and not the one on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// What the tool printed during the call; its end is marked when it was cut at the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            cold: false,
            queue_ms: 0.0,
            start_ms: 0.0,
            run_ms: 0.0,
            worker: None,
            attempt: 1,
            stale: None,
            output: None,
        }
    }
}

/// The end of a call.
#[derive(Debug)]
pub struct Outcome {
    /// The call's id, unique across runs.
    pub call_id: String,
    /// The tool's full name, `pack.function`, or the name as asked for when there is no such tool.
    pub tool: String,
    /// The result as the JSON text that the tool gave, or the fault.
    pub ended: Result<Box<RawValue>, Fault>,
    /// From the face to the face.
    pub latency: Duration,
    /// How it went.
    pub metadata: Metadata,
}

#[derive(Serialize)]
struct Envelope<'a> {
    call_id: &'a str,
    tool: &'a str,
    success: bool,
    result: Option<&'a RawValue>,
    error: Option<&'a Fault>,
    latency_ms: f64,
    metadata: &'a Metadata,
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let result = self.ended.as_deref().ok();
        let envelope = Envelope {
            call_id: &self.call_id,
            tool: &self.tool,
            success: result.is_some(),
            result,
            error: self.ended.as_ref().err(),
            latency_ms: milliseconds(self.latency),
            metadata: &self.metadata,
        };
        envelope.serialize(serializer)
    }
}

/// A duration as the envelope shows it: milliseconds with three decimals.
pub fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}
