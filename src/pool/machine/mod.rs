//! The pool of one tool file as a pure state machine: `step(now, event, commons) -> effects`.
//!
//! No clock, no process and no runtime in here. Production and tests drive this same type; whatever it decides,
//! it decided from its arguments alone. What pools share stands in the [`Commons`] that is given with each step.
//!
//! Invariants: a submitted call gets exactly one `Finish`; a worker is sent no more calls than it may hold; the calls
//! behind one that died go back to the head of the queue in their order; nothing is sent to a worker that is leaving;
//! a call that was begun is sent again only if it may be repeated, and once; where a worker runs several,
//! those it died under are repeated with nothing beside them; no worker is idle while a call waits that could run.

mod cast;
mod leaving;
mod line;
mod sabotage;
mod timing;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

#[cfg(test)]
pub(super) use sabotage::Mutant;
pub use view::{PoolView, Resting, WorkerState, WorkerView};

use super::commons::{Commons, PoolId};
use super::event::{CallId, Decision, Effect, Event, Moment, Verdict, Wish, WorkerId};
use super::rules::Rules;
use super::seat::{Seat, Slot, Strike};
use super::trouble::Trouble;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
    Ending,
}

/// Whether there are to be as many workers as there should always be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minimum {
    /// Nobody has called yet.
    Unwanted,
    Wanted,
    /// One of them had to go because all workers together held too much: another would have to go as well.
    TooLarge,
}

/// What a pool wants of the commons and does not have.
#[derive(Debug, Clone, Copy, Default)]
struct Wants {
    /// A place for another worker.
    seat: bool,
    /// Leave for a call to run.
    turn: bool,
}

/// The state of one pool.
#[derive(Debug)]
pub struct Machine {
    id: PoolId,
    rules: Rules,
    phase: Phase,
    /// Nested calls first, each kind in its order.
    waiting: VecDeque<Slot>,
    /// How many of them the commons know of.
    counted: usize,
    workers: BTreeMap<WorkerId, Seat>,
    next_worker: u64,
    usual_run: Duration,
    /// A turn that was taken for a call whose worker has no seat yet.
    has_spare_turn: bool,
    trouble: Trouble,
    /// What the commons had none of in this step.
    wants: Wants,
    /// And in the last one.
    waits: Wants,
    last_step: Moment,
    minimum: Minimum,
    /// That its workers begin with more memory than one may hold was told.
    told_of_size: bool,
    emptied: bool,
    #[cfg(test)]
    pub(super) mutant: Option<Mutant>,
}

impl Machine {
    /// An empty pool.
    pub fn new(id: PoolId, rules: &Rules) -> Self {
        Self {
            id,
            rules: *rules,
            phase: Phase::Open,
            waiting: VecDeque::new(),
            counted: 0,
            workers: BTreeMap::new(),
            next_worker: 1,
            usual_run: Duration::from_millis(100),
            has_spare_turn: false,
            trouble: Trouble::new(rules.seed),
            wants: Wants::default(),
            waits: Wants::default(),
            last_step: Moment::ZERO,
            minimum: Minimum::Unwanted,
            told_of_size: false,
            emptied: false,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Takes one event and says what is to be done.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event, commons: &mut Commons) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.last_step = now;
        match event {
            Event::Submit(wish) => self.submit(now, wish, commons, &mut effects),
            Event::Cancel(call) => self.cancel(now, call, &mut effects),
            Event::Ready(worker) => self.ready(now, worker, commons),
            Event::StartFailed { worker, by_itself } => {
                self.start_failed(now, worker, by_itself, commons, &mut effects);
            }
            Event::Answered { worker, call, cancelled } => {
                self.answered(now, worker, call, cancelled, commons, &mut effects);
            }
            Event::Died { worker, of_a_limit } => self.died(now, worker, of_a_limit, commons, &mut effects),
            Event::Pong(worker) => self.lives(worker),
            Event::Measured { worker, held } => self.measured(now, worker, held, commons, &mut effects),
            Event::Evict(worker, need) => self.evict(worker, need, &mut effects),
            Event::Timer => self.timers(now, commons, &mut effects),
            Event::Look => {}
            Event::Warm => self.minimum = Minimum::Wanted,
            Event::Close => self.phase = if self.phase == Phase::Open { Phase::Closing } else { self.phase },
            Event::End => self.end(commons, &mut effects),
        }
        self.recycle(now, commons, &mut effects);
        self.assign(now, commons, &mut effects);
        self.grow(now, commons, &mut effects);
        self.leave_when_done(commons, &mut effects);
        self.settle_with(commons);
        effects
    }

    /// When `Event::Timer` is to be sent next.
    pub fn next_timer(&self) -> Option<Moment> {
        let (may_leave, is_replaced) = (self.may_leave_idle(), self.phase == Phase::Open);
        let seats = self.workers.values().filter_map(|seat| seat.next_timer(&self.rules, may_leave, is_replaced));
        seats.chain(self.grows_at()).min()
    }

