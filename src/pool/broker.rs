//! What all pools share: permits for workers, permits for running calls, and capacity for queued calls.
//!
//! Pure like the machine, which receives it with each step. It returns wakeups for the other pools.
//!
//! Invariants: never more workers alive or calls running than the caps allow; permits are granted in the order of the
//! requests, once per request; a busy worker is never evicted.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Moment, Need, WorkerId};

/// A pool among those that share a [`ResourceBroker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u64);

/// The limits of all pools together.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Calls running at once. Nested calls are not counted: their caller waits for them.
    pub running: usize,
    /// Workers alive at once.
    pub workers: usize,
    /// Calls queued at once.
    pub waiting: usize,
    /// The most memory that all workers may hold, in bytes.
    pub memory: Option<usize>,
}

impl Caps {
    /// Calls that may wait for their clients at once.
    pub const fn parked(&self) -> usize {
        let quarter = self.workers / 4;
        if quarter == 0 { 1 } else { quarter }
    }
}

impl Default for Caps {
    fn default() -> Self {
        Self { running: 16, workers: 32, waiting: 1024, memory: None }
    }
}

/// A notification for another pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakeup {
    /// A permit that it waited for is reserved for it.
    PermitReady(PoolId),
    /// Stop this worker if it is still idle.
    Evict(PoolId, WorkerId, Need),
}

#[derive(Debug)]
struct Place {
    idle_since: Option<Moment>,
    /// Its pool prefers to keep it, idle or not.
    kept: bool,
    held: usize,
    told_to_go: bool,
}

/// The calls of a pool that wait for clients.
#[derive(Debug, Default)]
struct ParkedCalls {
    asking: usize,
    /// Those that only wait for a call that asks.
    outer: usize,
}

/// A limited resource, and the pools that wait for it.
#[derive(Debug, Default)]
struct PermitPool {
    cap: usize,
    used: usize,
    /// The use of each pool.
    used_by: BTreeMap<PoolId, usize>,
    queue: VecDeque<PoolId>,
    /// Permits reserved for pools that have not taken them yet.
    kept: BTreeMap<PoolId, usize>,
}

impl PermitPool {
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
        self.grant(pool);
        true
    }

    fn grant(&mut self, pool: PoolId) {
        self.used += 1;
        *self.used_by.entry(pool).or_default() += 1;
    }

    /// Returns one unit. A pool cannot return what it does not hold.
    fn release(&mut self, pool: PoolId) {
        if let Some(held) = self.used_by.get_mut(&pool).filter(|held| **held > 0) {
            *held -= 1;
            self.used -= 1;
        }
    }

    /// Removes a pool and returns everything that it held.
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
            wakeups.push(Wakeup::PermitReady(pool));
        }
    }

    /// Cancels a pool's requests.
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

/// The resources that all pools share.
#[derive(Debug)]
pub struct ResourceBroker {
    caps: Caps,
    worker_permits: PermitPool,
    admission: PermitPool,
    waiting: BTreeMap<PoolId, usize>,
    /// Calls that wait for their clients.
    parked: BTreeMap<PoolId, ParkedCalls>,
    places: BTreeMap<(PoolId, WorkerId), Place>,
    /// Whether all workers together exceed the memory limit.
    is_over: bool,
    wakeups: Vec<Wakeup>,
}

impl ResourceBroker {
    /// A broker without pools.
    pub fn new(caps: Caps) -> Self {
        Self {
            caps,
            worker_permits: PermitPool::new(caps.workers),
            admission: PermitPool::new(caps.running),
            waiting: BTreeMap::new(),
            parked: BTreeMap::new(),
            places: BTreeMap::new(),
            is_over: false,
            wakeups: Vec::new(),
        }
    }

    /// Other limits. Idle workers beyond them leave; what is busy stays until it ends by itself.
    pub fn limit(&mut self, caps: Caps) {
        self.caps = caps;
        let held: usize = self.places.values().map(|place| place.held).sum();
        self.is_over = caps.memory.is_some_and(|cap| held > cap);
        self.worker_permits.cap = caps.workers.max(1);
        self.admission.cap = caps.running.max(1);
        self.admission.pass_on(&mut self.wakeups);
        self.pass_on_worker_permits();
        self.evict_idle();
    }

    /// The pending wakeups.
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

    /// Workers alive now, including those that start or stop.
    pub fn alive(&self) -> usize {
        self.places.len()
    }

    /// Calls queued now.
    pub fn waiting(&self) -> usize {
        self.waiting.values().sum()
    }

    pub(super) fn is_full_of_waiting(&self) -> bool {
        self.waiting() >= self.caps.waiting
    }

    pub(super) fn count_waiting(&mut self, pool: PoolId, waiting: usize) {
        self.waiting.insert(pool, waiting);
    }

    /// Removes a pool, however it ended, and releases everything that it held.
    pub(super) fn forget(&mut self, pool: PoolId) {
        self.waiting.remove(&pool);
        self.parked.remove(&pool);
        self.places.retain(|(of, _), _| *of != pool);
        if self.places.is_empty() {
            self.is_over = false;
        }
        self.admission.forget(pool, &mut self.wakeups);
        self.worker_permits.forget(pool, &mut self.wakeups);
    }

