//! Workers on their way out: replaced, evicted, killed, dead.

use super::sabotage::sabotaged;
use super::{Machine, Minimum, Phase, Step};
use crate::pool::event::{Decision, Effect, Moment, Need, StopMode, Verdict, WhyStart, WhyStop, WorkerId};
use crate::pool::worker_state::{Attempt, Escalation, QueuedCall, State, WorkerState};

impl Machine {
    pub(super) fn died(&mut self, step: &mut Step<'_>, id: WorkerId, of_a_limit: bool) {
        let Some(worker) = self.workers.remove(&id) else { return };
        if !sabotaged!(self, LeakWorkerPermit) {
            step.broker.return_worker_permit(self.pool, id);
        }
        let begun = self.clear(step, worker.line);
        // An interrupted call may have caused the death; with uninterrupted calls beside it the cause is unknown.
        let of_interruption = !begun.is_empty() && begun.iter().all(|queued| queued.escalation != Escalation::None);
        if worker.state != State::Leaving && !of_interruption {
            self.hear_of_death(step, worker.ready_at, !begun.is_empty());
        }
        let refuses = self.breaker.open(step.now, &self.rules).is_some();
        for queued in begun.into_iter().rev().filter(|queued| !queued.settled) {
            self.end_of_begun(step, id, queued, of_a_limit || refuses);
        }
        if let Some(retry_after) = self.breaker.open(step.now, &self.rules) {
            let times = self.breaker.deaths();
            for queued in self.waiting.drain(..) {
                let verdict = Verdict::Broken { times, retry_after };
                step.finish(queued.call(), verdict);
            }
        }
    }

    fn hear_of_death(&mut self, step: &mut Step<'_>, ready_at: Moment, in_a_call: bool) {
        let pause = self.breaker.died(step.now, ready_at, in_a_call, &self.rules);
        let deaths = self.breaker.deaths();
        if self.breaker.on_trial(&self.rules) {
            step.tell(Decision::Refuse { deaths, pause });
        } else if !pause.is_zero() {
            step.tell(Decision::Rest { deaths, pause });
        }
    }

    /// A call was running in a worker that died: it is repeated if it is idempotent.
    fn end_of_begun(&mut self, step: &mut Step<'_>, id: WorkerId, mut queued: QueuedCall, is_last: bool) {
        let overdue = queued.escalation != Escalation::None;
        let repeatable = queued.spec.repeatable || sabotaged!(self, RepeatOnce);
        let again =
            repeatable && queued.attempt == Attempt::First && !overdue && !is_last && self.phase != Phase::Ending;
        if again {
            // The cause is one of several calls; repeated together, it would kill the others again.
            let alone = self.rules.concurrency > 1 && !queued.spec.nested;
            queued.attempt = if alone { Attempt::Alone } else { Attempt::Again };
            step.tell(Decision::Repeat(queued.call()));
            return self.requeue(step, vec![queued]);
        }
        let verdict = if overdue { Verdict::TimedOut { worker: id, stopped: true } } else { Verdict::Died(id) };
        step.finish(queued.call(), verdict);
    }

    /// It may still answer its call, but a further call would die with it.
    pub(super) fn ends(&mut self, id: WorkerId) {
        if let Some(worker) = self.workers.get_mut(&id).filter(|worker| worker.state == State::Serving)
            && !sabotaged!(self, SendToEnding)
        {
            (worker.state, worker.outgoing) = (State::Draining, Some(WhyStop::Interrupted));
        }
    }

    /// Stops a worker whose running calls are already answered; the calls behind them are untouched.
    pub(super) fn kill(&mut self, step: &mut Step<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.state = State::Leaving;
        let line = std::mem::take(&mut worker.line);
        step.tell(Decision::Stop(id, WhyStop::Stuck));
        step.effects.push(Effect::Stop { worker: id, mode: StopMode::Kill });
        let _ = self.clear(step, line);
    }

    /// A call ignores the interruption and blocks the whole worker: its other calls would only time out too.
    pub(super) fn kill_with_others(&mut self, step: &mut Step<'_>, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.ping_until = None;
        worker.state = State::Leaving;
        let line = std::mem::take(&mut worker.line);
        step.tell(Decision::Stop(id, WhyStop::Stuck));
        step.effects.push(Effect::Stop { worker: id, mode: StopMode::Kill });
        let begun = self.clear(step, line);
        for mut queued in begun.into_iter().rev().filter(|queued| !queued.settled) {
            if queued.spec.repeatable && queued.attempt == Attempt::First && self.phase != Phase::Ending {
                queued.attempt = Attempt::Again;
                step.tell(Decision::Repeat(queued.call()));
                queued.escalation = Escalation::None;
                self.requeue(step, vec![queued]);
            } else {
                step.finish(queued.call(), Verdict::HeldUp);
            }
        }
    }

    pub(super) fn retire(&mut self, step: &mut Step<'_>, id: WorkerId, why: WhyStop) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.state = State::Leaving;
        step.tell(Decision::Stop(id, why));
        step.effects.push(Effect::Stop { worker: id, mode: StopMode::Retire });
    }

