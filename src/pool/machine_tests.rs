//! Scenarios of the machine, step by step.

use std::time::Duration;

use super::broker::{Caps, PoolId, ResourceBroker};
use super::event::{CallId, CallSpec, Decision, Effect, Event, Moment, StopMode, Verdict, WorkerId};
use super::job::SessionId;
use super::machine;
use super::rules::Rules;

const W1: WorkerId = WorkerId(1);
const W2: WorkerId = WorkerId(2);
const W3: WorkerId = WorkerId(3);
const A: CallId = CallId(1);
const B: CallId = CallId(2);
const C: CallId = CallId(3);

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A machine with its broker, alone or sharing it.
struct Machine {
    inner: machine::Machine,
    decisions: Vec<Decision>,
    broker: ResourceBroker,
}

impl Machine {
    fn new(rules: &Rules) -> Self {
        Self {
            inner: machine::Machine::new(PoolId(1), rules),
            decisions: Vec::new(),
            broker: ResourceBroker::new(Caps::default()),
        }
    }

    /// The effects; decisions are recorded.
    fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        let effects = self.inner.step(now, event, &mut self.broker);
        let decisions = effects
            .iter()
            .filter_map(|effect| if let Effect::Tell(decision) = effect { Some(*decision) } else { None });
        self.decisions.extend(decisions);
        effects.into_iter().filter(|effect| !matches!(effect, Effect::Tell(_))).collect()
    }

    fn next_timer(&self) -> Option<Moment> {
        self.inner.next_timer()
    }

    /// A pause lasts between three quarters of its length and all of it: returns the end of this one.
    fn after_pause(&mut self) -> (Moment, Vec<Effect>) {
        let at = self.next_timer().expect("a timer");
        (at, self.step(at, Event::Timer))
    }
}

fn spec(call: CallId) -> CallSpec {
    CallSpec { call, session: SessionId(1), timeout: at(1000), repeatable: false, nested: false, begins_at_once: false }
}

fn submit(call: CallId) -> Event {
    Event::Submit(spec(call))
}

fn died(worker: WorkerId) -> Event {
    Event::Died { worker, of_a_limit: false }
}

fn answered(worker: WorkerId, call: CallId) -> Event {
    Event::Answered { worker, call, cancelled: false }
}

fn failed(worker: WorkerId) -> Event {
    Event::StartFailed { worker, by_itself: true }
}

fn finish(call: CallId, verdict: Verdict) -> Effect {
    Effect::Finish { call, verdict }
}

/// A pool with one ready worker.
fn ready() -> Machine {
    let mut machine = Machine::new(&Rules::default());
    assert_eq!(machine.step(at(0), submit(A)), [Effect::Start(W1)]);
    assert_eq!(machine.step(at(10), Event::Ready(W1)), [Effect::Send { worker: W1, call: A }]);
    machine
}

fn idle() -> Machine {
    let mut machine = ready();
    assert_eq!(machine.step(at(20), answered(W1, A)), [finish(A, Verdict::Answered(W1))]);
    machine
}

#[test]
fn the_second_call_uses_the_warm_worker() {
    let mut machine = idle();
    assert_eq!(machine.step(at(30), submit(B)), [Effect::Send { worker: W1, call: B }]);
}

#[test]
fn idle_time_starts_at_the_end_of_the_last_call() {
    let mut machine = idle();
    assert_eq!(machine.next_timer(), Some(at(20) + Duration::from_mins(10)));
    let _ = machine.step(at(5_000), submit(B));
    let _ = machine.step(at(6_000), answered(W1, B));
    assert_eq!(machine.next_timer(), Some(at(6_000) + Duration::from_mins(10)));
    let leaves = machine.step(at(606_000), Event::Timer);
    assert_eq!(leaves, [Effect::Stop { worker: W1, mode: StopMode::Retire }]);
    assert_eq!(machine.step(at(606_001), submit(C)), [Effect::Start(W2)], "a call that comes then gets a new one");
}

