//! Workers on their way out: replaced, sent away, killed, dead.

use super::sabotage::sabotaged;
use super::{Machine, Minimum, Phase};
use crate::pool::commons::Commons;
use crate::pool::event::{Decision, Effect, Manner, Moment, Need, Verdict, WhyStart, WhyStop, WorkerId};
use crate::pool::seat::{Attempt, Seat, Slot, State, Strike};

impl Machine {
    pub(super) fn died(
        &mut self,
        now: Moment,
        worker: WorkerId,
        of_a_limit: bool,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) {
        let Some(seat) = self.workers.remove(&worker) else { return };
        if !sabotaged!(self, LeakSeat) {
            commons.give_seat(self.id, worker);
        }
        let begun = self.clear(seat.line, commons, effects);
        // What was interrupted may have died of that; beside others that were not, nobody can tell.
        let of_interruption = !begun.is_empty() && begun.iter().all(|slot| slot.strike != Strike::None);
        if seat.state != State::Leaving && !of_interruption {
            self.hear_of_death(now, seat.ready_at, !begun.is_empty(), effects);
        }
        let refuses = self.trouble.open(now, &self.rules).is_some();
        for slot in begun.into_iter().rev().filter(|slot| !slot.settled) {
            self.end_of_begun(worker, slot, of_a_limit || refuses, effects);
        }
        if let Some(retry_after) = self.trouble.open(now, &self.rules) {
            let times = self.trouble.deaths();
            for slot in self.waiting.drain(..) {
                let verdict = Verdict::Broken { times, retry_after };
                effects.push(Effect::Finish { call: slot.call(), verdict });
            }
        }
    }

    fn hear_of_death(&mut self, now: Moment, ready_at: Moment, in_a_call: bool, effects: &mut Vec<Effect>) {
        let pause = self.trouble.died(now, ready_at, in_a_call, &self.rules);
        let deaths = self.trouble.deaths();
        if self.trouble.on_trial(&self.rules) {
            Self::tell(effects, Decision::Refuse { deaths, pause });
        } else if !pause.is_zero() {
            Self::tell(effects, Decision::Rest { deaths, pause });
        }
    }

    /// A call was being made by a worker that died: it is made once more where that does no harm.
    fn end_of_begun(&mut self, worker: WorkerId, mut slot: Slot, is_last: bool, effects: &mut Vec<Effect>) {
        let overdue = slot.strike != Strike::None;
        let repeatable = slot.wish.repeatable || sabotaged!(self, RepeatOnce);
        let again = repeatable && slot.attempt == Attempt::First && !overdue && !is_last && self.phase != Phase::Ending;
        if again {
            // Which of several it died of, nobody knows: together, one would end the others a second time.
            let alone = self.rules.concurrency > 1 && !slot.wish.nested;
            slot.attempt = if alone { Attempt::Alone } else { Attempt::Again };
            Self::tell(effects, Decision::Repeat(slot.call()));
            return self.requeue(vec![slot], effects);
        }
        let verdict = if overdue { Verdict::TimedOut { worker, stopped: true } } else { Verdict::Died(worker) };
        effects.push(Effect::Finish { call: slot.call(), verdict });
    }

    /// Stops a worker whose running calls have been settled; those behind them are untouched.
    pub(super) fn kill(&mut self, worker: WorkerId, commons: &mut Commons, effects: &mut Vec<Effect>) {
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        seat.state = State::Leaving;
        let line = std::mem::take(&mut seat.line);
        Self::tell(effects, Decision::Stop(worker, WhyStop::Stuck));
        effects.push(Effect::Stop { worker, manner: Manner::Kill });
        let _ = self.clear(line, commons, effects);
    }

    /// A call of a worker obeys nothing, and nothing else in the worker gets on: its other calls could only wait for their
    /// own ends.
    pub(super) fn kill_with_others(&mut self, worker: WorkerId, commons: &mut Commons, effects: &mut Vec<Effect>) {
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        seat.ping_until = None;
        seat.state = State::Leaving;
        let line = std::mem::take(&mut seat.line);
        Self::tell(effects, Decision::Stop(worker, WhyStop::Stuck));
        effects.push(Effect::Stop { worker, manner: Manner::Kill });
        let begun = self.clear(line, commons, effects);
        for mut slot in begun.into_iter().rev().filter(|slot| !slot.settled) {
            if slot.wish.repeatable && slot.attempt == Attempt::First && self.phase != Phase::Ending {
                slot.attempt = Attempt::Again;
                Self::tell(effects, Decision::Repeat(slot.call()));
                slot.strike = Strike::None;
                self.requeue(vec![slot], effects);
            } else {
                effects.push(Effect::Finish { call: slot.call(), verdict: Verdict::HeldUp });
            }
        }
    }

    pub(super) fn retire(&mut self, worker: WorkerId, why: WhyStop, effects: &mut Vec<Effect>) {
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        seat.state = State::Leaving;
        Self::tell(effects, Decision::Stop(worker, why));
        effects.push(Effect::Stop { worker, manner: Manner::Retire });
    }

