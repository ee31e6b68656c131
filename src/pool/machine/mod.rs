//! The pool of one tool file as a pure state machine: `step(now, event, broker) -> effects`.
//!
//! It has no clock, no process and no runtime. Production and tests drive this same type; every decision depends on the
//! arguments alone. The [`ResourceBroker`] passed to each step holds what pools share.
//!
//! Invariants: a submitted call gets exactly one `Finish`; a worker is sent no more calls than it may hold; the calls
//! behind one that died return to the head of the queue in order; a stopping worker is sent nothing;
//! a begun call is sent again only if it is idempotent, and once; if its worker ran several calls,
//! each is repeated alone; no worker is idle while a call that could run waits.

mod spawn;
mod retire;
mod assign;
mod park;
mod sabotage;
mod timing;
mod view;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

#[cfg(test)]
pub(super) use sabotage::Mutant;
use sabotage::sabotaged;
pub use view::{Resting, WorkerView};

use super::breaker::CircuitBreaker;
use super::broker::{PoolId, ResourceBroker};
use super::event::{CallId, CallSpec, Decision, Effect, Event, Moment, Verdict, WorkerId};
use super::job::SessionId;
use super::rules::Rules;
use super::worker_state::{Escalation, QueuedCall, WorkerState};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
    Ending,
}

/// Whether the minimum of workers is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minimum {
    /// Not before the first call.
    Unwanted,
    Wanted,
    /// A worker was evicted for memory: a new one would be evicted as well.
    TooLarge,
}

/// What a pool has requested from the broker and not received.
#[derive(Debug, Clone, Copy, Default)]
struct Wants {
    /// A permit for another worker.
    worker_permit: bool,
    /// A permit for a call to run.
    run_permit: bool,
}

/// The surroundings of one step: its time, what pools share, and its effects so far.
struct Step<'b> {
    now: Moment,
    broker: &'b mut ResourceBroker,
    effects: Vec<Effect>,
    /// Whether a parked call went on or ended.
    has_unparked: bool,
}

impl Step<'_> {
    fn tell(&mut self, decision: Decision) {
        self.effects.push(Effect::Tell(decision));
    }

    fn finish(&mut self, call: CallId, verdict: Verdict) {
        self.effects.push(Effect::Finish { call, verdict });
    }
}

/// The state of one pool.
#[derive(Debug)]
pub struct Machine {
    pool: PoolId,
    rules: Rules,
    phase: Phase,
    /// Nested calls first, in order; then the others, by turns of their sessions.
    waiting: VecDeque<QueuedCall>,
    /// The queue length that the broker knows.
    counted: usize,
    workers: BTreeMap<WorkerId, WorkerState>,
    next_worker: u64,
    usual_run: Duration,
    /// A run permit for a call that has no worker yet.
    has_spare_permit: bool,
    breaker: CircuitBreaker,
    /// What the broker refused in this step.
    wants: Wants,
    /// What the broker refused in the last step.
    waits: Wants,
    last_step: Moment,
    minimum: Minimum,
    /// Whether the log already says that workers begin above the memory limit.
    logged_size: bool,
    emptied: bool,
    #[cfg(test)]
    pub(super) mutant: Option<Mutant>,
}

impl Machine {
    /// An empty pool.
    pub fn new(pool: PoolId, rules: &Rules) -> Self {
        Self {
            pool,
            rules: *rules,
            phase: Phase::Open,
            waiting: VecDeque::new(),
            counted: 0,
            workers: BTreeMap::new(),
            next_worker: 1,
            usual_run: Duration::from_millis(100),
            has_spare_permit: false,
            breaker: CircuitBreaker::new(rules.seed),
            wants: Wants::default(),
            waits: Wants::default(),
            last_step: Moment::ZERO,
            minimum: Minimum::Unwanted,
            logged_size: false,
            emptied: false,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Processes one event and returns the effects.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event, broker: &mut ResourceBroker) -> Vec<Effect> {
        let mut step = Step { now, broker, effects: Vec::new(), has_unparked: false };
        self.last_step = now;
        self.handle(&mut step, event);
        self.resume(&mut step);
        self.shed(&mut step);
        self.recycle(&mut step);
        self.assign(&mut step);
        self.grow(&mut step);
        self.leave_when_done(&mut step);
        self.settle_with(&mut step);
        step.effects
    }

    fn handle(&mut self, step: &mut Step<'_>, event: Event) {
        match event {
            Event::Submit(spec) => self.submit(step, spec),
            Event::Cancel(call) => self.cancel(step, call),
            Event::Ready(id) => self.ready(step, id),
            Event::StartFailed { worker: id, by_itself } => self.start_failed(step, id, by_itself),
            Event::Answered { worker: id, call, cancelled } => self.answered(step, id, call, cancelled),
            Event::Park { call, is_outer } => self.park(step, call, is_outer),
            Event::Unpark(call) => self.unpark(call),
            Event::Returned { worker: id, call } => self.returned(step, id, call),
            Event::Ends(id) => self.ends(id),
            Event::Died { worker: id, of_a_limit } => self.died(step, id, of_a_limit),
            Event::Pong(id) => self.lives(id),
            Event::Measured { worker: id, held } => self.measured(step, id, held),
            Event::Evict(id, need) => self.evict(step, id, need),
            Event::Timer => self.timers(step),
            Event::PermitReady => {}
            Event::Warm => self.minimum = Minimum::Wanted,
            Event::Close => self.phase = if self.phase == Phase::Open { Phase::Closing } else { self.phase },
            Event::End => self.end(step),
        }
    }

    /// When to send the next `Event::Timer`.
    pub fn next_timer(&self) -> Option<Moment> {
        let (may_leave, is_replaced) = (self.may_leave_idle(), self.phase == Phase::Open);
        let worker_permits =
            self.workers.values().filter_map(|worker| worker.next_timer(&self.rules, may_leave, is_replaced));
        worker_permits.chain(self.grows_at()).min()
    }

    /// Calls that wait for a worker.
    pub fn waiting(&self) -> impl Iterator<Item = CallId> + '_ {
        self.waiting.iter().map(QueuedCall::call)
    }

