//! The machines against a world of chance: seeded callers, workers that answer, crash, hang and fail to start, pools that
//! take seats and turns from each other, and news that come late.
//!
//! Every run is a function of its seed; a failing one prints it. The world here plays the driver and the processes, with
//! time that only moves when the world says so. That the world sees what is wrong is shown by machines with built-in
//! faults: each of those must fail some seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::commons::{Caps, Commons, Poke, PoolId};
use super::event::{CallId, Effect, Event, Manner, Moment, Verdict, Wish, WorkerId};
use super::machine::{Machine, Mutant};
use super::rules::Rules;

/// xorshift: small, and the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn few(&mut self, limit: u64) -> usize {
        usize::try_from(self.below(limit)).unwrap()
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
    /// Calls that obey no interruption.
    stuck: BTreeSet<CallId>,
}

struct Call {
    wish: Wish,
    /// The workers that began it.
    begun_in: Vec<(usize, WorkerId)>,
    verdict: Option<Verdict>,
}

struct World {
    pools: Vec<Machine>,
    rules: Vec<Rules>,
    caps: Caps,
    commons: Commons,
    chance: Chance,
    now: Moment,
    calls: BTreeMap<CallId, Call>,
    workers: BTreeMap<(usize, WorkerId), ModelWorker>,
    /// Workers that are no more.
    gone: Vec<(usize, WorkerId)>,
    /// On their way to pools.
    pokes: VecDeque<Poke>,
    /// The answer that is being told.
    answering: Option<CallId>,
    empty: BTreeSet<usize>,
}

fn rules(chance: &mut Chance) -> Rules {
    let concurrency = if chance.one_in(3) { 2 + chance.few(3) } else { 1 };
    Rules {
        min_workers: chance.few(2),
        max_workers: 1 + chance.few(3),
        concurrency,
        max_queue: 1 + chance.few(12),
        write_ahead: 1 + chance.few(8),
        idle: (!chance.one_in(4)).then(|| Duration::from_millis(200)),
        max_calls: chance.one_in(4).then(|| 3 + chance.below(5)),
        max_lifetime: chance.one_in(5).then(|| Duration::from_millis(300)),
        max_rss: chance.one_in(4).then_some(50),
        breaker: 2 + u32::try_from(chance.below(4)).unwrap(),
        seed: chance.below(1_000),
        ..Rules::default()
    }
}

