//! The states of a call, as specification 003 names them. Each state is a type, and its methods are the transitions that are legal:
//! another one does not compile.
//!
//! ```text
//! created ─► running ─► complete
//!    ▲          ├─────► error ─► (retry) ─► created, or failed once its retries are used up
//!    │          ├─────► stale, orphaned ──► created, or failed
//!    └──────────┴─────► cancelled
//!
//! created ─► waiting_approval ─► created, once it is approved; orphaned, cancelled
//!    └──────────────┴──────────► denied
//! ```

#![expect(clippy::unused_self, reason = "a transition takes the state that it begins in")]

use serde::{Deserialize, Serialize};

/// A state, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Accepted, and not begun.
    Created,
    /// A person is asked whether it may run.
    WaitingApproval,
    /// Its tool has it.
    Running,
    /// It has a result.
    Complete,
    /// It ended with a fault.
    Error,
    /// Its process is gone, and nothing has been decided yet.
    Orphaned,
    /// The process that runs it shows no sign of life.
    Stale,
    /// It was interrupted, or its retries are used up.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// A rule or a person did not let it run.
    Denied,
}

impl State {
    /// The word that stands for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::WaitingApproval => "waiting_approval",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Error => "error",
            Self::Orphaned => "orphaned",
            Self::Stale => "stale",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
        }
    }

    /// The state that a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        const ALL: [State; 10] = [
            State::Created,
            State::WaitingApproval,
            State::Running,
            State::Complete,
            State::Error,
            State::Orphaned,
            State::Stale,
            State::Failed,
            State::Cancelled,
            State::Denied,
        ];
        ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether nothing follows it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Error | Self::Failed | Self::Cancelled | Self::Denied)
    }
}

/// A call that was accepted.
#[derive(Debug, PartialEq, Eq)]
pub struct Created;
/// A call about which a person is asked.
#[derive(Debug, PartialEq, Eq)]
pub struct WaitingApproval;
/// A call that its tool has.
#[derive(Debug, PartialEq, Eq)]
pub struct Running;
/// A call whose attempt has failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Errored;
/// A call whose process is gone.
#[derive(Debug, PartialEq, Eq)]
pub struct Orphaned;
/// A call that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended(State);

impl Created {
    pub fn ask(self) -> WaitingApproval {
        WaitingApproval
    }

    pub fn dispatch(self) -> Running {
        Running
    }

    pub fn deny(self) -> Ended {
        Ended(State::Denied)
    }

    pub fn orphan(self) -> Orphaned {
        Orphaned
    }

    pub fn cancel(self) -> Ended {
        Ended(State::Cancelled)
    }
}

impl WaitingApproval {
    pub fn orphan(self) -> Orphaned {
        Orphaned
    }
}

impl Running {
    pub fn complete(self) -> Ended {
        Ended(State::Complete)
    }

    pub fn fail(self) -> Errored {
        Errored
    }

    pub fn orphan(self) -> Orphaned {
        Orphaned
    }

    pub fn cancel(self) -> Ended {
        Ended(State::Cancelled)
    }
}

impl Errored {
    /// It is tried again.
    pub fn retry(self) -> Created {
        Created
    }

    /// It stays as it is. Calls that were tried again and failed each time have failed for good.
    pub fn end(self, were_retries: bool) -> Ended {
        Ended(if were_retries { State::Failed } else { State::Error })
    }
}

impl Orphaned {
    pub fn retry(self) -> Created {
        Created
    }

    pub fn fail(self) -> Ended {
        Ended(State::Failed)
    }
}

impl Ended {
    pub fn state(self) -> State {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_of_one_state() {
        let words = ["created", "waiting_approval", "running", "complete", "error"];
        for word in words.into_iter().chain(["orphaned", "stale", "failed", "cancelled", "denied"]) {
            assert_eq!(State::of(word).map(State::word), Some(word));
        }
        assert_eq!(State::of("done"), None);
    }

    #[test]
    fn the_ways_through_the_states() {
        assert_eq!(Created.dispatch().complete().state(), State::Complete);
        assert_eq!(Created.dispatch().fail().end(false).state(), State::Error);
        assert_eq!(Created.dispatch().fail().retry().dispatch().fail().end(true).state(), State::Failed);
        assert_eq!(Created.cancel().state(), State::Cancelled);
        assert_eq!(Created.dispatch().orphan().fail().state(), State::Failed);
        assert_eq!(Created.deny().state(), State::Denied);
        assert_eq!(Created.ask().orphan().retry().deny().state(), State::Denied);
        assert_eq!(Created.orphan().retry().dispatch().cancel().state(), State::Cancelled);
    }
}
