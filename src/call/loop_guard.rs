//! Notices a model that makes the same call again and again: same arguments, same result; or one that is denied for the same reason.

use std::collections::HashMap;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::outcome::{Code, Outcome};
use crate::pool::SessionId;

/// From which equal denial on the model gets a note: after the second one it has read the reason twice.
const DENIALS: usize = 3;

/// The last call of each session, and its last denied one.
#[derive(Debug, Default)]
pub(super) struct LoopGuard {
    /// Locked only to compare.
    last: Mutex<HashMap<SessionId, Last>>,
    /// Likewise.
    denied: Mutex<HashMap<SessionId, Last>>,
}

#[derive(Debug)]
struct Last {
    /// A digest of the tool, the arguments and the result.
    digest: [u8; 32],
    times: usize,
}

impl LoopGuard {
    /// Notes the end of a call. Returns how many in a row were the same.
    pub fn ended(&self, session: SessionId, arguments: &str, outcome: &Outcome) -> usize {
        counted(&mut self.last.lock(), session, digest(arguments, outcome))
    }

    /// Notes a denial. Returns how many of the session had the same tool and reason, with no other denial between them, if that is too
    /// many. What was called meanwhile does not matter.
    pub fn denied(&self, session: SessionId, outcome: &Outcome) -> Option<usize> {
        let times = counted(&mut self.denied.lock(), session, digest("", outcome));
        (times >= DENIALS).then_some(times)
    }

    /// Forgets a session.
    pub fn session_ended(&self, session: SessionId) {
        self.last.lock().remove(&session);
        self.denied.lock().remove(&session);
    }
}

/// How often the same came last.
fn counted(all: &mut HashMap<SessionId, Last>, session: SessionId, digest: [u8; 32]) -> usize {
    let last = all.entry(session).or_insert(Last { digest, times: 0 });
    if last.digest != digest {
        *last = Last { digest, times: 0 };
    }
    last.times = last.times.saturating_add(1);
    last.times
}

fn digest(arguments: &str, outcome: &Outcome) -> [u8; 32] {
    let result = match &outcome.ended {
        Ok(result) => ["", result.get()],
        // Its message says how long that lasts.
        Err(fault) if fault.code == Code::RateLimited => [fault.code.word(), ""],
        Err(fault) => [fault.code.word(), &fault.message],
    };
    let mut hash = Sha256::new();
    for part in [outcome.tool.as_bytes(), arguments.as_bytes(), result[0].as_bytes(), result[1].as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::value::to_raw_value;

    use super::*;
    use crate::outcome::{Fault, Metadata};

    fn outcome(ended: Result<&str, (Code, &str)>) -> Outcome {
        Outcome {
            call_id: "1".into(),
            tool: "a.b".into(),
            ended: ended.map(|text| to_raw_value(text).unwrap()).map_err(|(code, text)| Fault::new(code, text)),
            latency: Duration::ZERO,
            metadata: Metadata::default(),
        }
    }

    #[test]
    fn calls_are_the_same_by_arguments_and_result_in_a_row_of_one_session() {
        let guard = LoopGuard::default();
        let (one, other) = (SessionId(1), SessionId(2));
        let ended = |session, arguments: &str, result| guard.ended(session, arguments, &outcome(result));
        assert_eq!([ended(one, "x", Ok("r")), ended(one, "x", Ok("r")), ended(other, "x", Ok("r"))], [1, 2, 1]);
        assert_eq!([ended(one, "x", Ok("r")), ended(one, "y", Ok("r")), ended(one, "x", Ok("r"))], [3, 1, 1]);
        assert_eq!([ended(one, "x", Ok("s")), ended(one, "x", Err((Code::ToolError, "s")))], [1, 1]);
        assert_eq!(
            [ended(one, "x", Err((Code::ToolError, "s"))), ended(one, "x", Err((Code::ToolError, "t")))],
            [2, 1]
        );
        let limited = |text| ended(one, "x", Err((Code::RateLimited, text)));
        assert_eq!([limited("in 9s"), limited("in 8s")], [1, 2]);
        let refused = |text| guard.denied(one, &outcome(Err((Code::PermissionDenied, text))));
        assert_eq!([refused("a"), refused("a"), refused("b"), refused("b")], [None; 4]);
        assert_eq!([ended(one, "y", Ok("r")), 0], [1, 0], "a call that is made does not matter");
        assert_eq!([refused("b"), refused("b"), refused("a")], [Some(3), Some(4), None]);
        guard.session_ended(one);
        assert_eq!([limited("in 7s"), ended(other, "x", Ok("r"))], [1, 2]);
    }
}
