//! What of a pool can be looked at.

use std::time::Duration;

use super::Machine;
use crate::pool::event::{Moment, WorkerId};
use crate::pool::seat::State;
#[cfg(test)]
use crate::pool::seat::Strike;

/// A pool at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// Its workers, oldest first.
    pub workers: Vec<WorkerView>,
    /// Calls that no worker has yet.
    pub waiting: usize,
    /// Why no worker is started, if none is.
    pub resting: Option<Resting>,
}

/// Workers failed lately, and none is started for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resting {
    /// Starts that failed in a row.
    pub failures: u32,
    /// Deaths in a row.
    pub deaths: u32,
    /// Until one is tried again.
    pub left: Duration,
    /// Whether calls are refused meanwhile.
    pub refuses: bool,
}

/// A worker at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerView {
    /// Which.
    pub worker: WorkerId,
    /// Where it is in its life.
    pub state: WorkerState,
    /// Calls it has answered.
    pub calls: u64,
    /// Calls it holds.
    pub holds: usize,
    /// Since its hello; since its start, while it starts.
    pub uptime: Duration,
}

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// Its environment is being built, or it has not said hello.
    Starting,
    /// It waits for a call.
    Idle,
    /// It makes calls.
    Busy,
    /// It makes its last calls.
    Draining,
    /// It was told to go.
    Leaving,
}

impl WorkerState {
    /// The word that people and programs read.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Draining => "draining",
            Self::Leaving => "leaving",
        }
    }
}

impl Machine {
    /// How it stands.
    pub fn view(&self, now: Moment) -> PoolView {
        let workers = self.workers.iter().map(|(worker, seat)| WorkerView {
            worker: *worker,
            state: match seat.state {
                State::Starting => WorkerState::Starting,
                State::Serving if seat.line.is_empty() => WorkerState::Idle,
                State::Serving => WorkerState::Busy,
                State::Draining => WorkerState::Draining,
                State::Leaving => WorkerState::Leaving,
            },
            calls: seat.calls,
            holds: seat.line.len(),
            uptime: now.saturating_sub(seat.ready_at),
        });
        let left = self.trouble.retry_at().saturating_sub(now);
        let resting = (!left.is_zero()).then(|| Resting {
            failures: self.trouble.failures(),
            deaths: self.trouble.deaths(),
            left,
            refuses: self.trouble.open(now, &self.rules).is_some(),
        });
        PoolView { workers: workers.collect(), waiting: self.waiting.len(), resting }
    }

    /// Workers that take no more calls and are not told to go yet.
    #[cfg(test)]
    pub(in crate::pool) fn draining(&self) -> usize {
        self.workers.values().filter(|seat| seat.state == State::Draining).count()
    }

    /// Turns that calls hold which obey nothing, and whose callers were answered.
    #[cfg(test)]
    pub(in crate::pool) fn turns_for_nobody(&self) -> usize {
        let slots = self.workers.values().flat_map(|seat| &seat.line);
        slots.filter(|slot| slot.strike == Strike::Stuck && slot.has_turn).count()
    }

    /// Whether calls are tried one alone.
    #[cfg(test)]
    pub(in crate::pool) fn is_on_trial(&self) -> bool {
        self.trouble.on_trial(&self.rules)
    }
}
