//! Calls on their way through workers: assigned, answered, taken back from the dead.

use std::collections::VecDeque;

use super::sabotage::sabotaged;
use super::{Machine, Phase, interruption};
use crate::pool::commons::Commons;
use crate::pool::event::{CallId, Decision, Effect, Moment, Verdict, WorkerId};
use crate::pool::seat::{Attempt, Seat, Slot, State, Strike};

impl Machine {
    /// How many calls a worker may hold now.
    pub(super) fn capacity(&self) -> usize {
        if self.trouble.on_trial(&self.rules) {
            1
        } else if self.rules.concurrency > 1 {
            self.rules.concurrency
        } else if self.rules.max_workers > 1 {
            1
        } else {
            self.rules.write_ahead.max(1)
        }
    }

    /// Gives waiting calls to workers that have room.
    pub(super) fn assign(&mut self, now: Moment, commons: &mut Commons, effects: &mut Vec<Effect>) {
        while let Some(mut slot) = self.waiting.front().copied() {
            let Some(worker) = self.worker_for(&mut slot, commons) else { return };
            let Some(seat) = self.workers.get_mut(&worker) else { return };
            self.waiting.pop_front();
            if seat.line.len() < self.rules.concurrency {
                slot.since = now;
            }
            if seat.line.is_empty() {
                commons.busy(self.id, worker);
            }
            seat.line.push_back(slot);
            effects.push(Effect::Send { worker, call: slot.call() });
        }
    }

    /// The worker that takes this call now, and a turn for it where it needs one.
    fn worker_for(&mut self, slot: &mut Slot, commons: &mut Commons) -> Option<WorkerId> {
        let (capacity, concurrency) = (self.capacity(), self.rules.concurrency);
        if self.trouble.on_trial(&self.rules) && self.workers.values().any(|seat| !seat.line.is_empty()) {
            return None;
        }
        let takes_any = sabotaged!(self, SendToLeaving);
        let has_room =
            |seat: &Seat| seat.has_room(capacity, slot.wish.nested) || (takes_any && seat.state == State::Leaving);
        // The oldest, so that the youngest become idle and leave first. Nobody waits behind another where one is idle.
        let begins = |seat: &Seat| seat.line.len() < concurrency;
        let is_apart = |seat: &Seat| slot.attempt != Attempt::Alone || seat.line.is_empty();
        // One that should be replaced comes to its end when nothing is written ahead to it.
        let takes = |seat: &Seat| has_room(seat) && (begins(seat) || seat.due_since.is_none()) && is_apart(seat);
        let mut roomy = self.workers.iter().filter(|(_, seat)| takes(seat));
        let (worker, seat) = roomy.clone().find(|(_, seat)| begins(seat)).or_else(|| roomy.next())?;
        let begins = seat.line.len() < concurrency;
        if slot.wish.nested {
            return Some(*worker);
        }
        if begins {
            let has_one = std::mem::take(&mut self.has_spare_turn);
            slot.has_turn = has_one || commons.take_turn(self.id) || sabotaged!(self, IgnoreCap);
            self.wants.turn = !slot.has_turn;
            return slot.has_turn.then_some(*worker);
        }
        // Written ahead, it will be begun with the turn of the one before it. So it is not behind one without a turn to
        // leave, nor while others wait for turns.
        let inherits = seat.line.iter().all(|earlier| !earlier.wish.nested);
        (inherits && !commons.others_wait(self.id)).then_some(*worker)
    }

