//! Scenarios of several tools that share the broker.

use super::broker::{Caps, PoolId, Wakeup};
use super::event::{CallId, CallSpec, Decision, Effect, Event, Need, StopMode, Verdict, WhyStart, WhyStop, WorkerId};
use super::harness::{PoolHarness, W1, W2, W3, answered, at, call, decisions, deeds, died, send, up_to};
use super::rules::Rules;

#[test]
fn pools_without_run_permits_do_not_evict_each_others_workers() {
    let caps = Caps { running: 1, workers: 2, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 3]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    assert_eq!(harness.does(1, at(2), Event::Submit(call(2))), [Effect::Start(W1)], "a worker permit is free");
    let _ = harness.step(1, at(3), Event::Ready(W1));
    assert_eq!(harness.does(2, at(4), Event::Submit(call(3))), [], "no permit is free, and it could not run");
    assert_eq!(harness.broker.take_wakeups(), []);
    let _ = harness.step(0, at(5), answered(W1, 1));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::PermitReady(PoolId(1))]);
    assert_eq!(harness.does(1, at(6), Event::PermitReady), [send(W1, 2)]);
    let _ = harness.step(1, at(7), answered(W1, 2));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::PermitReady(PoolId(2))]);
    assert_eq!(harness.does(2, at(8), Event::PermitReady), [], "with a run permit it may evict another worker");
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(0), W1, Need::WorkerPermit)]);
    let _ = harness.step(0, at(9), Event::Evict(W1, Need::WorkerPermit));
    let _ = harness.step(0, at(10), died(W1));
    assert_eq!(harness.does(2, at(11), Event::PermitReady), [Effect::Start(W1)]);
    assert_eq!(harness.does(2, at(12), Event::Ready(W1)), [send(W1, 3)]);
}

#[test]
fn a_nested_call_gets_a_worker_permit_beyond_the_limit() {
    let caps = Caps { workers: 1, memory: Some(10), ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 2]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(1), Event::Measured { worker: W1, held: 11 });
    let nested = CallSpec { nested: true, ..call(2) };
    assert_eq!(harness.does(1, at(2), Event::Submit(nested)), [Effect::Start(W1)]);
    assert_eq!(harness.does(1, at(3), Event::Ready(W1)), [send(W1, 2)]);
}

#[test]
fn the_longest_idle_worker_is_evicted_for_another_tool() {
    let mut harness = PoolHarness::new(Caps { workers: 2, ..Caps::default() }, &[Rules::default(); 3]);
    harness.warm(0, at(0));
    harness.warm(1, at(10));
    let _ = harness.step(0, at(20), Event::Submit(call(1)));
    let _ = harness.step(0, at(30), answered(W1, 1));
    assert_eq!(harness.does(2, at(40), Event::Submit(call(2))), [], "both worker permits are taken");
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(1), W1, Need::WorkerPermit)]);
    let retires = Effect::Stop { worker: W1, mode: StopMode::Retire };
    assert_eq!(harness.does(1, at(41), Event::Evict(W1, Need::WorkerPermit)), [retires]);
    assert_eq!(harness.broker.take_wakeups(), []);
    let _ = harness.step(1, at(50), died(W1));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::PermitReady(PoolId(2))]);
    assert_eq!(harness.does(2, at(51), Event::PermitReady), [Effect::Start(W1)]);
}

#[test]
fn a_busy_worker_is_never_evicted() {
    let mut harness = PoolHarness::new(Caps { workers: 1, ..Caps::default() }, &[Rules::default(); 2]);
    harness.warm(0, at(0));
    let _ = harness.step(1, at(1), Event::Submit(call(1)));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(0), W1, Need::WorkerPermit)]);
    assert_eq!(harness.does(0, at(2), Event::Submit(call(2))), [send(W1, 2)]);
    assert_eq!(harness.does(0, at(3), Event::Evict(W1, Need::WorkerPermit)), [], "too late");
    let _ = harness.step(0, at(4), answered(W1, 2));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(0), W1, Need::WorkerPermit)], "now it is idle");
}

