//! The machines in a simulated world: seeded callers, workers that answer, crash, hang and fail to start, pools that
//! compete for worker permits and run permits, and late events.
//!
//! Every run is a function of its seed; a failing run prints it. The world plays the driver and the processes, and
//! moves time itself. Machines with built-in faults prove that the world detects faults: each fault must fail some
//! seed.

mod moves;
mod world;

use self::world::World;
use super::event::{CallId, Event};
use super::machine::Mutant;

impl World {
    /// Without calls, workers must not be started again and again.
    fn come_to_rest(&mut self) {
        if self.rules.iter().any(|rules| rules.max_lifetime.is_some()) {
            return;
        }
        // Longer than the longest pause, after which a failed successor is retried once.
        for _ in 0..400 {
            self.all_goes_well();
        }
        let started = self.started;
        for _ in 0..50 {
            self.all_goes_well();
        }
        assert_eq!(self.started, started, "workers are started without a call: {:?}", self.pools);
    }

    /// Runs until nothing is left, moving time as needed; a world that does not end is a bug.
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
        panic!("the pool never became empty: {:?}", self.pools);
    }
}

fn run(seed: u64, mutant: Option<Mutant>) {
    let mut world = World::new(seed, mutant);
    for _ in 0..250 {
        world.anything();
    }
    if world.chance.one_in(4) {
        world.come_to_rest();
    }
    for pool in 0..world.pools.len() {
        let order = if world.chance.one_in(2) { Event::Close } else { Event::End };
        world.step(pool, order);
    }
    world.play_out();
    let unanswered: Vec<&CallId> =
        world.calls.iter().filter(|(_, papers)| papers.verdict.is_none()).map(|(call, _)| call).collect();
    assert!(unanswered.is_empty(), "unanswered calls: {unanswered:?}");
    assert!(world.workers.is_empty());
    let left = (world.broker.running(), world.broker.alive(), world.broker.waiting());
    assert_eq!(left, (0, 0, 0), "permits were not returned");
}

fn fails(seed: u64, mutant: Option<Mutant>) -> bool {
    std::panic::catch_unwind(|| run(seed, mutant)).is_err()
}

#[test]
fn every_call_ends_once_and_no_limit_is_exceeded() {
    if let Ok(seed) = std::env::var("HOSTLER_SEED") {
        return run(seed.parse().expect("HOSTLER_SEED is a number"), None);
    }
    for seed in 0..5_000 {
        assert!(!fails(seed, None), "seed {seed} fails; replay it with HOSTLER_SEED={seed}");
    }
}

#[test]
fn every_built_in_fault_is_detected() {
    for mutant in Mutant::ALL {
        let seed = (0..2_000).find(|seed| fails(*seed, Some(mutant)));
        assert!(seed.is_some(), "{mutant:?} was not detected");
    }
}