    pub(super) fn answered(
        &mut self,
        now: Moment,
        worker: WorkerId,
        call: CallId,
        cancelled: bool,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) {
        let rules = self.rules;
        let holds = |seat: &Seat| seat.line.iter().any(|slot| slot.call() == call);
        let worker = if sabotaged!(self, BelieveLateNews) {
            self.workers.iter().find(|(_, seat)| holds(seat)).map_or(worker, |(holder, _)| *holder)
        } else {
            worker
        };
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        let Some(place) = seat.line.iter().position(|slot| slot.call() == call) else { return };
        let begun = place < seat.begun(&rules);
        let Some(slot) = seat.line.remove(place) else { return };
        if begun {
            seat.calls += 1;
        }
        if !slot.settled {
            let timed_out = begun && cancelled && slot.strike.is_overdue();
            let verdict =
                if timed_out { Verdict::TimedOut { worker, stopped: false } } else { Verdict::Answered(worker) };
            effects.push(Effect::Finish { call, verdict });
            if sabotaged!(self, AnswerTwice) {
                effects.push(Effect::Finish { call, verdict });
            }
        }
        self.hand_on_turn(worker, slot.has_turn, commons);
        if begun {
            self.ran(now.saturating_sub(slot.since), cancelled, effects);
            self.next_begins(now, worker, effects);
        }
        self.rest_or_leave(now, worker, commons, effects);
    }

    fn ran(&mut self, run: std::time::Duration, cancelled: bool, effects: &mut Vec<Effect>) {
        self.usual_run = (self.usual_run * 7 + run) / 8;
        if !cancelled && self.trouble.went_well(&self.rules) {
            Self::tell(effects, Decision::Recovered);
        }
    }

    /// The turn of a call that ended goes to the next in its line that begins with it, else back.
    fn hand_on_turn(&mut self, worker: WorkerId, has_turn: bool, commons: &mut Commons) {
        if !has_turn || sabotaged!(self, LeakTurn) {
            return;
        }
        let concurrency = self.rules.concurrency;
        let line = self.workers.get_mut(&worker).map(|seat| &mut seat.line);
        let needs_one = |slot: &&mut Slot| !slot.has_turn && !slot.wish.nested && slot.strike != Strike::Stuck;
        let heir = line.and_then(|line| line.iter_mut().take(concurrency).find(needs_one));
        match heir {
            Some(heir) => heir.has_turn = true,
            None => commons.give_turn(self.id),
        }
    }

    /// The worker begins the next of its line.
    fn next_begins(&mut self, now: Moment, worker: WorkerId, effects: &mut Vec<Effect>) {
        let rules = self.rules;
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        let Some(next) = seat.line.get_mut(rules.concurrency - 1) else { return };
        next.since = now;
        // A withdrawn call may have been begun before the withdrawal arrived.
        if next.settled {
            next.strike = Strike::interrupted(now, false, &rules);
            effects.push(interruption(worker, next.call(), true, &rules));
        }
    }

    /// Takes the calls of a worker that is gone or must go: those it had not begun go back to the queue, those it had
    /// begun are returned, without their turns.
    pub(super) fn clear(
        &mut self,
        line: VecDeque<Slot>,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) -> Vec<Slot> {
        let mut begun = Vec::new();
        let mut untouched = Vec::new();
        for (place, mut slot) in line.into_iter().enumerate() {
            if std::mem::take(&mut slot.has_turn) && !sabotaged!(self, LeakTurn) {
                commons.give_turn(self.id);
            }
            if place < self.rules.concurrency {
                begun.push(slot);
            } else if !slot.settled {
                untouched.push(slot);
            }
        }
        if !sabotaged!(self, DropRequeue) {
            self.requeue(untouched, effects);
        }
        begun
    }

    /// Puts calls back at the head of the queue, in their order; nested ones stay before the others.
    pub(super) fn requeue(&mut self, slots: Vec<Slot>, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Ending {
            let ended = slots.iter().map(Slot::call);
            effects.extend(ended.map(|call| Effect::Finish { call, verdict: Verdict::ShuttingDown }));
            return;
        }
        for slot in slots.into_iter().rev() {
            let nested = self.waiting.iter().take_while(|other| other.wish.nested && !slot.wish.nested).count();
            self.waiting.insert(nested, slot);
        }
    }
}
