//! Workers on their way in: when one is started, and what becomes of a start.

use super::sabotage::sabotaged;
use super::{Machine, Minimum, Phase};
use crate::pool::commons::Commons;
use crate::pool::event::{Decision, Effect, Moment, Verdict, WhyStart, WorkerId};
use crate::pool::seat::{Seat, State};

impl Machine {
    /// Starts workers for calls that wait too long, and those that should always be there.
    pub(super) fn grow(&mut self, now: Moment, commons: &mut Commons, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Ending || !self.trouble.is_over(now) {
            return;
        }
        if self.waiting.is_empty() {
            return self.keep_minimum(now, commons, effects);
        }
        if !self.somebody_may_serve() {
            return self.start_first(now, commons, effects);
        }
        let waiting = self.waiting.len();
        while self.may_have_more(self.wants.turn)
            && self.trouble.may_add(now)
            && self.starting() < self.waiting_too_long(now)
        {
            // For one more worker of a tool that has some, no other leaves that was needed a moment ago.
            let needed = now.saturating_sub(self.rules.spare_after);
            let worker = WorkerId(self.next_worker);
            if commons.take_spare_seat(self.id, worker) {
                self.begin_start(now, worker, None, WhyStart::Queue { waiting }, effects);
            } else if !commons.has_idle_since(needed) || !self.start(now, WhyStart::Queue { waiting }, commons, effects)
            {
                return;
            }
        }
    }

    /// Starts the only worker, for the call at the head of the queue. Should another worker have to leave for it, the call
    /// first gets its turn: pools that can run nothing would take each other's seats without end.
    fn start_first(&mut self, now: Moment, commons: &mut Commons, effects: &mut Vec<Effect>) {
        let Some(first) = self.waiting.front().map(|slot| slot.wish) else { return };
        if !self.may_start() {
            return;
        }
        let worker = WorkerId(self.next_worker);
        if commons.take_spare_seat(self.id, worker) {
            return self.begin_start(now, worker, None, WhyStart::Call, effects);
        }
        if first.nested && self.workers.is_empty() {
            commons.take_seat_beyond(self.id, worker);
            return self.begin_start(now, worker, None, WhyStart::Call, effects);
        }
        self.has_spare_turn = self.has_spare_turn || !first.nested && commons.take_turn(self.id);
        if self.has_spare_turn || first.nested {
            self.start(now, WhyStart::Call, commons, effects);
        } else {
            self.wants.turn = true;
        }
    }

    /// Whether more workers could help those that wait: it is no turn they lack, and there may be more.
    fn may_have_more(&self, lacks_turn: bool) -> bool {
        let serving = self.workers.values().any(|seat| seat.state == State::Serving);
        let limit = self.rules.max_workers.max(1) + usize::from(sabotaged!(self, IgnoreCap));
        serving && !lacks_turn && self.may_start() && !self.trouble.on_trial(&self.rules) && self.counting() < limit
    }

    fn starting(&self) -> usize {
        self.workers.values().filter(|seat| seat.state == State::Starting && seat.succeeds.is_none()).count()
    }

    fn waiting_too_long(&self, now: Moment) -> usize {
        let grow_after = self.rules.grow_after;
        self.waiting.iter().filter(|slot| now.saturating_sub(slot.since) >= grow_after).count()
    }

    /// When another worker may be due, if time alone can make it so. What is past was looked at in the last step.
    pub(super) fn grows_at(&self) -> Option<Moment> {
        if self.waits.seat || sabotaged!(self, ForgetTimer) {
            return None;
        }
        let retry_at = self.trouble.retry_at();
        let at = if self.waiting.is_empty() {
            let lacks_minimum = self.lacks_minimum();
            // Nobody tells of a seat that became free and that nobody waits for.
            let look_again = self.last_step + self.rules.first_pause;
            lacks_minimum.then(|| retry_at.max(self.trouble.add_at()).max(look_again))
        } else if !self.somebody_may_serve() {
            Some(retry_at)
        } else if self.may_have_more(self.waits.turn) {
            let next = self.waiting.get(self.starting());
            next.map(|slot| (slot.since + self.rules.grow_after).max(retry_at).max(self.trouble.add_at()))
        } else {
            None
        };
        at.filter(|at| *at > self.last_step)
    }

    /// A worker that should always be there takes a seat that nobody needs; no other leaves for it.
    fn keep_minimum(&mut self, now: Moment, commons: &mut Commons, effects: &mut Vec<Effect>) {
        while self.lacks_minimum() {
            let worker = WorkerId(self.next_worker);
            if self.trouble.failing(now).is_some()
                || !self.trouble.may_add(now)
                || !commons.take_spare_seat(self.id, worker)
            {
                return;
            }
            self.begin_start(now, worker, None, WhyStart::Minimum, effects);
        }
    }