#[test]
fn a_worker_with_a_running_call_is_not_idle() {
    let mut machine = Machine::new(&Rules { idle: Some(at(100)), ..Rules::default() });
    let _ = machine.step(at(0), Event::Submit(CallSpec { timeout: at(10_000), ..spec(A) }));
    let _ = machine.step(at(0), Event::Ready(W1));
    assert_eq!(machine.step(at(5_000), Event::Timer), []);
}

#[test]
fn calls_behind_one_that_died_go_to_the_next_worker() {
    let mut machine = ready();
    let _ = machine.step(at(11), submit(B));
    let _ = machine.step(at(12), submit(C));
    let died = machine.step(at(13), died(W1));
    assert_eq!(died, [finish(A, Verdict::Died(W1)), Effect::Start(W2)]);
    let sent = machine.step(at(20), Event::Ready(W2));
    assert_eq!(sent, [Effect::Send { worker: W2, call: B }, Effect::Send { worker: W2, call: C }]);
}

#[test]
fn an_overdue_call_is_asked_for_its_stack_then_interrupted_then_stopped() {
    let mut machine = ready();
    assert_eq!(machine.next_timer(), Some(at(1_010)), "its clock starts when it is written");
    assert_eq!(machine.step(at(1_010), Event::Timer), [Effect::TakeStack { worker: W1, call: A }]);
    assert_eq!(machine.step(at(1_160), Event::Timer), [Effect::Interrupt { worker: W1, call: A }]);
    assert_eq!(machine.step(at(1_260), Event::Timer), [Effect::Nudge(W1)]);
    let end = machine.step(at(1_660), Event::Timer);
    let stopped = Verdict::TimedOut { worker: W1, stopped: true };
    assert_eq!(end, [finish(A, stopped), Effect::Stop { worker: W1, mode: StopMode::Kill }]);
    assert_eq!(machine.step(at(1_661), answered(W1, A)), [], "a late answer is ignored");
}

#[test]
fn an_interrupted_call_costs_no_worker() {
    let mut machine = ready();
    let _ = machine.step(at(1_010), Event::Timer);
    let _ = machine.step(at(1_160), Event::Timer);
    let obeyed = machine.step(at(1_200), Event::Answered { worker: W1, call: A, cancelled: true });
    assert_eq!(obeyed, [finish(A, Verdict::TimedOut { worker: W1, stopped: false })]);
    assert_eq!(machine.step(at(1_300), submit(B)), [Effect::Send { worker: W1, call: B }]);
}

#[test]
fn a_calls_clock_starts_when_its_predecessor_is_answered() {
    let mut machine = ready();
    let _ = machine.step(at(11), submit(B));
    let _ = machine.step(at(900), answered(W1, A));
    assert_eq!(machine.next_timer(), Some(at(1_900)));
}

#[test]
fn a_withdrawn_call_never_begins_and_a_running_one_is_interrupted() {
    let mut machine = ready();
    let _ = machine.step(at(11), submit(B));
    let withdrawn = machine.step(at(12), Event::Cancel(B));
    assert_eq!(withdrawn, [finish(B, Verdict::Cancelled), Effect::Withdraw { worker: W1, call: B }]);
    let interrupted = machine.step(at(13), Event::Cancel(A));
    assert_eq!(interrupted, [finish(A, Verdict::Cancelled), Effect::Interrupt { worker: W1, call: A }]);
    assert_eq!(machine.step(at(14), Event::Cancel(A)), [], "a second cancel has no effect");
}

#[test]
fn a_full_queue_refuses_calls_at_once() {
    let mut machine = Machine::new(&Rules { max_queue: 2, ..Rules::default() });
    let _ = machine.step(at(0), submit(A));
    let _ = machine.step(at(0), submit(B));
    let full = machine.step(at(0), submit(C));
    assert!(matches!(full[..], [Effect::Finish { call: C, verdict: Verdict::Busy { waiting: 2, .. } }]), "{full:?}");
}