    /// Somebody else needs its place or its memory more.
    pub(super) fn evict(&mut self, worker: WorkerId, need: Need, effects: &mut Vec<Effect>) {
        if self.workers.get(&worker).is_some_and(Seat::is_idle) {
            if need == Need::Memory && self.minimum == Minimum::Wanted && !sabotaged!(self, StartAgain) {
                self.minimum = Minimum::TooLarge;
            }
            self.retire(worker, WhyStop::Evicted(need), effects);
        }
    }

    pub(super) fn measured(
        &mut self,
        now: Moment,
        worker: WorkerId,
        held: usize,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) {
        let rules = self.rules;
        if let Some(seat) = self.workers.get_mut(&worker).filter(|seat| seat.state == State::Serving) {
            seat.measured(now, held, &rules);
            if seat.begins_large() && !std::mem::replace(&mut self.told_of_size, true) {
                Self::tell(effects, Decision::BeginsLarge { worker, held });
            }
        }
        if self.workers.contains_key(&worker) {
            commons.measured(self.id, worker, held);
        }
    }

    /// Starts successors of workers that have reached a limit of their life. Where there is no seat for one, the worker
    /// goes as soon as it may, and the next call starts another.
    pub(super) fn recycle(&mut self, now: Moment, commons: &mut Commons, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Open {
            return;
        }
        let rules = self.rules;
        let starts_at = self.trouble.retry_at().max(self.trouble.add_at());
        let due = |(worker, seat): (&WorkerId, &Seat)| Some((*worker, seat.is_due(now, &rules)?));
        let due: Vec<(WorkerId, WhyStop)> = self.workers.iter().filter_map(due).collect();
        for (worker, why) in due {
            if now < starts_at {
                if let Some(seat) = self.workers.get_mut(&worker) {
                    seat.recycle_after = starts_at;
                }
                continue;
            }
            let successor = WorkerId(self.next_worker);
            let has_seat = self.may_start() && commons.take_spare_seat(self.id, successor);
            let Some(seat) = self.workers.get_mut(&worker) else { continue };
            // Without a successor it stays until it is idle, but not for ever: calls would follow upon calls.
            let overdue = *seat.due_since.get_or_insert(now) + rules.longest_pause;
            if !has_seat && !seat.line.is_empty() && now < overdue {
                continue;
            }
            Self::tell(effects, Decision::Recycle(worker, why));
            seat.outgoing = Some(why);
            if has_seat {
                self.begin_start(now, successor, Some(worker), WhyStart::Successor(worker), effects);
            } else {
                seat.state = State::Draining;
            }
        }
    }

    /// After an answer: a worker that takes no more calls leaves with its last, another is idle.
    pub(super) fn rest_or_leave(
        &mut self,
        now: Moment,
        worker: WorkerId,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) {
        let kept = self.counting() <= self.rules.min_workers;
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        if seat.line.is_empty() {
            seat.idle_since = now;
            if seat.state == State::Serving {
                commons.idle(self.id, worker, now, kept);
            }
        } else if seat.state == State::Draining && seat.line.iter().all(|slot| slot.strike == Strike::Stuck) {
            self.kill(worker, commons, effects);
        }
    }

    pub(super) fn end(&mut self, commons: &mut Commons, effects: &mut Vec<Effect>) {
        self.phase = Phase::Ending;
        let mut slots: Vec<Slot> = self.waiting.drain(..).collect();
        if std::mem::take(&mut self.has_spare_turn) {
            commons.give_turn(self.id);
        }
        slots.extend(self.workers.values_mut().flat_map(|seat| seat.line.drain(..)));
        for slot in slots {
            if slot.has_turn {
                commons.give_turn(self.id);
            }
            if !slot.settled {
                effects.push(Effect::Finish { call: slot.call(), verdict: Verdict::ShuttingDown });
            }
        }
        for (worker, seat) in &mut self.workers {
            // Also one that is leaving by itself: now it is to go at once.
            seat.state = State::Leaving;
            effects.push(Effect::Stop { worker: *worker, manner: Manner::Kill });
        }
    }

    /// Sends away those that have nothing left to do and will get nothing more.
    pub(super) fn leave_when_done(&mut self, commons: &mut Commons, effects: &mut Vec<Effect>) {
        let closing = self.phase != Phase::Open && self.waiting.is_empty();
        let done = |(worker, seat): (&WorkerId, &Seat)| {
            let why = match seat.state {
                State::Draining => seat.outgoing.unwrap_or(WhyStop::Closing),
                State::Serving | State::Starting if closing => WhyStop::Closing,
                _ => return None,
            };
            seat.line.is_empty().then_some((*worker, why))
        };
        let done: Vec<(WorkerId, WhyStop)> = self.workers.iter().filter_map(done).collect();
        for (worker, why) in done {
            self.retire(worker, why, effects);
        }
        if closing && self.workers.is_empty() && !self.emptied {
            self.emptied = true;
            commons.wants_no_seat(self.id);
            effects.push(Effect::Empty);
        }
    }
}
