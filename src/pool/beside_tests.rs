//! Stories of several calls in one worker, of which one does harm: what becomes of those beside it.

use super::broker::Caps;
use super::event::{CallId, CallSpec, Effect, Event, Manner, Verdict};
use super::harness::{PoolHarness, W1, W2, W3, answered, at, call, died, send, up_to};
use super::rules::Rules;

#[test]
fn a_worker_that_runs_several_calls_loses_none_to_one_that_is_stuck() {
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
    let told = Effect::Finish { call: CallId(1), verdict: timed_out };
    assert_eq!(given_up, [told, Effect::Ping(W1), Effect::Start(W2)]);
    let _ = harness.step(0, at(755), Event::Pong(W1));
    let _ = harness.step(0, at(760), Event::Ready(W2));
    assert_eq!(harness.pools[0].next_timer(), Some(at(60_000)), "it has shown that it gets on");
    let last = harness.does(0, at(900), answered(W1, 2));
    let killed = Effect::Stop { worker: W1, manner: Manner::Kill };
    assert_eq!(last, [Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) }, killed]);
}

#[test]
fn a_worker_that_is_held_up_goes_with_all_its_calls() {
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
    assert_eq!(harness.broker.running(), 2, "nobody waits for the first any longer");
    assert_eq!(harness.pools[0].next_timer(), Some(at(2_750)));
    let held_up = Effect::Finish { call: CallId(2), verdict: Verdict::HeldUp };
    let killed = Effect::Stop { worker: W1, manner: Manner::Kill };
    assert_eq!(
        harness.does(0, at(2_750), Event::Timer),
        [killed, held_up, Effect::Start(W2)],
        "the third is made again"
    );
}

/// A call of this worker obeys nothing from its time limit on. Comes back when its caller is told.
fn holds_up(harness: &mut PoolHarness, call: CallId, overdue: u64) -> Vec<Effect> {
    for after in [0, 150, 250, 350, 450, 550] {
        let _ = harness.step(0, at(overdue + after), Event::Timer);
    }
    let ends = harness.does(0, at(overdue + 650), Event::Timer);
    assert!(matches!(ends[0], Effect::Finish { call: ended, .. } if ended == call), "{ends:?}");
    ends
}

#[test]
fn a_call_that_was_held_up_is_made_again_once_and_with_a_clock_of_its_own() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let short = |number| Event::Submit(CallSpec { timeout: at(100), ..call(number) });
    let _ = harness.step(0, at(0), short(1));
    let _ = harness.step(0, at(0), Event::Submit(CallSpec { timeout: at(2_700), repeatable: true, ..call(2) }));
    let _ = holds_up(&mut harness, CallId(1), 100);
    assert_eq!(harness.does(0, at(2_700), Event::Timer), [Effect::TakeStack { worker: W1, call: CallId(2) }]);
    let _ = harness.step(0, at(2_750), Event::Timer);
    assert_eq!(harness.does(0, at(3_000), Event::Ready(W2)), [send(W2, 2)]);
    assert_eq!(harness.pools[0].next_timer(), Some(at(5_700)), "it has its whole time again");
    assert_eq!(harness.does(0, at(3_000), short(3)), [send(W2, 3)]);
    let _ = holds_up(&mut harness, CallId(3), 3_100);
    let held_up = Effect::Finish { call: CallId(2), verdict: Verdict::HeldUp };
    assert_eq!(harness.does(0, at(5_750), Event::Timer)[1], held_up);
}

#[test]
fn a_second_call_that_obeys_nothing_gives_the_worker_no_more_time() {
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
fn calls_that_a_worker_died_under_are_made_again_one_after_the_other() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 3, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), harmless(1));
    let _ = harness.step(0, at(1), harmless(2));
    assert_eq!(harness.does(0, at(2), died(W1)), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1)]);
    assert_eq!(harness.does(0, at(4), Event::Submit(call(3))), []);
    let over = Effect::Finish { call: CallId(1), verdict: Verdict::Died(W2) };
    assert_eq!(harness.does(0, at(5), died(W2)), [over], "the second was not beside it this time");
    let rested = harness.pools[0].next_timer().expect("it rests");
    assert_eq!(harness.does(0, rested, Event::Timer), [Effect::Start(W3)]);
    assert_eq!(harness.does(0, rested, Event::Ready(W3)), [send(W3, 2)]);
    assert_eq!(harness.does(0, rested, answered(W3, 2))[1..], [send(W3, 3)]);
}

#[test]
fn a_call_is_not_made_again_beside_others() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..up_to(2) }]);
    harness.warm(0, at(0));
    for number in 1..=2 {
        let _ = harness.step(0, at(0), harmless(number));
    }
    let _ = harness.step(0, at(0), harmless(3));
    let _ = harness.step(0, at(25), Event::Timer);
    assert_eq!(harness.does(0, at(30), Event::Ready(W2)), [send(W2, 3)]);
    assert_eq!(harness.does(0, at(31), died(W1)), [Effect::Start(W3)], "the other worker has a place, and a call");
    assert_eq!(harness.does(0, at(32), answered(W2, 3))[1..], [send(W2, 1)]);
    assert_eq!(harness.does(0, at(33), Event::Ready(W3)), [send(W3, 2)]);
}

#[test]
fn what_a_repeated_call_waits_for_begins_beside_it() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), harmless(1));
    let _ = harness.step(0, at(2), died(W1));
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1)]);
    assert_eq!(harness.does(0, at(4), Event::Submit(call(2))), []);
    assert_eq!(harness.does(0, at(5), Event::Submit(CallSpec { nested: true, ..call(3) })), [send(W2, 3)]);
}

#[test]
fn a_call_that_a_running_call_waits_for_is_made_again_at_once() {
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
fn where_one_runs_at_a_time_others_are_written_behind_a_repeated_one() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules::default()]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), harmless(1));
    let _ = harness.step(0, at(1), Event::Submit(call(2)));
    assert_eq!(harness.does(0, at(2), died(W1)), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1), send(W2, 2)]);
}
