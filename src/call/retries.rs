//! When a call is tried again, and after which pause: pure.

use std::time::Duration;

use crate::config::tool::Effects;
use crate::outcome::{Code, Fault};

/// The pause before the first retry; doubled each time, up to the second (specification 003).
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// How often a call is tried again that may be repeated.
const USUAL: u32 = 3;

/// How often a call is tried again if nothing else is said. One that may change something again is not.
pub fn usual_retries(effects: Effects) -> u32 {
    if effects == Effects::Once { 0 } else { USUAL }
}

/// Whether another attempt may end otherwise. What the tool itself says does not change, and whoever called too often learns when to come
/// back.
pub fn may_help(fault: &Fault) -> bool {
    let is_final = matches!(fault.code, Code::ToolError | Code::ShuttingDown | Code::Cancelled | Code::RateLimited);
    fault.code.retryable() && !is_final
}

/// The pause before the retry of this number, from 0. Less up to a quarter, by the seed: calls that failed together do not come back
/// together.
pub fn pause(retry: u32, seed: u64) -> Duration {
    let whole = PAUSES[0].saturating_mul(1_u32.checked_shl(retry).unwrap_or(u32::MAX)).min(PAUSES[1]);
    let part = u32::try_from(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(retry)) >> 54)
        .unwrap_or_default();
    whole.saturating_sub(whole / 4 * part / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_differ_a_little() {
        for (retry, whole) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (6, 30), (40, 30), (u32::MAX, 30)] {
            let whole = Duration::from_secs(whole);
            let pauses: Vec<Duration> = (0..50).map(|seed| pause(retry, seed)).collect();
            assert!(pauses.iter().all(|pause| *pause <= whole && *pause >= whole.mul_f64(0.75)), "{retry}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]));
            assert_eq!(pause(retry, 7), pause(retry, 7));
        }
    }

    #[test]
    fn only_what_may_end_otherwise_is_tried_again() {
        let helps = |code| may_help(&Fault::new(code, ""));
        for code in [Code::Busy, Code::ToolTimeout, Code::ProcessKilled, Code::ResourceExhausted] {
            assert!(helps(code), "{code}");
        }
        for code in [
            Code::ToolError,
            Code::InvalidParams,
            Code::ToolCrashed,
            Code::ShuttingDown,
            Code::OutcomeUnknown,
            Code::RateLimited,
        ] {
            assert!(!helps(code), "{code}");
        }
        assert_eq!([Effects::Pure, Effects::Idempotent, Effects::Once].map(usual_retries), [3, 3, 0]);
    }
}
