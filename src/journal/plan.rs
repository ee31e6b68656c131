//! What becomes of a call whose process is gone: decided here, done in `recover`. Pure.

use serde_json::{Map, Value};

use super::state::{Created, Orphaned, Running, State, WaitingApproval};
use super::store::CallRow;
use crate::config::tool::{Effects, JournalLevel};
use crate::config::value::Word;
use crate::outcome::{Code, Fault};

/// How each sentence about an interrupted call begins (specification 003).
pub const INTERRUPTED: &str = "Server restart - execution interrupted";

/// What becomes of a call.
#[derive(Debug, Clone)]
pub enum Plan {
    /// It has failed.
    Fail {
        /// What is said of it.
        fault: Fault,
        /// Whether it certainly was not begun: its key may be used again.
        gives_key_back: bool,
    },
    /// Somebody had asked for its end.
    Cancel(Fault),
    /// It is run, or run again.
    Run {
        /// How often it was tried again, with this.
        retry_count: u64,
    },
}

/// What becomes of a call that had not ended. `boot` is the one in which this is asked.
pub fn plan(row: &CallRow, boot: &str) -> Plan {
    if let Some(why) = &row.cancelled {
        return Plan::Cancel(Fault::new(
            Code::Cancelled,
            format!("the call of {} was cancelled: {why}", row.tool_name),
        ));
    }
    let effects = word(&row.effects).unwrap_or(Effects::Once);
    let is_safe = effects != Effects::Once;
    // One that waits to be tried again, or for a person, is not with its tool.
    let has_begun = !matches!(row.state, Some(State::Created | State::WaitingApproval))
        || (!row.background && (row.attempt > 0 || !row.tries.is_empty()));
    // What happened last may be lost with the power, except for the first dispatch of a call that was synced.
    let is_synced = word(&row.level) == Some(JournalLevel::Synced) && row.attempt == 0;
    let is_certain = row.boot_id.as_deref().is_none_or(|its| its == boot) || is_synced;
    let never_begun = !has_begun && row.attempt == 0 && row.tries.is_empty();
    let fail = |fault| Plan::Fail { fault, gives_key_back: never_begun && is_certain };
    if !has_begun && !is_certain && !is_safe {
        return fail(unknown("the machine was restarted meanwhile"));
    }
    if !row.background {
        return fail(foreground(has_begun, is_safe));
    }
    if !has_begun || is_safe {
        let is_readable = |request: &String| serde_json::from_str::<Map<String, Value>>(request).is_ok();
        if !row.request.as_ref().is_some_and(is_readable) {
            return fail(interrupted("its arguments cannot be read any more"));
        }
    }
    match (has_begun, is_safe) {
        (false, _) => Plan::Run { retry_count: row.retry_count },
        (true, true) if row.retry_count < row.max_retries => Plan::Run { retry_count: row.retry_count + 1 },
        (true, true) => fail(interrupted("it was tried as often as it may be")),
        (true, false) => fail(unknown("its tool may have run, and it may not be run twice")),
    }
}

/// Its client is gone: nobody would get its result.
fn foreground(has_begun: bool, is_safe: bool) -> Fault {
    match (has_begun, is_safe) {
        (false, _) => interrupted("it had not begun"),
        (true, true) => interrupted("it may be made again"),
        (true, false) => unknown("look for what it may have done before you make it again"),
    }
}

fn interrupted(what: &str) -> Fault {
    Fault::new(Code::ShuttingDown, format!("{INTERRUPTED}: hostler was killed or crashed; {what}"))
}

fn unknown(what: &str) -> Fault {
    Fault::new(
        Code::OutcomeUnknown,
        format!("{INTERRUPTED}: hostler was killed or crashed, and the outcome is not known: {what}"),
    )
}