impl World {
    fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let rules: Vec<Rules> = (0..=chance.below(3)).map(|_| rules(&mut chance)).collect();
        let caps = Caps {
            running: 1 + chance.few(6),
            workers: 1 + chance.few(6),
            waiting: 4 + chance.few(30),
            memory: chance.one_in(3).then_some(150),
        };
        let machine = |(id, rules): (usize, &Rules)| {
            let mut machine = Machine::new(PoolId(id as u64), rules);
            machine.mutant = mutant;
            machine
        };
        Self {
            pools: rules.iter().enumerate().map(machine).collect(),
            rules,
            caps,
            commons: Commons::new(caps),
            chance,
            now: Duration::ZERO,
            calls: BTreeMap::new(),
            workers: BTreeMap::new(),
            gone: Vec::new(),
            pokes: VecDeque::new(),
            answering: None,
            empty: BTreeSet::new(),
        }
    }

    fn step(&mut self, pool: usize, event: Event) {
        let effects = self.pools[pool].step(self.now, event, &mut self.commons);
        self.pokes.extend(self.commons.take_pokes());
        for effect in effects {
            self.perform(pool, effect);
        }
        self.check();
    }

    fn perform(&mut self, pool: usize, effect: Effect) {
        match effect {
            Effect::Start(worker) => {
                let fresh = self.workers.insert((pool, worker), ModelWorker::default());
                assert!(fresh.is_none(), "{worker:?} used twice");
            }
            Effect::Send { worker, call } => self.sent(pool, worker, call),
            Effect::Withdraw { worker, call } => {
                self.workers.get_mut(&(pool, worker)).expect("withdrawn from nobody").withdrawn.insert(call);
            }
            Effect::Interrupt { worker, .. } | Effect::Nudge(worker) | Effect::TakeStack(worker) => {
                assert!(self.workers.contains_key(&(pool, worker)), "interrupted nobody");
            }
            Effect::Stop { worker, manner } => {
                let held = self.workers.get_mut(&(pool, worker)).expect("stopped nobody");
                assert!(manner == Manner::Kill || held.line.is_empty(), "retired a worker that was working");
                held.stopping = true;
            }
            Effect::Finish { call, verdict } => {
                let papers = self.calls.get_mut(&call).expect("finished a call that was never made");
                assert!(papers.verdict.is_none(), "{call:?} finished twice: {:?}, {verdict:?}", papers.verdict);
                if matches!(verdict, Verdict::Answered(_)) {
                    assert_eq!(self.answering, Some(call), "finished with the answer of another");
                }
                papers.verdict = Some(verdict);
            }
            Effect::Tell(_) => {}
            Effect::Empty => assert!(self.empty.insert(pool), "empty twice"),
        }
    }

    fn sent(&mut self, pool: usize, worker: WorkerId, call: CallId) {
        let papers = &self.calls[&call];
        assert!(papers.verdict.is_none(), "{call:?} sent after its end");
        let most = usize::from(papers.wish.repeatable);
        assert!(papers.begun_in.len() <= most, "{call:?} sent again after it was begun in {:?}", papers.begun_in);
        let held = self.workers.get_mut(&(pool, worker)).expect("sent to a worker that is gone");
        assert!(held.ready && !held.stopping, "sent to a worker that takes no calls");
        held.line.push_back(call);
        self.begin(pool, worker);
    }

    /// A worker has begun the first of its line.
    fn begin(&mut self, pool: usize, worker: WorkerId) {
        let Some(held) = self.workers.get(&(pool, worker)) else { return };
        for call in held.line.iter().take(self.rules[pool].concurrency) {
            let papers = self.calls.get_mut(call).expect("a worker holds a call that was never made");
            if !papers.begun_in.contains(&(pool, worker)) {
                papers.begun_in.push((pool, worker));
            }
        }
    }

    fn check(&self) {
        // One beyond for each pool that a running call waits for.
        assert!(self.workers.len() <= self.caps.workers + self.pools.len(), "{} workers alive", self.workers.len());
        let running: usize = (0..self.pools.len()).map(|pool| self.running_in(pool)).sum();
        assert!(running <= self.caps.running, "{running} calls run");
        for (pool, machine) in self.pools.iter().enumerate() {
            self.check_pool(pool, machine);
        }
    }

    fn of(&self, pool: usize) -> impl Iterator<Item = &ModelWorker> {
        self.workers.iter().filter(move |((of, _), _)| *of == pool).map(|(_, worker)| worker)
    }

    fn running_in(&self, pool: usize) -> usize {
        let concurrency = self.rules[pool].concurrency;
        let lives = self.of(pool).filter(|worker| !worker.stopping);
        let begun = lives.flat_map(|worker| worker.line.iter().take(concurrency));
        begun.filter(|call| !self.calls[call].wish.nested).count()
    }

    fn check_pool(&self, pool: usize, machine: &Machine) {
        let rules = &self.rules[pool];
        let alive = self.of(pool).filter(|worker| !worker.stopping).count();
        let replaces = rules.max_calls.is_some() || rules.max_lifetime.is_some() || rules.max_rss.is_some();
        // A worker that is to leave and its successor are one.
        let most = rules.max_workers * if replaces { 2 } else { 1 };
        // Others take no more calls, and leave with the last that they have.
        let draining = machine.draining();
        assert!(alive <= most + draining, "{alive} workers alive of {most} and {draining}");
        let capacity = if rules.concurrency > 1 { rules.concurrency } else { rules.write_ahead };
        for worker in self.of(pool) {
            assert!(worker.stopping || worker.line.len() <= capacity, "a worker holds {}", worker.line.len());
        }
        let waiting = machine.waiting().count();
        let requeued = 2 * most * capacity;
        assert!(waiting <= rules.max_queue + requeued, "{waiting} wait");
        let idle = |worker: &ModelWorker| worker.ready && !worker.stopping && worker.line.is_empty();
        let could_run = self.commons.running() < self.caps.running && self.pokes.is_empty() && !machine.is_on_trial();
        let serving = self.of(pool).filter(|worker| idle(worker)).count() > machine.draining();
        assert!(
            waiting == 0 || !could_run || !serving,
            "a worker is idle while calls wait: {machine:?} {:?}",
            self.commons
        );
    }

    fn some_pool(&mut self) -> usize {
        self.chance.few(self.pools.len() as u64)
    }

    fn submit(&mut self) {
        let pool = self.some_pool();
        let call = CallId(self.calls.len() as u64);
        let timeout = Duration::from_millis(20 + self.chance.below(200));
        let wish = Wish { call, timeout, repeatable: self.chance.one_in(3), nested: self.chance.one_in(6) };
        self.calls.insert(call, Call { wish, begun_in: Vec::new(), verdict: None });
        self.step(pool, Event::Submit(wish));
    }

    fn cancel(&mut self) {
        let open: Vec<CallId> =
            self.calls.iter().filter(|(_, papers)| papers.verdict.is_none()).map(|(call, _)| *call).collect();
        if !open.is_empty() {
            let call = open[self.chance.few(open.len() as u64)];
            for pool in 0..self.pools.len() {
                self.step(pool, Event::Cancel(call));
            }
        }
    }

    fn hear(&mut self) {
        let Some(poke) = self.pokes.pop_front() else { return };
        let (pool, event) = match poke {
            Poke::Look(pool) => (pool, Event::Look),
            Poke::Evict(pool, worker) => (pool, Event::Evict(worker)),
        };
        self.step(usize::try_from(pool.0).unwrap(), event);
    }

    /// Something happens to some worker, as it could to a real one in its state.
    fn worker_moves(&mut self) {
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
        if roll == 2 {
            worker.stuck.extend(worker.line.front().copied());
        }
        if roll < 6 {
            let held = 20 + usize::try_from(roll).unwrap() * 10;
            return self.step(pool, Event::Measured { worker: id, held });
        }
        self.answer(pool, id);
    }

    fn start_ends(&mut self, pool: usize, id: WorkerId, roll: u64) {
        let Some(worker) = self.workers.get_mut(&(pool, id)) else { return };
        if worker.stopping && roll < 12 {
            // It said hello while it was told to go.
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

    fn answer(&mut self, pool: usize, id: WorkerId) {
        let concurrency = self.rules[pool].concurrency;
        let Some(worker) = self.workers.get_mut(&(pool, id)) else { return };
        let free = |call: &&CallId| !worker.stuck.contains(call);
        let Some(call) = worker.line.iter().take(concurrency).rfind(free).copied() else { return };
        worker.line.retain(|held| *held != call);
        let cancelled = worker.withdrawn.remove(&call);
        self.begin(pool, id);
        self.answering = Some(call);
        self.step(pool, Event::Answered { worker: id, call, cancelled });
        self.answering = None;
    }

    fn late_news(&mut self) {
        if self.gone.is_empty() || self.calls.is_empty() {
            return;
        }
        let (pool, worker) = self.gone[self.chance.few(self.gone.len() as u64)];
        let call = CallId(self.chance.below(self.calls.len() as u64));
        let event = match self.chance.below(5) {
            0 => Event::Ready(worker),
            1 => Event::Died { worker, of_a_limit: false },
            2 => Event::StartFailed { worker, by_itself: true },
            3 => Event::Evict(worker),
            _ => Event::Answered { worker, call, cancelled: false },
        };
        self.step(pool, event);
    }

    fn anything(&mut self) {
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
            // Late news of a worker that is long gone, as a real driver can deliver it.
            8 => self.late_news(),
            9 => self.step(pool, Event::Warm),
            10 | 11 => self.hear(),
            _ => self.worker_moves(),
        }
    }

    /// Plays on until nothing is left, with time doing its part; a world that does not end is a bug.
    fn play_out(&mut self) {
        for _ in 0..30_000 {
            if self.empty.len() == self.pools.len() {
                return;
            }
            let pool = self.some_pool();
            if self.chance.one_in(3)
                && let Some(at) = self.pools[pool].next_timer()
            {
                self.now = self.now.max(at);
                self.step(pool, Event::Timer);
            }
            self.hear();
            self.worker_moves();
        }
        panic!("it never became empty: {:?}", self.pools);
    }
}