    /// The only call that a worker runs; `None` when it runs several, because an unnamed message has no unique call
    /// then.
    pub fn running(&self, id: WorkerId) -> Option<CallId> {
        let line = &self.workers.get(&id)?.line;
        line.front().filter(|_| self.rules.concurrency == 1 || line.len() == 1).map(QueuedCall::call)
    }

    /// The calls that a worker has begun.
    pub fn begun(&self, id: WorkerId) -> impl Iterator<Item = CallId> + '_ {
        let line = self.workers.get(&id).into_iter().flat_map(|worker| &worker.line);
        line.take(self.rules.concurrency).map(QueuedCall::call)
    }

    /// Whether a worker has begun this call.
    pub fn has_begun(&self, id: WorkerId, call: CallId) -> bool {
        self.begun(id).any(|begun| begun == call)
    }

    /// Whether a call waits for its client.
    pub fn is_parked(&self, call: CallId) -> bool {
        let mut held = self.workers.values().flat_map(|worker| &worker.line);
        held.any(|queued| queued.call() == call && queued.parked.is_now())
    }

    /// Whether a call may ask its client: it runs, and is not being interrupted.
    pub fn may_ask(&self, call: CallId) -> bool {
        let mut held = self.workers.values().flat_map(|worker| &worker.line);
        held.any(|queued| queued.call() == call && queued.may_ask())
    }

    /// Whether a call was asked back from a worker.
    pub fn is_recalled(&self, id: WorkerId, call: CallId) -> bool {
        let mut held = self.workers.get(&id).into_iter().flat_map(|worker| &worker.line);
        held.any(|queued| queued.call() == call && queued.is_recalled)
    }

    /// Whether every worker that could take calls waits for a client.
    pub fn is_asking(&self) -> bool {
        let mut serving = self.workers.values().filter(|worker| worker.may_serve()).peekable();
        serving.peek().is_some() && serving.all(|worker| worker.is_asking(&self.rules))
    }

    /// Whether a call was written to a worker and is unanswered.
    pub fn holds(&self, id: WorkerId, call: CallId) -> bool {
        self.workers.get(&id).is_some_and(|worker| worker.line.iter().any(|queued| queued.call() == call))
    }

    /// The limits.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    fn submit(&mut self, step: &mut Step<'_>, spec: CallSpec) {
        let verdict = if self.phase != Phase::Open {
            Verdict::ShuttingDown
        } else if let Some(retry_after) = self.breaker.open(step.now, &self.rules) {
            Verdict::Broken { times: self.breaker.deaths(), retry_after }
        } else if let Some(retry_after) = self.breaker.failing(step.now).filter(|_| !self.somebody_may_serve()) {
            Verdict::StillFailing { times: self.breaker.failures(), retry_after }
        } else {
            if let Some(busy) = self.busy(step, spec.nested)
                && !self.refuse_excess(step, spec.session, busy)
            {
                return step.finish(spec.call, busy);
            }
            self.minimum = Minimum::Wanted;
            return self.wait(QueuedCall::waiting(spec, step.now));
        };
        step.finish(spec.call, verdict);
    }

    /// Whether the queue is full.
    fn busy(&self, step: &Step<'_>, nested: bool) -> Option<Verdict> {
        let (waiting, retry_after) = (self.waiting.len(), self.soon());
        if waiting >= self.rules.max_queue {
            return Some(Verdict::Busy { waiting, overall: false, retry_after });
        }
        let overall = step.broker.is_full_of_waiting() && !(waiting == 0 && self.somebody_has_room(nested));
        overall.then(|| Verdict::Busy { waiting: step.broker.waiting(), overall, retry_after })
    }

    /// Makes room in a full queue for a call of a session: the last call of the session that has most calls there is refused, if
    /// that one still has no fewer than the other then. So a session that fills the queue cannot keep others out.
    fn refuse_excess(&mut self, step: &mut Step<'_>, session: SessionId, busy: Verdict) -> bool {
        if sabotaged!(self, FavourTheFirst) {
            return false;
        }
        let mut held = HashMap::<SessionId, (usize, usize)>::new();
        for (place, queued) in self.waiting.iter().enumerate().filter(|(_, queued)| queued.may_be_refused()) {
            let (count, last) = held.entry(queued.spec.session).or_default();
            (*count, *last) = (*count + 1, place);
        }
        let own = held.get(&session).map_or(0, |(count, _)| *count);
        let most = held.into_values().max().filter(|(count, _)| *count > own + 1);
        let refused = most.and_then(|(_, last)| self.waiting.remove(last));
        refused.inspect(|queued| step.finish(queued.call(), busy)).is_some()
    }

    /// When capacity is likely free.
    fn soon(&self) -> Duration {
        self.usual_run.max(Duration::from_millis(50))
    }

    /// Puts a call into the queue. A nested call goes behind the other nested calls; others take turns by session, and those of
    /// one session stay in order.
    fn wait(&mut self, queued: QueuedCall) {
        let nested = self.waiting.iter().take_while(|other| other.spec.nested).count();
        let place = if queued.spec.nested { nested } else { self.turn_of(queued.spec.session, nested) };
        self.waiting.insert(place, queued);
    }

    /// The place of a session's next call behind the nested ones: its third waiting call goes behind the third of every other
    /// session and before the fourth of any.
    fn turn_of(&self, session: SessionId, nested: usize) -> usize {
        let others = self.waiting.range(nested..);
        let own = others.clone().filter(|other| other.spec.session == session).count();
        if own == others.len() {
            return self.waiting.len();
        }
        let mut before = HashMap::<SessionId, usize>::new();
        let goes_after = |other: &&QueuedCall| {
            let turn = before.entry(other.spec.session).or_default();
            *turn += 1;
            *turn <= own + 1
        };
        // Behind the session's own last call, wherever that went back to.
        let last = others.clone().rposition(|other| other.spec.session == session).map_or(0, |last| last + 1);
        nested + others.take_while(goes_after).count().max(last)
    }

    fn cancel(&mut self, step: &mut Step<'_>, call: CallId) {
        if let Some(place) = self.waiting.iter().position(|queued| queued.call() == call) {
            self.waiting.remove(place);
            step.finish(call, Verdict::Cancelled);
            return;
        }
        let rules = self.rules;
        for (id, worker) in &mut self.workers {
            let Some(place) = worker.line.iter().position(|queued| queued.call() == call && !queued.settled) else {
                continue;
            };
            let begun = place < worker.begun(&rules);
            let queued = &mut worker.line[place];
            queued.settled = true;
            step.leaves_park(self.pool, queued);
            step.finish(call, Verdict::Cancelled);
            if begun {
                queued.escalation = Escalation::interrupted(step.now, false, &rules);
            }
            step.effects.push(interruption(*id, call, begun, &rules));
            return;
        }
    }

    fn lives(&mut self, id: WorkerId) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.ping_until = None;
        }
    }

    fn somebody_has_room(&self, nested: bool) -> bool {
        self.workers.values().any(|worker| worker.has_room(self.capacity(), nested))
    }

    fn somebody_may_serve(&self) -> bool {
        self.workers.values().any(WorkerState::may_serve)
    }

    /// Reports the pool's state to the broker after each step.
    fn settle_with(&mut self, step: &mut Step<'_>) {
        self.waits = std::mem::take(&mut self.wants);
        if !self.waits.worker_permit {
            step.broker.wants_no_worker_permit(self.pool);
        }
        let is_needed = self.waiting.iter().any(|queued| !queued.spec.nested);
        if self.has_spare_permit && !is_needed {
            self.has_spare_permit = false;
            step.broker.return_run_permit(self.pool);
        }
        if !self.waits.run_permit {
            step.broker.wants_no_run_permit(self.pool);
        }
        if self.counted != self.waiting.len() {
            self.counted = self.waiting.len();
            step.broker.count_waiting(self.pool, self.counted);
        }
    }
}

/// Interrupts a running call, or withdraws a call that has not begun. A worker for several calls is only notified.
fn interruption(id: WorkerId, call: CallId, begun: bool, rules: &Rules) -> Effect {
    if begun && rules.concurrency == 1 {
        Effect::Interrupt { worker: id, call }
    } else {
        Effect::Withdraw { worker: id, call }
    }
}