#[test]
fn a_failed_start_fails_the_waiting_calls_and_the_next_call_retries() {
    let mut machine = Machine::new(&Rules::default());
    let _ = machine.step(at(0), submit(A));
    let _ = machine.step(at(0), submit(B));
    let failed = machine.step(at(5), failed(W1));
    assert_eq!(failed, [finish(A, Verdict::StartFailed(W1)), finish(B, Verdict::StartFailed(W1))]);
    assert_eq!(machine.step(at(6), submit(C)), [Effect::Start(W2)]);
}

#[test]
fn a_closed_pool_finishes_its_calls_and_becomes_empty_once() {
    let mut machine = ready();
    assert_eq!(machine.step(at(11), Event::Close), []);
    assert_eq!(machine.step(at(12), submit(B)), [finish(B, Verdict::ShuttingDown)]);
    let last = machine.step(at(13), answered(W1, A));
    assert_eq!(last, [finish(A, Verdict::Answered(W1)), Effect::Stop { worker: W1, mode: StopMode::Retire }]);
    assert_eq!(machine.step(at(14), died(W1)), [Effect::Empty]);
    assert_eq!(machine.step(at(15), Event::Timer), []);
}

#[test]
fn an_ended_pool_answers_all_calls_and_kills_workers() {
    let mut machine = ready();
    let _ = machine.step(at(11), submit(B));
    let end = machine.step(at(12), Event::End);
    let killed = Effect::Stop { worker: W1, mode: StopMode::Kill };
    assert_eq!(end, [finish(A, Verdict::ShuttingDown), finish(B, Verdict::ShuttingDown), killed]);
    assert_eq!(machine.step(at(13), died(W1)), [Effect::Empty]);
}

#[test]
fn repeated_failed_starts_back_off() {
    let mut machine = Machine::new(&Rules::default());
    let (mut now, mut pauses) = (at(0), Vec::new());
    for number in 1..=9 {
        let (call, worker) = (CallId(number), WorkerId(number));
        assert_eq!(machine.step(now, submit(call)), [Effect::Start(worker)], "start {number}");
        assert_eq!(machine.step(now, failed(worker)), [finish(call, Verdict::StartFailed(worker))]);
        if number == 1 {
            continue; // the next call retries at once
        }
        let effects = machine.step(now, submit(CallId(100 + number)));
        let [Effect::Finish { verdict: Verdict::StillFailing { times, retry_after }, .. }] = effects[..] else {
            panic!("after {number} failures: {effects:?}");
        };
        assert_eq!(u64::from(times), number);
        pauses.push(retry_after);
        now += retry_after;
    }
    for (pause, longest) in pauses.into_iter().zip([1, 2, 4, 8, 16, 30, 30, 30]) {
        let longest = Duration::from_secs(longest);
        assert!(pause <= longest && pause >= longest * 3 / 4, "{pause:?} of {longest:?}");
    }
}

#[test]
fn a_successful_start_resets_the_pauses() {
    let mut machine = Machine::new(&Rules::default());
    for worker in [W1, W2] {
        let _ = machine.step(at(0), submit(A));
        let _ = machine.step(at(0), failed(worker));
    }
    assert_eq!(machine.step(at(1_000), submit(B)), [Effect::Start(WorkerId(3))]);
    let _ = machine.step(at(1_010), Event::Ready(WorkerId(3)));
    let _ = machine.step(at(1_020), died(WorkerId(3)));
    let _ = machine.step(at(1_030), submit(C));
    let _ = machine.step(at(1_040), failed(WorkerId(4)));
    assert_eq!(machine.step(at(1_050), submit(A)), [Effect::Start(WorkerId(5))], "one failure causes no pause");
}

