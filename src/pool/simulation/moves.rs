//! Random events, as a real driver could deliver them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::world::{Call, World};
use crate::pool::broker::Wakeup;
use crate::pool::event::{CallId, CallSpec, Event, Need, Verdict, WorkerId};
use crate::pool::job::SessionId;

impl World {
    pub(super) fn some_pool(&mut self) -> usize {
        self.chance.few(self.pools.len() as u64)
    }

    pub(super) fn submit(&mut self) {
        let pool = self.some_pool();
        let call = CallId(self.calls.len() as u64);
        let timeout = Duration::from_millis(20 + self.chance.below(200));
        let session = SessionId(self.chance.below(3));
        let (repeatable, nested) = (self.chance.one_in(3), self.chance.one_in(6));
        let begins_at_once = self.chance.one_in(4);
        let spec = CallSpec { call, session, timeout, repeatable, nested, begins_at_once };
        self.calls.insert(call, Call { spec, begun_in: Vec::new(), verdict: None, asks: false });
        let waiting: Vec<CallId> = self.pools[pool].waiting().collect();
        let mut held = BTreeMap::from([(session, 0)]);
        let is_counted = |call: &&CallId| !self.calls[*call].spec.nested && self.calls[*call].begun_in.is_empty();
        for call in waiting.iter().filter(is_counted) {
            *held.entry(self.calls[call].spec.session).or_insert(0) += 1;
        }
        self.step(pool, Event::Submit(spec));
        let is_busy = |other: &&CallId| matches!(self.calls[*other].verdict, Some(Verdict::Busy { .. }));
        if let Some(refused) = waiting.iter().chain([&call]).find(is_busy) {
            self.check_refusal(&held, call, *refused);
        }
    }

    /// A full queue refuses a call of a session with most calls there, or of one that has as many or almost.
    fn check_refusal(&self, held: &BTreeMap<SessionId, usize>, submitted: CallId, refused: CallId) {
        let own = held[&self.calls[&submitted].spec.session];
        let (taken, most) =
            (held[&self.calls[&refused].spec.session], held.values().copied().max().unwrap_or_default());
        let is_fair = if refused == submitted { most <= own + 1 } else { taken == most && taken > own + 1 };
        assert!(is_fair, "{refused:?} was refused when {submitted:?} came: {held:?}");
    }

    pub(super) fn cancel(&mut self) {
        let open: Vec<CallId> =
            self.calls.iter().filter(|(_, papers)| papers.verdict.is_none()).map(|(call, _)| *call).collect();
        if !open.is_empty() {
            let call = open[self.chance.few(open.len() as u64)];
            for pool in 0..self.pools.len() {
                self.step(pool, Event::Cancel(call));
            }
        }
    }

    pub(super) fn hear(&mut self) {
        let Some(wakeup) = self.wakeups.pop_front() else { return };
        let (pool, event) = match wakeup {
            Wakeup::PermitReady(pool) => (pool, Event::PermitReady),
            Wakeup::Evict(pool, worker, need) => (pool, Event::Evict(worker, need)),
        };
        self.step(usize::try_from(pool.0).unwrap(), event);
    }

    /// A random event of a random worker, possible in its state.
    pub(super) fn worker_moves(&mut self) {
        if self.workers.is_empty() {
            return;
        }
        let place = self.chance.few(self.workers.len() as u64);
        let (pool, id) = *self.workers.keys().nth(place).unwrap();
        let roll = self.chance.below(24);
        let Some(worker) = self.workers.get_mut(&(pool, id)) else { return };
        if !worker.ready {
            return self.start_ends(pool, id, roll);
        }
        if worker.stopping || roll <= 1 {
            self.workers.remove(&(pool, id));
            self.gone.push((pool, id));
            let of_a_limit = roll == 1;
            return self.step(pool, Event::Died { worker: id, of_a_limit });
        }
        if worker.pinged && roll > 6 {
            // Or it never answers, blocked by a stuck call.
            worker.pinged = false;
            return self.step(pool, Event::Pong(id));
        }
        if roll == 2 {
            worker.stuck.extend(worker.line.front().copied());
        }
        if roll < 6 {
            let held = 20 + usize::try_from(roll).unwrap() * 10;
            return self.step(pool, Event::Measured { worker: id, held });
        }
        if roll < 10 {
            return self.ask_or_resume(pool, id);
        }
        self.answer(pool, id);
    }

    /// A running call asks its client, or its client answers.
    fn ask_or_resume(&mut self, pool: usize, id: WorkerId) {
        let concurrency = self.rules[pool].concurrency;
        let Some(worker) = self.workers.get(&(pool, id)) else { return };
        let place = self.chance.few(concurrency as u64);
        let Some(call) = worker.line.iter().take(concurrency).nth(place).copied() else { return };
        // Another thread of it may ask when the first has its answer.
        if self.pools[pool].is_parked(call) && !self.chance.one_in(4) {
            return self.step(pool, Event::Unpark(call));
        }
        self.calls.get_mut(&call).expect("it is held").asks = true;
        let is_outer = self.chance.one_in(4);
        self.step(pool, Event::Park { call, is_outer });
        self.calls.get_mut(&call).expect("it is held").asks = self.pools[pool].is_parked(call);
    }

