//! Read access to a pool's state.

use std::time::Duration;

use super::Machine;
use crate::pool::event::{Moment, WorkerId};
use crate::pool::worker_state::State;
#[cfg(test)]
use crate::pool::worker_state::{Escalation, Parked, QueuedCall};

/// A snapshot of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// Its workers, oldest first.
    pub workers: Vec<WorkerView>,
    /// Queued calls.
    pub waiting: usize,
    /// The pause, if no worker is started.
    pub resting: Option<Resting>,
}

/// A pause after repeated failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resting {
    /// Failed starts in a row.
    pub failures: u32,
    /// Deaths in a row.
    pub deaths: u32,
    /// When the next start is attempted.
    pub left: Duration,
    /// Whether calls are refused until then.
    pub refuses: bool,
}

/// A snapshot of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerView {
    /// The worker.
    pub worker: WorkerId,
    /// Its phase.
    pub state: WorkerPhase,
    /// Calls it has answered.
    pub calls: u64,
    /// Calls it holds.
    pub holds: usize,
    /// The time since its hello, or since its start if it is still starting.
    pub uptime: Duration,
}

/// The phase of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerPhase {
    /// Its environment is being built, or it has not said hello.
    Starting,
    /// It waits for a call.
    Idle,
    /// It runs calls.
    Busy,
    /// Its calls wait for their clients.
    Asking,
    /// It finishes its calls and takes no more.
    Draining,
    /// It is stopping.
    Leaving,
}

impl WorkerPhase {
    /// The word for people and programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Asking => "asking",
            Self::Draining => "draining",
            Self::Leaving => "leaving",
        }
    }
}

impl Machine {
    /// A snapshot of the pool.
    pub fn view(&self, now: Moment) -> PoolView {
        let workers = self.workers.iter().map(|(id, worker)| WorkerView {
            worker: *id,
            state: match worker.state {
                State::Starting => WorkerPhase::Starting,
                State::Serving if worker.line.is_empty() => WorkerPhase::Idle,
                State::Serving | State::Draining if worker.is_asking(&self.rules) => WorkerPhase::Asking,
                State::Serving => WorkerPhase::Busy,
                State::Draining => WorkerPhase::Draining,
                State::Leaving => WorkerPhase::Leaving,
            },
            calls: worker.calls,
            holds: worker.line.len(),
            uptime: now.saturating_sub(worker.ready_at),
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

    /// Workers that take no more calls and are not stopping yet.
    #[cfg(test)]
    pub(in crate::pool) fn draining(&self) -> usize {
        self.workers.values().filter(|worker| worker.state == State::Draining).count()
    }

    /// Run permits held by calls that do not need one: parked ones, and stuck ones whose callers were answered.
    #[cfg(test)]
    pub(in crate::pool) fn unused_run_permits(&self) -> usize {
        let all = self.workers.values().flat_map(|worker| &worker.line);
        let idle = |queued: &&QueuedCall| queued.escalation == Escalation::Stuck || queued.parked.is_now();
        all.filter(|queued| idle(queued) && queued.has_run_permit).count()
    }

    /// Calls that are parked, also those that only wait for a call that asks.
    #[cfg(test)]
    pub(in crate::pool) fn parked(&self) -> usize {
        self.workers.values().flat_map(|worker| &worker.line).filter(|queued| queued.parked.is_now()).count()
    }

    /// Calls that ask their clients.
    #[cfg(test)]
    pub(in crate::pool) fn asking(&self) -> usize {
        let all = self.workers.values().flat_map(|worker| &worker.line);
        let asks = |parked| {
            matches!(parked, Parked::Asking { is_outer: false, .. } | Parked::Resuming { is_outer: false, .. })
        };
        all.filter(|queued| asks(queued.parked)).count()
    }

    /// Whether calls are tried one at a time.
    #[cfg(test)]
    pub(in crate::pool) fn is_on_trial(&self) -> bool {
        self.breaker.on_trial(&self.rules)
    }
}
