//! Stories of several workers: when another is started, when one is replaced, when one goes.

use super::commons::Caps;
use super::event::{CallId, Decision, Effect, Event, Manner, Verdict, WhyStart, WhyStop, WorkerId};
use super::house::{House, W1, W2, W3, answered, at, call, deeds, died, send, told, up_to};
use super::rules::Rules;

#[test]
fn a_second_worker_is_started_when_a_call_waits_too_long() {
    let mut house = House::new(Caps::default(), &[up_to(3)]);
    house.warm(0, at(0));
    assert_eq!(house.does(0, at(100), Event::Submit(call(1))), [send(W1, 1)]);
    assert_eq!(house.does(0, at(101), Event::Submit(call(2))), [], "it may be short");
    assert_eq!(house.does(0, at(101), Event::Submit(call(3))), []);
    assert_eq!(house.pools[0].next_timer(), Some(at(126)));
    let grown = house.step(0, at(126), Event::Timer);
    assert_eq!(told(&grown)[0], Decision::Start(W2, WhyStart::Queue { waiting: 2 }));
    assert_eq!(deeds(grown), [Effect::Start(W2), Effect::Start(W3)]);
    assert_eq!(house.does(0, at(130), Event::Ready(W2)), [send(W2, 2)]);
    assert_eq!(house.does(0, at(131), answered(W1, 1)).last(), Some(&send(W1, 3)), "whoever is free first");
}

