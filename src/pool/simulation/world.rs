//! The simulated world: carries out the effects as the driver and the processes would.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::chance::{Chance, rules};
use crate::pool::broker::{Caps, PoolId, ResourceBroker, Wakeup};
use crate::pool::event::{CallId, CallSpec, Effect, Event, Moment, StopMode, Verdict, WorkerId};
use crate::pool::machine::{Machine, Mutant};
use crate::pool::rules::Rules;

#[derive(Debug, Default)]
pub(super) struct ModelWorker {
    pub(super) ready: bool,
    pub(super) stopping: bool,
    /// It was pinged and has not answered.
    pub(super) pinged: bool,
    /// Sent and unanswered calls, in order.
    pub(super) line: VecDeque<CallId>,
    pub(super) withdrawn: BTreeSet<CallId>,
    /// Calls that ignore the interruption.
    pub(super) stuck: BTreeSet<CallId>,
}

pub(super) struct Call {
    pub(super) spec: CallSpec,
    /// The workers that began it.
    pub(super) begun_in: Vec<(usize, WorkerId)>,
    pub(super) verdict: Option<Verdict>,
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
    /// Wakeups on their way to pools.
    pub(super) wakeups: VecDeque<Wakeup>,
    /// The answer being delivered.
    pub(super) answering: Option<CallId>,
    pub(super) empty: BTreeSet<usize>,
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
            rules,
            caps,
            broker: ResourceBroker::new(caps),
            chance,
            now: Duration::ZERO,
            calls: BTreeMap::new(),
            workers: BTreeMap::new(),
            started: 0,
            gone: Vec::new(),
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
            Effect::Interrupt { worker, .. } | Effect::Nudge(worker) | Effect::TakeStack { worker, .. } => {
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
        assert!(held.ready && !held.stopping, "sent to a worker that takes no calls");
        held.line.push_back(call);
        self.begin(pool, worker);
    }

    /// A worker begins the first call of its line.
    pub(super) fn begin(&mut self, pool: usize, worker: WorkerId) {
        let Some(held) = self.workers.get(&(pool, worker)) else { return };
        for call in held.line.iter().take(self.rules[pool].concurrency) {
            let papers = self.calls.get_mut(call).expect("a worker holds an unknown call");
            if !papers.begun_in.contains(&(pool, worker)) {
                papers.begun_in.push((pool, worker));
            }
        }
    }
}
