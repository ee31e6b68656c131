//! One worker as the machine sees it: its state, the calls it holds in order, and the clock of the first of them.

use std::collections::VecDeque;

use super::event::{CallId, Moment, Rules};

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its environment is being built or it has not said hello.
    Starting,
    /// It takes calls.
    Serving,
    /// It was told to go and holds no calls.
    Leaving,
}

/// What has been done about a first call that should have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strike {
    None,
    /// The worker was asked for its stack.
    Stack {
        until: Moment,
    },
    /// The call was interrupted, because it is overdue or because nobody wants it.
    Interrupted {
        until: Moment,
        nudge: Moment,
        overdue: bool,
    },
}

impl Strike {
    pub fn interrupted(now: Moment, overdue: bool, rules: &Rules) -> Self {
        Self::Interrupted { until: now + rules.cancel_grace, nudge: now + rules.nudge_every, overdue }
    }
}

/// A call written to the worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub call: CallId,
    pub timeout: std::time::Duration,
    /// The caller has its verdict already; only the worker's answer is still to come.
    pub settled: bool,
}

#[derive(Debug)]
pub(super) struct Seat {
    pub state: State,
    pub line: VecDeque<Slot>,
    pub strike: Strike,
    /// When the first call of the line became the first; when the line became empty, if it is.
    pub since: Moment,
}

impl Seat {
    pub fn starting(now: Moment) -> Self {
        Self { state: State::Starting, line: VecDeque::new(), strike: Strike::None, since: now }
    }

    /// Whether another call may be written to it.
    pub fn has_room(&self, rules: &Rules) -> bool {
        self.state == State::Serving && self.strike == Strike::None && self.line.len() < rules.write_ahead
    }

    pub fn counts_as_alive(&self) -> bool {
        self.state != State::Leaving
    }

    /// When this worker next needs attention.
    pub fn next_timer(&self, rules: &Rules) -> Option<Moment> {
        if self.state != State::Serving {
            return None;
        }
        match (self.strike, self.line.front()) {
            (Strike::Stack { until }, _) => Some(until),
            (Strike::Interrupted { until, nudge, .. }, _) => Some(until.min(nudge)),
            (Strike::None, Some(first)) => Some(self.since.saturating_add(first.timeout)),
            (Strike::None, None) => rules.idle.map(|idle| self.since.saturating_add(idle)),
        }
    }
}