fn word<T: Word + Copy>(text: &str) -> Option<T> {
    T::WORDS.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

impl Plan {
    /// The state that it leads to, by way of that of a call whose process is gone.
    pub fn state(&self, before: Option<State>) -> State {
        let orphan: Orphaned = match before {
            Some(State::Created) => Created.orphan(),
            Some(State::WaitingApproval) => WaitingApproval.orphan(),
            _ => Running.orphan(),
        };
        match self {
            Self::Fail { .. } => orphan.fail().state(),
            Self::Cancel(_) => Created.cancel().state(),
            Self::Run { .. } => {
                let Created = orphan.retry();
                State::Created
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "this boot";

    fn row(state: State, effects: &str, background: bool) -> CallRow {
        CallRow {
            state: Some(state),
            effects: effects.to_owned(),
            background,
            max_retries: if effects == "once" { 0 } else { 3 },
            boot_id: Some(HERE.to_owned()),
            level: "kept".to_owned(),
            request: Some("{}".to_owned()),
            ..CallRow::default()
        }
    }

    fn code(plan: &Plan) -> Option<Code> {
        match plan {
            Plan::Fail { fault, .. } => {
                assert!(fault.message.starts_with(INTERRUPTED), "{fault}");
                assert!(fault.code != Code::OutcomeUnknown || !fault.code.retryable());
                Some(fault.code)
            }
            _ => None,
        }
    }

    fn runs(plan: &Plan) -> Option<u64> {
        match plan {
            Plan::Run { retry_count } => Some(*retry_count),
            _ => None,
        }
    }

    #[test]
    fn what_was_not_begun_is_run_and_what_may_have_run_is_not_run_twice() {
        for effects in ["pure", "idempotent", "once"] {
            assert_eq!(runs(&plan(&row(State::Created, effects, true), HERE)), Some(0), "{effects}");
            assert_eq!(code(&plan(&row(State::Created, effects, false), HERE)), Some(Code::ShuttingDown));
        }
        for effects in ["pure", "idempotent"] {
            assert_eq!(runs(&plan(&row(State::Running, effects, true), HERE)), Some(1));
            assert_eq!(code(&plan(&row(State::Running, effects, false), HERE)), Some(Code::ShuttingDown));
        }
        for background in [true, false] {
            assert_eq!(code(&plan(&row(State::Running, "once", background), HERE)), Some(Code::OutcomeUnknown));
        }
        assert_eq!(code(&plan(&row(State::Running, "a later word", true), HERE)), Some(Code::OutcomeUnknown));
    }

    #[test]
    fn retries_are_used_up() {
        let tried = |count| CallRow { retry_count: count, ..row(State::Running, "pure", true) };
        assert_eq!(runs(&plan(&tried(2), HERE)), Some(3));
        assert_eq!(code(&plan(&tried(3), HERE)), Some(Code::ShuttingDown));
    }

    #[test]
    fn after_the_machine_was_restarted_only_what_was_synced_is_known() {
        let other = |effects, level: &str| CallRow {
            boot_id: Some("another".to_owned()),
            level: level.to_owned(),
            ..row(State::Created, effects, true)
        };
        assert_eq!(code(&plan(&other("once", "kept"), HERE)), Some(Code::OutcomeUnknown));
        assert_eq!(runs(&plan(&other("once", "synced"), HERE)), Some(0));
        assert_eq!(runs(&plan(&other("pure", "kept"), HERE)), Some(0));
        let again = CallRow { attempt: 1, ..other("once", "synced") };
        assert_eq!(code(&plan(&again, HERE)), Some(Code::OutcomeUnknown), "its second attempt may have run");
        let foreground = CallRow { background: false, ..other("once", "kept") };
        assert_eq!(code(&plan(&foreground, HERE)), Some(Code::OutcomeUnknown));
    }

    #[test]
    fn a_call_that_waited_for_a_person_was_not_begun() {
        for effects in ["once", "idempotent", "pure"] {
            assert_eq!(runs(&plan(&row(State::WaitingApproval, effects, true), HERE)), Some(0), "{effects}");
            assert_eq!(code(&plan(&row(State::WaitingApproval, effects, false), HERE)), Some(Code::ShuttingDown));
        }
    }

    #[test]
    fn a_key_is_given_back_by_a_call_that_certainly_was_not_begun() {
        let gives = |row: &CallRow| matches!(plan(row, HERE), Plan::Fail { gives_key_back: true, .. });
        assert!(gives(&row(State::Created, "once", false)));
        assert!(!gives(&row(State::Running, "once", false)) && !gives(&row(State::Running, "pure", false)));
        let elsewhere = CallRow { boot_id: Some("another".to_owned()), ..row(State::Created, "pure", false) };
        assert!(!gives(&elsewhere));
    }

    #[test]
    fn a_call_whose_arguments_are_lost_is_not_run_with_others() {
        for request in [None, Some("{\"a\"".to_owned()), Some("[]".to_owned())] {
            let row = CallRow { request, ..row(State::Created, "pure", true) };
            assert_eq!(code(&plan(&row, HERE)), Some(Code::ShuttingDown));
        }
    }

    #[test]
    fn a_call_that_was_being_cancelled_is_cancelled() {
        let cancelled = CallRow { cancelled: Some("the client".to_owned()), ..row(State::Running, "pure", true) };
        let plan = plan(&cancelled, HERE);
        assert!(matches!(plan, Plan::Cancel(_)) && plan.state(cancelled.state) == State::Cancelled);
    }
}
