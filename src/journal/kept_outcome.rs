//! The outcome of a call that has ended, as far as it was kept.

use std::time::Duration;

use super::state::State;
use super::store::CallRow;
use crate::outcome::{Code, Fault, Metadata, Outcome};

impl CallRow {
    /// The code of its fault.
    pub fn code(&self) -> Code {
        self.code.as_deref().and_then(Code::of_word).unwrap_or(Code::SystemError)
    }

    /// Its outcome. A result that was not kept is a fault that says so.
    pub fn outcome(&self) -> Outcome {
        let metadata = self.metadata.as_deref().and_then(|metadata| serde_json::from_str(metadata).ok());
        let metadata: Metadata = metadata.unwrap_or_default();
        let ended = match (self.state, &self.response) {
            (Some(State::Complete), Some(result)) => serde_json::from_str(result).map_err(|_| lost()),
            (Some(State::Complete), None) => Err(lost()),
            _ => {
                let kept = self.fault.as_deref().and_then(|fault| serde_json::from_str(fault).ok());
                Err(kept.unwrap_or_else(|| Fault::new(self.code(), self.error.clone().unwrap_or_default())))
            }
        };
        let latency = Duration::from_micros(self.duration_us.unwrap_or_default());
        Outcome { call_id: self.id.clone(), tool: self.tool_name.clone(), ended, latency, metadata }
    }
}

fn lost() -> Fault {
    let message =
        "the call is complete, and its result was not kept: it is too long, or `bodies` under [journal] says so";
    Fault::new(Code::SystemError, message)
}
