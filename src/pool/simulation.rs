//! The machine against a world of chance: seeded callers, workers that answer, crash, hang and fail to start.
//!
//! Every run is a function of its seed; a failing one prints it. The world here plays the driver and the processes, with
//! time that only moves when the world says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::event::{CallId, Effect, Event, Manner, Moment, Rules, Verdict, WorkerId};
use super::machine::Machine;

/// xorshift: small, and the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

#[derive(Debug, Default)]
struct ModelWorker {
    ready: bool,
    stopping: bool,
    /// Calls it has been sent and not answered, in order.
    line: VecDeque<CallId>,
    withdrawn: BTreeSet<CallId>,
    /// It obeys no interruption.
    stuck: bool,
}

struct World {
    machine: Machine,
    rules: Rules,
    chance: Chance,
    now: Moment,
    next_call: u64,
    open: BTreeSet<CallId>,
    finished: BTreeMap<CallId, Verdict>,
    workers: BTreeMap<WorkerId, ModelWorker>,
    /// Calls that some worker has begun; one of these may never be sent again.
    begun: BTreeSet<CallId>,
    empty: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let rules = Rules {
            max_workers: 1 + usize::try_from(chance.below(3)).unwrap(),
            max_queue: 1 + usize::try_from(chance.below(12)).unwrap(),
            write_ahead: 1 + usize::try_from(chance.below(8)).unwrap(),
            idle: (!chance.one_in(4)).then(|| Duration::from_millis(200)),
            ..Rules::default()
        };
        let machine = Machine::new(rules);
        Self {
            machine,
            rules,
            chance,
            now: Duration::ZERO,
            next_call: 0,
            open: BTreeSet::new(),
            finished: BTreeMap::new(),
            workers: BTreeMap::new(),
            begun: BTreeSet::new(),
            empty: false,
        }
    }

    fn step(&mut self, event: Event) {
        for effect in self.machine.step(self.now, event) {
            self.perform(effect);
        }
        self.check();
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start(worker) => {
                assert!(self.workers.insert(worker, ModelWorker::default()).is_none(), "{worker:?} used twice");
            }
            Effect::Send { worker, call } => {
                assert!(self.open.contains(&call), "{call:?} sent after its end");
                assert!(!self.begun.contains(&call), "{call:?} sent again after it was begun");
                let held = self.workers.get_mut(&worker).expect("sent to a worker that is gone");
                assert!(held.ready && !held.stopping, "sent to a worker that takes no calls");
                held.line.push_back(call);
                let first = held.line.front().copied();
                self.begun.extend(first);
            }
            Effect::Withdraw { worker, call } => {
                self.workers.get_mut(&worker).expect("withdrawn from nobody").withdrawn.insert(call);
            }
            Effect::Interrupt { worker, .. } | Effect::Nudge(worker) | Effect::TakeStack(worker) => {
                assert!(self.workers.contains_key(&worker), "interrupted nobody");
            }
            Effect::Stop { worker, manner } => {
                let held = self.workers.get_mut(&worker).expect("stopped nobody");
                assert!(manner == Manner::Kill || held.line.is_empty(), "retired a worker that was working");
                held.stopping = true;
            }
            Effect::Finish { call, verdict } => {
                assert!(self.open.remove(&call), "{call:?} finished twice or never submitted: {verdict:?}");
                self.finished.insert(call, verdict);
            }
            Effect::Empty => self.empty = true,
        }
    }

    fn check(&self) {
        let alive = self.workers.values().filter(|worker| !worker.stopping).count();
        assert!(alive <= self.rules.max_workers, "{alive} workers alive");
        for worker in self.workers.values() {
            assert!(worker.line.len() <= self.rules.write_ahead, "a worker holds {}", worker.line.len());
        }
        let waiting = self.machine.waiting().count();
        let requeued = self.rules.max_workers * self.rules.write_ahead;
        assert!(waiting <= self.rules.max_queue + requeued, "{waiting} wait");
        let idle = |worker: &ModelWorker| worker.ready && !worker.stopping && worker.line.is_empty();
        assert!(waiting == 0 || !self.workers.values().any(idle), "a worker is idle while calls wait");
    }

    fn submit(&mut self) {
        let call = CallId(self.next_call);
        self.next_call += 1;
        self.open.insert(call);
        let timeout = Duration::from_millis(20 + self.chance.below(200));
        self.step(Event::Submit { call, timeout });
    }

    fn some_worker(&mut self) -> Option<WorkerId> {
        let count = self.workers.len() as u64;
        let place = (count > 0).then(|| self.chance.below(count))?;
        self.workers.keys().nth(usize::try_from(place).unwrap()).copied()
    }

    /// Something happens to some worker, as it could to a real one in its state.
    fn worker_moves(&mut self) {
        let Some(id) = self.some_worker() else { return };
        let roll = self.chance.below(20);
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.stopping || (worker.ready && roll == 0) {
            self.workers.remove(&id);
            return self.step(Event::Died(id));
        }
        if !worker.ready {
            if roll < 4 {
                self.workers.remove(&id);
                let by_itself = roll < 3;
                return self.step(Event::StartFailed { worker: id, by_itself });
            }
            worker.ready = true;
            return self.step(Event::Ready(id));
        }
        if roll == 1 {
            worker.stuck = true;
        }
        if !worker.stuck {
            self.answer(id);
        }
    }

    fn answer(&mut self, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(call) = worker.line.pop_front() else { return };
        let cancelled = worker.withdrawn.remove(&call);
        let next = worker.line.front().copied();
        self.begun.extend(next);
        self.step(Event::Answered { worker: id, call, cancelled });
    }

    fn anything(&mut self) {
        self.now += Duration::from_millis(self.chance.below(15));
        match self.chance.below(12) {
            0..=4 => self.submit(),
            5 => {
                let count = self.open.len() as u64;
                if count > 0 {
                    let place = usize::try_from(self.chance.below(count)).unwrap();
                    let call = *self.open.iter().nth(place).unwrap();
                    self.step(Event::Cancel(call));
                }
            }
            6 => {
                if self.machine.next_timer().is_some_and(|at| at <= self.now) {
                    self.step(Event::Timer);
                }
            }
            // Late news of a worker that is long gone, as a real driver can deliver it.
            7 => self.step(Event::Answered { worker: WorkerId(9_999), call: CallId(0), cancelled: false }),
            _ => self.worker_moves(),
        }
    }

    /// Plays on until nothing is left, with time doing its part; a world that does not end is a bug.
    fn play_out(&mut self) {
        for _ in 0..20_000 {
            if self.empty {
                return;
            }
            if self.chance.one_in(3)
                && let Some(at) = self.machine.next_timer()
            {
                self.now = self.now.max(at);
                self.step(Event::Timer);
            }
            self.worker_moves();
        }
        panic!("it never became empty: {:?}", self.machine);
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..200 {
        world.anything();
    }
    let order = if seed.is_multiple_of(2) { Event::Close } else { Event::End };
    world.step(order);
    world.play_out();
    assert!(world.open.is_empty(), "calls without an end: {:?}", world.open);
    assert_eq!(world.finished.len() as u64, world.next_call);
    assert!(world.workers.is_empty());
}

#[test]
fn whatever_happens_every_call_ends_once_and_no_limit_is_passed() {
    for seed in 0..3_000 {
        let result = std::panic::catch_unwind(|| run(seed));
        assert!(result.is_ok(), "seed {seed} fails; replay it with run({seed})");
    }
}
