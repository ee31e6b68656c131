//! The invariants after each step.

use super::world::{ModelWorker, World};
use crate::pool::machine::Machine;

impl World {
    pub(super) fn check(&self) {
        // One beyond the limit for each pool that a running call waits for.
        assert!(self.workers.len() <= self.caps.workers + self.pools.len(), "{} workers alive", self.workers.len());
        let running: usize = (0..self.pools.len()).map(|pool| self.running_in(pool)).sum();
        assert!(running <= self.caps.running, "{running} calls run");
        for (pool, machine) in self.pools.iter().enumerate() {
            self.check_pool(pool, machine);
        }
    }

    pub(super) fn of(&self, pool: usize) -> impl Iterator<Item = &ModelWorker> {
        self.workers.iter().filter(move |((of, _), _)| *of == pool).map(|(_, worker)| worker)
    }

    pub(super) fn running_in(&self, pool: usize) -> usize {
        let concurrency = self.rules[pool].concurrency;
        let lives = self.of(pool).filter(|worker| !worker.stopping);
        let begun = lives.flat_map(|worker| worker.line.iter().take(concurrency));
        // The caller of a stuck call was answered; the call keeps running.
        begun.filter(|call| !self.calls[call].spec.nested && self.calls[call].verdict.is_none()).count()
    }

    pub(super) fn check_pool(&self, pool: usize, machine: &Machine) {
        let rules = &self.rules[pool];
        let alive = self.of(pool).filter(|worker| !worker.stopping).count();
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
        assert!(alive <= 2 * rules.max_workers, "{alive} workers alive where {} may be", rules.max_workers);
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
