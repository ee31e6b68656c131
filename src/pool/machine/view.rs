//! What of a pool can be looked at.

use std::time::Duration;

use super::Machine;
use crate::pool::event::{Moment, WorkerId};
#[cfg(test)]
use crate::pool::worker_state::Escalation;
use crate::pool::worker_state::State;

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
    /// Where it is in its task.
    pub state: WorkerPhase,
    /// Calls it has answered.
    pub calls: u64,
    /// Calls it holds.
    pub holds: usize,
    /// Since its hello; since its start, while it starts.
    pub uptime: Duration,
}

/// Where a worker is in its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerPhase {
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

impl WorkerPhase {
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
        let workers = self.workers.iter().map(|(worker, worker_state)| WorkerView {
            worker: *worker,
            state: match worker_state.state {
                State::Starting => WorkerPhase::Starting,
                State::Serving if worker_state.line.is_empty() => WorkerPhase::Idle,
                State::Serving => WorkerPhase::Busy,
                State::Draining => WorkerPhase::Draining,
                State::Leaving => WorkerPhase::Leaving,
            },
            calls: worker_state.calls,
            holds: worker_state.line.len(),
            uptime: now.saturating_sub(worker_state.ready_at),
        });
        let left = self.breaker.retry_at().saturating_sub(now);
        let resting = (!left.is_zero()).then(|| Resting {
            failures: self.breaker.failures(),
            deaths: self.breaker.deaths(),
            left,
            refuses: self.breaker.open(now, &self.rules).is_some(),
        });
        PoolView { workers: workers.collect(), waiting: self.waiting.len(), resting }
    }

    /// Workers that take no more calls and are not told to go yet.
    #[cfg(test)]
    pub(in crate::pool) fn draining(&self) -> usize {
        self.workers.values().filter(|worker_state| worker_state.state == State::Draining).count()
    }

    /// Admission that calls hold which obey nothing, and whose callers were answered.
    #[cfg(test)]
    pub(in crate::pool) fn unused_run_permits(&self) -> usize {
        let queued = self.workers.values().flat_map(|worker_state| &worker_state.line);
        queued.filter(|call_slot| call_slot.escalation == Escalation::Stuck && call_slot.has_run_permit).count()
    }

    /// Whether calls are tried one alone.
    #[cfg(test)]
    pub(in crate::pool) fn is_on_trial(&self) -> bool {
        self.breaker.on_trial(&self.rules)
    }
}
