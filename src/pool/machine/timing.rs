//! The effects of time: overdue calls and idle workers.

use super::sabotage::sabotaged;
use super::{Machine, Step};
use crate::pool::event::{Effect, Verdict, WhyStop, WorkerId};
use crate::pool::worker_state::{Escalation, QueuedCall, State, WorkerState};

impl Machine {
    pub(super) fn timers(&mut self, step: &mut Step<'_>) {
        let due = |worker: &WorkerState| worker.next_timer(&self.rules, true, true).is_some_and(|at| at <= step.now);
        let workers: Vec<WorkerId> = self.workers.iter().filter(|(_, worker)| due(worker)).map(|(id, _)| *id).collect();
        for id in workers {
            self.idle_timer(step, id);
            if self.workers.get(&id).and_then(|worker| worker.ping_until).is_some_and(|until| until <= step.now) {
                self.kill_with_others(step, id);
            }
            let Some(begun) = self.workers.get(&id).map(|worker| worker.begun(&self.rules)) else {
                continue;
            };
            for place in 0..begun {
                self.call_timer(step, id, place);
            }
        }
    }

    fn idle_timer(&mut self, step: &mut Step<'_>, id: WorkerId) {
        let ended = self.workers.get(&id).and_then(|worker| worker.idle_ends(&self.rules));
        if self.may_leave_idle() && ended.is_some_and(|end| end <= step.now) {
            self.retire(step, id, WhyStop::Idle);
        }
    }

    fn call_timer(&mut self, step: &mut Step<'_>, id: WorkerId, place: usize) {
        let rules = self.rules;
        let Some(queued) = self.workers.get_mut(&id).and_then(|worker| worker.line.get_mut(place)) else {
            return;
        };
        let call = queued.call();
        match queued.escalation {
            Escalation::None
                if !queued.parked.is_now() && queued.since.saturating_add(queued.spec.timeout) <= step.now =>
            {
                queued.escalation = Escalation::Stack { until: step.now + rules.stack_grace };
                step.effects.push(Effect::TakeStack { worker: id, call });
            }
            Escalation::Stack { until } if until <= step.now => {
                queued.escalation = Escalation::interrupted(step.now, true, &rules);
                step.effects.push(super::interruption(id, call, true, &rules));
            }
            Escalation::Interrupted { until, .. } if until <= step.now => self.give_up(step, id, place),
            Escalation::Interrupted { until, nudge, overdue } if nudge <= step.now => {
                queued.escalation = Escalation::Interrupted { until, nudge: step.now + rules.nudge_every, overdue };
                step.effects.push(Effect::Nudge(id));
            }
            _ => {}
        }
    }

    /// A call ignores the interruption. Its worker stops as soon as it runs no other call.
    fn give_up(&mut self, step: &mut Step<'_>, id: WorkerId, place: usize) {
        let ping_until = step.now + self.rules.ping_grace;
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(queued) = worker.line.get_mut(place) else { return };
        queued.escalation = Escalation::Stuck;
        // Its caller was answered, so its permit is released.
        if std::mem::take(&mut queued.has_run_permit) && !sabotaged!(self, KeepRunPermit) {
            step.broker.return_run_permit(self.pool);
        }
        if !std::mem::replace(&mut queued.settled, true) {
            step.finish(queued.call(), Verdict::TimedOut { worker: id, stopped: true });
        }
        let stuck = |queued: &QueuedCall| queued.escalation == Escalation::Stuck;
        let others = worker.line.iter().take(self.rules.concurrency).any(|queued| !stuck(queued));
        if others {
            worker.state = State::Draining;
            if worker.ping_until.is_none() {
                worker.ping_until = Some(ping_until);
                step.effects.push(Effect::Ping(id));
            }
        } else {
            self.kill(step, id);
        }
    }
}