#[test]
fn calls_requeued_by_a_death_wait_for_the_end_of_the_pause() {
    let mut machine = ready();
    assert_eq!(machine.step(at(11), died(W1)), [finish(A, Verdict::Died(W1))]);
    assert_eq!(machine.step(at(12), submit(B)), [Effect::Start(W2)], "at once after the first death");
    assert_eq!(machine.step(at(20), Event::Ready(W2)), [Effect::Send { worker: W2, call: B }]);
    let _ = machine.step(at(21), submit(C));
    assert_eq!(machine.step(at(30), died(W2)), [finish(B, Verdict::Died(W2))], "C waits");
    let (then, started) = machine.after_pause();
    assert!(then >= at(105) && then <= at(130), "{then:?}");
    assert_eq!(started, [Effect::Start(W3)]);
    assert_eq!(machine.step(then, Event::Ready(W3)), [Effect::Send { worker: W3, call: C }]);
}

#[test]
fn a_failure_outside_the_file_is_retried_at_every_call() {
    let mut machine = Machine::new(&Rules::default());
    for number in 1..=5 {
        let worker = WorkerId(number);
        assert_eq!(machine.step(at(0), submit(CallId(number))), [Effect::Start(worker)]);
        let _ = machine.step(at(0), Event::StartFailed { worker, by_itself: false });
    }
}

#[test]
fn a_worker_that_was_asked_to_exit_gets_no_further_call() {
    let mut machine = ready();
    let _ = machine.step(at(11), Event::Cancel(A));
    let _ = machine.step(at(11), Event::Ends(W1));
    assert_eq!(machine.step(at(12), submit(B)), [Effect::Start(W2)]);
    let answer = Event::Answered { worker: W1, call: A, cancelled: false };
    let stop = Effect::Stop { worker: W1, mode: StopMode::Retire };
    assert_eq!(machine.step(at(13), answer), [stop], "its answer changes nothing");
    assert_eq!(machine.step(at(14), Event::Ready(W2)), [Effect::Send { worker: W2, call: B }]);
}

#[test]
fn sessions_take_turns() {
    let mut machine = Machine::new(&Rules { write_ahead: 1, ..Rules::default() });
    let of = |session, call| Event::Submit(CallSpec { session: SessionId(session), ..spec(CallId(call)) });
    let _ = machine.step(at(0), of(1, 1));
    let _ = machine.step(at(1), Event::Ready(W1));
    // One session asks for much, before the others ask for a little.
    for (session, call) in [(1, 10), (1, 11), (1, 12), (1, 13), (2, 20), (3, 30), (2, 21)] {
        assert_eq!(machine.step(at(2), of(session, call)), []);
    }
    let _ = machine.step(at(2), Event::Submit(CallSpec { nested: true, ..spec(CallId(40)) }));
    let mut served = Vec::new();
    let mut next = 1;
    while let [Effect::Finish { .. }, Effect::Send { call, .. }] =
        machine.step(at(3), Event::Answered { worker: W1, call: CallId(next), cancelled: false })[..]
    {
        next = call.0;
        served.push(next);
    }
    assert_eq!(served, [40, 10, 20, 30, 11, 21, 12, 13]);
}

#[test]
fn a_session_that_fills_the_queue_keeps_no_others_out() {
    let mut machine = Machine::new(&Rules { max_queue: 4, ..Rules::default() });
    let of = |session, call| Event::Submit(CallSpec { session: SessionId(session), ..spec(CallId(call)) });
    let mut refused = |session, call| -> Vec<u64> {
        let effects = machine.step(at(0), of(session, call));
        let refused = effects.iter().filter_map(|effect| match effect {
            Effect::Finish { call, verdict: Verdict::Busy { waiting: 4, .. } } => Some(call.0),
            _ => None,
        });
        refused.collect()
    };
    for call in 10..14 {
        assert!(refused(1, call).is_empty());
    }
    assert_eq!(refused(1, 14), [14], "its own excess");
    assert_eq!(refused(2, 20), [13], "the last of those that have most");
    assert_eq!(refused(2, 21), [12]);
    assert_eq!(refused(2, 22), [22], "both have their share");
    assert_eq!(refused(3, 30), [21]);
    assert_eq!(refused(3, 31), [31]);
    assert_eq!(refused(4, 40), [11]);
    assert_eq!(refused(5, 50), [50], "each has one");
}
