//! The simulated world: carries out the effects as the driver and the processes would.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::pool::broker::{Caps, PoolId, ResourceBroker, Wakeup};
use crate::pool::event::{CallId, CallSpec, Effect, Event, Moment, StopMode, Verdict, WorkerId};
use crate::pool::machine::{Machine, Mutant};
use crate::pool::rules::Rules;

#[derive(Debug, Default)]
pub(super) struct ModelWorker {
    pub(super) ready: bool,
    pub(super) stopping: bool,
    /// Calls that it was ever sent.
    pub(super) sent: usize,
    /// It was pinged and has not answered.
    pub(super) pinged: bool,
    /// Sent and unanswered calls, in order.
    pub(super) line: VecDeque<CallId>,
    pub(super) withdrawn: BTreeSet<CallId>,
    /// Calls that hostler wants back if they are not begun.
    pub(super) recalled: BTreeSet<CallId>,
    /// Calls that ignore the interruption.
    pub(super) stuck: BTreeSet<CallId>,
}

pub(super) struct Call {
    pub(super) spec: CallSpec,
    /// The workers that began it.
    pub(super) begun_in: Vec<(usize, WorkerId)>,
    pub(super) verdict: Option<Verdict>,
    /// It has asked its client and cannot go on.
    pub(super) asks: bool,
}

pub(super) struct World {
    pub(super) pools: Vec<Machine>,
    pub(super) rules: Vec<Rules>,
    pub(super) caps: Caps,
    pub(super) broker: ResourceBroker,
    pub(super) chance: Chance,
    pub(super) now: Moment,
    pub(super) calls: BTreeMap<CallId, Call>,
    pub(super) workers: BTreeMap<(usize, WorkerId), ModelWorker>,
    /// The number of workers ever started.
    pub(super) started: usize,
    /// Workers that have exited.
    pub(super) gone: Vec<(usize, WorkerId)>,
    /// Workers that were asked to exit, to interrupt their calls.
    pub(super) ending: BTreeSet<(usize, WorkerId)>,
    /// Those of them that the driver has not yet reported.
    pub(super) unreported: Vec<WorkerId>,
    /// Wakeups on their way to pools.
    pub(super) wakeups: VecDeque<Wakeup>,
    /// The answer being delivered.
    pub(super) answering: Option<CallId>,
    pub(super) empty: BTreeSet<usize>,
    /// The most calls that were parked at once in each pool, those that only waited for a call that asked included.
    pub(super) most_parked: Vec<usize>,
}

