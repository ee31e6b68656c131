//! A harness of pools for scenarios without processes.

use std::time::Duration;

use super::broker::{Caps, PoolId, ResourceBroker};
use super::event::{CallId, CallSpec, Decision, Effect, Event, Moment, WorkerId};
use super::job::SessionId;
use super::machine::Machine;
use super::rules::Rules;

pub(super) const W1: WorkerId = WorkerId(1);
pub(super) const W2: WorkerId = WorkerId(2);
pub(super) const W3: WorkerId = WorkerId(3);

pub(super) fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) fn call(number: u64) -> CallSpec {
    CallSpec {
        call: CallId(number),
        session: SessionId(1),
        timeout: at(60_000),
        repeatable: false,
        nested: false,
        begins_at_once: false,
    }
}

pub(super) fn answered(worker: WorkerId, call: u64) -> Event {
    Event::Answered { worker, call: CallId(call), cancelled: false }
}

pub(super) fn send(worker: WorkerId, call: u64) -> Effect {
    Effect::Send { worker, call: CallId(call) }
}

pub(super) fn died(worker: WorkerId) -> Event {
    Event::Died { worker, of_a_limit: false }
}

/// The effects without the decisions, which are only logged.
pub(super) fn deeds(effects: Vec<Effect>) -> Vec<Effect> {
    effects.into_iter().filter(|effect| !matches!(effect, Effect::Tell(_))).collect()
}

pub(super) fn decisions(effects: &[Effect]) -> Vec<Decision> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Tell(decision) = effect { Some(*decision) } else { None })
        .collect()
}

pub(super) struct PoolHarness {
    pub(super) broker: ResourceBroker,
    pub(super) pools: Vec<Machine>,
}

impl PoolHarness {
    pub(super) fn new(caps: Caps, rules: &[Rules]) -> Self {
        let pools = rules.iter().enumerate().map(|(id, rules)| Machine::new(PoolId(id as u64), rules));
        Self { broker: ResourceBroker::new(caps), pools: pools.collect() }
    }

    pub(super) fn step(&mut self, pool: usize, now: Moment, event: Event) -> Vec<Effect> {
        self.pools[pool].step(now, event, &mut self.broker)
    }

    pub(super) fn does(&mut self, pool: usize, now: Moment, event: Event) -> Vec<Effect> {
        deeds(self.step(pool, now, event))
    }

    /// A pool with one idle worker.
    pub(super) fn warm(&mut self, pool: usize, now: Moment) {
        assert_eq!(self.does(pool, now, Event::Submit(call(900))), [Effect::Start(W1)]);
        assert_eq!(self.does(pool, now, Event::Ready(W1)), [send(W1, 900)]);
        let _ = self.step(pool, now, answered(W1, 900));
    }
}

pub(super) fn up_to(max_workers: usize) -> Rules {
    Rules { max_workers, ..Rules::default() }
}
