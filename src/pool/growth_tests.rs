//! Stories of several workers: when another is started, when one goes, what pools take from each other.

use std::time::Duration;

use super::commons::{Caps, Commons, Poke, PoolId};
use super::event::{CallId, Decision, Effect, Event, Manner, Moment, Verdict, WhyStart, WhyStop, Wish, WorkerId};
use super::machine::Machine;
use super::rules::Rules;

const W1: WorkerId = WorkerId(1);
const W2: WorkerId = WorkerId(2);
const W3: WorkerId = WorkerId(3);

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn call(number: u64) -> Wish {
    Wish { call: CallId(number), timeout: at(60_000), repeatable: false, nested: false }
}

fn answered(worker: WorkerId, call: u64) -> Event {
    Event::Answered { worker, call: CallId(call), cancelled: false }
}

fn send(worker: WorkerId, call: u64) -> Effect {
    Effect::Send { worker, call: CallId(call) }
}

fn died(worker: WorkerId) -> Event {
    Event::Died { worker, of_a_limit: false }
}

/// What is to be done, without what is only to be told.
fn deeds(effects: Vec<Effect>) -> Vec<Effect> {
    effects.into_iter().filter(|effect| !matches!(effect, Effect::Tell(_))).collect()
}

fn told(effects: &[Effect]) -> Vec<Decision> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Tell(decision) = effect { Some(*decision) } else { None })
        .collect()
}

struct House {
    commons: Commons,
    pools: Vec<Machine>,
}

impl House {
    fn new(caps: Caps, rules: &[Rules]) -> Self {
        let pools = rules.iter().enumerate().map(|(id, rules)| Machine::new(PoolId(id as u64), rules));
        Self { commons: Commons::new(caps), pools: pools.collect() }
    }

    fn step(&mut self, pool: usize, now: Moment, event: Event) -> Vec<Effect> {
        self.pools[pool].step(now, event, &mut self.commons)
    }

    fn does(&mut self, pool: usize, now: Moment, event: Event) -> Vec<Effect> {
        deeds(self.step(pool, now, event))
    }

    /// A pool with one worker that waits for a call.
    fn warm(&mut self, pool: usize, now: Moment) {
        assert_eq!(self.does(pool, now, Event::Submit(call(900))), [Effect::Start(W1)]);
        assert_eq!(self.does(pool, now, Event::Ready(W1)), [send(W1, 900)]);
        let _ = self.step(pool, now, answered(W1, 900));
    }
}

fn up_to(max_workers: usize) -> Rules {
    Rules { max_workers, ..Rules::default() }
}

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
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(0), W1)]);
    let _ = house.step(0, at(9), Event::Evict(W1));
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
fn a_start_that_fails_for_growth_is_not_tried_again_at_once() {
    let mut house = House::new(Caps::default(), &[up_to(2)]);
    house.warm(0, at(0));
    let _ = house.step(0, at(0), Event::Submit(call(1)));
    let _ = house.step(0, at(0), Event::Submit(call(2)));
    assert_eq!(house.does(0, at(25), Event::Timer), [Effect::Start(W2)]);
    assert_eq!(house.does(0, at(26), Event::StartFailed { worker: W2, by_itself: false }), []);
    assert!(house.pools[0].next_timer().is_some_and(|then| then >= at(776)));
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
    assert_eq!(house.does(0, at(2), Event::Measured { worker: W1, held: 101 }), []);
}

#[test]
fn idle_workers_that_are_killed_together_are_no_row_of_deaths() {
    let mut house = House::new(Caps::default(), &[Rules { min_workers: 5, ..up_to(5) }]);
    let _ = house.step(0, at(0), Event::Warm);
    (1..=5).for_each(|worker| drop(house.step(0, at(1), Event::Ready(WorkerId(worker)))));
    (1..=5).for_each(|worker| drop(house.step(0, at(2), died(WorkerId(worker)))));
    let called = house.does(0, at(3), Event::Submit(call(1)));
    assert!(!called.iter().any(|effect| matches!(effect, Effect::Finish { .. })), "{called:?}");
}

#[test]
fn the_call_that_opens_the_breaker_is_told_of_its_death() {
    let mut house = House::new(Caps::default(), &[Rules { breaker: 2, ..Rules::default() }]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(call(1)));
    let _ = house.step(0, at(2), died(W1));
    let _ = house.step(0, at(3), Event::Submit(Wish { repeatable: true, ..call(2) }));
    let _ = house.step(0, at(4), Event::Ready(W2));
    let told = house.does(0, at(5), died(W2));
    assert_eq!(told, [Effect::Finish { call: CallId(2), verdict: Verdict::Died(W2) }]);
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

#[test]
fn the_worker_that_was_idle_longest_leaves_for_another_tool() {
    let mut house = House::new(Caps { workers: 2, ..Caps::default() }, &[Rules::default(); 3]);
    house.warm(0, at(0));
    house.warm(1, at(10));
    let _ = house.step(0, at(20), Event::Submit(call(1)));
    let _ = house.step(0, at(30), answered(W1, 1));
    assert_eq!(house.does(2, at(40), Event::Submit(call(2))), [], "both seats are taken");
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(1), W1)]);
    let retires = Effect::Stop { worker: W1, manner: Manner::Retire };
    assert_eq!(house.does(1, at(41), Event::Evict(W1)), [retires]);
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
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(0), W1)]);
    assert_eq!(house.does(0, at(2), Event::Submit(call(2))), [send(W1, 2)]);
    assert_eq!(house.does(0, at(3), Event::Evict(W1)), [], "too late");
    let _ = house.step(0, at(4), answered(W1, 2));
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(0), W1)], "now it is idle");
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
    assert_eq!(house.commons.take_pokes(), [Poke::Evict(PoolId(1), W1)]);
    assert_eq!(house.does(2, at(2), Event::Submit(call(1))), [], "and no other is started meanwhile");
    let _ = house.step(1, at(3), Event::Evict(W1));
    let _ = house.step(1, at(4), died(W1));
    let _ = house.step(0, at(5), Event::Measured { worker: W1, held: 40 });
    assert_eq!(house.commons.take_pokes(), [Poke::Look(PoolId(2))]);
    assert_eq!(house.does(2, at(6), Event::Look), [Effect::Start(W1)]);
}

