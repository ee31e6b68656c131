//! What all pools have in common: seats for workers, turns for running calls, room for waiting ones.
//!
//! Pure like the machine, which is given it with each step. What other pools should look at again comes out as pokes.
//!
//! Invariants: never more workers alive or calls running than the caps say; whoever waits for a seat or a turn gets one
//! in the order of asking, once for each time it asked; a worker that works is never chosen to leave.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Moment, Need, WorkerId};

/// A pool, among those that share a [`Commons`].
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
pub enum Poke {
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
    fn forget(&mut self, pool: PoolId, pokes: &mut Vec<Poke>) {
        self.used -= self.used_by.remove(&pool).unwrap_or_default();
        self.forgo(pool, pokes);
        self.hand_on(pokes);
    }

    fn wait(&mut self, pool: PoolId) {
        if !self.queue.contains(&pool) {
            self.queue.push_back(pool);
        }
    }

    fn hand_on(&mut self, pokes: &mut Vec<Poke>) {
        while !self.queue.is_empty() && self.free() {
            let Some(pool) = self.queue.pop_front() else { return };
            *self.kept.entry(pool).or_default() += 1;
            pokes.push(Poke::Look(pool));
        }
    }

    /// A pool wants none any more.
    fn forgo(&mut self, pool: PoolId, pokes: &mut Vec<Poke>) {
        if self.queue.is_empty() && self.kept.is_empty() {
            return;
        }
        self.queue.retain(|waiting| *waiting != pool);
        if self.kept.remove(&pool).is_some() {
            self.hand_on(pokes);
        }
    }
}

/// What all pools share.
#[derive(Debug)]
pub struct Commons {
    caps: Caps,
    seats: Share,
    turns: Share,
    waiting: BTreeMap<PoolId, usize>,
    places: BTreeMap<(PoolId, WorkerId), Place>,
    /// All workers together hold more memory than they may.
    is_over: bool,
    pokes: Vec<Poke>,
}

impl Commons {
    /// Nobody is there yet.
    pub fn new(caps: Caps) -> Self {
        Self {
            caps,
            seats: Share::new(caps.workers),
            turns: Share::new(caps.running),
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            is_over: false,
            pokes: Vec::new(),
        }
    }

    /// What other pools should hear now.
    pub fn take_pokes(&mut self) -> Vec<Poke> {
        std::mem::take(&mut self.pokes)
    }

    /// The limits.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Calls running now.
    pub fn running(&self) -> usize {
        self.turns.used
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
        self.turns.forget(pool, &mut self.pokes);
        self.seats.forget(pool, &mut self.pokes);
    }

    /// A turn for one running call; without one the pool is poked when it may take it.
    pub(super) fn take_turn(&mut self, pool: PoolId) -> bool {
        self.turns.take(pool)
    }

    pub(super) fn give_turn(&mut self, pool: PoolId) {
        self.turns.give(pool);
        self.turns.hand_on(&mut self.pokes);
    }

    /// Whether others wait for turns, so that nobody should go on without asking.
    pub(super) fn others_wait(&self, pool: PoolId) -> bool {
        self.turns.queue.iter().any(|waiting| *waiting != pool)
    }

    pub(super) fn wants_no_turn(&mut self, pool: PoolId) {
        self.turns.forgo(pool, &mut self.pokes);
    }

    /// A seat for a worker; without one, an idle worker is sent away for it if there is any, and the pool is poked.
    pub(super) fn take_seat(&mut self, pool: PoolId, worker: WorkerId) -> bool {
        if self.is_over && !self.places.is_empty() {
            self.seats.wait(pool);
            return false;
        }
        if self.seats.take(pool) {
            self.sit(pool, worker);
            return true;
        }
        self.evict_for_those_who_wait();
        false
    }

    /// A seat beyond the limit, for a call that a running call waits for: those who sit work until it is answered.
    pub(super) fn take_seat_beyond(&mut self, pool: PoolId, worker: WorkerId) {
        self.seats.lend(pool);
        self.sit(pool, worker);
    }

    /// Whether some worker has been idle since before this moment, so that it may be sent away for one more of another tool.
    pub(super) fn has_idle_since(&self, before: Moment) -> bool {
        self.places.values().any(|place| !place.told_to_go && place.idle_since.is_some_and(|since| since <= before))
    }

    /// A seat, if one is free and nobody waits for it.
    pub(super) fn take_spare_seat(&mut self, pool: PoolId, worker: WorkerId) -> bool {
        let spare = self.seats.queue.is_empty() && self.seats.free() && !self.is_over;
        if spare {
            self.seats.lend(pool);
            self.sit(pool, worker);
        }
        spare
    }

    fn sit(&mut self, pool: PoolId, worker: WorkerId) {
        let place = Place { idle_since: None, kept: false, held: 0, told_to_go: false };
        self.places.insert((pool, worker), place);
    }

    pub(super) fn wants_no_seat(&mut self, pool: PoolId) {
        self.seats.forgo(pool, &mut self.pokes);
    }

    /// A worker is gone for good.
    pub(super) fn give_seat(&mut self, pool: PoolId, worker: WorkerId) {
        if self.places.remove(&(pool, worker)).is_some() {
            self.seats.give(pool);
            if self.places.is_empty() {
                self.is_over = false;
            }
            self.hand_on_seats();
        }
    }

    fn hand_on_seats(&mut self) {
        if !self.is_over {
            self.seats.hand_on(&mut self.pokes);
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
            if !self.seats.queue.is_empty() {
                self.evict_for_those_who_wait();
            }
        }
    }

    /// Sends away as many idle workers as there are pools waiting for a seat: the one that has been idle longest first,
    /// and those that their pools would keep after all others.
    fn evict_for_those_who_wait(&mut self) {
        let mut leaving = self.places.values().filter(|place| place.told_to_go).count();
        while leaving < self.seats.queue.len() {
            let idle = self.places.iter_mut().filter(|(_, place)| !place.told_to_go && place.idle_since.is_some());
            let Some((victim, place)) = idle.min_by_key(|(_, place)| (place.kept, place.idle_since)) else { return };
            place.told_to_go = true;
            self.pokes.push(Poke::Evict(victim.0, victim.1, Need::Seat));
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
            self.pokes.push(Poke::Evict(victim.0, victim.1, Need::Memory));
        }
        self.hand_on_seats();
    }
}
