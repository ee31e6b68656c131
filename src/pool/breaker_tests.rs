//! Stories of workers that die, do not start, or do not end.

use super::broker::Caps;
use super::event::{CallId, CallSpec, Decision, Effect, Event, Verdict, WorkerId};
use super::harness::{PoolHarness, W1, W2, answered, at, call, deeds, died, send, told, up_to};
use super::rules::Rules;

#[test]
fn a_start_that_fails_for_growth_is_not_tried_again_at_once() {
    let mut harness = PoolHarness::new(Caps::default(), &[up_to(2)]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(0), Event::Submit(call(1)));
    let _ = harness.step(0, at(0), Event::Submit(call(2)));
    assert_eq!(harness.does(0, at(25), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(26), Event::StartFailed { worker: W2, by_itself: false }), []);
    assert!(harness.pools[0].next_timer().is_some_and(|then| then >= at(776)));
}

#[test]
fn idle_workers_that_are_killed_together_are_no_row_of_deaths() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { min_workers: 5, ..up_to(5) }]);
    let _ = harness.step(0, at(0), Event::Warm);
    (1..=5).for_each(|worker| drop(harness.step(0, at(1), Event::Ready(WorkerId(worker)))));
    (1..=5).for_each(|worker| drop(harness.step(0, at(2), died(WorkerId(worker)))));
    let called = harness.does(0, at(3), Event::Submit(call(1)));
    assert!(!called.iter().any(|effect| matches!(effect, Effect::Finish { .. })), "{called:?}");
}

#[test]
fn the_call_that_opens_the_breaker_is_told_of_its_death() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { breaker: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(2), died(W1));
    let _ = harness.step(0, at(3), Event::Submit(CallSpec { repeatable: true, ..call(2) }));
    let _ = harness.step(0, at(4), Event::Ready(W2));
    let told = harness.does(0, at(5), died(W2));
    assert_eq!(told, [Effect::Finish { call: CallId(2), verdict: Verdict::Died(W2) }]);
}

#[test]
fn workers_die_in_a_row_also_beside_calls_that_nobody_wants_any_more() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(1), Event::Submit(call(2)));
    let _ = harness.step(0, at(2), Event::Cancel(CallId(2)));
    let _ = harness.step(0, at(3), died(W1));
    let _ = harness.step(0, at(4), Event::Submit(call(3)));
    let _ = harness.step(0, at(5), Event::Ready(W2));
    let rests = told(&harness.step(0, at(6), died(W2)));
    assert!(matches!(rests[..], [Decision::Rest { deaths: 2, .. }]), "{rests:?}");
}

#[test]
fn a_call_that_does_no_harm_is_made_once_more_and_another_never() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules::default()]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(CallSpec { repeatable: true, ..call(1) }));
    let again = harness.step(0, at(2), died(W1));
    assert!(told(&again).contains(&Decision::Repeat(CallId(1))));
    assert_eq!(deeds(again), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1)]);
    let over = Effect::Finish { call: CallId(1), verdict: Verdict::Died(W2) };
    assert_eq!(harness.does(0, at(4), died(W2)), [over]);
}

#[test]
fn after_five_deaths_in_a_row_calls_are_refused_and_then_one_is_tried() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules::default()]);
    let mut now = at(0);
    for death in 1..=5 {
        let (number, worker) = (CallId(death), WorkerId(death));
        let mut begun = harness.does(0, now, Event::Submit(call(death)));
        if begun.is_empty() {
            now = harness.pools[0].next_timer().expect("it rests");
            begun = harness.does(0, now, Event::Timer);
        }
        assert_eq!(begun, [Effect::Start(worker)]);
        assert_eq!(harness.does(0, now, Event::Ready(worker)), [send(worker, death)]);
        let ended = harness.does(0, now, died(worker));
        assert_eq!(ended, [Effect::Finish { call: number, verdict: Verdict::Died(worker) }]);
    }
    let refused = harness.does(0, now, Event::Submit(call(6)));
    let [Effect::Finish { verdict: Verdict::Broken { times: 5, retry_after }, .. }] = refused[..] else {
        panic!("{refused:?}");
    };
    now += retry_after;
    let tried = harness.step(0, now, Event::Submit(call(7)));
    assert_eq!(told(&tried)[0], Decision::Try);
    assert_eq!(deeds(tried), [Effect::Start(WorkerId(6))]);
    let _ = harness.step(0, now, Event::Submit(call(8)));
    assert_eq!(harness.does(0, now, Event::Ready(WorkerId(6))), [send(WorkerId(6), 7)], "one alone");
    let well = harness.step(0, now, answered(WorkerId(6), 7));
    assert!(told(&well).contains(&Decision::Recovered));
    assert!(deeds(well).contains(&send(WorkerId(6), 8)));
}

#[test]
fn a_worker_that_served_for_long_did_not_die_of_what_killed_the_one_before() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules::default()]);
    let mut now = at(0);
    for round in 1..=9 {
        let worker = WorkerId(round);
        assert_eq!(harness.does(0, now, Event::Submit(call(round))), [Effect::Start(worker)], "round {round}");
        let _ = harness.step(0, now, Event::Ready(worker));
        now += at(61_000);
        let _ = harness.step(0, now.saturating_sub(at(10)), Event::Timer);
        let _ = harness.step(0, now, died(worker));
    }
}

#[test]
fn idle_workers_that_die_one_after_the_other_are_a_row_of_deaths() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { min_workers: 1, ..Rules::default() }]);
    let _ = harness.step(0, at(0), Event::Warm);
    let _ = harness.step(0, at(1), Event::Ready(W1));
    assert_eq!(harness.does(0, at(2), died(W1)), [Effect::Start(W2)]);
    let _ = harness.step(0, at(3), Event::Ready(W2));
    let rests = told(&harness.step(0, at(4), died(W2)));
    assert!(matches!(rests[..], [Decision::Rest { deaths: 2, .. }]), "{rests:?}");
}
