//! The effects of time: overdue calls and idle workers.

use super::Machine;
use super::sabotage::sabotaged;
use crate::pool::broker::ResourceBroker;
use crate::pool::event::{Effect, Moment, Verdict, WhyStop, WorkerId};
use crate::pool::worker_state::{Escalation, QueuedCall, State, WorkerState};

impl Machine {
    pub(super) fn timers(&mut self, now: Moment, broker: &mut ResourceBroker, effects: &mut Vec<Effect>) {
        let due =
            |worker_state: &WorkerState| worker_state.next_timer(&self.rules, true, true).is_some_and(|at| at <= now);
        let workers: Vec<WorkerId> =
            self.workers.iter().filter(|(_, worker_state)| due(worker_state)).map(|(id, _)| *id).collect();
        for worker in workers {
            self.idle_timer(now, worker, effects);
            if self
                .workers
                .get(&worker)
                .and_then(|worker_state| worker_state.ping_until)
                .is_some_and(|until| until <= now)
            {
                self.kill_with_others(worker, broker, effects);
            }
            let Some(begun) = self.workers.get(&worker).map(|worker_state| worker_state.begun(&self.rules)) else {
                continue;
            };
            for place in 0..begun {
                self.call_timer(now, worker, place, broker, effects);
            }
        }
    }

    fn idle_timer(&mut self, now: Moment, worker: WorkerId, effects: &mut Vec<Effect>) {
        let ended = self.workers.get(&worker).and_then(|worker_state| worker_state.idle_ends(&self.rules));
        if self.may_leave_idle() && ended.is_some_and(|end| end <= now) {
            self.retire(worker, WhyStop::Idle, effects);
        }
    }

    fn call_timer(
        &mut self,
        now: Moment,
        worker: WorkerId,
        place: usize,
        broker: &mut ResourceBroker,
        effects: &mut Vec<Effect>,
    ) {
        let rules = self.rules;
        let Some(queued) = self.workers.get_mut(&worker).and_then(|worker_state| worker_state.line.get_mut(place))
        else {
            return;
        };
        let call = queued.call();
        match queued.escalation {
            Escalation::None if queued.since.saturating_add(queued.spec.timeout) <= now => {
                queued.escalation = Escalation::Stack { until: now + rules.stack_grace };
                effects.push(Effect::TakeStack { worker, call });
            }
            Escalation::Stack { until } if until <= now => {
                queued.escalation = Escalation::interrupted(now, true, &rules);
                effects.push(super::interruption(worker, call, true, &rules));
            }
            Escalation::Interrupted { until, .. } if until <= now => self.give_up(now, worker, place, broker, effects),
            Escalation::Interrupted { until, nudge, overdue } if nudge <= now => {
                queued.escalation = Escalation::Interrupted { until, nudge: now + rules.nudge_every, overdue };
                effects.push(Effect::Nudge(worker));
            }
            _ => {}
        }
    }

    /// A call ignores the interruption. Its worker stops as soon as it runs no other call.
    fn give_up(
        &mut self,
        now: Moment,
        worker: WorkerId,
        place: usize,
        broker: &mut ResourceBroker,
        effects: &mut Vec<Effect>,
    ) {
        let ping_until = now + self.rules.ping_grace;
        let Some(worker_state) = self.workers.get_mut(&worker) else { return };
        let Some(queued) = worker_state.line.get_mut(place) else { return };
        queued.escalation = Escalation::Stuck;
        // Its caller was answered, so its permit is released.
        if std::mem::take(&mut queued.has_run_permit) && !sabotaged!(self, KeepTurn) {
            broker.return_run_permit(self.id);
        }
        if !std::mem::replace(&mut queued.settled, true) {
            effects.push(Effect::Finish { call: queued.call(), verdict: Verdict::TimedOut { worker, stopped: true } });
        }
        let stuck = |queued: &QueuedCall| queued.escalation == Escalation::Stuck;
        let others = worker_state.line.iter().take(self.rules.concurrency).any(|queued| !stuck(queued));
        if others {
            worker_state.state = State::Draining;
            if worker_state.ping_until.is_none() {
                worker_state.ping_until = Some(ping_until);
                effects.push(Effect::Ping(worker));
            }
        } else {
            self.kill(worker, broker, effects);
        }
    }
}
