//! Stories of several calls in one worker, of which one does harm: what becomes of those beside it.

use super::commons::Caps;
use super::event::{CallId, Effect, Event, Manner, Verdict, Wish};
use super::house::{House, W1, W2, answered, at, call, send};
use super::rules::Rules;

#[test]
fn a_worker_that_runs_several_calls_loses_none_to_one_that_is_stuck() {
    let rules = Rules { concurrency: 2, max_queue: 8, ..Rules::default() };
    let mut house = House::new(Caps::default(), &[rules]);
    house.warm(0, at(0));
    let _ = house.step(0, at(0), Event::Submit(Wish { timeout: at(100), ..call(1) }));
    assert_eq!(house.does(0, at(0), Event::Submit(call(2))), [send(W1, 2)], "both run");
    assert_eq!(house.does(0, at(100), Event::Timer), [Effect::TakeStack { worker: W1, call: CallId(1) }]);
    assert_eq!(house.does(0, at(250), Event::Timer), [Effect::Withdraw { worker: W1, call: CallId(1) }]);
    assert_eq!(house.does(0, at(251), Event::Submit(call(3))), []);
    let timed_out = Verdict::TimedOut { worker: W1, stopped: true };
    let given_up = house.does(0, at(750), Event::Timer);
    let told = Effect::Finish { call: CallId(1), verdict: timed_out };
    assert_eq!(given_up, [told, Effect::Ping(W1), Effect::Start(W2)]);
    let _ = house.step(0, at(755), Event::Pong(W1));
    let _ = house.step(0, at(760), Event::Ready(W2));
    assert_eq!(house.pools[0].next_timer(), Some(at(60_000)), "it has shown that it gets on");
    let last = house.does(0, at(900), answered(W1, 2));
    let killed = Effect::Stop { worker: W1, manner: Manner::Kill };
    assert_eq!(last, [Effect::Finish { call: CallId(2), verdict: Verdict::Answered(W1) }, killed]);
}

#[test]
fn a_worker_that_is_held_up_goes_with_all_its_calls() {
    let rules = Rules { concurrency: 3, ..Rules::default() };
    let mut house = House::new(Caps { running: 3, ..Caps::default() }, &[rules]);
    house.warm(0, at(0));
    let _ = house.step(0, at(0), Event::Submit(Wish { timeout: at(100), ..call(1) }));
    let _ = house.step(0, at(0), Event::Submit(call(2)));
    let _ = house.step(0, at(0), Event::Submit(Wish { repeatable: true, ..call(3) }));
    for now in [100, 250, 350, 450, 550, 650] {
        let _ = house.step(0, at(now), Event::Timer);
    }
    assert_eq!(house.does(0, at(750), Event::Timer)[1], Effect::Ping(W1));
    assert_eq!(house.commons.running(), 2, "nobody waits for the first any longer");
    assert_eq!(house.pools[0].next_timer(), Some(at(2_750)));
    let held_up = Effect::Finish { call: CallId(2), verdict: Verdict::HeldUp };
    let killed = Effect::Stop { worker: W1, manner: Manner::Kill };
    assert_eq!(house.does(0, at(2_750), Event::Timer), [killed, held_up, Effect::Start(W2)], "the third is made again");
}

/// A call of this worker obeys nothing from its time limit on. Comes back when its caller is told.
fn holds_up(house: &mut House, call: CallId, overdue: u64) -> Vec<Effect> {
    for after in [0, 150, 250, 350, 450, 550] {
        let _ = house.step(0, at(overdue + after), Event::Timer);
    }
    let ends = house.does(0, at(overdue + 650), Event::Timer);
    assert!(matches!(ends[0], Effect::Finish { call: ended, .. } if ended == call), "{ends:?}");
    ends
}

#[test]
fn a_call_that_was_held_up_is_made_again_once_and_with_a_clock_of_its_own() {
    let mut house = House::new(Caps::default(), &[Rules { concurrency: 2, ..Rules::default() }]);
    house.warm(0, at(0));
    let short = |number| Event::Submit(Wish { timeout: at(100), ..call(number) });
    let _ = house.step(0, at(0), short(1));
    let _ = house.step(0, at(0), Event::Submit(Wish { timeout: at(2_700), repeatable: true, ..call(2) }));
    let _ = holds_up(&mut house, CallId(1), 100);
    assert_eq!(house.does(0, at(2_700), Event::Timer), [Effect::TakeStack { worker: W1, call: CallId(2) }]);
    let _ = house.step(0, at(2_750), Event::Timer);
    assert_eq!(house.does(0, at(3_000), Event::Ready(W2)), [send(W2, 2)]);
    assert_eq!(house.pools[0].next_timer(), Some(at(5_700)), "it has its whole time again");
    assert_eq!(house.does(0, at(3_000), short(3)), [send(W2, 3)]);
    let _ = holds_up(&mut house, CallId(3), 3_100);
    let held_up = Effect::Finish { call: CallId(2), verdict: Verdict::HeldUp };
    assert_eq!(house.does(0, at(5_750), Event::Timer)[1], held_up);
}

#[test]
fn a_second_call_that_obeys_nothing_gives_the_worker_no_more_time() {
    let mut house = House::new(Caps::default(), &[Rules { concurrency: 3, ..Rules::default() }]);
    house.warm(0, at(0));
    for (number, timeout) in [(1, 100), (2, 1_100), (3, 60_000)] {
        let _ = house.step(0, at(0), Event::Submit(Wish { timeout: at(timeout), ..call(number) }));
    }
    assert_eq!(holds_up(&mut house, CallId(1), 100)[1], Effect::Ping(W1));
    assert_eq!(holds_up(&mut house, CallId(2), 1_100).len(), 1, "it has not answered the first ping");
    assert_eq!(house.pools[0].next_timer(), Some(at(2_750)));
}
