//! Scenarios of several calls in one worker, one of which is faulty: the effect on the calls beside it.

use super::broker::Caps;
use super::event::{CallId, CallSpec, Effect, Event, StopMode, Verdict};
use super::harness::{PoolHarness, W1, W2, W3, answered, at, call, died, send, up_to};
use super::rules::Rules;

#[test]
fn a_stuck_call_does_not_end_the_other_calls_of_its_worker() {
    let rules = Rules { concurrency: 2, max_queue: 8, ..Rules::default() };
    let mut harness = PoolHarness::new(Caps::default(), &[rules]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(0), Event::Submit(CallSpec { timeout: at(100), ..call(1) }));
    assert_eq!(harness.does(0, at(0), Event::Submit(call(2))), [send(W1, 2)], "both run");
    assert_eq!(harness.does(0, at(100), Event::Timer), [Effect::TakeStack { worker: W1, call: CallId(1) }]);
    assert_eq!(harness.does(0, at(250), Event::Timer), [Effect::Withdraw { worker: W1, call: CallId(1) }]);
    assert_eq!(harness.does(0, at(251), Event::Submit(call(3))), []);
    let timed_out = Verdict::TimedOut { worker: W1, stopped: true };
    let given_up = harness.does(0, at(750), Event::Timer);
    let finish = Effect::Finish { call: CallId(1), verdict: timed_out };
    assert_eq!(given_up, [finish, Effect::Ping(W1), Effect::Start(W2)]);
    let _ = harness.step(0, at(755), Event::Pong(W1));
    let _ = harness.step(0, at(760), Event::Ready(W2));
    assert_eq!(harness.pools[0].next_timer(), Some(at(60_000)), "it has answered the ping");
    let last = harness.does(0, at(900), answered(W1, 2));
    let killed = Effect::Stop { worker: W1, mode: StopMode::Kill };
    assert_eq!(last, [Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) }, killed]);
}

#[test]
fn a_blocked_worker_is_stopped_with_all_its_calls() {
    let rules = Rules { concurrency: 3, ..Rules::default() };
    let mut harness = PoolHarness::new(Caps { running: 3, ..Caps::default() }, &[rules]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(0), Event::Submit(CallSpec { timeout: at(100), ..call(1) }));
    let _ = harness.step(0, at(0), Event::Submit(call(2)));
    let _ = harness.step(0, at(0), Event::Submit(CallSpec { repeatable: true, ..call(3) }));
    for now in [100, 250, 350, 450, 550, 650] {
        let _ = harness.step(0, at(now), Event::Timer);
    }
    assert_eq!(harness.does(0, at(750), Event::Timer)[1], Effect::Ping(W1));
    assert_eq!(harness.broker.running(), 2, "the first was answered");
    assert_eq!(harness.pools[0].next_timer(), Some(at(2_750)));
    let held_up = Effect::Finish { call: CallId(2), verdict: Verdict::HeldUp };
    let killed = Effect::Stop { worker: W1, mode: StopMode::Kill };
    assert_eq!(harness.does(0, at(2_750), Event::Timer), [killed, held_up, Effect::Start(W2)], "the third is repeated");
}

/// A call of this worker ignores interruptions from its time limit on. Returns when its caller has been answered.
fn holds_up(harness: &mut PoolHarness, call: CallId, overdue: u64) -> Vec<Effect> {
    for after in [0, 150, 250, 350, 450, 550] {
        let _ = harness.step(0, at(overdue + after), Event::Timer);
    }
    let ends = harness.does(0, at(overdue + 650), Event::Timer);
    assert!(matches!(ends[0], Effect::Finish { call: ended, .. } if ended == call), "{ends:?}");
    ends
}

#[test]
fn a_call_beside_a_stuck_one_is_repeated_once_with_its_full_time() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let short = |number| Event::Submit(CallSpec { timeout: at(100), ..call(number) });
    let _ = harness.step(0, at(0), short(1));
    let _ = harness.step(0, at(0), Event::Submit(CallSpec { timeout: at(2_700), repeatable: true, ..call(2) }));
    let _ = holds_up(&mut harness, CallId(1), 100);
    assert_eq!(harness.does(0, at(2_700), Event::Timer), [Effect::TakeStack { worker: W1, call: CallId(2) }]);
    let _ = harness.step(0, at(2_750), Event::Timer);
    assert_eq!(harness.does(0, at(3_000), Event::Ready(W2)), [send(W2, 2)]);
    assert_eq!(harness.pools[0].next_timer(), Some(at(5_700)), "its clock restarted");
    assert_eq!(harness.does(0, at(3_000), short(3)), [send(W2, 3)]);
    let _ = holds_up(&mut harness, CallId(3), 3_100);
    let held_up = Effect::Finish { call: CallId(2), verdict: Verdict::HeldUp };
    assert_eq!(harness.does(0, at(5_750), Event::Timer)[1], held_up);
}

