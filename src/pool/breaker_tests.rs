//! Scenarios of workers that die, do not start, or do not stop.

use super::broker::Caps;
use super::event::{CallId, CallSpec, Decision, Effect, Event, Verdict, WorkerId};
use super::harness::{PoolHarness, W1, W2, answered, at, call, decisions, deeds, died, send, up_to};
use super::rules::Rules;

#[test]
fn a_failed_start_for_growth_is_not_repeated_at_once() {
    let mut harness = PoolHarness::new(Caps::default(), &[up_to(2)]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(0), Event::Submit(call(1)));
    let _ = harness.step(0, at(0), Event::Submit(call(2)));
    assert_eq!(harness.does(0, at(25), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(26), Event::StartFailed { worker: W2, by_itself: false }), []);
    assert!(harness.pools[0].next_timer().is_some_and(|then| then >= at(776)));
}

#[test]
fn idle_workers_killed_together_count_as_one_death() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { min_workers: 5, ..up_to(5) }]);
    let _ = harness.step(0, at(0), Event::Warm);
    (1..=5).for_each(|worker| drop(harness.step(0, at(1), Event::Ready(WorkerId(worker)))));
    (1..=5).for_each(|worker| drop(harness.step(0, at(2), died(WorkerId(worker)))));
    let called = harness.does(0, at(3), Event::Submit(call(1)));
    assert!(!called.iter().any(|effect| matches!(effect, Effect::Finish { .. })), "{called:?}");
}

#[test]
fn the_call_that_opens_the_breaker_gets_its_own_death() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { breaker: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(2), died(W1));
    let _ = harness.step(0, at(3), Event::Submit(CallSpec { repeatable: true, ..call(2) }));
    let _ = harness.step(0, at(4), Event::Ready(W2));
    let decisions = harness.does(0, at(5), died(W2));
    assert_eq!(decisions, [Effect::Finish { call: CallId(2), verdict: Verdict::Died(W2) }]);
}

#[test]
fn deaths_count_also_during_cancelled_calls() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { concurrency: 2, ..Rules::default() }]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(call(1)));
    let _ = harness.step(0, at(1), Event::Submit(call(2)));
    let _ = harness.step(0, at(2), Event::Cancel(CallId(2)));
    let _ = harness.step(0, at(3), died(W1));
    let _ = harness.step(0, at(4), Event::Submit(call(3)));
    let _ = harness.step(0, at(5), Event::Ready(W2));
    let rests = decisions(&harness.step(0, at(6), died(W2)));
    assert!(matches!(rests[..], [Decision::Rest { deaths: 2, .. }]), "{rests:?}");
}

#[test]
fn an_idempotent_call_is_repeated_once_and_others_never() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules::default()]);
    harness.warm(0, at(0));
    let _ = harness.step(0, at(1), Event::Submit(CallSpec { repeatable: true, ..call(1) }));
    let again = harness.step(0, at(2), died(W1));
    assert!(decisions(&again).contains(&Decision::Repeat(CallId(1))));
    assert_eq!(deeds(again), [Effect::Start(W2)]);
    assert_eq!(harness.does(0, at(3), Event::Ready(W2)), [send(W2, 1)]);
    let over = Effect::Finish { call: CallId(1), verdict: Verdict::Died(W2) };
    assert_eq!(harness.does(0, at(4), died(W2)), [over]);
}

#[test]
fn after_five_deaths_calls_are_refused_and_then_one_is_tried() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules::default()]);
    let mut now = at(0);
    for death in 1..=5 {
        let (number, worker) = (CallId(death), WorkerId(death));
        let mut begun = harness.does(0, now, Event::Submit(call(death)));
        if begun.is_empty() {
            now = harness.pools[0].next_timer().expect("a pause");
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
    assert_eq!(decisions(&tried)[0], Decision::Try);
    assert_eq!(deeds(tried), [Effect::Start(WorkerId(6))]);
    let _ = harness.step(0, now, Event::Submit(call(8)));
    assert_eq!(harness.does(0, now, Event::Ready(WorkerId(6))), [send(WorkerId(6), 7)], "one call alone");
    let well = harness.step(0, now, answered(WorkerId(6), 7));
    assert!(decisions(&well).contains(&Decision::Recovered));
    assert!(deeds(well).contains(&send(WorkerId(6), 8)));
}

#[test]
fn a_worker_that_served_long_does_not_count_with_the_death_before() {
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
fn idle_workers_dying_one_after_another_count() {
    let mut harness = PoolHarness::new(Caps::default(), &[Rules { min_workers: 1, ..Rules::default() }]);
    let _ = harness.step(0, at(0), Event::Warm);
    let _ = harness.step(0, at(1), Event::Ready(W1));
    assert_eq!(harness.does(0, at(2), died(W1)), [Effect::Start(W2)]);
    let _ = harness.step(0, at(3), Event::Ready(W2));
    let rests = decisions(&harness.step(0, at(4), died(W2)));
    assert!(matches!(rests[..], [Decision::Rest { deaths: 2, .. }]), "{rests:?}");
}
