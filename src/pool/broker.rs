//! What all pools have in common: permits for workers, permits for running calls, room for waiting ones.
//!
//! Pure like the machine, which is given it with each step. What other pools should look at again comes out as wakeups.
//!
//! Invariants: never more workers alive or calls running than the caps say; whoever waits for a worker permit or a permit gets one
//! in the order of asking, once for each time it asked; a worker that works is never chosen to leave.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Moment, Need, WorkerId};

/// A pool, among those that share a [`ResourceBroker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u64);

/// The limits of everything together.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Calls running at once. Those that a running call makes are not counted: their caller waits for them.
    pub running: usize,
    /// Workers alive at once.
    pub workers: usize,
    /// Calls waiting at once.
    pub waiting: usize,
    /// The most memory that all workers may hold, in bytes.
    pub memory: Option<usize>,
}

impl Default for Caps {
    fn default() -> Self {
        Self { running: 16, workers: 32, waiting: 1024, memory: None }
    }
}

/// Something another pool should hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakeup {
    /// What it waited for is kept for it.
    Look(PoolId),
    /// Let a worker go, should it still be idle.
    Evict(PoolId, WorkerId, Need),
}

#[derive(Debug)]
struct Place {
    idle_since: Option<Moment>,
    /// Its pool would rather keep it, idle or not.
    kept: bool,
    held: usize,
    told_to_go: bool,
}

/// Something there is only so much of, and who waits for it.
#[derive(Debug, Default)]
struct Share {
    cap: usize,
    used: usize,
    /// Of those, each pool's.
    used_by: BTreeMap<PoolId, usize>,
    queue: VecDeque<PoolId>,
    /// Handed on to pools that have not taken it yet.
    kept: BTreeMap<PoolId, usize>,
}

impl Share {
    fn new(cap: usize) -> Self {
        Self { cap: cap.max(1), ..Self::default() }
    }

    fn free(&self) -> bool {
        self.used + self.kept.values().sum::<usize>() < self.cap
    }

    fn take(&mut self, pool: PoolId) -> bool {
        if let Some(kept) = self.kept.get_mut(&pool) {
            *kept -= 1;
            if *kept == 0 {
                self.kept.remove(&pool);
            }
        } else if !(self.queue.is_empty() && self.free()) {
            self.wait(pool);
            return false;
        }
        self.lend(pool);
        true
    }

    fn lend(&mut self, pool: PoolId) {
        self.used += 1;
        *self.used_by.entry(pool).or_default() += 1;
    }

    /// One is free again. What a pool does not hold it cannot give.
    fn give(&mut self, pool: PoolId) {
        if let Some(held) = self.used_by.get_mut(&pool).filter(|held| **held > 0) {
            *held -= 1;
            self.used -= 1;
        }
    }

    /// A pool is gone, with whatever it held.
    fn forget(&mut self, pool: PoolId, wakeups: &mut Vec<Wakeup>) {
        self.used -= self.used_by.remove(&pool).unwrap_or_default();
        self.withdraw(pool, wakeups);
        self.pass_on(wakeups);
    }

    fn wait(&mut self, pool: PoolId) {
        if !self.queue.contains(&pool) {
            self.queue.push_back(pool);
        }
    }

    fn pass_on(&mut self, wakeups: &mut Vec<Wakeup>) {
        while !self.queue.is_empty() && self.free() {
            let Some(pool) = self.queue.pop_front() else { return };
            *self.kept.entry(pool).or_default() += 1;
            wakeups.push(Wakeup::Look(pool));
        }
    }

    /// A pool wants none any more.
    fn withdraw(&mut self, pool: PoolId, wakeups: &mut Vec<Wakeup>) {
        if self.queue.is_empty() && self.kept.is_empty() {
            return;
        }
        self.queue.retain(|waiting| *waiting != pool);
        if self.kept.remove(&pool).is_some() {
            self.pass_on(wakeups);
        }
    }
}

/// What all pools share.
#[derive(Debug)]
pub struct ResourceBroker {
    caps: Caps,
    worker_permits: Share,
    admission: Share,
    waiting: BTreeMap<PoolId, usize>,
    places: BTreeMap<(PoolId, WorkerId), Place>,
    /// All workers together hold more memory than they may.
    is_over: bool,
    wakeups: Vec<Wakeup>,
}

impl ResourceBroker {
    /// Nobody is there yet.
    pub fn new(caps: Caps) -> Self {
        Self {
            caps,
            worker_permits: Share::new(caps.workers),
            admission: Share::new(caps.running),
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            is_over: false,
            wakeups: Vec::new(),
        }
    }

    /// What other pools should hear now.
    pub fn take_wakeups(&mut self) -> Vec<Wakeup> {
        std::mem::take(&mut self.wakeups)
    }

    /// The limits.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Calls running now.
    pub fn running(&self) -> usize {
        self.admission.used
    }

    /// Workers alive now, those that start or leave included.
    pub fn alive(&self) -> usize {
        self.places.len()
    }

    /// Calls waiting now.
    pub fn waiting(&self) -> usize {
        self.waiting.values().sum()
    }

    pub(super) fn is_full_of_waiting(&self) -> bool {
        self.waiting() >= self.caps.waiting
    }

    pub(super) fn count_waiting(&mut self, pool: PoolId, waiting: usize) {
        self.waiting.insert(pool, waiting);
    }

    /// A pool is gone, in order or not: whatever it held is there for others.
    pub(super) fn forget(&mut self, pool: PoolId) {
        self.waiting.remove(&pool);
        self.places.retain(|(of, _), _| *of != pool);
        if self.places.is_empty() {
            self.is_over = false;
        }
        self.admission.forget(pool, &mut self.wakeups);
        self.worker_permits.forget(pool, &mut self.wakeups);
    }