#[test]
fn the_running_limit_holds_and_the_next_call_starts_when_one_ends() {
    let caps = Caps { running: 1, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 2]);
    harness.warm(0, at(0));
    harness.warm(1, at(0));
    assert_eq!(harness.does(0, at(1), Event::Submit(call(1))), [send(W1, 1)]);
    assert_eq!(harness.does(1, at(2), Event::Submit(call(2))), []);
    assert_eq!(harness.does(0, at(3), Event::Submit(call(3))), [], "no pool goes on while another waits");
    let ends = harness.does(0, at(4), answered(W1, 1));
    assert_eq!(ends, [Effect::Finish { call: CallId(1), verdict: Verdict::Answered(W1) }]);
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::PermitReady(PoolId(1))]);
    assert_eq!(harness.does(1, at(5), Event::PermitReady), [send(W1, 2)]);
    let _ = harness.step(1, at(6), answered(W1, 2));
    assert_eq!(harness.does(0, at(7), Event::PermitReady), [send(W1, 3)]);
}

#[test]
fn a_nested_call_needs_no_run_permit() {
    let caps = Caps { running: 1, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 2]);
    harness.warm(0, at(0));
    harness.warm(1, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(1, at(2), Event::Submit(call(2)));
    let nested = CallSpec { nested: true, ..call(3) };
    assert_eq!(harness.does(1, at(3), Event::Submit(nested)), [send(W1, 3)], "and goes before the others");
}

#[test]
fn the_largest_idle_worker_is_evicted_over_the_memory_limit() {
    let caps = Caps { memory: Some(100), ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 3]);
    for pool in 0..2 {
        harness.warm(pool, at(0));
    }
    let _ = harness.step(0, at(1), Event::Measured { worker: W1, held: 40 });
    let _ = harness.step(1, at(1), Event::Measured { worker: W1, held: 70 });
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(1), W1, Need::Memory)]);
    assert_eq!(harness.does(2, at(2), Event::Submit(call(1))), [], "and no start meanwhile");
    let _ = harness.step(1, at(3), Event::Evict(W1, Need::Memory));
    let _ = harness.step(1, at(4), died(W1));
    let _ = harness.step(0, at(5), Event::Measured { worker: W1, held: 40 });
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::PermitReady(PoolId(2))]);
    assert_eq!(harness.does(2, at(6), Event::PermitReady), [Effect::Start(W1)]);
}

#[test]
fn a_minimum_evicted_for_memory_returns_with_the_next_call() {
    let caps = Caps { memory: Some(100), ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules { min_workers: 1, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Measured { worker: W1, held: 170 });
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(0), W1, Need::Memory)]);
    let leaves = decisions(&harness.step(0, at(2), Event::Evict(W1, Need::Memory)));
    assert_eq!(leaves, [Decision::Stop(W1, WhyStop::Evicted(Need::Memory))]);
    assert_eq!(harness.does(0, at(3), died(W1)), [], "a new worker would be evicted as well");
    assert_eq!(harness.pools[0].next_timer(), None);
    assert_eq!(harness.does(0, at(4), Event::Submit(call(1))), [Effect::Start(W2)]);
    let _ = harness.step(0, at(5), Event::Ready(W2));
    let _ = harness.step(0, at(6), answered(W2, 1));
    assert_eq!(harness.does(0, at(7), died(W2)), [Effect::Start(W3)], "the minimum is kept again");
}

#[test]
fn a_removed_pool_releases_everything_it_held() {
    let caps = Caps { running: 1, workers: 1, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 2]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    assert_eq!(harness.does(1, at(2), Event::Submit(call(2))), []);
    harness.broker.forget(PoolId(0));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::PermitReady(PoolId(1))]);
    assert_eq!(harness.does(1, at(3), Event::PermitReady), [Effect::Start(W1)]);
    assert_eq!(harness.does(1, at(4), Event::Ready(W1)), [send(W1, 2)]);
    harness.broker.return_run_permit(PoolId(0));
    assert_eq!(harness.broker.running(), 1, "a pool cannot return what it does not hold");
}

