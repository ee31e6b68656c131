//! Scenarios of several workers: when one is added, replaced or stopped.

use super::broker::Caps;
use super::event::{Decision, Effect, Event, StopMode, WhyStart, WorkerId};
use super::harness::{PoolHarness, W1, W2, W3, answered, at, call, decisions, deeds, died, send, up_to};
use super::rules::Rules;

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