    /// Grants a permit for one running call; otherwise wakes the pool when it may take one.
    pub(super) fn take_run_permit(&mut self, pool: PoolId) -> bool {
        self.admission.take(pool)
    }

    pub(super) fn return_run_permit(&mut self, pool: PoolId) {
        self.admission.release(pool);
        self.admission.pass_on(&mut self.wakeups);
    }

    /// Whether other pools wait for a run permit, so that the permit must be requested.
    pub(super) fn others_wait(&self, pool: PoolId) -> bool {
        self.admission.queue.iter().any(|waiting| *waiting != pool)
    }

    /// Calls that ask their clients now.
    pub fn asking(&self) -> usize {
        self.parked.values().map(|parked| parked.asking).sum()
    }

    /// Parks a call, if one more may ask. Calls that only wait for a call that asks are not limited.
    pub(super) fn park(&mut self, pool: PoolId, is_outer: bool) -> bool {
        let may_park = is_outer || self.asking() < self.caps.parked();
        if may_park {
            let parked = self.parked.entry(pool).or_default();
            *(if is_outer { &mut parked.outer } else { &mut parked.asking }) += 1;
        }
        may_park
    }

    pub(super) fn unpark(&mut self, pool: PoolId, is_outer: bool) {
        if let Some(parked) = self.parked.get_mut(&pool) {
            *(if is_outer { &mut parked.outer } else { &mut parked.asking }) -= 1;
            if parked.asking + parked.outer == 0 {
                self.parked.remove(&pool);
            }
        }
    }

    pub(super) fn has_parked(&self, pool: PoolId) -> bool {
        self.parked.contains_key(&pool)
    }

    pub(super) fn wants_no_run_permit(&mut self, pool: PoolId) {
        self.admission.withdraw(pool, &mut self.wakeups);
    }

    /// Grants a permit for one worker; otherwise evicts an idle worker if there is one, and wakes the pool.
    pub(super) fn take_worker_permit(&mut self, pool: PoolId, worker: WorkerId) -> bool {
        if self.is_over && !self.places.is_empty() {
            self.worker_permits.wait(pool);
            return false;
        }
        if self.worker_permits.take(pool) {
            self.admit(pool, worker);
            return true;
        }
        self.evict_idle();
        false
    }

    /// Grants a worker permit beyond the limit for a nested call: its outer call holds a worker until it is answered.
    pub(super) fn take_worker_permit_beyond(&mut self, pool: PoolId, worker: WorkerId) {
        self.worker_permits.grant(pool);
        self.admit(pool, worker);
    }

    /// Whether some worker has been idle since before this time, so that it may be evicted for another worker of a
    /// different tool.
    pub(super) fn has_worker_idle_since(&self, before: Moment) -> bool {
        self.places.values().any(|place| !place.told_to_go && place.idle_since.is_some_and(|since| since <= before))
    }

    /// Grants a worker permit if one is free and no pool waits for it.
    pub(super) fn take_spare_worker_permit(&mut self, pool: PoolId, worker: WorkerId) -> bool {
        let spare = self.worker_permits.queue.is_empty() && self.worker_permits.free() && !self.is_over;
        if spare {
            self.worker_permits.grant(pool);
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

    /// A worker has exited.
    pub(super) fn return_worker_permit(&mut self, pool: PoolId, worker: WorkerId) {
        if self.places.remove(&(pool, worker)).is_some() {
            self.worker_permits.release(pool);
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
                self.evict_idle();
            }
        }
    }

    pub(super) fn idle(&mut self, pool: PoolId, worker: WorkerId, now: Moment, kept: bool) {
        if let Some(place) = self.places.get_mut(&(pool, worker)) {
            place.idle_since = Some(now);
            place.kept = kept;
            if !self.worker_permits.queue.is_empty() || self.worker_permits.used > self.worker_permits.cap {
                self.evict_idle();
            }
        }
    }

    /// Evicts as many idle workers as pools wait for a worker permit, and those beyond the limit: the longest idle first, those
    /// that their pools prefer to keep last.
    fn evict_idle(&mut self) {
        let mut leaving = self.places.values().filter(|place| place.told_to_go).count();
        let beyond = self.worker_permits.used.saturating_sub(self.worker_permits.cap);
        while leaving < beyond + self.worker_permits.queue.len() {
            let idle = self.places.iter_mut().filter(|(_, place)| !place.told_to_go && place.idle_since.is_some());
            let Some((victim, place)) = idle.min_by_key(|(_, place)| (place.kept, place.idle_since)) else { return };
            place.told_to_go = true;
            self.wakeups.push(Wakeup::Evict(victim.0, victim.1, Need::WorkerPermit));
            leaving += 1;
        }
    }

    /// Records the workers' memory in bytes. Over the limit, evicts the largest idle workers and allows no starts.
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