#[test]
fn a_recently_used_worker_is_not_evicted_for_growth() {
    let mut harness = PoolHarness::new(Caps { workers: 2, ..Caps::default() }, &[up_to(2), Rules::default()]);
    harness.warm(0, at(0));
    harness.warm(1, at(90));
    let _ = harness.step(0, at(100), Event::Submit(call(1)));
    let _ = harness.step(0, at(100), Event::Submit(call(2)));
    assert_eq!(harness.does(0, at(125), Event::Timer), []);
    assert_eq!(harness.broker.take_wakeups(), []);
    assert_eq!(harness.does(0, at(1_090), Event::Submit(call(3))), []);
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(1), W1, Need::WorkerPermit)]);
}

#[test]
fn minimum_workers_are_evicted_last() {
    let kept = Rules { min_workers: 1, ..Rules::default() };
    let mut harness =
        PoolHarness::new(Caps { workers: 2, ..Caps::default() }, &[kept, Rules::default(), Rules::default()]);
    harness.warm(0, at(0));
    harness.warm(1, at(10));
    let _ = harness.step(2, at(20), Event::Submit(call(1)));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(1), W1, Need::WorkerPermit)]);
}

#[test]
fn a_second_worker_is_started_when_a_call_waits_too_long() {
    let mut harness = PoolHarness::new(Caps::default(), &[up_to(3)]);
    harness.warm(0, at(0));
    assert_eq!(harness.does(0, at(100), Event::Submit(call(1))), [send(W1, 1)]);
    assert_eq!(harness.does(0, at(101), Event::Submit(call(2))), [], "it may be short");
    assert_eq!(harness.does(0, at(101), Event::Submit(call(3))), []);
    assert_eq!(harness.pools[0].next_timer(), Some(at(126)));
    let grown = harness.step(0, at(126), Event::Timer);
    assert_eq!(decisions(&grown)[0], Decision::Start(W2, WhyStart::Queue { waiting: 2 }));
    assert_eq!(deeds(grown), [Effect::Start(W2), Effect::Start(W3)]);
    assert_eq!(harness.does(0, at(130), Event::Ready(W2)), [send(W2, 2)]);
    assert_eq!(harness.does(0, at(131), answered(W1, 1)).last(), Some(&send(W1, 3)), "the first free worker takes it");
}

#[test]
fn the_youngest_worker_becomes_idle_and_leaves() {
    let rules = Rules { idle: Some(at(1_000)), ..up_to(2) };
    let mut harness = PoolHarness::new(Caps::default(), &[rules]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(0), Event::Submit(call(1)));
    let _ = harness.step(0, at(0), Event::Submit(call(2)));
    assert_eq!(harness.does(0, at(25), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(30), Event::Ready(W2)), [send(W2, 2)]);
    let _ = harness.step(0, at(40), answered(W1, 1));
    let _ = harness.step(0, at(40), answered(W2, 2));
    for second in 1..=3 {
        let now = at(second * 500);
        assert_eq!(harness.does(0, now, Event::Submit(call(second + 10))), [send(W1, second + 10)]);
        let _ = harness.step(0, now, answered(W1, second + 10));
        let leaves = Effect::Stop { worker: W2, mode: StopMode::Retire };
        let due = harness.does(0, now, Event::Timer);
        assert_eq!(due, if second == 3 { vec![leaves] } else { vec![] });
    }
}

#[test]
fn the_minimum_starts_with_the_first_call_and_stays() {
    let rules = Rules { min_workers: 2, idle: Some(at(100)), ..up_to(2) };
    let mut harness = PoolHarness::new(Caps::default(), &[rules]);
    assert_eq!(harness.does(0, at(0), Event::Warm), [Effect::Start(W1), Effect::Start(W2)]);
    let _ = harness.step(0, at(10), Event::Ready(W1));
    let _ = harness.step(0, at(10), Event::Ready(W2));
    assert_eq!(harness.pools[0].next_timer(), None, "no worker leaves");
    assert_eq!(harness.does(0, at(500), Event::Timer), []);
    assert_eq!(harness.does(0, at(600), died(W1)), [Effect::Start(W3)], "at once after the first death");
    let failed = harness.does(0, at(601), Event::StartFailed { worker: W3, by_itself: false });
    assert_eq!(failed, [], "not without a pause");
    let again = harness.pools[0].next_timer().expect("a retry");
    assert!(again > at(1_350) && again <= at(1_601), "{again:?}");
    assert_eq!(harness.does(0, again, Event::Timer), [Effect::Start(WorkerId(4))]);
    let _ = harness.step(0, again, Event::StartFailed { worker: WorkerId(4), by_itself: false });
    assert!(harness.pools[0].next_timer().is_some_and(|then| then > again + at(1_400)), "with a longer pause");
}