#[test]
fn a_second_stuck_call_gives_the_worker_no_more_time() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 3, ..Rules::default() }]);
    harness.warm(0, at(0));
    for (number, timeout) in [(1, 100), (2, 1_100), (3, 60_000)] {
        let _ = harness.step(0, at(0), Event::Submit(CallSpec { timeout: at(timeout), ..call(number) }));
    }
    assert_eq!(holds_up(&mut harness, CallId(1), 100)[1], Effect::Ping(W1));
    assert_eq!(holds_up(&mut harness, CallId(2), 1_100).len(), 1, "it has not answered the first ping");
    assert_eq!(harness.pools[0].next_timer(), Some(at(2_750)));
}

fn harmless(number: u64) -> Event {
    Event::Submit(CallSpec { repeatable: true, ..call(number) })
}

#[test]
fn calls_of_a_dead_worker_are_repeated_one_at_a_time() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 3, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), harmless(1));
    let _ = harness.step(0, at(1), harmless(2));
    assert_eq!(harness.does(0, at(2), died(W1)), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1)]);
    assert_eq!(harness.does(0, at(4), Event::Submit(call(3))), []);
    let over = Effect::Finish { call: CallId(1), verdict: Verdict::Died(W2) };
    assert_eq!(harness.does(0, at(5), died(W2)), [over], "the second was not beside it this time");
    let rested = harness.pools[0].next_timer().expect("a pause");
    assert_eq!(harness.does(0, rested, Event::Timer), [Effect::Start(W3)]);
    assert_eq!(harness.does(0, rested, Event::Ready(W3)), [send(W3, 2)]);
    assert_eq!(harness.does(0, rested, answered(W3, 2))[1..], [send(W3, 3)]);
}

#[test]
fn a_repeated_call_runs_alone() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..up_to(2) }]);
    harness.warm(0, at(0));
    for number in 1..=2 {
        let _ = harness.step(0, at(0), harmless(number));
    }
    let _ = harness.step(0, at(0), harmless(3));
    let _ = harness.step(0, at(25), Event::Timer);
    assert_eq!(harness.does(0, at(30), Event::Ready(W2)), [send(W2, 3)]);
    assert_eq!(harness.does(0, at(31), died(W1)), [Effect::Start(W3)], "the other worker has capacity, and a call");
    assert_eq!(harness.does(0, at(32), answered(W2, 3))[1..], [send(W2, 1)]);
    assert_eq!(harness.does(0, at(33), Event::Ready(W3)), [send(W3, 2)]);
}

#[test]
fn a_nested_call_of_a_repeated_call_starts_beside_it() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), harmless(1));
    let _ = harness.step(0, at(2), died(W1));
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1)]);
    assert_eq!(harness.does(0, at(4), Event::Submit(call(2))), []);
    assert_eq!(harness.does(0, at(5), Event::Submit(CallSpec { nested: true, ..call(3) })), [send(W2, 3)]);
}

#[test]
fn a_nested_call_is_repeated_at_once() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..up_to(2) }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(0), Event::Submit(CallSpec { repeatable: true, nested: true, ..call(1) }));
    for number in 2..=3 {
        let _ = harness.step(0, at(0), Event::Submit(call(number)));
    }
    let _ = harness.step(0, at(25), Event::Timer);
    assert_eq!(harness.does(0, at(30), Event::Ready(W2)), [send(W2, 3)]);
    let over = Effect::Finish { call: CallId(2), verdict: Verdict::Died(W1) };
    assert_eq!(harness.does(0, at(31), died(W1)), [over, send(W2, 1)]);
}

#[test]
fn a_worker_for_one_call_takes_calls_behind_a_repeated_one() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules::default()]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), harmless(1));
    let _ = harness.step(0, at(1), Event::Submit(call(2)));
    assert_eq!(harness.does(0, at(2), died(W1)), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1), send(W2, 2)]);
}
