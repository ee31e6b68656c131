//! What a bench measures that cannot be left out of a call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Map;
use serde_json::value::RawValue;

use super::{Watch, Watched};
use crate::call::CallRequest;
use crate::call::handle::RunningCall;
use crate::outcome::{Metadata, Outcome};

/// Counts and keeps this many ended calls, and returns how long one takes.
pub fn record_ends(watch: &Arc<Watch>, count: u32) -> Duration {
    let request = CallRequest::new("bench", Map::new());
    let mut time = Duration::ZERO;
    for number in 0..count {
        let watched = Watched::new(watch, 1, Instant::now(), None);
        watched.known_as("bench", false, false);
        let call = RunningCall::new(format!("{number:032}"), &request, watched, Arc::default());
        let outcome = Outcome {
            call_id: call.id.clone(),
            tool: "bench".to_owned(),
            ended: Ok(RawValue::NULL.to_owned()),
            latency: Duration::from_micros(30),
            metadata: Metadata { run_ms: 0.02, ..Metadata::default() },
        };
        let began = Instant::now();
        call.watch_end(&outcome);
        time += began.elapsed();
    }
    time / count
}
