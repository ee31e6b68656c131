//! Calls on their way through workers: assigned, answered, taken back from dead workers.

use std::collections::VecDeque;

use super::sabotage::sabotaged;
use super::{Machine, Phase, Step, interruption};
use crate::pool::event::{CallId, Decision, Effect, Verdict, WhyStop, WorkerId};
use crate::pool::worker_state::{Attempt, Escalation, Parked, QueuedCall, State, WorkerState};

impl Machine {
    /// The number of calls that a worker may hold now.
    pub(super) fn capacity(&self) -> usize {
        if self.breaker.on_trial(&self.rules) {
            1
        } else if self.rules.concurrency > 1 {
            self.rules.concurrency
        } else if self.rules.max_workers > 1 {
            1
        } else {
            self.rules.write_ahead.max(1)
        }
    }

    /// Assigns queued calls to workers with capacity.
    pub(super) fn assign(&mut self, step: &mut Step<'_>) {
        while let Some(mut queued) = self.waiting.front().copied() {
            let Some(id) = self.worker_for(step, &mut queued) else { return };
            let Some(worker) = self.workers.get_mut(&id) else { return };
            self.waiting.pop_front();
            if worker.line.len() < self.rules.concurrency {
                queued.since = step.now;
            }
            if worker.line.is_empty() {
                step.broker.busy(self.pool, id);
            }
            worker.line.push_back(queued);
            step.effects.push(Effect::Send { worker: id, call: queued.call() });
        }
    }

    /// `max_calls = 1` promises each call a process of its own. Higher limits are exceeded until the successor is ready.
    fn is_used_up(&self, worker: &WorkerState) -> bool {
        self.rules.max_calls == Some(1) && (worker.calls > 0 || !worker.line.is_empty())
    }

    /// The worker that takes this call now, and a run permit if the call needs one.
    fn worker_for(&mut self, step: &mut Step<'_>, queued: &mut QueuedCall) -> Option<WorkerId> {
        let (capacity, concurrency) = (self.capacity(), self.rules.concurrency);
        if self.breaker.on_trial(&self.rules) && self.workers.values().any(|worker| !worker.line.is_empty()) {
            return None;
        }
        let takes_any = sabotaged!(self, SendToLeaving);
        let has_room = |worker: &WorkerState| {
            worker.has_room(capacity, queued.spec.nested) || (takes_any && worker.state == State::Leaving)
        };
        // The oldest, so that the youngest become idle and leave first. No call waits behind another while a worker is
        // idle.
        let begins = |worker: &WorkerState| worker.line.len() < concurrency;
        let is_apart = |worker: &WorkerState| queued.attempt != Attempt::Alone || worker.line.is_empty();
        // A worker due for replacement gets nothing written ahead, so that it can finish.
        let takes = |worker: &WorkerState| {
            has_room(worker)
                && !worker.is_asking(&self.rules)
                && !self.is_used_up(worker)
                && (begins(worker) || worker.due_since.is_none())
                && is_apart(worker)
        };
        let mut roomy = self.workers.iter().filter(|(_, worker)| takes(worker));
        let (id, worker) = roomy.clone().find(|(_, worker)| begins(worker)).or_else(|| roomy.next())?;
        let begins = worker.line.len() < concurrency;
        if !begins && queued.spec.begins_at_once && !sabotaged!(self, WriteAheadAnyway) {
            return None;
        }
        if queued.spec.nested {
            return Some(*id);
        }
        if begins {
            let has_one = std::mem::take(&mut self.has_spare_permit);
            queued.has_run_permit = has_one || step.broker.take_run_permit(self.pool) || sabotaged!(self, IgnoreCap);
            self.wants.run_permit |= !queued.has_run_permit;
            return queued.has_run_permit.then_some(*id);
        }
        // A call written ahead takes over the permit of the call before it. So that call must hold a permit, and no
        // other pool may be waiting for one. A recalled call may begin without.
        let inherits = worker.line.iter().all(|earlier| !earlier.spec.nested && !earlier.is_recalled);
        (inherits && !step.broker.others_wait(self.pool)).then_some(*id)
    }

