//! One worker as the machine sees it: its phase, the calls it holds in order, and their clocks.

use std::collections::VecDeque;

use super::event::{CallId, CallSpec, Moment, WhyStop, WorkerId};
use super::rules::Rules;

/// The phase of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its environment is being built, or it has not said hello.
    Starting,
    /// It takes calls.
    Serving,
    /// It takes no more calls and stops with its last one.
    Draining,
    /// It is stopping and holds no calls.
    Leaving,
}

/// What was done about an overdue or cancelled running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escalation {
    None,
    /// The worker was asked for its stack.
    Stack {
        until: Moment,
    },
    /// The call was interrupted, because it is overdue or cancelled.
    Interrupted {
        until: Moment,
        nudge: Moment,
        overdue: bool,
    },
    /// It ignores the interruption; its worker stops when the calls beside it have ended.
    Stuck,
}

impl Escalation {
    pub fn interrupted(now: Moment, overdue: bool, rules: &Rules) -> Self {
        Self::Interrupted { until: now + rules.cancel_grace, nudge: now + rules.nudge_every, overdue }
    }

    pub fn is_overdue(self) -> bool {
        matches!(self, Self::Interrupted { overdue: true, .. })
    }
}

/// Whether a call waits for an answer of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parked {
    No,
    /// It has asked.
    Asking {
        since: Moment,
        /// It only waits for a call that asks.
        is_outer: bool,
    },
    /// It has its answer and waits for a run permit.
    Resuming {
        since: Moment,
        is_outer: bool,
    },
    /// It was, and goes on.
    Past,
}

impl Parked {
    pub const fn is_now(self) -> bool {
        matches!(self, Self::Asking { .. } | Self::Resuming { .. })
    }
}

/// Whether a call was begun before. No call is begun a third time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    /// Its worker exited, and it is repeated.
    Again,
    /// It may have killed its worker, or only run beside the cause: it is repeated alone.
    Alone,
}

/// A call in the pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedCall {
    pub spec: CallSpec,
    /// When it was queued; once a worker begins it, when that was.
    pub since: Moment,
    /// It holds a run permit of the broker.
    pub has_run_permit: bool,
    pub attempt: Attempt,
    /// Its caller was answered; only the worker's answer is missing.
    pub settled: bool,
    pub escalation: Escalation,
    pub parked: Parked,
    /// It was written to a worker whose call is parked, and asked back.
    pub is_recalled: bool,
}

impl QueuedCall {
    pub fn waiting(spec: CallSpec, now: Moment) -> Self {
        Self {
            spec,
            since: now,
            has_run_permit: false,
            attempt: Attempt::First,
            settled: false,
            escalation: Escalation::None,
            parked: Parked::No,
            is_recalled: false,
        }
    }

    pub fn call(&self) -> CallId {
        self.spec.call
    }

    /// Whether it may lose its place in a full queue: it was never begun, and no running call waits for it.
    pub fn may_be_refused(&self) -> bool {
        self.attempt == Attempt::First && !self.spec.nested
    }

    /// Whether it may ask its client: its caller waits for it, and it is not being interrupted.
    pub fn may_ask(&self) -> bool {
        !self.settled && self.escalation == Escalation::None
    }

