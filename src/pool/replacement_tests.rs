//! Scenarios of workers that reach a limit, and of their successors.

use super::broker::Caps;
use super::event::{CallId, Decision, Effect, Event, StopMode, Verdict, WhyStop};
use super::harness::{PoolHarness, W1, W2, W3, answered, at, call, decisions, died, send, up_to};
use super::rules::Rules;

#[test]
fn a_successor_inherits_the_idle_time_of_its_predecessor() {
    let rules = Rules { idle: Some(at(2_000)), max_lifetime: Some(at(1_500)), ..Rules::default() };
    let mut harness = PoolHarness::new(Caps::default(), &[rules]);
    harness.warm(0, at(0));
    assert_eq!(harness.does(0, at(1_500), Event::Timer), [Effect::Start(W2)]);
    let _ = harness.step(0, at(1_510), Event::Ready(W2));
    let _ = harness.step(0, at(1_520), died(W1));
    assert_eq!(harness.pools[0].next_timer(), Some(at(2_000)));
    assert_eq!(harness.does(0, at(2_000), Event::Timer), [Effect::Stop { worker: W2, mode: StopMode::Retire }]);
}

#[test]
fn a_worker_that_is_large_before_its_first_call_is_not_replaced() {
    let mut harness =
        PoolHarness::new(Caps::default(), &[Rules { max_rss: Some(100), min_workers: 1, ..Rules::default() }]);
    let _ = harness.step(0, at(0), Event::Warm);
    let _ = harness.step(0, at(1), Event::Ready(W1));
    let measured = Event::Measured { worker: W1, held: 101 };
    assert_eq!(decisions(&harness.step(0, at(2), measured)), [Decision::BeginsLarge { worker: W1, held: 101 }]);
    assert_eq!(harness.step(0, at(3), measured), [], "it is logged once, and the worker keeps serving");
}

#[test]
fn without_a_permit_for_a_successor_a_worker_stops_when_idle() {
    let rules = Rules { max_calls: Some(2), concurrency: 2, ..Rules::default() };
    let mut harness = PoolHarness::new(Caps { workers: 1, ..Caps::default() }, &[rules]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(1), Event::Submit(call(2)));
    let ended = Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) };
    assert_eq!(harness.does(0, at(2), answered(W1, 2)), [ended], "the first still runs");
    assert_eq!(harness.does(0, at(3), Event::Submit(call(3))), [send(W1, 3)], "without waiting for it");
    let _ = harness.step(0, at(4), answered(W1, 3));
    let retired = Effect::Stop { worker: W1, mode: StopMode::Retire };
    assert_eq!(harness.does(0, at(5), answered(W1, 1))[1..], [retired]);
}

#[test]
fn a_successor_is_ready_before_its_predecessor_stops() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { max_calls: Some(2), ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let due = harness.step(0, at(2), answered(W1, 1));
    assert!(decisions(&due).contains(&Decision::Recycle(W1, WhyStop::Calls)));
    assert_eq!(due.last(), Some(&Effect::Start(W2)));
    assert_eq!(harness.does(0, at(3), Event::Submit(call(2))), [send(W1, 2)], "meanwhile it keeps serving");
    assert_eq!(harness.does(0, at(4), Event::Ready(W2)), [], "and finishes its calls");
    assert_eq!(harness.does(0, at(5), Event::Submit(call(3))), [send(W2, 3)]);
    let last = harness.does(0, at(6), answered(W1, 2));
    let leaves = Effect::Stop { worker: W1, mode: StopMode::Retire };
    assert_eq!(last, [Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) }, leaves]);
}

