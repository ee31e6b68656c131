//! Stories of several tools: what their pools take from each other.

use super::commons::{Caps, Poke, PoolId};
use super::event::{CallId, Decision, Effect, Event, Manner, Need, Verdict, WhyStop, Wish};
use super::house::{House, W1, W2, W3, answered, at, call, died, send, told, up_to};
use super::rules::Rules;

#[test]
fn pools_that_can_run_nothing_take_no_seats_from_each_other() {
    let caps = Caps { running: 1, workers: 2, ..Caps::default() };
    let mut house = House::new(caps, &[Rules::default(); 3]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    assert_eq!(house.does(1, at(2), Event::Submit(call(2))), [Effect::Start(W1)], "a seat is free");
    let _ = house.step(1, at(3), Event::Ready(W1));
    assert_eq!(house.does(2, at(4), Event::Submit(call(3))), [], "none is, and it could not run");
    assert_eq!(house.commons.take_pokes(), []);
    let _ = house.step(0, at(5), answered(W1, 1));
    assert_eq!(house.commons.take_pokes(), [Poke::Look(PoolId(1))]);
    assert_eq!(house.does(1, at(6), Event::Look), [send(W1, 2)]);
    let _ = house.step(1, at(7), answered(W1, 2));
    assert_eq!(house.commons.take_pokes(), [Poke::Look(PoolId(2))]);
    assert_eq!(house.does(2, at(8), Event::Look), [], "with a turn it may have another leave");
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(0), W1, Need::Seat)]);
    let _ = house.step(0, at(9), Event::Evict(W1, Need::Seat));
    let _ = house.step(0, at(10), died(W1));
    assert_eq!(house.does(2, at(11), Event::Look), [Effect::Start(W1)]);
    assert_eq!(house.does(2, at(12), Event::Ready(W1)), [send(W1, 3)]);
}

#[test]
fn a_call_that_a_running_call_waits_for_gets_a_seat_beyond_the_limit() {
    let caps = Caps { workers: 1, memory: Some(10), ..Caps::default() };
    let mut house = House::new(caps, &[Rules::default(); 2]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    let _ = house.step(0, at(1), Event::Measured { worker: W1, held: 11 });
    let nested = Wish { nested: true, ..call(2) };
    assert_eq!(house.does(1, at(2), Event::Submit(nested)), [Effect::Start(W1)]);
    assert_eq!(house.does(1, at(3), Event::Ready(W1)), [send(W1, 2)]);
}

#[test]
fn the_worker_that_was_idle_longest_leaves_for_another_tool() {
    let mut house = House::new(Caps { workers: 2, ..Caps::default() }, &[Rules::default(); 3]);
    house.warm(0, at(0));
    house.warm(1, at(10));
    let _ = house.step(0, at(20), Event::Submit(call(1)));
    let _ = house.step(0, at(30), answered(W1, 1));
    assert_eq!(house.does(2, at(40), Event::Submit(call(2))), [], "both seats are taken");
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(1), W1, Need::Seat)]);
    let retires = Effect::Stop { worker: W1, manner: Manner::Retire };
    assert_eq!(house.does(1, at(41), Event::Evict(W1, Need::Seat)), [retires]);
    assert_eq!(house.commons.take_pokes(), []);
    let _ = house.step(1, at(50), died(W1));
    assert_eq!(house.commons.take_pokes(), [Poke::Look(PoolId(2))]);
    assert_eq!(house.does(2, at(51), Event::Look), [Effect::Start(W1)]);
}

#[test]
fn a_worker_that_works_is_never_sent_away() {
    let mut house = House::new(Caps { workers: 1, ..Caps::default() }, &[Rules::default(); 2]);
    house.warm(0, at(0));
    let _ = house.step(1, at(1), Event::Submit(call(1)));
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(0), W1, Need::Seat)]);
    assert_eq!(house.does(0, at(2), Event::Submit(call(2))), [send(W1, 2)]);
    assert_eq!(house.does(0, at(3), Event::Evict(W1, Need::Seat)), [], "too late");
    let _ = house.step(0, at(4), answered(W1, 2));
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(0), W1, Need::Seat)], "now it is idle");
}

#[test]
fn no_more_calls_run_than_may_and_the_next_begins_when_one_ends() {
    let caps = Caps { running: 1, ..Caps::default() };
    let mut house = House::new(caps, &[Rules::default(); 2]);
    house.warm(0, at(0));
    house.warm(1, at(0));
    assert_eq!(house.does(0, at(1), Event::Submit(call(1))), [send(W1, 1)]);
    assert_eq!(house.does(1, at(2), Event::Submit(call(2))), []);
    assert_eq!(house.does(0, at(3), Event::Submit(call(3))), [], "nobody goes on while others wait");
    let ends = house.does(0, at(4), answered(W1, 1));
    assert_eq!(ends, [Effect::Finish { call: CallId(1), verdict: Verdict::Answered(W1) }]);
    assert_eq!(house.commons.take_pokes(), [Poke::Look(PoolId(1))]);
    assert_eq!(house.does(1, at(5), Event::Look), [send(W1, 2)]);
    let _ = house.step(1, at(6), answered(W1, 2));
    assert_eq!(house.does(0, at(7), Event::Look), [send(W1, 3)]);
}