    pub(super) fn answered(&mut self, step: &mut Step<'_>, id: WorkerId, call: CallId, cancelled: bool) {
        let rules = self.rules;
        let holds = |worker: &WorkerState| worker.line.iter().any(|queued| queued.call() == call);
        let id = if sabotaged!(self, BelieveLateNews) {
            self.workers.iter().find(|(_, worker)| holds(worker)).map_or(id, |(holder, _)| *holder)
        } else {
            id
        };
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(place) = worker.line.iter().position(|queued| queued.call() == call) else { return };
        let begun = place < worker.begun(&rules);
        let Some(mut queued) = worker.line.remove(place) else { return };
        step.leaves_park(self.pool, &mut queued);
        if begun {
            worker.calls += 1;
            // A successor would start too late: the next call starts its own worker.
            if rules.max_calls == Some(1) && worker.state == State::Serving {
                (worker.state, worker.outgoing) = (State::Draining, Some(WhyStop::Calls));
            }
        }
        if !queued.settled {
            let timed_out = begun && cancelled && queued.escalation.is_overdue();
            let verdict =
                if timed_out { Verdict::TimedOut { worker: id, stopped: false } } else { Verdict::Answered(id) };
            step.finish(call, verdict);
            if sabotaged!(self, AnswerTwice) {
                step.finish(call, verdict);
            }
        }
        self.pass_on_run_permit(step, id, queued.has_run_permit);
        if begun {
            self.ran(step, step.now.saturating_sub(queued.since), cancelled);
            self.next_begins(step, id);
        }
        self.rest_or_leave(step, id);
    }

    fn ran(&mut self, step: &mut Step<'_>, run: std::time::Duration, cancelled: bool) {
        self.usual_run = (self.usual_run * 7 + run) / 8;
        if !cancelled && self.breaker.went_well(&self.rules) {
            step.tell(Decision::Recovered);
        }
    }

    /// Passes the permit of an ended call to the next call of its worker, or returns it.
    pub(super) fn pass_on_run_permit(&mut self, step: &mut Step<'_>, id: WorkerId, has_run_permit: bool) {
        if !has_run_permit || sabotaged!(self, LeakRunPermit) {
            return;
        }
        let concurrency = self.rules.concurrency;
        let line = self.workers.get_mut(&id).map(|worker| &mut worker.line);
        let needs_one = |queued: &&mut QueuedCall| {
            !queued.has_run_permit
                && !queued.spec.nested
                && !queued.parked.is_now()
                && queued.escalation != Escalation::Stuck
        };
        let heir = line.and_then(|line| line.iter_mut().take(concurrency).find(needs_one));
        match heir {
            Some(heir) => heir.has_run_permit = true,
            None => step.broker.return_run_permit(self.pool),
        }
    }

    /// The worker begins its next call.
    pub(super) fn next_begins(&mut self, step: &mut Step<'_>, id: WorkerId) {
        let rules = self.rules;
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(next) = worker.line.get_mut(rules.concurrency - 1) else { return };
        next.since = step.now;
        // A withdrawn call may have begun before the withdrawal arrived.
        if next.settled {
            next.escalation = Escalation::interrupted(step.now, false, &rules);
            step.effects.push(interruption(id, next.call(), true, &rules));
        }
    }

    /// Takes the calls of a worker that exited or must stop: those not begun go back to the queue, those begun are
    /// returned without their run permits.
    pub(super) fn clear(&mut self, step: &mut Step<'_>, line: VecDeque<QueuedCall>) -> Vec<QueuedCall> {
        let mut begun = Vec::new();
        let mut untouched = Vec::new();
        for (place, mut queued) in line.into_iter().enumerate() {
            step.leaves_park(self.pool, &mut queued);
            queued.is_recalled = false;
            queued.parked = Parked::No;
            if std::mem::take(&mut queued.has_run_permit) && !sabotaged!(self, LeakRunPermit) {
                step.broker.return_run_permit(self.pool);
            }
            if place < self.rules.concurrency {
                begun.push(queued);
            } else if !queued.settled {
                untouched.push(queued);
            }
        }
        if !sabotaged!(self, DropRequeue) {
            self.requeue(step, untouched);
        }
        begun
    }

    /// Puts calls back at the head of the queue, in order, nested calls first.
    pub(super) fn requeue(&mut self, step: &mut Step<'_>, calls: Vec<QueuedCall>) {
        if self.phase == Phase::Ending {
            let ended = calls.iter().map(QueuedCall::call);
            step.effects.extend(ended.map(|call| Effect::Finish { call, verdict: Verdict::ShuttingDown }));
            return;
        }
        for queued in calls.into_iter().rev() {
            let nested = self.waiting.iter().take_while(|other| other.spec.nested && !queued.spec.nested).count();
            self.waiting.insert(nested, queued);
        }
    }
}