    /// Another pool needs its worker permit or its memory more.
    pub(super) fn evict(&mut self, step: &mut Step<'_>, id: WorkerId, need: Need) {
        if self.workers.get(&id).is_some_and(WorkerState::is_idle) {
            if need == Need::Memory && self.minimum == Minimum::Wanted && !sabotaged!(self, StartAgain) {
                self.minimum = Minimum::TooLarge;
            }
            self.retire(step, id, WhyStop::Evicted(need));
        }
    }

    pub(super) fn measured(&mut self, step: &mut Step<'_>, id: WorkerId, held: usize) {
        let rules = self.rules;
        if let Some(worker) = self.workers.get_mut(&id).filter(|worker| worker.state == State::Serving) {
            worker.measured(step.now, held, &rules);
            if worker.begins_large() && !std::mem::replace(&mut self.logged_size, true) {
                step.tell(Decision::BeginsLarge { worker: id, held });
            }
        }
        if self.workers.contains_key(&id) {
            step.broker.measured(self.pool, id, held);
        }
    }

    /// Starts successors of workers that have reached a limit. Without a free worker permit, the worker stops as soon
    /// as it may, and the next call starts another.
    pub(super) fn recycle(&mut self, step: &mut Step<'_>) {
        if self.phase != Phase::Open {
            return;
        }
        let rules = self.rules;
        let starts_at = self.breaker.retry_at().max(self.breaker.add_at());
        let due = |(id, worker): (&WorkerId, &WorkerState)| Some((*id, worker.is_due(step.now, &rules)?));
        let due: Vec<(WorkerId, WhyStop)> = self.workers.iter().filter_map(due).collect();
        for (id, why) in due {
            if step.now < starts_at {
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker.recycle_after = starts_at;
                }
                continue;
            }
            let successor = WorkerId(self.next_worker);
            let has_permit = self.may_start() && step.broker.take_spare_worker_permit(self.pool, successor);
            let Some(worker) = self.workers.get_mut(&id) else { continue };
            // Without a successor it stays until it is idle, but not forever: a steady load would never let it go.
            let overdue = *worker.due_since.get_or_insert(step.now) + rules.longest_pause;
            if !has_permit && !worker.line.is_empty() && step.now < overdue {
                continue;
            }
            step.tell(Decision::Recycle(id, why));
            worker.outgoing = Some(why);
            if has_permit {
                self.begin_start(step, successor, Some(id), WhyStart::Successor(id));
            } else {
                worker.state = State::Draining;
            }
        }
    }

    /// After an answer: a draining worker stops with its last call; any other becomes idle.
    pub(super) fn rest_or_leave(&mut self, step: &mut Step<'_>, id: WorkerId) {
        let kept = self.counting() <= self.rules.min_workers;
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.line.is_empty() {
            worker.idle_since = step.now;
            if worker.state == State::Serving {
                step.broker.idle(self.pool, id, step.now, kept);
            }
        } else if worker.state == State::Draining
            && worker.line.iter().all(|queued| queued.escalation == Escalation::Stuck)
        {
            self.kill(step, id);
        }
    }

    pub(super) fn end(&mut self, step: &mut Step<'_>) {
        self.phase = Phase::Ending;
        let mut all: Vec<QueuedCall> = self.waiting.drain(..).collect();
        if std::mem::take(&mut self.has_spare_permit) {
            step.broker.return_run_permit(self.pool);
        }
        all.extend(self.workers.values_mut().flat_map(|worker| worker.line.drain(..)));
        for mut queued in all {
            step.leaves_park(self.pool, &mut queued);
            if queued.has_run_permit {
                step.broker.return_run_permit(self.pool);
            }
            if !queued.settled {
                step.finish(queued.call(), Verdict::ShuttingDown);
            }
        }
        for (id, worker) in &mut self.workers {
            // Also a worker that stops gracefully: now it is killed.
            worker.state = State::Leaving;
            step.effects.push(Effect::Stop { worker: *id, mode: StopMode::Kill });
        }
    }

    /// Stops draining workers that hold no calls.
    pub(super) fn leave_when_done(&mut self, step: &mut Step<'_>) {
        let closing = self.phase != Phase::Open && self.waiting.is_empty();
        let done = |(id, worker): (&WorkerId, &WorkerState)| {
            let why = match worker.state {
                State::Draining => worker.outgoing.unwrap_or(WhyStop::Closing),
                State::Serving | State::Starting if closing => WhyStop::Closing,
                _ => return None,
            };
            worker.line.is_empty().then_some((*id, why))
        };
        let done: Vec<(WorkerId, WhyStop)> = self.workers.iter().filter_map(done).collect();
        for (id, why) in done {
            self.retire(step, id, why);
        }
        if closing && self.workers.is_empty() && !self.emptied {
            self.emptied = true;
            step.broker.wants_no_worker_permit(self.pool);
            step.effects.push(Effect::Empty);
        }
    }
}
