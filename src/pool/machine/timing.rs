//! What time brings: calls that overstay, workers that nobody needs.

use super::Machine;
use crate::pool::commons::Commons;
use crate::pool::event::{Effect, Moment, Verdict, WhyStop, WorkerId};
use crate::pool::seat::{Seat, Slot, State, Strike};

impl Machine {
    pub(super) fn timers(&mut self, now: Moment, commons: &mut Commons, effects: &mut Vec<Effect>) {
        let due = |seat: &Seat| seat.next_timer(&self.rules, true, true).is_some_and(|at| at <= now);
        let workers: Vec<WorkerId> = self.workers.iter().filter(|(_, seat)| due(seat)).map(|(id, _)| *id).collect();
        for worker in workers {
            self.idle_timer(now, worker, effects);
            let Some(begun) = self.workers.get(&worker).map(|seat| seat.begun(&self.rules)) else { continue };
            for place in 0..begun {
                self.call_timer(now, worker, place, commons, effects);
            }
        }
    }

    fn idle_timer(&mut self, now: Moment, worker: WorkerId, effects: &mut Vec<Effect>) {
        let ended = self.workers.get(&worker).and_then(|seat| seat.idle_ends(&self.rules));
        if self.may_leave_idle() && ended.is_some_and(|end| end <= now) {
            self.retire(worker, WhyStop::Idle, effects);
        }
    }

    fn call_timer(
        &mut self,
        now: Moment,
        worker: WorkerId,
        place: usize,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) {
        let rules = self.rules;
        let Some(slot) = self.workers.get_mut(&worker).and_then(|seat| seat.line.get_mut(place)) else { return };
        let call = slot.call();
        match slot.strike {
            Strike::None if slot.since.saturating_add(slot.wish.timeout) <= now => {
                slot.strike = Strike::Stack { until: now + rules.stack_grace };
                effects.push(Effect::TakeStack(worker));
            }
            Strike::Stack { until } if until <= now => {
                slot.strike = Strike::interrupted(now, true, &rules);
                effects.push(super::interruption(worker, call, true, &rules));
            }
            Strike::Interrupted { until, .. } if until <= now => self.give_up(worker, place, commons, effects),
            Strike::Interrupted { until, nudge, overdue } if nudge <= now && rules.concurrency == 1 => {
                slot.strike = Strike::Interrupted { until, nudge: now + rules.nudge_every, overdue };
                effects.push(Effect::Nudge(worker));
            }
            _ => {}
        }
    }

    /// A call obeys no interruption. Its worker goes as soon as it makes no other call.
    fn give_up(&mut self, worker: WorkerId, place: usize, commons: &mut Commons, effects: &mut Vec<Effect>) {
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        let Some(slot) = seat.line.get_mut(place) else { return };
        slot.strike = Strike::Stuck;
        if !std::mem::replace(&mut slot.settled, true) {
            effects.push(Effect::Finish { call: slot.call(), verdict: Verdict::TimedOut { worker, stopped: true } });
        }
        let stuck = |slot: &Slot| slot.strike == Strike::Stuck;
        let others = seat.line.iter().take(self.rules.concurrency).any(|slot| !stuck(slot));
        if others {
            seat.state = State::Draining;
        } else {
            self.kill(worker, commons, effects);
        }
    }
}
