//! Stories of several tools: what their pools take from each other.

use super::broker::{Caps, PoolId, Wakeup};
use super::event::{CallId, CallSpec, Decision, Effect, Event, Manner, Need, Verdict, WhyStop};
use super::harness::{PoolHarness, W1, W2, W3, answered, at, call, died, send, told, up_to};
use super::rules::Rules;

#[test]
fn pools_that_can_run_nothing_take_no_seats_from_each_other() {
    let caps = Caps { running: 1, workers: 2, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 3]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    assert_eq!(harness.does(1, at(2), Event::Submit(call(2))), [Effect::Start(W1)], "a worker_state is free");
    let _ = harness.step(1, at(3), Event::Ready(W1));
    assert_eq!(harness.does(2, at(4), Event::Submit(call(3))), [], "none is, and it could not run");
    assert_eq!(harness.broker.take_wakeups(), []);
    let _ = harness.step(0, at(5), answered(W1, 1));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Look(PoolId(1))]);
    assert_eq!(harness.does(1, at(6), Event::Look), [send(W1, 2)]);
    let _ = harness.step(1, at(7), answered(W1, 2));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Look(PoolId(2))]);
    assert_eq!(harness.does(2, at(8), Event::Look), [], "with a permit it may have another leave");
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(0), W1, Need::WorkerPermit)]);
    let _ = harness.step(0, at(9), Event::Evict(W1, Need::WorkerPermit));
    let _ = harness.step(0, at(10), died(W1));
    assert_eq!(harness.does(2, at(11), Event::Look), [Effect::Start(W1)]);
    assert_eq!(harness.does(2, at(12), Event::Ready(W1)), [send(W1, 3)]);
}

#[test]
fn a_call_that_a_running_call_waits_for_gets_a_seat_beyond_the_limit() {
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
fn the_worker_that_was_idle_longest_leaves_for_another_tool() {
    let mut harness = PoolHarness::new(Caps { workers: 2, ..Caps::default() }, &[Rules::default(); 3]);
    harness.warm(0, at(0));
    harness.warm(1, at(10));
    let _ = harness.step(0, at(20), Event::Submit(call(1)));
    let _ = harness.step(0, at(30), answered(W1, 1));
    assert_eq!(harness.does(2, at(40), Event::Submit(call(2))), [], "both worker_permits are taken");
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(1), W1, Need::WorkerPermit)]);
    let retires = Effect::Stop { worker: W1, manner: Manner::Retire };
    assert_eq!(harness.does(1, at(41), Event::Evict(W1, Need::WorkerPermit)), [retires]);
    assert_eq!(harness.broker.take_wakeups(), []);
    let _ = harness.step(1, at(50), died(W1));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Look(PoolId(2))]);
    assert_eq!(harness.does(2, at(51), Event::Look), [Effect::Start(W1)]);
}

#[test]
fn a_worker_that_works_is_never_sent_away() {
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
fn no_more_calls_run_than_may_and_the_next_begins_when_one_ends() {
    let caps = Caps { running: 1, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 2]);
    harness.warm(0, at(0));
    harness.warm(1, at(0));
    assert_eq!(harness.does(0, at(1), Event::Submit(call(1))), [send(W1, 1)]);
    assert_eq!(harness.does(1, at(2), Event::Submit(call(2))), []);
    assert_eq!(harness.does(0, at(3), Event::Submit(call(3))), [], "nobody goes on while others wait");
    let ends = harness.does(0, at(4), answered(W1, 1));
    assert_eq!(ends, [Effect::Finish { call: CallId(1), verdict: Verdict::Answered(W1) }]);
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Look(PoolId(1))]);
    assert_eq!(harness.does(1, at(5), Event::Look), [send(W1, 2)]);
    let _ = harness.step(1, at(6), answered(W1, 2));
    assert_eq!(harness.does(0, at(7), Event::Look), [send(W1, 3)]);
}

#[test]
fn a_call_that_a_running_call_waits_for_needs_no_turn() {
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
fn the_largest_idle_worker_leaves_when_all_hold_too_much() {
    let caps = Caps { memory: Some(100), ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 3]);
    for pool in 0..2 {
        harness.warm(pool, at(0));
    }
    let _ = harness.step(0, at(1), Event::Measured { worker: W1, held: 40 });
    let _ = harness.step(1, at(1), Event::Measured { worker: W1, held: 70 });
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(1), W1, Need::Memory)]);
    assert_eq!(harness.does(2, at(2), Event::Submit(call(1))), [], "and no other is started meanwhile");
    let _ = harness.step(1, at(3), Event::Evict(W1, Need::Memory));
    let _ = harness.step(1, at(4), died(W1));
    let _ = harness.step(0, at(5), Event::Measured { worker: W1, held: 40 });
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Look(PoolId(2))]);
    assert_eq!(harness.does(2, at(6), Event::Look), [Effect::Start(W1)]);
}

#[test]
fn a_minimum_that_all_together_have_no_memory_for_comes_back_with_the_next_call() {
    let caps = Caps { memory: Some(100), ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules { min_workers: 1, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Measured { worker: W1, held: 170 });
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(0), W1, Need::Memory)]);
    let leaves = told(&harness.step(0, at(2), Event::Evict(W1, Need::Memory)));
    assert_eq!(leaves, [Decision::Stop(W1, WhyStop::Evicted(Need::Memory))]);
    assert_eq!(harness.does(0, at(3), died(W1)), [], "another would have to leave as well");
    assert_eq!(harness.pools[0].next_timer(), None);
    assert_eq!(harness.does(0, at(4), Event::Submit(call(1))), [Effect::Start(W2)]);
    let _ = harness.step(0, at(5), Event::Ready(W2));
    let _ = harness.step(0, at(6), answered(W2, 1));
    assert_eq!(harness.does(0, at(7), died(W2)), [Effect::Start(W3)], "from then on it is to be there again");
}

#[test]
fn what_a_pool_held_that_is_gone_is_there_for_others() {
    let caps = Caps { running: 1, workers: 1, ..Caps::default() };
    let mut harness = PoolHarness::new(caps, &[Rules::default(); 2]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    assert_eq!(harness.does(1, at(2), Event::Submit(call(2))), []);
    harness.broker.forget(PoolId(0));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Look(PoolId(1))]);
    assert_eq!(harness.does(1, at(3), Event::Look), [Effect::Start(W1)]);
    assert_eq!(harness.does(1, at(4), Event::Ready(W1)), [send(W1, 2)]);
    harness.broker.return_run_permit(PoolId(0));
    assert_eq!(harness.broker.running(), 1, "what it does not hold it cannot give");
}

#[test]
fn for_one_more_of_a_tool_no_worker_leaves_that_was_needed_a_moment_ago() {
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
fn workers_that_should_always_be_there_leave_last() {
    let kept = Rules { min_workers: 1, ..Rules::default() };
    let mut harness =
        PoolHarness::new(Caps { workers: 2, ..Caps::default() }, &[kept, Rules::default(), Rules::default()]);
    harness.warm(0, at(0));
    harness.warm(1, at(10));
    let _ = harness.step(2, at(20), Event::Submit(call(1)));
    assert_eq!(harness.broker.take_wakeups(), [Wakeup::Evict(PoolId(1), W1, Need::WorkerPermit)]);
}