#[test]
fn a_worker_whose_successor_does_not_start_keeps_serving() {
    let rules = Rules { max_lifetime: Some(at(1_000)), ..Rules::default() };
    let mut harness = PoolHarness::new(Caps::default(), &[rules]);
    harness.warm(0, at(0));
    assert_eq!(harness.pools[0].next_timer(), Some(at(1_000)));
    assert_eq!(harness.does(0, at(1_000), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(1_010), Event::StartFailed { worker: W2, by_itself: true }), []);
    assert_eq!(harness.does(0, at(1_020), Event::Submit(call(1))), [send(W1, 1)]);
    let _ = harness.step(0, at(1_030), answered(W1, 1));
    assert_eq!(harness.pools[0].next_timer(), Some(at(31_010)), "with a later retry");
}

#[test]
fn a_worker_that_is_too_large_after_a_call_is_replaced() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { max_rss: Some(100), ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let measured = Event::Measured { worker: W1, held: 101 };
    assert_eq!(harness.does(0, at(2), measured), [], "the call may free it");
    assert_eq!(harness.does(0, at(3), measured), []);
    let _ = harness.step(0, at(4), answered(W1, 1));
    assert_eq!(harness.does(0, at(5), measured), [Effect::Start(W2)]);
}

#[test]
fn a_worker_that_is_never_idle_stops_without_a_successor_after_a_while() {
    let rules = Rules { max_calls: Some(2), concurrency: 2, ..Rules::default() };
    let mut harness = PoolHarness::new(Caps { workers: 1, ..Caps::default() }, &[rules]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(1), Event::Submit(call(2)));
    let _ = harness.step(0, at(2), answered(W1, 2));
    assert_eq!(harness.does(0, at(30_001), Event::Submit(call(3))), [send(W1, 3)]);
    let _ = harness.step(0, at(30_002), answered(W1, 3));
    assert_eq!(harness.does(0, at(30_003), Event::Submit(call(4))), [], "a steady load must not keep it");
    let retired = Effect::Stop { worker: W1, mode: StopMode::Retire };
    assert_eq!(harness.does(0, at(30_004), answered(W1, 1))[1..], [retired]);
}

#[test]
fn nothing_is_written_ahead_to_a_worker_due_for_replacement() {
    let rules = Rules { max_calls: Some(2), ..Rules::default() };
    let mut harness = PoolHarness::new(Caps { workers: 1, ..Caps::default() }, &[rules]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    assert_eq!(harness.does(0, at(1), Event::Submit(call(2))), [send(W1, 2)], "not known at that time");
    let _ = harness.step(0, at(2), answered(W1, 1));
    assert_eq!(harness.does(0, at(3), Event::Submit(call(3))), []);
    let retired = Effect::Stop { worker: W1, mode: StopMode::Retire };
    assert_eq!(harness.does(0, at(4), answered(W1, 2))[1..], [retired]);
}

#[test]
fn no_successor_starts_while_starts_fail() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { max_lifetime: Some(at(1_000)), ..up_to(2) }]);
    harness.warm(0, at(0));
    for number in 1..=2 {
        let _ = harness.step(0, at(900), Event::Submit(call(number)));
    }
    assert_eq!(harness.does(0, at(925), Event::Timer), [Effect::Start(W2)]);
    let _ = harness.step(0, at(930), Event::StartFailed { worker: W2, by_itself: false });
    let _ = harness.step(0, at(940), answered(W1, 1));
    let _ = harness.step(0, at(950), answered(W1, 2));
    assert_eq!(harness.does(0, at(1_000), Event::Timer), []);
    let later = harness.pools[0].next_timer().expect("a retry");
    assert!(later > at(1_600), "{later:?}");
    assert_eq!(harness.does(0, later, Event::Timer), [Effect::Start(W3)]);
}

#[test]
fn freed_memory_does_not_count() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { max_rss: Some(100), ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(2), Event::Measured { worker: W1, held: 101 });
    let _ = harness.step(0, at(3), Event::Measured { worker: W1, held: 99 });
    let _ = harness.step(0, at(4), answered(W1, 1));
    let _ = harness.step(0, at(5), Event::Submit(call(2)));
    assert_eq!(harness.does(0, at(6), Event::Measured { worker: W1, held: 101 }), [], "this call may free it as well");
}
