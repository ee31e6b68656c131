//! One worker as the machine sees it: its state, the calls it holds in order, and their clocks.

use std::collections::VecDeque;

use super::event::{CallId, CallSpec, Moment, WhyStop, WorkerId};
use super::rules::Rules;

/// Where a worker is in its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its environment is being built or it has not said hello.
    Starting,
    /// It takes calls.
    Serving,
    /// It takes no more calls, and leaves with the last that it holds.
    Draining,
    /// It was told to go and holds no calls.
    Leaving,
}

/// What has been done about a running call that should have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escalation {
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
    /// It obeys no interruption; its worker goes when the calls beside it have ended.
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

/// Whether a call was begun before. None is begun a third time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    /// Its worker is gone, and it is made again.
    Again,
    /// It may be what its worker died of, or only have been beside that: it is made again with nothing beside it.
    Alone,
}

/// A call in the pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedCall {
    pub spec: CallSpec,
    /// When it began to wait; once a worker begins it, when that was.
    pub since: Moment,
    /// It holds one of the admission that all pools share.
    pub has_run_permit: bool,
    pub attempt: Attempt,
    /// The caller has its verdict already; only the worker's answer is still to come.
    pub settled: bool,
    pub escalation: Escalation,
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
        }
    }

    pub fn call(&self) -> CallId {
        self.spec.call
    }

    /// When a running call next needs attention.
    fn next_timer(&self) -> Option<Moment> {
        match self.escalation {
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
    /// When its line became empty, if it is.
    pub idle_since: Moment,
    /// How many calls it has answered.
    pub calls: u64,
    /// It was seen to hold too much, first then.
    pub large_since: Option<Moment>,
    /// It holds too much also when the call that was seen to has ended.
    pub is_large: bool,
    /// It is to leave for this reason as soon as its successor is there.
    pub outgoing: Option<WhyStop>,
    /// Since when it should be replaced, and cannot.
    pub due_since: Option<Moment>,
    /// Until then it has to show that it is not held up by a call that obeys nothing.
    pub ping_until: Option<Moment>,
    /// It was started for a call, and not because there should be more.
    pub is_asked_for: bool,
    /// The worker in whose place it comes.
    pub succeeds: Option<WorkerId>,
    /// It is not replaced before, since its successor did not start.
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

    /// How many of its calls it has begun: it begins them in order, so many at once.
    pub fn begun(&self, rules: &Rules) -> usize {
        self.line.len().min(rules.concurrency)
    }

    /// Whether another call may be written to it, where it may hold so many. One that a running call waits for may begin
    /// beside one made alone: that may be the very one that waits.
    pub fn has_room(&self, capacity: usize, nested: bool) -> bool {
        let undisturbed = || {
            self.line.iter().all(|call_slot| {
                call_slot.escalation == Escalation::None && (nested || call_slot.attempt != Attempt::Alone)
            })
        };
        self.state == State::Serving && self.line.len() < capacity && undisturbed()
    }

    /// Whether it may come to serve a call yet.
    pub fn may_serve(&self) -> bool {
        matches!(self.state, State::Starting | State::Serving)
    }

    /// Whether it counts as one of the workers a pool may have: one that is about to be replaced does not.
    pub fn counts(&self) -> bool {
        self.may_serve() && self.outgoing.is_none()
    }

    pub fn is_idle(&self) -> bool {
        self.state == State::Serving && self.line.is_empty()
    }

    /// Which limit of its task it has reached.
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

    /// Takes a look at its memory.
    pub fn measured(&mut self, now: Moment, held: usize, rules: &Rules) {
        if rules.max_rss.is_none_or(|most| held <= most) {
            self.large_since = None;
            return;
        }
        let since = *self.large_since.get_or_insert(now);
        // What a running call holds it may give back; what is still held when all that ran have ended, it does not.
        let mut running = self.line.iter().take(rules.concurrency);
        self.is_large |= self.calls > 0 && running.all(|call_slot| call_slot.since > since);
    }

    /// Whether it holds too much before its first call: so will each that comes after it.
    pub fn begins_large(&self) -> bool {
        self.calls == 0 && self.line.is_empty() && self.large_since.is_some()
    }

    /// When it has been idle for long enough.
    pub fn idle_ends(&self, rules: &Rules) -> Option<Moment> {
        rules.idle.filter(|_| self.is_idle()).map(|idle| self.idle_since.saturating_add(idle))
    }

    /// When this worker next needs attention. `may_leave`: whether it goes when it has been idle for
    /// long enough; `is_replaced`: whether it is when its task is over.
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