    fn lacks_minimum(&self) -> bool {
        let is_wanted = self.minimum == Minimum::Wanted && self.phase == Phase::Open;
        is_wanted && self.counting() < self.rules.min_workers && self.may_start()
    }

    fn start(&mut self, now: Moment, why: WhyStart, commons: &mut Commons, effects: &mut Vec<Effect>) -> bool {
        let worker = WorkerId(self.next_worker);
        if !commons.take_seat(self.id, worker) {
            if !self.waits.seat {
                Self::tell(effects, Decision::NoSeat);
            }
            self.wants.seat = true;
            return false;
        }
        self.begin_start(now, worker, None, why, effects);
        true
    }

    /// Starts a worker that has its seat.
    pub(super) fn begin_start(
        &mut self,
        now: Moment,
        worker: WorkerId,
        succeeds: Option<WorkerId>,
        why: WhyStart,
        effects: &mut Vec<Effect>,
    ) {
        self.next_worker += 1;
        let mut seat = Seat::starting(now, succeeds);
        seat.is_asked_for = why == WhyStart::Call;
        self.workers.insert(worker, seat);
        if why == WhyStart::Call && self.trouble.on_trial(&self.rules) {
            Self::tell(effects, Decision::Try);
        }
        Self::tell(effects, Decision::Start(worker, why));
        effects.push(Effect::Start(worker));
    }

    pub(super) fn ready(&mut self, now: Moment, worker: WorkerId, commons: &mut Commons) {
        let kept = self.counting() <= self.rules.min_workers;
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        if seat.state != State::Starting {
            return;
        }
        seat.state = State::Serving;
        seat.ready_at = now;
        seat.idle_since = now;
        let succeeds = seat.succeeds.take();
        self.trouble.started();
        let idle_since = succeeds.and_then(|old| self.make_way(old)).unwrap_or(now);
        if let Some(seat) = self.workers.get_mut(&worker) {
            seat.idle_since = idle_since;
        }
        commons.idle(self.id, worker, idle_since, kept);
    }

    /// A worker whose successor is there takes no more calls, and leaves with the last that it has. Since when it has been
    /// idle, for both, if it is.
    fn make_way(&mut self, old: WorkerId) -> Option<Moment> {
        let old = self.workers.get_mut(&old).filter(|old| old.state == State::Serving)?;
        old.state = State::Draining;
        old.line.is_empty().then_some(old.idle_since)
    }

    pub(super) fn start_failed(
        &mut self,
        now: Moment,
        worker: WorkerId,
        by_itself: bool,
        commons: &mut Commons,
        effects: &mut Vec<Effect>,
    ) {
        let Some(seat) = self.workers.remove(&worker) else { return };
        commons.give_seat(self.id, worker);
        if by_itself && seat.state != State::Leaving {
            self.trouble.start_failed(now, &self.rules);
        }
        if !seat.is_asked_for && seat.state != State::Leaving {
            self.trouble.addition_failed(now, &self.rules);
        }
        // The one that was to be replaced stays a while longer.
        if let Some(old) = seat.succeeds.and_then(|old| self.workers.get_mut(&old)) {
            old.outgoing = None;
            old.recycle_after = now + self.rules.longest_pause;
        }
        // A call waits for any worker; only when none is left is there nobody to hope for. A worker that was told to go
        // while it started failed because of that, and says nothing about the next one.
        if seat.state == State::Leaving || self.somebody_may_serve() {
            return;
        }
        for slot in self.waiting.drain(..) {
            effects.push(Effect::Finish { call: slot.call(), verdict: Verdict::StartFailed(worker) });
        }
    }

    /// Whether there may be one more: each of those that there may be may have one in its place while it makes its last calls.
    pub(super) fn may_start(&self) -> bool {
        let alive = self.workers.values().filter(|seat| seat.state != State::Leaving).count();
        alive < 2 * self.rules.max_workers.max(1)
    }

    /// Workers a pool has and may keep.
    pub(super) fn counting(&self) -> usize {
        self.workers.values().filter(|seat| seat.counts()).count()
    }

    /// Whether a worker may leave because nobody calls.
    pub(super) fn may_leave_idle(&self) -> bool {
        self.phase != Phase::Open || self.minimum == Minimum::Unwanted || self.counting() > self.rules.min_workers
    }
}