fn run(seed: u64, mutant: Option<Mutant>) {
    let mut world = World::new(seed, mutant);
    for _ in 0..250 {
        world.anything();
    }
    for pool in 0..world.pools.len() {
        let order = if world.chance.one_in(2) { Event::Close } else { Event::End };
        world.step(pool, order);
    }
    world.play_out();
    let unanswered: Vec<&CallId> =
        world.calls.iter().filter(|(_, papers)| papers.verdict.is_none()).map(|(call, _)| call).collect();
    assert!(unanswered.is_empty(), "calls without an end: {unanswered:?}");
    assert!(world.workers.is_empty());
    let left = (world.commons.running(), world.commons.alive(), world.commons.waiting());
    assert_eq!(left, (0, 0, 0), "something is never given back");
}

fn fails(seed: u64, mutant: Option<Mutant>) -> bool {
    std::panic::catch_unwind(|| run(seed, mutant)).is_err()
}

#[test]
fn whatever_happens_every_call_ends_once_and_no_limit_is_passed() {
    if let Ok(seed) = std::env::var("HOSTLER_SEED") {
        return run(seed.parse().expect("HOSTLER_SEED is a number"), None);
    }
    for seed in 0..5_000 {
        assert!(!fails(seed, None), "seed {seed} fails; replay it with HOSTLER_SEED={seed}");
    }
}

#[test]
fn a_machine_with_a_fault_built_in_is_found_out() {
    for mutant in Mutant::ALL {
        let seed = (0..2_000).find(|seed| fails(*seed, Some(mutant)));
        assert!(seed.is_some(), "{mutant:?} was not seen");
    }
}
