//! The pool of one tool file as a pure state machine: `step(now, event) -> effects`.
//!
//! No clock, no process and no runtime in here. Production and tests drive this same type; whatever it decides,
//! it decided from its arguments alone.
//!
//! Invariants: a submitted call gets exactly one `Finish`; a worker is sent no more calls than it may hold; the calls
//! behind one that died go back to the head of the queue in their order; nothing is sent to a worker that is leaving.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::event::{CallId, Effect, Event, Manner, Moment, Rules, Verdict, WorkerId};
use super::seat::{Seat, Slot, State, Strike};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
    Ending,
}

/// The state of one pool.
#[derive(Debug)]
pub struct Machine {
    rules: Rules,
    phase: Phase,
    waiting: VecDeque<Slot>,
    workers: BTreeMap<WorkerId, Seat>,
    next_worker: u64,
    usual_run: Duration,
    /// Starts that failed since the last one that did not.
    failures: u32,
    /// No start is tried before.
    retry_at: Moment,
    emptied: bool,
}

impl Machine {
    /// An empty pool.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            phase: Phase::Open,
            waiting: VecDeque::new(),
            workers: BTreeMap::new(),
            next_worker: 1,
            usual_run: Duration::from_millis(100),
            failures: 0,
            retry_at: Moment::ZERO,
            emptied: false,
        }
    }

    /// Takes one event and says what is to be done.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Submit { call, timeout } => self.submit(now, Slot { call, timeout, settled: false }, &mut effects),
            Event::Cancel(call) => self.cancel(now, call, &mut effects),
            Event::Ready(worker) => self.ready(now, worker),
            Event::StartFailed { worker, by_itself } => self.start_failed(now, worker, by_itself, &mut effects),
            Event::Answered { worker, call, cancelled } => self.answered(now, worker, call, cancelled, &mut effects),
            Event::Died(worker) => self.died(worker, &mut effects),
            Event::Timer => self.timers(now, &mut effects),
            Event::Close => self.phase = if self.phase == Phase::Open { Phase::Closing } else { self.phase },
            Event::End => self.end(&mut effects),
        }
        self.assign(now, &mut effects);
        self.leave_when_done(&mut effects);
        effects
    }

    /// When `Event::Timer` is to be sent next.
    pub fn next_timer(&self) -> Option<Moment> {
        // Calls that a death sent back may wait for the end of a pause.
        let retry = (!self.waiting.is_empty() && self.may_have_another()).then_some(self.retry_at);
        self.workers.values().filter_map(|seat| seat.next_timer(&self.rules)).chain(retry).min()
    }

    /// Calls that wait for a worker.
    pub fn waiting(&self) -> impl Iterator<Item = CallId> + '_ {
        self.waiting.iter().map(|slot| slot.call)
    }

    /// The call a worker is running.
    pub fn running(&self, worker: WorkerId) -> Option<CallId> {
        self.workers.get(&worker)?.line.front().map(|slot| slot.call)
    }

    fn submit(&mut self, now: Moment, slot: Slot, effects: &mut Vec<Effect>) {
        let waiting = self.waiting.len();
        if self.phase != Phase::Open {
            effects.push(Effect::Finish { call: slot.call, verdict: Verdict::ShuttingDown });
        } else if now < self.retry_at && !self.workers.values().any(Seat::counts_as_alive) {
            let verdict =
                Verdict::StillFailing { times: self.failures, retry_after: self.retry_at.saturating_sub(now) };
            effects.push(Effect::Finish { call: slot.call, verdict });
        } else if waiting >= self.rules.max_queue && !self.somebody_has_room() {
            let retry_after = self.usual_run.max(Duration::from_millis(50));
            effects.push(Effect::Finish { call: slot.call, verdict: Verdict::Busy { waiting, retry_after } });
        } else {
            self.waiting.push_back(slot);
        }
    }

    fn somebody_has_room(&self) -> bool {
        self.workers.values().any(|seat| seat.has_room(&self.rules))
    }

    fn cancel(&mut self, now: Moment, call: CallId, effects: &mut Vec<Effect>) {
        if let Some(place) = self.waiting.iter().position(|slot| slot.call == call) {
            self.waiting.remove(place);
            effects.push(Effect::Finish { call, verdict: Verdict::Cancelled });
            return;
        }
        for (worker, seat) in &mut self.workers {
            let Some(place) = seat.line.iter().position(|slot| slot.call == call && !slot.settled) else { continue };
            seat.line[place].settled = true;
            effects.push(Effect::Finish { call, verdict: Verdict::Cancelled });
            if place == 0 {
                effects.push(Effect::Interrupt { worker: *worker, call });
                seat.strike = Strike::interrupted(now, false, &self.rules);
            } else {
                effects.push(Effect::Withdraw { worker: *worker, call });
            }
            return;
        }
    }

    fn ready(&mut self, now: Moment, worker: WorkerId) {
        if let Some(seat) = self.workers.get_mut(&worker)
            && seat.state == State::Starting
        {
            seat.state = State::Serving;
            seat.since = now;
            self.failures = 0;
        }
    }

    fn start_failed(&mut self, now: Moment, worker: WorkerId, by_itself: bool, effects: &mut Vec<Effect>) {
        let Some(seat) = self.workers.remove(&worker) else { return };
        if by_itself && seat.state != State::Leaving {
            self.failures += 1;
            self.retry_at = now + self.pause();
        }
        // A call waits for any worker; only when none is left alive is there nobody to hope for. A worker that was
        // told to go while it started failed because of that, and says nothing about the next one.
        if seat.state == State::Leaving || self.workers.values().any(Seat::counts_as_alive) {
            return;
        }
        for slot in self.waiting.drain(..) {
            effects.push(Effect::Finish { call: slot.call, verdict: Verdict::StartFailed(worker) });
        }
    }

    /// How long no start is tried now.
    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(2).min(16);
        let pause = self.rules.first_pause.saturating_mul(1 << doublings).min(self.rules.longest_pause);
        if self.failures < 2 { Duration::ZERO } else { pause }
    }

    fn may_have_another(&self) -> bool {
        self.workers.values().filter(|seat| seat.counts_as_alive()).count() < self.rules.max_workers
    }

    fn answered(&mut self, now: Moment, worker: WorkerId, call: CallId, cancelled: bool, effects: &mut Vec<Effect>) {
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        let Some(place) = seat.line.iter().position(|slot| slot.call == call) else { return };
        let Some(slot) = seat.line.remove(place) else { return };
        let overdue = matches!(seat.strike, Strike::Interrupted { overdue: true, .. });
        if place == 0 {
            self.usual_run = (self.usual_run * 7 + now.saturating_sub(seat.since)) / 8;
            seat.strike = Strike::None;
            seat.since = now;
        }
        if !slot.settled {
            let timed_out = place == 0 && cancelled && overdue;
            let verdict =
                if timed_out { Verdict::TimedOut { worker, stopped: false } } else { Verdict::Answered(worker) };
            effects.push(Effect::Finish { call, verdict });
        }
        // A withdrawn call that is now the first may have been begun before the withdrawal arrived.
        if place == 0
            && let Some(first) = seat.line.front()
            && first.settled
        {
            effects.push(Effect::Interrupt { worker, call: first.call });
            seat.strike = Strike::interrupted(now, false, &self.rules);
        }
    }

    fn died(&mut self, worker: WorkerId, effects: &mut Vec<Effect>) {
        let Some(mut seat) = self.workers.remove(&worker) else { return };
        if let Some(first) = seat.line.pop_front()
            && !first.settled
        {
            let overdue = seat.strike != Strike::None;
            let verdict = if overdue { Verdict::TimedOut { worker, stopped: true } } else { Verdict::Died(worker) };
            effects.push(Effect::Finish { call: first.call, verdict });
        }
        self.requeue(seat.line, effects);
    }

    /// Puts calls that were never begun back at the head of the queue, in their order.
    fn requeue(&mut self, line: VecDeque<Slot>, effects: &mut Vec<Effect>) {
        for slot in line.into_iter().rev().filter(|slot| !slot.settled) {
            if self.phase == Phase::Ending {
                effects.push(Effect::Finish { call: slot.call, verdict: Verdict::ShuttingDown });
            } else {
                self.waiting.push_front(slot);
            }
        }
    }

    fn timers(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let due = |seat: &Seat| seat.next_timer(&self.rules).is_some_and(|at| at <= now);
        let workers: Vec<WorkerId> = self.workers.iter().filter(|(_, seat)| due(seat)).map(|(id, _)| *id).collect();
        for worker in workers {
            self.timer(now, worker, effects);
        }
    }

    fn timer(&mut self, now: Moment, worker: WorkerId, effects: &mut Vec<Effect>) {
        let rules = self.rules;
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        match (seat.strike, seat.line.front().copied()) {
            (Strike::None, None) => {
                seat.state = State::Leaving;
                effects.push(Effect::Stop { worker, manner: Manner::Retire });
            }
            (Strike::None, Some(_)) => {
                seat.strike = Strike::Stack { until: now + rules.stack_grace };
                effects.push(Effect::TakeStack(worker));
            }
            (Strike::Stack { .. }, Some(first)) => {
                seat.strike = Strike::interrupted(now, true, &rules);
                effects.push(Effect::Interrupt { worker, call: first.call });
            }
            (Strike::Interrupted { until, overdue, .. }, Some(_)) if now < until => {
                seat.strike = Strike::Interrupted { until, nudge: now + rules.nudge_every, overdue };
                effects.push(Effect::Nudge(worker));
            }
            (Strike::Interrupted { .. }, Some(first)) => {
                if !first.settled {
                    let verdict = Verdict::TimedOut { worker, stopped: true };
                    effects.push(Effect::Finish { call: first.call, verdict });
                }
                self.kill(worker, effects);
            }
            (Strike::Stack { .. } | Strike::Interrupted { .. }, None) => seat.strike = Strike::None,
        }
    }

    /// Stops a worker whose first call has been settled; the calls behind it are untouched.
    fn kill(&mut self, worker: WorkerId, effects: &mut Vec<Effect>) {
        let Some(seat) = self.workers.get_mut(&worker) else { return };
        seat.state = State::Leaving;
        seat.strike = Strike::None;
        let mut line = std::mem::take(&mut seat.line);
        line.pop_front();
        effects.push(Effect::Stop { worker, manner: Manner::Kill });
        self.requeue(line, effects);
    }

    fn end(&mut self, effects: &mut Vec<Effect>) {
        self.phase = Phase::Ending;
        for slot in self.waiting.drain(..) {
            effects.push(Effect::Finish { call: slot.call, verdict: Verdict::ShuttingDown });
        }
        for (worker, seat) in &mut self.workers {
            for slot in seat.line.drain(..).filter(|slot| !slot.settled) {
                effects.push(Effect::Finish { call: slot.call, verdict: Verdict::ShuttingDown });
            }
            // Also one that is leaving by itself: now it is to go at once.
            seat.state = State::Leaving;
            seat.strike = Strike::None;
            effects.push(Effect::Stop { worker: *worker, manner: Manner::Kill });
        }
    }

    fn assign(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        while !self.waiting.is_empty() {
            let roomy = self.workers.iter_mut().filter(|(_, seat)| seat.has_room(&self.rules));
            if let Some((worker, seat)) = roomy.min_by_key(|(_, seat)| seat.line.len()) {
                let Some(slot) = self.waiting.pop_front() else { return };
                if seat.line.is_empty() {
                    seat.since = now;
                }
                seat.line.push_back(slot);
                effects.push(Effect::Send { worker: *worker, call: slot.call });
            } else if self.may_have_another() && now >= self.retry_at {
                let worker = WorkerId(self.next_worker);
                self.next_worker += 1;
                self.workers.insert(worker, Seat::starting(now));
                effects.push(Effect::Start(worker));
            } else {
                return;
            }
        }
    }

    fn leave_when_done(&mut self, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Open || !self.waiting.is_empty() {
            return;
        }
        for (worker, seat) in &mut self.workers {
            if seat.state != State::Leaving && seat.line.is_empty() {
                seat.state = State::Leaving;
                effects.push(Effect::Stop { worker: *worker, manner: Manner::Retire });
            }
        }
        if self.workers.is_empty() && !self.emptied {
            self.emptied = true;
            effects.push(Effect::Empty);
        }
    }
}