    /// When a running call next needs attention.
    fn next_timer(&self) -> Option<Moment> {
        match self.escalation {
            Escalation::None if self.parked.is_now() => None,
            Escalation::None => Some(self.since.saturating_add(self.spec.timeout)),
            Escalation::Stack { until } => Some(until),
            Escalation::Interrupted { until, nudge, .. } => Some(until.min(nudge)),
            Escalation::Stuck => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct WorkerState {
    pub state: State,
    pub line: VecDeque<QueuedCall>,
    /// When it said hello.
    pub ready_at: Moment,
    /// When it became idle, if it is.
    pub idle_since: Moment,
    /// Calls it has answered.
    pub calls: u64,
    /// When it first exceeded its memory limit.
    pub large_since: Option<Moment>,
    /// It still exceeded the limit after the calls of that measurement had ended.
    pub is_large: bool,
    /// Why it stops as soon as its successor is ready.
    pub outgoing: Option<WhyStop>,
    /// Since when its replacement has been blocked.
    pub due_since: Option<Moment>,
    /// The deadline to answer a ping while one of its calls is stuck.
    pub ping_until: Option<Moment>,
    /// It was started for a waiting call, not for growth.
    pub is_asked_for: bool,
    /// The worker that it replaces.
    pub succeeds: Option<WorkerId>,
    /// No replacement before this time, because its successor did not start.
    pub recycle_after: Moment,
}

impl WorkerState {
    pub fn starting(now: Moment, succeeds: Option<WorkerId>) -> Self {
        Self {
            state: State::Starting,
            line: VecDeque::new(),
            ready_at: now,
            idle_since: now,
            calls: 0,
            large_since: None,
            is_large: false,
            outgoing: None,
            due_since: None,
            ping_until: None,
            is_asked_for: false,
            succeeds,
            recycle_after: Moment::ZERO,
        }
    }

    /// The number of its calls that it has begun: it begins them in order, up to its capacity.
    pub fn begun(&self, rules: &Rules) -> usize {
        self.line.len().min(rules.concurrency)
    }

    /// Whether another call may be written to it, given its capacity. A nested call may begin beside a call that runs
    /// alone: that call may be the one that waits for it.
    pub fn has_room(&self, capacity: usize, nested: bool) -> bool {
        let undisturbed = || {
            self.line
                .iter()
                .all(|queued| queued.escalation == Escalation::None && (nested || queued.attempt != Attempt::Alone))
        };
        self.state == State::Serving && self.line.len() < capacity && undisturbed()
    }

    /// Whether all calls that it can run are parked.
    pub fn is_asking(&self, rules: &Rules) -> bool {
        self.begun(rules) == rules.concurrency
            && self.line.iter().take(rules.concurrency).all(|queued| queued.parked.is_now())
    }

    /// Whether it may still serve a call.
    pub fn may_serve(&self) -> bool {
        matches!(self.state, State::Starting | State::Serving)
    }

    /// Whether it counts towards the pool's limit: a worker about to be replaced does not.
    pub fn counts(&self) -> bool {
        self.may_serve() && self.outgoing.is_none()
    }

    pub fn is_idle(&self) -> bool {
        self.state == State::Serving && self.line.is_empty()
    }

    /// The limit that it has reached.
    pub fn is_due(&self, now: Moment, rules: &Rules) -> Option<WhyStop> {
        if self.state != State::Serving || self.outgoing.is_some() || now < self.recycle_after {
            None
        } else if rules.max_calls.is_some_and(|most| self.calls >= most) {
            Some(WhyStop::Calls)
        } else if self.lifetime_ends(rules).is_some_and(|end| end <= now) {
            Some(WhyStop::Lifetime)
        } else if self.is_large {
            Some(WhyStop::Memory)
        } else {
            None
        }
    }

    fn lifetime_ends(&self, rules: &Rules) -> Option<Moment> {
        rules.max_lifetime.map(|most| self.ready_at.saturating_add(most))
    }

    /// Records its memory.
    pub fn measured(&mut self, now: Moment, held: usize, rules: &Rules) {
        if rules.max_rss.is_none_or(|most| held <= most) {
            self.large_since = None;
            return;
        }
        let since = *self.large_since.get_or_insert(now);
        // A running call may free its memory; what remains after all running calls have ended is not freed.
        let mut running = self.line.iter().take(rules.concurrency);
        self.is_large |= self.calls > 0 && running.all(|queued| queued.since > since);
    }

    /// Whether it exceeds the limit before its first call: every successor will too.
    pub fn begins_large(&self) -> bool {
        self.calls == 0 && self.line.is_empty() && self.large_since.is_some()
    }

    /// When it has been idle for long enough.
    pub fn idle_ends(&self, rules: &Rules) -> Option<Moment> {
        rules.idle.filter(|_| self.is_idle()).map(|idle| self.idle_since.saturating_add(idle))
    }

    /// When this worker next needs attention. `may_leave`: whether it stops when idle for long enough; `is_replaced`:
    /// whether it is replaced at its limits.
    pub fn next_timer(&self, rules: &Rules, may_leave: bool, is_replaced: bool) -> Option<Moment> {
        if !matches!(self.state, State::Serving | State::Draining) {
            return None;
        }
        let running = self.line.iter().take(rules.concurrency).filter_map(QueuedCall::next_timer);
        let lives = is_replaced && self.state == State::Serving && self.outgoing.is_none();
        let replaced = self.lifetime_ends(rules).filter(|_| lives).map(|end| end.max(self.recycle_after));
        let idle = self.idle_ends(rules).filter(|_| may_leave);
        running.chain(idle).chain(replaced).chain(self.ping_until).min()
    }
}
