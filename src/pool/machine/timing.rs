//! What time brings: calls that overstay, workers that nobody needs.

use super::Machine;
use super::sabotage::sabotaged;
use crate::pool::commons::Commons;
use crate::pool::event::{Effect, Moment, Verdict, WhyStop, WorkerId};
use crate::pool::seat::{Seat, Slot, State, Strike};

impl Machine {
    pub(super) fn timers(&mut self, now: Moment, commons: &mut Commons, effects: &mut Vec<Effect>) {
        let due = |seat: &Seat| seat.next_timer(&self.rules, true, true).is_some_and(|at| at <= now);
        let workers: Vec<WorkerId> = self.workers.iter().filter(|(_, seat)| due(seat)).map(|(id, _)| *id).collect();
        for worker in workers {
            self.idle_timer(now, worker, effects);
            if self.workers.get(&worker).and_then(|seat| seat.ping_until).is_some_and(|until| until <= now) {
                self.kill_with_others(worker, commons, effects);
            }
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
                effects.push(Effect::TakeStack { worker, call });
            }
            Strike::Stack { until } if until <= now => {
                slot.strike = Strike::interrupted(now, true, &rules);
                effects.push(super::interruption(worker, call, true, &rules));
            }
            Strike::Interrupted { until, .. } if until <= now => self.give_up(now, worker, place, commons, effects),
            Strike::Interrupted { until, nudge, overdue } if nudge <= now => {
                slot.strike = Strike::Interrupted { until, nudge: now + rules.nudge_every, overdue };
                effects.push(Effect::Nudge(worker));
            }
            _ => {}
        }
    }

    /// A call obeys no interruption. Its worker goes as soon as it makes no other call.
    fn give_up(
        &mut self,
        now: Moment,
        worker: WorkerId,
        place: usize,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) {
        let ping_until = now + self.rules.ping_grace;
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        let Some(slot) = seat.line.get_mut(place) else { return };
        slot.strike = Strike::Stuck;
        // Its caller waits no longer, so nobody is to wait for its turn.
        if std::mem::take(&mut slot.has_turn) && !sabotaged!(self, KeepTurn) {
            commons.give_turn(self.id);
        }
        if !std::mem::replace(&mut slot.settled, true) {
            effects.push(Effect::Finish { call: slot.call(), verdict: Verdict::TimedOut { worker, stopped: true } });
        }
        let stuck = |slot: &Slot| slot.strike == Strike::Stuck;
        let others = seat.line.iter().take(self.rules.concurrency).any(|slot| !stuck(slot));
        if others {
            seat.state = State::Draining;
            if seat.ping_until.is_none() {
                seat.ping_until = Some(ping_until);
                effects.push(Effect::Ping(worker));
            }
        } else {
            self.kill(worker, commons, effects);
        }
    }
}