impl World {
    pub(super) fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut chance = Chance::of_seed(seed);
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
            most_parked: vec![0; rules.len()],
            rules,
            caps,
            broker: ResourceBroker::new(caps),
            chance,
            now: Duration::ZERO,
            calls: BTreeMap::new(),
            workers: BTreeMap::new(),
            started: 0,
            gone: Vec::new(),
            ending: BTreeSet::new(),
            unreported: Vec::new(),
            wakeups: VecDeque::new(),
            answering: None,
            empty: BTreeSet::new(),
        }
    }

    pub(super) fn step(&mut self, pool: usize, event: Event) {
        let effects = self.pools[pool].step(self.now, event, &mut self.broker);
        self.wakeups.extend(self.broker.take_wakeups());
        for effect in effects {
            self.perform(pool, effect);
        }
        while let Some(worker) = self.unreported.pop() {
            self.step(pool, Event::Ends(worker));
        }
        self.check();
    }

    pub(super) fn perform(&mut self, pool: usize, effect: Effect) {
        match effect {
            Effect::Start(worker) => {
                let handshake = self.workers.insert((pool, worker), ModelWorker::default());
                assert!(handshake.is_none(), "{worker:?} used twice");
                self.started += 1;
            }
            Effect::Send { worker, call } => self.sent(pool, worker, call),
            Effect::Ping(worker) => {
                self.workers.get_mut(&(pool, worker)).expect("pinged an unknown worker").pinged = true;
            }
            Effect::Withdraw { worker, call } => {
                self.workers.get_mut(&(pool, worker)).expect("withdrawn from an unknown worker").withdrawn.insert(call);
            }
            Effect::Recall { worker, call } => {
                self.workers.get_mut(&(pool, worker)).expect("recalled from an unknown worker").recalled.insert(call);
            }
            Effect::Resume(call) => {
                let papers = self.calls.get_mut(&call).expect("resumed an unknown call");
                assert!(papers.asks && papers.verdict.is_none(), "{call:?} resumed without a question");
                papers.asks = false;
            }
            Effect::TakeStack { call, .. } if self.calls[&call].asks => {
                panic!("{call:?} is overdue while it waits for its client")
            }
            Effect::Interrupt { worker, .. } => {
                assert!(self.workers.contains_key(&(pool, worker)), "interrupted an unknown worker");
                // Every other worker cannot be interrupted.
                if worker.0 % 2 == 0 && self.ending.insert((pool, worker)) {
                    self.unreported.push(worker);
                }
            }
            Effect::Nudge(worker) | Effect::TakeStack { worker, .. } => {
                assert!(self.workers.contains_key(&(pool, worker)), "interrupted an unknown worker");
            }
            Effect::Stop { worker, mode } => {
                let held = self.workers.get_mut(&(pool, worker)).expect("stopped an unknown worker");
                assert!(mode == StopMode::Kill || held.line.is_empty(), "gracefully stopped a busy worker");
                held.stopping = true;
            }
            Effect::Finish { call, verdict } => {
                let papers = self.calls.get_mut(&call).expect("finished an unknown call");
                assert!(papers.verdict.is_none(), "{call:?} finished twice: {:?}, {verdict:?}", papers.verdict);
                if matches!(verdict, Verdict::Answered(_)) {
                    assert_eq!(self.answering, Some(call), "finished with another call's answer");
                }
                papers.verdict = Some(verdict);
            }
            Effect::Tell(_) => {}
            Effect::Empty => assert!(self.empty.insert(pool), "empty twice"),
        }
    }

    pub(super) fn sent(&mut self, pool: usize, worker: WorkerId, call: CallId) {
        let papers = &self.calls[&call];
        assert!(papers.verdict.is_none(), "{call:?} sent after its end");
        let most = usize::from(papers.spec.repeatable);
        assert!(papers.begun_in.len() <= most, "{call:?} sent again after it was begun in {:?}", papers.begun_in);
        let held = self.workers.get_mut(&(pool, worker)).expect("sent to an exited worker");
        held.sent += 1;
        assert!(self.rules[pool].max_calls != Some(1) || held.sent == 1, "a second call");
        let is_ending = self.ending.contains(&(pool, worker));
        assert!(held.ready && !held.stopping && !is_ending, "sent to a worker that takes no calls");
        held.line.push_back(call);
        self.begin(pool, worker);
        let papers = &self.calls[&call];
        let has_begun = papers.begun_in.contains(&(pool, worker));
        assert!(has_begun || !papers.spec.begins_at_once, "{call:?} was written ahead");
    }

    /// A worker begins the first call of its line.
    pub(super) fn begin(&mut self, pool: usize, worker: WorkerId) {
        let Some(held) = self.workers.get(&(pool, worker)) else { return };
        for call in held.line.iter().take(self.rules[pool].concurrency) {
            let papers = self.calls.get_mut(call).expect("a worker holds an unknown call");
            if !papers.begun_in.contains(&(pool, worker)) {
                papers.begun_in.push((pool, worker));
                papers.asks = false;
            }
        }
    }
}

/// xorshift: small and portable.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn of_seed(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    pub(super) fn few(&mut self, limit: u64) -> usize {
        usize::try_from(self.below(limit)).unwrap()
    }

    pub(super) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

pub(super) fn rules(chance: &mut Chance) -> Rules {
    let concurrency = if chance.one_in(3) { 2 + chance.few(3) } else { 1 };
    let max_workers = 1 + chance.few(3);
    Rules {
        min_workers: chance.few(1 + max_workers as u64),
        max_workers,
        concurrency,
        max_queue: 1 + chance.few(12),
        write_ahead: 1 + chance.few(8),
        idle: (!chance.one_in(4)).then(|| Duration::from_millis(200)),
        max_calls: chance.one_in(4).then(|| 1 + chance.below(7)),
        max_lifetime: chance.one_in(5).then(|| Duration::from_millis(300)),
        max_rss: chance.one_in(4).then_some(50),
        breaker: 2 + u32::try_from(chance.below(4)).unwrap(),
        seed: chance.below(1_000),
        ..Rules::default()
    }
}