    /// Calls that wait for a worker.
    pub fn waiting(&self) -> impl Iterator<Item = CallId> + '_ {
        self.waiting.iter().map(Slot::call)
    }

    /// The call a worker is running, where it can be no other: of several nobody knows whose words are without a name.
    pub fn running(&self, worker: WorkerId) -> Option<CallId> {
        let line = &self.workers.get(&worker)?.line;
        line.front().filter(|_| self.rules.concurrency == 1 || line.len() == 1).map(Slot::call)
    }

    /// The calls a worker has begun.
    pub fn begun(&self, worker: WorkerId) -> impl Iterator<Item = CallId> + '_ {
        let line = self.workers.get(&worker).into_iter().flat_map(|seat| &seat.line);
        line.take(self.rules.concurrency).map(Slot::call)
    }

    /// Whether a worker has begun this call.
    pub fn has_begun(&self, worker: WorkerId, call: CallId) -> bool {
        self.begun(worker).any(|begun| begun == call)
    }

    /// Whether a call was written to a worker and is not answered yet.
    pub fn holds(&self, worker: WorkerId, call: CallId) -> bool {
        self.workers.get(&worker).is_some_and(|seat| seat.line.iter().any(|slot| slot.call() == call))
    }

    /// The limits.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    fn submit(&mut self, now: Moment, wish: Wish, commons: &Commons, effects: &mut Vec<Effect>) {
        let (waiting, call) = (self.waiting.len(), wish.call);
        let verdict = if self.phase != Phase::Open {
            Verdict::ShuttingDown
        } else if let Some(retry_after) = self.trouble.open(now, &self.rules) {
            Verdict::Broken { times: self.trouble.deaths(), retry_after }
        } else if let Some(retry_after) = self.trouble.failing(now).filter(|_| !self.somebody_may_serve()) {
            Verdict::StillFailing { times: self.trouble.failures(), retry_after }
        } else if waiting >= self.rules.max_queue {
            Verdict::Busy { waiting, overall: false, retry_after: self.soon() }
        } else if commons.is_full_of_waiting() && !(waiting == 0 && self.somebody_has_room(wish.nested)) {
            Verdict::Busy { waiting: commons.waiting(), overall: true, retry_after: self.soon() }
        } else {
            self.minimum = Minimum::Wanted;
            return self.wait(Slot::waiting(wish, now));
        };
        effects.push(Effect::Finish { call, verdict });
    }

    /// When a place is likely free.
    fn soon(&self) -> Duration {
        self.usual_run.max(Duration::from_millis(50))
    }

    /// Puts a call at the end of the queue; one that a running call waits for, behind the others of its kind.
    fn wait(&mut self, slot: Slot) {
        let place = if slot.wish.nested {
            self.waiting.iter().position(|other| !other.wish.nested).unwrap_or(self.waiting.len())
        } else {
            self.waiting.len()
        };
        self.waiting.insert(place, slot);
    }

    fn cancel(&mut self, now: Moment, call: CallId, effects: &mut Vec<Effect>) {
        if let Some(place) = self.waiting.iter().position(|slot| slot.call() == call) {
            self.waiting.remove(place);
            effects.push(Effect::Finish { call, verdict: Verdict::Cancelled });
            return;
        }
        let rules = self.rules;
        for (worker, seat) in &mut self.workers {
            let Some(place) = seat.line.iter().position(|slot| slot.call() == call && !slot.settled) else { continue };
            let begun = place < seat.begun(&rules);
            let slot = &mut seat.line[place];
            slot.settled = true;
            effects.push(Effect::Finish { call, verdict: Verdict::Cancelled });
            if begun {
                slot.strike = Strike::interrupted(now, false, &rules);
            }
            effects.push(interruption(*worker, call, begun, &rules));
            return;
        }
    }

    fn lives(&mut self, worker: WorkerId) {
        if let Some(seat) = self.workers.get_mut(&worker) {
            seat.ping_until = None;
        }
    }

    fn somebody_has_room(&self, nested: bool) -> bool {
        self.workers.values().any(|seat| seat.has_room(self.capacity(), nested))
    }

    fn somebody_may_serve(&self) -> bool {
        self.workers.values().any(Seat::may_serve)
    }

    /// What the commons have to know after each step.
    fn settle_with(&mut self, commons: &mut Commons) {
        self.waits = std::mem::take(&mut self.wants);
        if !self.waits.seat {
            commons.wants_no_seat(self.id);
        }
        let is_needed = self.waiting.iter().any(|slot| !slot.wish.nested);
        if self.has_spare_turn && !is_needed {
            self.has_spare_turn = false;
            commons.give_turn(self.id);
        }
        if !self.waits.turn {
            commons.wants_no_turn(self.id);
        }
        if self.counted != self.waiting.len() {
            self.counted = self.waiting.len();
            commons.count_waiting(self.id, self.counted);
        }
    }

    fn tell(effects: &mut Vec<Effect>, decision: Decision) {
        effects.push(Effect::Tell(decision));
    }
}

/// A running call is interrupted, one that is not begun is withdrawn. Where a worker runs several, it can only be told.
fn interruption(worker: WorkerId, call: CallId, begun: bool, rules: &Rules) -> Effect {
    if begun && rules.concurrency == 1 { Effect::Interrupt { worker, call } } else { Effect::Withdraw { worker, call } }
}
