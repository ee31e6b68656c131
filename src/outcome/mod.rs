//! The outcome of a call: a result, or a fault with a code. Data types only; modules that raise faults write the
//! messages.

mod code;
mod envelope;
mod fault;
mod file;

pub use code::Code;
pub use envelope::{envelope_schema, fault_in_envelope, in_envelope, wrapped_schema};
pub use fault::{Attempt, Blocked, Cancelled, Canceller, Details, Fault, Missing};
pub use file::{File, Link, each_file, may_hold_blocks, may_hold_files, without_bytes};

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// How a call went, regardless of its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Whether the call waited for a worker to start.
    pub cold: bool,
    /// Milliseconds in the queue.
    pub queue_ms: f64,
    /// Milliseconds to build the environment and start the worker.
    pub start_ms: f64,
    /// Milliseconds in the worker, from the request to its answer.
    pub run_ms: f64,
    /// Milliseconds in which the call waited for answers of its client. Not part of `run_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<f64>,
    /// The worker's process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Why an earlier version of the tool file answered instead of the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// How many calls in a row of its session had the same arguments and the same result, if that is more than `loop_guard` allows
    /// in silence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<usize>,
    /// The call's own span, if it belongs to a W3C trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Who cancelled the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cancelled>,
    /// The fields that were removed from its result, because the return annotation does not declare them, as `Class.field`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// What the tool printed during the call; a truncated text ends with a marker.
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
            asked_ms: None,
            worker: None,
            attempt: 1,
            stale: None,
            repeated: None,
            traceparent: None,
            cancelled: None,
            dropped: Vec::new(),
            output: None,
        }
    }
}

/// The end of a call.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The call's id, unique across runs.
    pub call_id: String,
    /// The tool's full name, `pack.function`, or the requested name if there is no such tool.
    pub tool: String,
    /// The result as the tool's JSON text, or the fault.
    pub ended: Result<Box<RawValue>, Fault>,
    /// The time from the request to the outcome.
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

/// Reads what [`Outcome`] writes, in this or another version: unknown members are ignored.
impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Shape {
            call_id: String,
            tool: String,
            /// Raw: an `Option` would read the result `null` as absent.
            #[serde(default = "null")]
            result: Box<RawValue>,
            #[serde(default)]
            error: Option<Fault>,
            #[serde(default)]
            latency_ms: f64,
            #[serde(default)]
            metadata: Metadata,
        }
        fn null() -> Box<RawValue> {
            RawValue::NULL.to_owned()
        }
        let Shape { call_id, tool, result, error, latency_ms, metadata } = Shape::deserialize(deserializer)?;
        let latency = Duration::try_from_secs_f64(latency_ms / 1_000.0).unwrap_or_default();
        Ok(Self { call_id, tool, ended: error.map_or(Ok(result), Err), latency, metadata })
    }
}

/// A duration in milliseconds with three decimals.
pub fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reread(outcome: &Outcome) -> Outcome {
        serde_json::from_str(&serde_json::to_string(outcome).unwrap()).unwrap()
    }

    #[test]
    fn an_outcome_round_trips() {
        let details = Details { exit_code: Some(3), near: vec!["a.b".to_owned()], ..Details::default() };
        let cancelled = Some(Cancelled::because(Canceller::Client, "no longer needed"));
        for ended in [
            Ok("null"),
            Ok("{\"n\":36893488147419103233}"),
            Err(Fault::new(Code::ToolCrashed, "it died").with(details)),
            Err(Fault::new(Code::Cancelled, "it was cancelled")),
        ] {
            let ended = ended.map(|text| RawValue::from_string(text.to_owned()).unwrap());
            let metadata = Metadata { worker: Some(7), cancelled: cancelled.clone(), ..Metadata::default() };
            let latency = Duration::from_micros(1_500);
            let written = Outcome { call_id: "c".to_owned(), tool: "a.b".to_owned(), ended, latency, metadata };
            let read = reread(&written);
            assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&written).unwrap());
            assert_eq!(
                read.ended.map(|raw| raw.get().to_owned()).ok(),
                written.ended.map(|raw| raw.get().to_owned()).ok()
            );
        }
    }

    /// Written by a newer hostler: with unknown members, an unknown code and an unknown canceller.
    #[test]
    fn unknown_members_of_a_newer_version_are_ignored() {
        let newer = json!({
            "call_id": "c", "tool": "a.b", "success": false, "result": null, "new": {"x": 1}, "latency_ms": 2.5,
            "error": {"code": "NEVER_HEARD_OF", "message": "oh", "retryable": true, "details": {"new": 1, "exit_code": 3}},
            "metadata": {"cold": true, "new": [], "cancelled": {"by": "somebody_new", "reason": "why", "new": 1}},
        });
        let read: Outcome = serde_json::from_value(newer).unwrap();
        let fault = read.ended.unwrap_err();
        assert_eq!((fault.code, fault.message.as_str(), fault.details.exit_code), (Code::SystemError, "oh", Some(3)));
        assert!(read.metadata.cold && read.metadata.attempt == 1);
        assert_eq!(read.metadata.cancelled, Some(Cancelled::because(Canceller::Other, "why")));
    }

    /// Written before `metadata.cancelled` existed, with the minimum of members.
    #[test]
    fn missing_members_of_an_older_version_have_defaults() {
        let older = json!({"call_id": "c", "tool": "a.b", "success": true, "result": [1]});
        let read: Outcome = serde_json::from_value(older).unwrap();
        assert_eq!(serde_json::from_str::<Value>(read.ended.unwrap().get()).unwrap(), json!([1]));
        assert_eq!(read.metadata, Metadata::default());
    }
}