#[test]
fn a_call_that_a_running_call_waits_for_needs_no_turn() {
    let caps = Caps { running: 1, ..Caps::default() };
    let mut house = House::new(caps, &[Rules::default(); 2]);
    house.warm(0, at(0));
    house.warm(1, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    let _ = house.step(1, at(2), Event::Submit(call(2)));
    let nested = Wish { nested: true, ..call(3) };
    assert_eq!(house.does(1, at(3), Event::Submit(nested)), [send(W1, 3)], "and goes before the others");
}

#[test]
fn the_largest_idle_worker_leaves_when_all_hold_too_much() {
    let caps = Caps { memory: Some(100), ..Caps::default() };
    let mut house = House::new(caps, &[Rules::default(); 3]);
    for pool in 0..2 {
        house.warm(pool, at(0));
    }
    let _ = house.step(0, at(1), Event::Measured { worker: W1, held: 40 });
    let _ = house.step(1, at(1), Event::Measured { worker: W1, held: 70 });
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(1), W1, Need::Memory)]);
    assert_eq!(house.does(2, at(2), Event::Submit(call(1))), [], "and no other is started meanwhile");
    let _ = house.step(1, at(3), Event::Evict(W1, Need::Memory));
    let _ = house.step(1, at(4), died(W1));
    let _ = house.step(0, at(5), Event::Measured { worker: W1, held: 40 });
    assert_eq!(house.commons.take_pokes(), [Poke::Look(PoolId(2))]);
    assert_eq!(house.does(2, at(6), Event::Look), [Effect::Start(W1)]);
}

#[test]
fn a_minimum_that_all_together_have_no_memory_for_comes_back_with_the_next_call() {
    let caps = Caps { memory: Some(100), ..Caps::default() };
    let mut house = House::new(caps, &[Rules { min_workers: 1, ..Rules::default() }]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Measured { worker: W1, held: 170 });
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(0), W1, Need::Memory)]);
    let leaves = told(&house.step(0, at(2), Event::Evict(W1, Need::Memory)));
    assert_eq!(leaves, [Decision::Stop(W1, WhyStop::Evicted(Need::Memory))]);
    assert_eq!(house.does(0, at(3), died(W1)), [], "another would have to leave as well");
    assert_eq!(house.pools[0].next_timer(), None);
    assert_eq!(house.does(0, at(4), Event::Submit(call(1))), [Effect::Start(W2)]);
    let _ = house.step(0, at(5), Event::Ready(W2));
    let _ = house.step(0, at(6), answered(W2, 1));
    assert_eq!(house.does(0, at(7), died(W2)), [Effect::Start(W3)], "from then on it is to be there again");
}

#[test]
fn what_a_pool_held_that_is_gone_is_there_for_others() {
    let caps = Caps { running: 1, workers: 1, ..Caps::default() };
    let mut house = House::new(caps, &[Rules::default(); 2]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    assert_eq!(house.does(1, at(2), Event::Submit(call(2))), []);
    house.commons.forget(PoolId(0));
    assert_eq!(house.commons.take_pokes(), [Poke::Look(PoolId(1))]);
    assert_eq!(house.does(1, at(3), Event::Look), [Effect::Start(W1)]);
    assert_eq!(house.does(1, at(4), Event::Ready(W1)), [send(W1, 2)]);
    house.commons.give_turn(PoolId(0));
    assert_eq!(house.commons.running(), 1, "what it does not hold it cannot give");
}

#[test]
fn for_one_more_of_a_tool_no_worker_leaves_that_was_needed_a_moment_ago() {
    let mut house = House::new(Caps { workers: 2, ..Caps::default() }, &[up_to(2), Rules::default()]);
    house.warm(0, at(0));
    house.warm(1, at(90));
    let _ = house.step(0, at(100), Event::Submit(call(1)));
    let _ = house.step(0, at(100), Event::Submit(call(2)));
    assert_eq!(house.does(0, at(125), Event::Timer), []);
    assert_eq!(house.commons.take_pokes(), []);
    assert_eq!(house.does(0, at(1_090), Event::Submit(call(3))), []);
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(1), W1, Need::Seat)]);
}

#[test]
fn workers_that_should_always_be_there_leave_last() {
    let kept = Rules { min_workers: 1, ..Rules::default() };
    let mut house = House::new(Caps { workers: 2, ..Caps::default() }, &[kept, Rules::default(), Rules::default()]);
    house.warm(0, at(0));
    house.warm(1, at(10));
    let _ = house.step(2, at(20), Event::Submit(call(1)));
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(1), W1, Need::Seat)]);
}