    /// A worker reads that calls are recalled, and returns those that it has not begun.
    fn give_back(&mut self, pool: usize, id: WorkerId) -> bool {
        let concurrency = self.rules[pool].concurrency;
        let Some(worker) = self.workers.get_mut(&(pool, id)) else { return false };
        let Some(call) = worker.line.iter().skip(concurrency).find(|call| worker.recalled.contains(call)).copied()
        else {
            return false;
        };
        worker.line.retain(|held| *held != call);
        worker.recalled.remove(&call);
        self.step(pool, Event::Returned { worker: id, call });
        true
    }

    pub(super) fn start_ends(&mut self, pool: usize, id: WorkerId, roll: u64) {
        let Some(worker) = self.workers.get_mut(&(pool, id)) else { return };
        if worker.stopping && roll < 12 {
            // It said hello while it was being stopped.
            self.step(pool, Event::Ready(id));
            self.workers.remove(&(pool, id));
            return self.step(pool, Event::StartFailed { worker: id, by_itself: false });
        }
        if worker.stopping || roll < 4 {
            let by_itself = !worker.stopping && roll < 3;
            self.workers.remove(&(pool, id));
            return self.step(pool, Event::StartFailed { worker: id, by_itself });
        }
        worker.ready = true;
        self.step(pool, Event::Ready(id));
    }

    pub(super) fn answer(&mut self, pool: usize, id: WorkerId) {
        if self.chance.one_in(2) && self.give_back(pool, id) {
            return;
        }
        let concurrency = self.rules[pool].concurrency;
        let Some(worker) = self.workers.get_mut(&(pool, id)) else { return };
        let free = |call: &&CallId| {
            !(worker.stuck.contains(call) || self.calls[call].asks && self.calls[call].verdict.is_none())
        };
        let Some(call) = worker.line.iter().take(concurrency).rfind(free).copied() else { return };
        worker.line.retain(|held| *held != call);
        let cancelled = worker.withdrawn.remove(&call);
        self.begin(pool, id);
        self.answering = Some(call);
        self.step(pool, Event::Answered { worker: id, call, cancelled });
        self.answering = None;
    }

    pub(super) fn late_news(&mut self) {
        if self.gone.is_empty() || self.calls.is_empty() {
            return;
        }
        let (pool, worker) = self.gone[self.chance.few(self.gone.len() as u64)];
        let call = CallId(self.chance.below(self.calls.len() as u64));
        let event = match self.chance.below(6) {
            5 => Event::Pong(worker),
            0 => Event::Ready(worker),
            1 => Event::Died { worker, of_a_limit: false },
            2 => Event::StartFailed { worker, by_itself: true },
            3 => Event::Evict(worker, Need::WorkerPermit),
            _ => Event::Answered { worker, call, cancelled: false },
        };
        self.step(pool, event);
    }

    pub(super) fn anything(&mut self) {
        self.now += Duration::from_millis(self.chance.below(15));
        let pool = self.some_pool();
        match self.chance.below(15) {
            0..=4 => self.submit(),
            5 => self.cancel(),
            6 | 7 => {
                if self.pools[pool].next_timer().is_some_and(|at| at <= self.now) {
                    self.step(pool, Event::Timer);
                }
            }
            // Late events of a worker that exited, as a real driver can deliver them.
            8 => self.late_news(),
            9 => self.step(pool, Event::Warm),
            10 | 11 => self.hear(),
            _ => self.worker_moves(),
        }
    }

    /// A quiet period without calls and failures: starting workers become ready, stopping ones exit, and all measure
    /// the same.
    pub(super) fn all_goes_well(&mut self) {
        while !self.wakeups.is_empty() {
            self.hear();
        }
        let workers: Vec<(usize, WorkerId)> = self.workers.keys().copied().collect();
        for pool in 0..self.pools.len() {
            let parked = self.calls.keys().filter(|call| self.pools[pool].is_parked(**call)).copied();
            for call in parked.collect::<Vec<_>>() {
                self.step(pool, Event::Unpark(call));
            }
        }
        for (pool, id) in workers {
            let Some(worker) = self.workers.get_mut(&(pool, id)) else { continue };
            if worker.stopping {
                let event = if worker.ready { died(id) } else { Event::StartFailed { worker: id, by_itself: false } };
                self.workers.remove(&(pool, id));
                self.step(pool, event);
            } else if worker.ready {
                self.answer(pool, id);
                self.step(pool, Event::Measured { worker: id, held: 60 });
            } else {
                worker.ready = true;
                self.step(pool, Event::Ready(id));
            }
        }
        for pool in 0..self.pools.len() {
            self.now += Duration::from_millis(100);
            if let Some(at) = self.pools[pool].next_timer() {
                self.now = self.now.max(at);
                self.step(pool, Event::Timer);
            }
        }
    }
}

fn died(worker: WorkerId) -> Event {
    Event::Died { worker, of_a_limit: false }
}