impl World {
    pub(super) fn check(&mut self) {
        for (pool, machine) in self.pools.iter().enumerate() {
            self.most_parked[pool] = self.most_parked[pool].max(machine.parked());
        }
        // One beyond the limit for each pool that a running call waits for.
        assert!(self.workers.len() <= self.caps.workers + self.pools.len(), "{} workers alive", self.workers.len());
        let running: usize = (0..self.pools.len()).map(|pool| self.running_in(pool)).sum();
        assert!(running <= self.caps.running, "{running} calls run");
        let parked: usize = self.pools.iter().map(Machine::asking).sum();
        assert!(parked <= self.caps.parked(), "{parked} calls are parked");
        assert_eq!(parked, self.broker.asking());
        for (pool, machine) in self.pools.iter().enumerate() {
            self.check_pool(pool, machine);
        }
    }

    pub(super) fn of(&self, pool: usize) -> impl Iterator<Item = &ModelWorker> {
        self.workers.iter().filter(move |((of, _), _)| *of == pool).map(|(_, worker)| worker)
    }

    pub(super) fn running_in(&self, pool: usize) -> usize {
        let concurrency = self.rules[pool].concurrency;
        let lives = self.workers.iter().filter(|((of, _), worker)| *of == pool && !worker.stopping);
        let begun = lives.flat_map(|((_, id), worker)| worker.line.iter().take(concurrency).map(|call| (*id, call)));
        // A recalled call begins without a permit if its worker ends the parked one before it reads the recall.
        let begun = begun.filter(|(id, call)| !self.pools[pool].is_recalled(*id, **call)).map(|(_, call)| call);
        // The caller of a stuck call was answered; the call keeps running.
        begun
            .filter(|call| {
                let papers = &self.calls[call];
                !papers.spec.nested && papers.verdict.is_none() && !papers.asks
            })
            .count()
    }

    pub(super) fn check_pool(&self, pool: usize, machine: &Machine) {
        let rules = &self.rules[pool];
        let asks = |worker: &&ModelWorker| {
            worker.line.len() >= rules.concurrency
                && worker.line.iter().take(rules.concurrency).all(|call| machine.is_parked(*call))
        };
        let alive = self.of(pool).filter(|worker| !worker.stopping && !asks(worker)).count();
        let replaces = rules.max_calls.is_some() || rules.max_lifetime.is_some() || rules.max_rss.is_some();
        // A worker due for replacement and its successor count as one.
        let most = rules.max_workers * if replaces { 2 } else { 1 };
        // Draining workers take no more calls and stop with their last one.
        let draining = machine.draining();
        assert!(alive <= most + draining, "{alive} workers alive of {most} and {draining}");
        let capacity = if rules.concurrency > 1 { rules.concurrency } else { rules.write_ahead };
        for worker in self.of(pool) {
            assert!(worker.stopping || worker.line.len() <= capacity, "a worker holds {}", worker.line.len());
        }
        assert_eq!(machine.unused_run_permits(), 0, "a permit is held for a caller that was answered");
        // Workers whose calls were parked count again.
        let most_alive = 2 * rules.max_workers + self.most_parked[pool];
        assert!(alive <= most_alive, "{alive} workers alive where {} may be", rules.max_workers);
        let waiting = machine.waiting().count();
        let requeued = 2 * most * capacity;
        assert!(waiting <= rules.max_queue + requeued, "{waiting} wait");
        let idle = |worker: &ModelWorker| worker.ready && !worker.stopping && worker.line.is_empty();
        let could_run = self.broker.running() < self.caps.running && self.wakeups.is_empty() && !machine.is_on_trial();
        let serving = self.of(pool).filter(|worker| idle(worker)).count() > machine.draining();
        assert!(
            waiting == 0 || !could_run || !serving,
            "a worker is idle while calls wait: {machine:?} {:?}",
            self.broker
        );
    }
}
