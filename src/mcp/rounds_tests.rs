use serde_json::json;

use super::*;
use crate::outcome::Metadata;

const MOMENT: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_mins(1);

/// A session with the call `c`, which answers an open request, and a clock.
struct Bench {
    rounds: Rounds,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        Self { rounds: Rounds::new(now), now }
    }

    /// The effects, as texts.
    fn does(&mut self, event: Event<'_>) -> Vec<String> {
        self.now += MOMENT;
        self.rounds.step(self.now, event).iter().map(said).collect()
    }

    fn asks(&mut self, key: Option<&str>) -> Vec<String> {
        let arguments = Some(RawValue::from_string("{\"a\":1}".to_owned()).unwrap().into());
        let (call_id, tool, key) = ("c".to_owned(), "p.f".to_owned(), key.map(str::to_owned));
        let asking = Asking { call_id, tool, arguments, key, limit: LIMIT };
        self.does(Event::Asked { asking, request: json!("?"), is_open: true })
    }

    /// What a client gets that is asked now.
    fn state(&mut self) -> State {
        self.now += MOMENT;
        match self.rounds.step(self.now, Event::Gathered { call: "c" }).pop() {
            Some(Effect::Require { state, .. }) => state,
            other => panic!("{other:?}"),
        }
    }

    fn continues(&mut self, state: &State, answers: Value) -> Vec<String> {
        self.continues_as(state, "p_f", json!({"a": 1}), answers)
    }

    fn continues_as(&mut self, state: &State, tool: &str, arguments: Value, answers: Value) -> Vec<String> {
        let request = Continuation { tool: tool.to_owned(), arguments };
        let responses = serde_json::from_value(answers).unwrap();
        self.does(Event::Continued { state: state.clone(), request: &request, responses })
    }

    fn ends(&mut self, call: &str, result: &str) {
        let outcome = Outcome {
            call_id: call.to_owned(),
            tool: "p.f".to_owned(),
            latency: Duration::ZERO,
            ended: Ok(RawValue::from_string(result.to_owned()).unwrap()),
            metadata: Metadata::default(),
        };
        assert_eq!(self.does(Event::Ended(&Arc::new(outcome))), [""; 0]);
    }
}

fn said(effect: &Effect) -> String {
    match effect {
        Effect::Gather(_) => "gather".to_owned(),
        Effect::Numbered(number) => format!("number {number}"),
        Effect::Deliver { number, answer, .. } => format!("deliver {number} {answer}"),
        Effect::Require { questions, .. } => {
            format!("require {}", questions.keys().cloned().collect::<Vec<_>>().join(" "))
        }
        Effect::Move { number, key, .. } => format!("move {number} {key}"),
        Effect::Resume(_) => "resume".to_owned(),
        Effect::Answer(outcome) => format!("answer {}", outcome.ended.as_ref().unwrap()),
        Effect::Refuse(refusal) => format!("refuse {refusal:?}"),
    }
}

#[test]
fn a_question_is_answered_by_the_request_that_continues_the_call() {
    let mut bench = Bench::new();
    assert_eq!(bench.does(Event::Begun { call: "c", given: None }), [""; 0]);
    assert!(bench.rounds.is_empty());
    assert_eq!(bench.asks(None), ["number 1", "gather"]);
    let state = bench.state();
    assert_eq!(
        bench.continues(&state, json!({"question_1": {"x": 1}, "other": {}})),
        ["resume", "deliver 1 {\"x\":1}"]
    );
    assert_eq!(bench.does(Event::Gathered { call: "c" }), [""; 0], "nothing is open");
    bench.ends("c", "7");
    assert_eq!(bench.continues(&state, json!({})), ["answer 7"], "a repeat gets the outcome");
}

#[test]
fn two_questions_go_together_and_are_answered_apart() {
    let mut bench = Bench::new();
    assert_eq!(bench.asks(Some("a")), ["number 1", "gather"]);
    assert_eq!(bench.asks(Some("b")), ["number 2"]);
    assert_eq!(bench.asks(Some("a")), ["refuse KeyInUse(\"a\")"]);
    assert_eq!(bench.does(Event::Gathered { call: "c" }), ["require a b"]);
    let state = bench.state();
    assert_eq!(bench.continues(&state, json!({"b": {}})), ["resume", "deliver 2 {}", "gather"], "a is asked again");
    assert_eq!(bench.does(Event::Gathered { call: "c" }), ["require a"]);
    assert_eq!(bench.does(Event::Withdrawn { call: "c", number: 1 }), [""; 0]);
    assert_eq!(bench.does(Event::Gathered { call: "c" }), [""; 0]);
    assert_eq!(bench.asks(Some("a")), ["number 4", "gather"], "the key is free again");
}