#[test]
fn the_youngest_worker_is_the_one_that_is_idle_and_leaves() {
    let rules = Rules { idle: Some(at(1_000)), ..up_to(2) };
    let mut house = House::new(Caps::default(), &[rules]);
    house.warm(0, at(0));
    let _ = house.step(0, at(0), Event::Submit(call(1)));
    let _ = house.step(0, at(0), Event::Submit(call(2)));
    assert_eq!(house.does(0, at(25), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(house.does(0, at(30), Event::Ready(W2)), [send(W2, 2)]);
    let _ = house.step(0, at(40), answered(W1, 1));
    let _ = house.step(0, at(40), answered(W2, 2));
    for second in 1..=3 {
        let now = at(second * 500);
        assert_eq!(house.does(0, now, Event::Submit(call(second + 10))), [send(W1, second + 10)]);
        let _ = house.step(0, now, answered(W1, second + 10));
        let leaves = Effect::Stop { worker: W2, manner: Manner::Retire };
        let due = house.does(0, now, Event::Timer);
        assert_eq!(due, if second == 3 { vec![leaves] } else { vec![] });
    }
}

#[test]
fn the_minimum_is_there_from_the_first_call_on_and_stays() {
    let rules = Rules { min_workers: 2, idle: Some(at(100)), ..up_to(2) };
    let mut house = House::new(Caps::default(), &[rules]);
    assert_eq!(house.does(0, at(0), Event::Warm), [Effect::Start(W1), Effect::Start(W2)]);
    let _ = house.step(0, at(10), Event::Ready(W1));
    let _ = house.step(0, at(10), Event::Ready(W2));
    assert_eq!(house.pools[0].next_timer(), None, "nobody leaves");
    assert_eq!(house.does(0, at(500), Event::Timer), []);
    assert_eq!(house.does(0, at(600), died(W1)), [Effect::Start(W3)], "at once the first time");
    let failed = house.does(0, at(601), Event::StartFailed { worker: W3, by_itself: false });
    assert_eq!(failed, [], "not without a pause");
    let again = house.pools[0].next_timer().expect("it is tried again");
    assert!(again > at(1_350) && again <= at(1_601), "{again:?}");
    assert_eq!(house.does(0, again, Event::Timer), [Effect::Start(WorkerId(4))]);
    let _ = house.step(0, again, Event::StartFailed { worker: WorkerId(4), by_itself: false });
    assert!(house.pools[0].next_timer().is_some_and(|then| then > again + at(1_400)), "and then less and less often");
}

#[test]
fn a_successor_is_idle_for_as_long_as_the_one_before() {
    let rules = Rules { idle: Some(at(2_000)), max_lifetime: Some(at(1_500)), ..Rules::default() };
    let mut house = House::new(Caps::default(), &[rules]);
    house.warm(0, at(0));
    assert_eq!(house.does(0, at(1_500), Event::Timer), [Effect::Start(W2)]);
    let _ = house.step(0, at(1_510), Event::Ready(W2));
    let _ = house.step(0, at(1_520), died(W1));
    assert_eq!(house.pools[0].next_timer(), Some(at(2_000)));
    assert_eq!(house.does(0, at(2_000), Event::Timer), [Effect::Stop { worker: W2, manner: Manner::Retire }]);
}

#[test]
fn a_worker_that_is_large_before_its_first_call_is_not_replaced() {
    let mut house = House::new(Caps::default(), &[Rules { max_rss: Some(100), min_workers: 1, ..Rules::default() }]);
    let _ = house.step(0, at(0), Event::Warm);
    let _ = house.step(0, at(1), Event::Ready(W1));
    let measured = Event::Measured { worker: W1, held: 101 };
    assert_eq!(told(&house.step(0, at(2), measured)), [Decision::BeginsLarge { worker: W1, held: 101 }]);
    assert_eq!(house.step(0, at(3), measured), [], "it is told once, and the worker serves on");
}

#[test]
fn without_a_seat_for_a_successor_a_worker_goes_when_it_is_idle() {
    let rules = Rules { max_calls: Some(2), concurrency: 2, ..Rules::default() };
    let mut house = House::new(Caps { workers: 1, ..Caps::default() }, &[rules]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    let _ = house.step(0, at(1), Event::Submit(call(2)));
    let ended = Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) };
    assert_eq!(house.does(0, at(2), answered(W1, 2)), [ended], "the first is still under way");
    assert_eq!(house.does(0, at(3), Event::Submit(call(3))), [send(W1, 3)], "and nobody waits for that");
    let _ = house.step(0, at(4), answered(W1, 3));
    let retired = Effect::Stop { worker: W1, manner: Manner::Retire };
    assert_eq!(house.does(0, at(5), answered(W1, 1))[1..], [retired]);
}

#[test]
fn calls_go_to_the_oldest_worker_that_can_begin_them() {
    let rules = Rules { concurrency: 2, ..up_to(2) };
    let mut house = House::new(Caps::default(), &[rules]);
    house.warm(0, at(0));
    for number in 1..=3 {
        let _ = house.step(0, at(0), Event::Submit(call(number)));
    }
    assert_eq!(house.does(0, at(25), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(house.does(0, at(30), Event::Ready(W2)), [send(W2, 3)]);
    let _ = house.step(0, at(31), answered(W1, 1));
    let _ = house.step(0, at(31), answered(W2, 3));
    assert_eq!(house.does(0, at(32), Event::Submit(call(4))), [send(W1, 4)], "the youngest is the one to become idle");
}

#[test]
fn a_successor_is_ready_before_a_worker_leaves() {
    let mut house = House::new(Caps::default(), &[Rules { max_calls: Some(2), ..Rules::default() }]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    let due = house.step(0, at(2), answered(W1, 1));
    assert!(told(&due).contains(&Decision::Recycle(W1, WhyStop::Calls)));
    assert_eq!(due.last(), Some(&Effect::Start(W2)));
    assert_eq!(house.does(0, at(3), Event::Submit(call(2))), [send(W1, 2)], "meanwhile it serves on");
    assert_eq!(house.does(0, at(4), Event::Ready(W2)), [], "and finishes what it has");
    assert_eq!(house.does(0, at(5), Event::Submit(call(3))), [send(W2, 3)]);
    let last = house.does(0, at(6), answered(W1, 2));
    let leaves = Effect::Stop { worker: W1, manner: Manner::Retire };
    assert_eq!(last, [Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) }, leaves]);
}

#[test]
fn a_worker_whose_successor_does_not_start_serves_on() {
    let rules = Rules { max_lifetime: Some(at(1_000)), ..Rules::default() };
    let mut house = House::new(Caps::default(), &[rules]);
    house.warm(0, at(0));
    assert_eq!(house.pools[0].next_timer(), Some(at(1_000)));
    assert_eq!(house.does(0, at(1_000), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(house.does(0, at(1_010), Event::StartFailed { worker: W2, by_itself: true }), []);
    assert_eq!(house.does(0, at(1_020), Event::Submit(call(1))), [send(W1, 1)]);
    let _ = house.step(0, at(1_030), answered(W1, 1));
    assert_eq!(house.pools[0].next_timer(), Some(at(31_010)), "and is tried again later");
}

#[test]
fn a_worker_that_holds_too_much_after_a_call_is_replaced() {
    let mut house = House::new(Caps::default(), &[Rules { max_rss: Some(100), ..Rules::default() }]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    let measured = Event::Measured { worker: W1, held: 101 };
    assert_eq!(house.does(0, at(2), measured), [], "the call may give it back");
    assert_eq!(house.does(0, at(3), measured), []);
    let _ = house.step(0, at(4), answered(W1, 1));
    assert_eq!(house.does(0, at(5), measured), [Effect::Start(W2)]);
}