#[test]
fn calls_go_to_the_oldest_worker_that_can_begin_them() {
    let rules = Rules { concurrency: 2, ..up_to(2) };
    let mut harness = PoolHarness::new(Caps::default(), &[rules]);
    harness.warm(0, at(0));
    for number in 1..=3 {
        let _ = harness.step(0, at(0), Event::Submit(call(number)));
    }
    assert_eq!(harness.does(0, at(25), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(30), Event::Ready(W2)), [send(W2, 3)]);
    let _ = harness.step(0, at(31), answered(W1, 1));
    let _ = harness.step(0, at(31), answered(W2, 3));
    assert_eq!(harness.does(0, at(32), Event::Submit(call(4))), [send(W1, 4)], "the youngest becomes idle");
}

#[test]
fn a_call_that_asks_again_before_it_has_a_permit_stays_parked() {
    let mut pools = PoolHarness::new(Caps { running: 1, workers: 8, ..Caps::default() }, &[up_to(1), up_to(1)]);
    pools.warm(0, at(0));
    pools.warm(1, at(0));
    assert_eq!(pools.does(0, at(10), Event::Submit(call(1))), [send(W1, 1)]);
    let _ = pools.step(0, at(20), Event::Park { call: CallId(1), is_outer: false });
    assert_eq!(pools.does(1, at(30), Event::Submit(call(2))), [send(W1, 2)], "the permit of the parked call");
    assert_eq!(
        pools.does(0, at(40), Event::Unpark(CallId(1))),
        [],
        "its first question is answered; the other call runs"
    );
    let _ = pools.step(0, at(50), Event::Park { call: CallId(1), is_outer: false });
    let _ = pools.step(1, at(60), answered(W1, 2));
    assert_eq!(pools.does(0, at(60), Event::PermitReady), [], "its second question is open: its clock stands still");
    assert!(pools.pools[0].is_parked(CallId(1)));
    assert_eq!(pools.does(0, at(70), Event::Unpark(CallId(1))), [Effect::Resume(CallId(1))]);
}

#[test]
fn other_limits_are_in_force_at_once() {
    let caps = Caps { workers: 2, memory: Some(100), ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[up_to(2), up_to(2)]);
    harness.warm(0, at(0));
    harness.broker.measured(PoolId(0), W1, 1_000);
    assert!(
        harness.broker.take_wakeups().iter().any(|wakeup| matches!(wakeup, Wakeup::Evict(PoolId(0), W1, Need::Memory)))
    );
    // Over the memory limit no worker starts, until there is none.
    assert_eq!(harness.does(1, at(1), Event::Submit(call(1))), []);
    harness.broker.limit(Caps { memory: None, ..caps });
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::PermitReady(PoolId(1))]);
    assert_eq!(harness.does(1, at(2), Event::PermitReady), [Effect::Start(W1)]);
}

#[test]
fn idle_workers_beyond_a_lower_limit_leave() {
    let caps = Caps { workers: 3, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[up_to(1), up_to(1), up_to(1)]);
    (0..3).for_each(|pool| harness.warm(pool, at(pool as u64)));
    harness.broker.limit(Caps { workers: 1, ..caps });
    let evicted = |pool| Wakeup::Evict(PoolId(pool), W1, Need::WorkerPermit);
    assert_eq!(harness.broker.take_wakeups(), [evicted(0), evicted(1)]);
}