#[test]
fn a_repeat_answers_nothing_that_was_asked_later() {
    let mut bench = Bench::new();
    bench.asks(Some("a"));
    let first = bench.state();
    assert_eq!(bench.continues(&first, json!({"a": 1})), ["resume", "deliver 1 1"]);
    bench.asks(Some("a"));
    assert_eq!(bench.continues(&first, json!({"a": 1})), ["resume"], "it joins the call");
    let second = bench.state();
    assert_eq!(bench.continues(&second, json!({"a": 2}))[..2], ["resume", "deliver 2 2"]);
}

#[test]
fn questions_of_a_call_that_goes_on_alone_wait_elsewhere_and_its_requests_still_name_it() {
    let mut bench = Bench::new();
    bench.asks(Some("a"));
    let state = bench.state();
    assert_eq!(bench.does(Event::Detached { call: "c" }), ["move 1 a"]);
    assert_eq!(bench.does(Event::Gathered { call: "c" }), [""; 0], "its request is answered otherwise");
    assert_eq!(bench.continues(&state, json!({"a": 1})), ["resume"]);
    assert_eq!(bench.does(Event::Detached { call: "another" }), [""; 0]);
}

#[test]
fn answers_may_come_before_their_questions() {
    let mut bench = Bench::new();
    let given = BTreeMap::from([("a".to_owned(), json!(1))]);
    assert_eq!(bench.does(Event::Begun { call: "c", given: Some(given) }), [""; 0]);
    assert_eq!(bench.asks(Some("a")), ["number 1", "deliver 1 1"]);
    let given = BTreeMap::from([("b".to_owned(), json!(2))]);
    assert_eq!(bench.asks(Some("b")), ["number 2", "gather"]);
    assert_eq!(bench.does(Event::Begun { call: "c", given: Some(given) }), ["deliver 2 2"], "a joined call");
}

#[test]
fn a_call_that_ends_unasked_leaves_nothing() {
    let mut bench = Bench::new();
    let _ = bench.does(Event::Begun { call: "c", given: Some(Responses::new()) });
    bench.ends("other", "1");
    assert!(!bench.rounds.is_empty());
    bench.ends("c", "1");
    assert!(bench.rounds.is_empty());
    let asking = Asking { call_id: "c".to_owned(), tool: String::new(), arguments: None, key: None, limit: LIMIT };
    assert_eq!(bench.does(Event::Asked { asking, request: json!("?"), is_open: false }), ["refuse HasEnded"]);
    assert!(bench.rounds.is_empty());
}

#[test]
fn a_state_is_valid_for_its_call_tool_arguments_and_time() {
    let mut bench = Bench::new();
    bench.asks(None);
    let state = bench.state();
    let invalid = ["refuse InvalidState"];
    assert_eq!(bench.continues_as(&state, "p_g", json!({"a": 1}), json!({})), invalid);
    assert_eq!(bench.continues_as(&state, "p_f", json!({"a": 2}), json!({})), invalid);
    let of_another = State { call: "d".to_owned(), ..state.clone() };
    assert_eq!(bench.continues(&of_another, json!({})), ["refuse HasEnded"]);
    bench.now += (LIMIT + KEEP).saturating_sub(MOMENT * 5);
    assert_eq!(bench.continues(&state, json!({})), ["resume", "gather"], "just before it expires");
    assert_eq!(bench.continues(&state, json!({"question_1": {}})), invalid, "it has expired");
}

#[test]
fn outcomes_are_kept_for_a_while() {
    let mut bench = Bench::new();
    bench.asks(None);
    let state = State { until: u128::MAX, ..bench.state() };
    bench.ends("c", &format!("\"{}\"", "x".repeat(MAX_KEPT)));
    assert!(bench.continues(&state, json!({})) == ["refuse HasEnded"], "too large");
    assert_eq!(bench.asks(None), ["refuse HasEnded"]);
    let mut bench = Bench::new();
    bench.asks(None);
    bench.ends("c", "1");
    bench.now += KEEP;
    bench.ends("other", "1");
    assert!(bench.rounds.is_empty());
}