    /// A permit for one running call; without one the pool is poked when it may take it.
    pub(super) fn take_run_permit(&mut self, pool: PoolId) -> bool {
        self.admission.take(pool)
    }

    pub(super) fn return_run_permit(&mut self, pool: PoolId) {
        self.admission.give(pool);
        self.admission.pass_on(&mut self.wakeups);
    }

    /// Whether others wait for admission, so that nobody should go on without asking.
    pub(super) fn others_wait(&self, pool: PoolId) -> bool {
        self.admission.queue.iter().any(|waiting| *waiting != pool)
    }

    pub(super) fn wants_no_run_permit(&mut self, pool: PoolId) {
        self.admission.withdraw(pool, &mut self.wakeups);
    }

    /// A worker permit for a worker; without one, an idle worker is sent away for it if there is any, and the pool is poked.
    pub(super) fn take_worker_permit(&mut self, pool: PoolId, worker: WorkerId) -> bool {
        if self.is_over && !self.places.is_empty() {
            self.worker_permits.wait(pool);
            return false;
        }
        if self.worker_permits.take(pool) {
            self.admit(pool, worker);
            return true;
        }
        self.evict_for_those_who_wait();
        false
    }

    /// A worker permit beyond the limit, for a call that a running call waits for: those who admit work until it is answered.
    pub(super) fn take_worker_permit_beyond(&mut self, pool: PoolId, worker: WorkerId) {
        self.worker_permits.lend(pool);
        self.admit(pool, worker);
    }

    /// Whether some worker has been idle since before this moment, so that it may be sent away for one more of another tool.
    pub(super) fn has_worker_idle_since(&self, before: Moment) -> bool {
        self.places.values().any(|place| !place.told_to_go && place.idle_since.is_some_and(|since| since <= before))
    }

    /// A worker permit, if one is free and nobody waits for it.
    pub(super) fn take_spare_worker_permit(&mut self, pool: PoolId, worker: WorkerId) -> bool {
        let spare = self.worker_permits.queue.is_empty() && self.worker_permits.free() && !self.is_over;
        if spare {
            self.worker_permits.lend(pool);
            self.admit(pool, worker);
        }
        spare
    }

    fn admit(&mut self, pool: PoolId, worker: WorkerId) {
        let place = Place { idle_since: None, kept: false, held: 0, told_to_go: false };
        self.places.insert((pool, worker), place);
    }

    pub(super) fn wants_no_worker_permit(&mut self, pool: PoolId) {
        self.worker_permits.withdraw(pool, &mut self.wakeups);
    }

    /// A worker is gone for good.
    pub(super) fn return_worker_permit(&mut self, pool: PoolId, worker: WorkerId) {
        if self.places.remove(&(pool, worker)).is_some() {
            self.worker_permits.give(pool);
            if self.places.is_empty() {
                self.is_over = false;
            }
            self.pass_on_worker_permits();
        }
    }

    fn pass_on_worker_permits(&mut self) {
        if !self.is_over {
            self.worker_permits.pass_on(&mut self.wakeups);
        }
    }

    pub(super) fn busy(&mut self, pool: PoolId, worker: WorkerId) {
        if let Some(place) = self.places.get_mut(&(pool, worker)) {
            place.idle_since = None;
            let was_told = std::mem::take(&mut place.told_to_go);
            if was_told {
                self.evict_for_those_who_wait();
            }
        }
    }

    pub(super) fn idle(&mut self, pool: PoolId, worker: WorkerId, now: Moment, kept: bool) {
        if let Some(place) = self.places.get_mut(&(pool, worker)) {
            place.idle_since = Some(now);
            place.kept = kept;
            if !self.worker_permits.queue.is_empty() {
                self.evict_for_those_who_wait();
            }
        }
    }

    /// Sends away as many idle workers as there are pools waiting for a worker permit: the one that has been idle longest first,
    /// and those that their pools would keep after all others.
    fn evict_for_those_who_wait(&mut self) {
        let mut leaving = self.places.values().filter(|place| place.told_to_go).count();
        while leaving < self.worker_permits.queue.len() {
            let idle = self.places.iter_mut().filter(|(_, place)| !place.told_to_go && place.idle_since.is_some());
            let Some((victim, place)) = idle.min_by_key(|(_, place)| (place.kept, place.idle_since)) else { return };
            place.told_to_go = true;
            self.wakeups.push(Wakeup::Evict(victim.0, victim.1, Need::WorkerPermit));
            leaving += 1;
        }
    }

    /// What workers hold, in bytes. Over the limit, the largest idle ones are sent away and no others started.
    pub fn measured(&mut self, pool: PoolId, worker: WorkerId, held: usize) {
        let Some(cap) = self.caps.memory else { return };
        let Some(place) = self.places.get_mut(&(pool, worker)) else { return };
        place.held = held;
        let total: usize = self.places.values().map(|place| place.held).sum();
        self.is_over = total > cap;
        let leaving = self.places.values().filter(|place| place.told_to_go).map(|place| place.held).sum();
        let mut expected = total.saturating_sub(leaving);
        while expected > cap {
            let idle = self.places.iter_mut().filter(|(_, place)| !place.told_to_go && place.idle_since.is_some());
            let Some((victim, place)) = idle.max_by_key(|(_, place)| (!place.kept, place.held)) else { return };
            place.told_to_go = true;
            expected -= place.held;
            self.wakeups.push(Wakeup::Evict(victim.0, victim.1, Need::Memory));
        }
        self.pass_on_worker_permits();
    }
}