#[test]
fn a_worker_that_runs_several_calls_loses_none_to_one_that_is_stuck() {
    let rules = Rules { concurrency: 2, max_queue: 8, ..Rules::default() };
    let mut house = House::new(Caps::default(), &[rules]);
    house.warm(0, at(0));
    let _ = house.step(0, at(0), Event::Submit(Wish { timeout: at(100), ..call(1) }));
    assert_eq!(house.does(0, at(0), Event::Submit(call(2))), [send(W1, 2)], "both run");
    assert_eq!(house.does(0, at(100), Event::Timer), [Effect::TakeStack(W1)]);
    assert_eq!(house.does(0, at(250), Event::Timer), [Effect::Withdraw { worker: W1, call: CallId(1) }]);
    assert_eq!(house.does(0, at(251), Event::Submit(call(3))), []);
    let timed_out = Verdict::TimedOut { worker: W1, stopped: true };
    let given_up = house.does(0, at(750), Event::Timer);
    assert_eq!(given_up, [Effect::Finish { call: CallId(1), verdict: timed_out }, Effect::Start(W2)]);
    let _ = house.step(0, at(760), Event::Ready(W2));
    let last = house.does(0, at(900), answered(W1, 2));
    let killed = Effect::Stop { worker: W1, manner: Manner::Kill };
    assert_eq!(last, [Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) }, killed]);
}

#[test]
fn a_call_that_does_no_harm_is_made_once_more_and_another_never() {
    let mut house = House::new(Caps::default(), &[Rules::default()]);
    house.warm(0, at(0));
    let _ = house.step(0, at(1), Event::Submit(Wish { repeatable: true, ..call(1) }));
    let again = house.step(0, at(2), died(W1));
    assert!(told(&again).contains(&Decision::Repeat(CallId(1))));
    assert_eq!(deeds(again), [Effect::Start(W2)]);
    assert_eq!(house.does(0, at(3), Event::Ready(W2)), [send(W2, 1)]);
    let over = Effect::Finish { call: CallId(1), verdict: Verdict::Died(W2) };
    assert_eq!(house.does(0, at(4), died(W2)), [over]);
}

#[test]
fn after_five_deaths_in_a_row_calls_are_refused_and_then_one_is_tried() {
    let mut house = House::new(Caps::default(), &[Rules::default()]);
    let mut now = at(0);
    for death in 1..=5 {
        let (number, worker) = (CallId(death), WorkerId(death));
        let mut begun = house.does(0, now, Event::Submit(call(death)));
        if begun.is_empty() {
            now = house.pools[0].next_timer().expect("it rests");
            begun = house.does(0, now, Event::Timer);
        }
        assert_eq!(begun, [Effect::Start(worker)]);
        assert_eq!(house.does(0, now, Event::Ready(worker)), [send(worker, death)]);
        let ended = house.does(0, now, died(worker));
        assert_eq!(ended, [Effect::Finish { call: number, verdict: Verdict::Died(worker) }]);
    }
    let refused = house.does(0, now, Event::Submit(call(6)));
    let [Effect::Finish { verdict: Verdict::Broken { times: 5, retry_after }, .. }] = refused[..] else {
        panic!("{refused:?}");
    };
    now += retry_after;
    let tried = house.step(0, now, Event::Submit(call(7)));
    assert_eq!(told(&tried)[0], Decision::Try);
    assert_eq!(deeds(tried), [Effect::Start(WorkerId(6))]);
    let _ = house.step(0, now, Event::Submit(call(8)));
    assert_eq!(house.does(0, now, Event::Ready(WorkerId(6))), [send(WorkerId(6), 7)], "one alone");
    let well = house.step(0, now, answered(WorkerId(6), 7));
    assert!(told(&well).contains(&Decision::Recovered));
    assert!(deeds(well).contains(&send(WorkerId(6), 8)));
}

#[test]
fn a_worker_that_served_for_long_did_not_die_of_what_killed_the_one_before() {
    let mut house = House::new(Caps::default(), &[Rules::default()]);
    let mut now = at(0);
    for round in 1..=9 {
        let worker = WorkerId(round);
        assert_eq!(house.does(0, now, Event::Submit(call(round))), [Effect::Start(worker)], "round {round}");
        let _ = house.step(0, now, Event::Ready(worker));
        now += at(61_000);
        let _ = house.step(0, now.saturating_sub(at(10)), Event::Timer);
        let _ = house.step(0, now, died(worker));
    }
}
