use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::super::link::{Message, Wish};
use super::super::state::{State, Step};
use super::draw;

/// What is on a screen of this size, its right ends cut.
fn screen(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(state, false, frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>());
    rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn call(id: &str, state: &str, error: Option<&str>) -> serde_json::Value {
    let error = error.map(|message| json!({"code": "TOOL_ERROR", "message": message}));
    json!({"call_id": id, "tool": "text.slug", "session": 1, "client": "agent 1.0", "state": state,
        "started_ms": 0, "duration_ms": 1234.5, "error": error})
}

fn worker(state: &str, pid: u32) -> serde_json::Value {
    json!({"state": state, "pid": pid, "uptime_s": 1, "calls": 7, "running": (state == "busy").then_some("slug"), "holds": 0,
        "cpu_s": 0.25, "rss": 18_000_000})
}

fn status(executions: u64) -> Message {
    let tool = json!({"tool": "text.slug", "executions": executions, "succeeded": executions, "failed": 0, "cancelled": 0,
        "queue_ms": 0.0, "cold_starts": 1, "active": 1, "queued": 0});
    let pool = |source: &str, workers: serde_json::Value, resting: Option<&str>| {
        json!({"source": source, "sessions": [1], "apart": [], "workers": workers, "waiting": 0, "calls": 9, "failures": 0,
            "p50_ms": null, "p95_ms": null, "resting": resting, "last_exit": null})
    };
    let pools = [
        pool("/tools/text.py", json!([worker("busy", 71), worker("idle", 72)]), None),
        pool("/tools/bad.py", json!([]), Some("it crashed 5 times")),
    ];
    let status = json!({"version": "0.1.0", "build": "b", "pid": 42, "up_s": 61, "draining": false, "rss": 15_000_000,
        "usage": {"running": 1, "max_concurrent_calls": 16, "waiting": 0, "max_queue": 256, "workers": 2, "max_workers": 32},
        "sessions": [], "pools": pools, "tools": [tool]});
    Message::Status(Box::new(serde_json::from_value(status).unwrap()))
}

fn calls(calls: &[serde_json::Value]) -> Message {
    Message::Calls(serde_json::from_value(json!(calls)).unwrap())
}

fn event(event: serde_json::Value) -> Message {
    Message::Event(event)
}

fn busy() -> State {
    let mut state = State::default();
    state.take(status(10));
    let failed = call("bbbbbbbbbbbb", "error", Some("no\u{1b}[2J\nmore"));
    state.take(calls(&[call("cccccccccccc", "complete", None), failed, call("aaaaaaaaaaaa", "running", None)]));
    state.take(event(
        json!({"event": "tool_output", "time_ms": 3_723_000, "call_id": "aaaaaaaaaaaa", "tool_name": "text.slug",
        "stream": "stdout", "text": "hello\u{1b}]0;title\u{7}\n"}),
    ));
    state.take(event(json!({"event": "tool_call_completed", "time_ms": 3_724_000, "call_id": "cccccccccccc",
        "tool_name": "text.slug", "latency_ms": 2.0})));
    state.take(status(14));
    state.second();
    state
}

fn press(state: &mut State, code: KeyCode) -> Step {
    state.take(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_keys(state: &mut State, letters: &str) -> Step {
    letters.chars().fold(Step::Go, |_, letter| press(state, KeyCode::Char(letter)))
}

#[test]
fn everything_is_seen() {
    insta::assert_snapshot!("busy", screen(&mut busy(), 100, 32));
}

#[test]
fn a_small_terminal_has_the_list_with_the_keys() {
    insta::assert_snapshot!("small", screen(&mut busy(), 60, 10));
}

#[test]
fn any_size_can_be_drawn() {
    let mut state = busy();
    for details in [false, true] {
        if details {
            press(&mut state, KeyCode::Enter);
        }
        for (width, height) in [(1, 1), (1, 60), (3, 2), (80, 3), (2, 18), (300, 100)] {
            screen(&mut state, width, height);
        }
    }
}

#[test]
fn control_sequences_of_tools_are_harmless() {
    let mut state = busy();
    let seen = screen(&mut state, 100, 32);
    assert!(!seen.contains('\u{1b}') && seen.contains("hello·]0;title·"), "{seen}");
    press(&mut state, KeyCode::End);
    press(&mut state, KeyCode::Enter);
    let seen = screen(&mut state, 100, 32);
    assert!(!seen.contains('\u{1b}') && seen.contains("no·[2J"), "{seen}");
}

#[test]
fn a_full_list_of_calls_says_of_how_many() {
    let mut state = busy();
    assert!(screen(&mut state, 100, 32).contains(" calls 3 "), "three of the fourteen are still known");
    let many: Vec<_> = (0..200).map(|number| call(&format!("many{number}"), "running", None)).collect();
    state.take(calls(&many));
    state.take(status(259));
    assert!(screen(&mut state, 100, 32).contains(" calls 200 of 260 "), "one is active");
}

#[test]
fn details_are_scrolled_to_their_end_and_back() {
    let mut state = busy();
    let error = format!("{} the end", "E".repeat(1500));
    state.take(calls(&[call("aaaaaaaaaaaa", "error", Some(&error))]));
    press(&mut state, KeyCode::Enter);
    let first = screen(&mut state, 60, 12);
    assert!(!first.contains("the end"), "{first}");
    (0..200).for_each(|_| drop(press(&mut state, KeyCode::Down)));
    let last = screen(&mut state, 60, 12);
    assert!(last.contains("the end"), "{last}");
    type_keys(&mut state, "k");
    assert_ne!(screen(&mut state, 60, 12), last);
    type_keys(&mut state, "j");
    assert!(screen(&mut state, 60, 60).contains("aaaaaaaaaaaa"), "where it fits whole there is nothing to scroll");
}

#[test]
fn what_ends_something_asks_first() {
    let mut state = busy();
    assert_eq!(type_keys(&mut state, "cn"), Step::Go);
    assert_eq!(type_keys(&mut state, "cy"), Step::Ask(Wish::Cancel { call: "aaaaaaaaaaaa".to_owned() }));
    assert!(state.question.is_none());
    press(&mut state, KeyCode::BackTab);
    assert_eq!(type_keys(&mut state, "ry"), Step::Ask(Wish::Restart { source: "/tools/text.py".to_owned() }));
    press(&mut state, KeyCode::End);
    assert_eq!(type_keys(&mut state, "dy"), Step::Ask(Wish::Drain { source: "/tools/bad.py".to_owned() }));
    assert_eq!(type_keys(&mut state, "c"), Step::Go);
    assert!(state.question.is_none() && state.remark().is_some(), "a worker cannot be cancelled");
}

#[test]
fn an_ended_call_cannot_be_cancelled() {
    let mut state = busy();
    press(&mut state, KeyCode::Down);
    type_keys(&mut state, "c");
    assert!(state.question.is_none() && state.remark().is_some());
    (0..9).for_each(|_| state.second());
    assert_eq!(state.remark(), None, "a remark passes");
}

#[test]
fn the_chosen_call_stays_chosen_where_others_come_and_end() {
    let mut state = busy();
    press(&mut state, KeyCode::Down);
    let chosen = state.calls.chosen().unwrap().key.clone();
    let others: Vec<_> = (0..9).map(|number| call(&format!("new{number}"), "running", None)).collect();
    state.take(calls(&[&others[..], &[call(&chosen, "complete", None)]].concat()));
    assert_eq!((state.calls.chosen().unwrap().key.as_str(), state.calls.at), (chosen.as_str(), 9));
    state.take(calls(&[]));
    assert!(state.calls.chosen().is_none());
    type_keys(&mut state, "c");
    press(&mut state, KeyCode::Enter);
    assert!(state.question.is_none() && state.details.is_none());
}

#[test]
fn keys_leave_and_suspend() {
    let mut state = busy();
    let control = |letter| Message::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    assert_eq!(state.take(control('z')), Step::Suspend);
    press(&mut state, KeyCode::Enter);
    assert_eq!(press(&mut state, KeyCode::Char('q')), Step::Go, "it closes the details");
    assert_eq!(press(&mut state, KeyCode::Char('q')), Step::Leave);
    type_keys(&mut state, "c");
    assert_eq!(state.take(control('c')), Step::Leave, "also instead of an answer");
    assert_eq!(state.take(Message::Closed), Step::Leave);
}

#[test]
fn a_tool_that_writes_much_does_not_fill_the_memory() {
    let mut state = State::default();
    for _ in 0..100 {
        let text = format!("{}\n", "x".repeat(2000)).repeat(100);
        state
            .take(event(json!({"event": "tool_output", "time_ms": 1, "call_id": "a", "tool_name": "t", "text": text})));
    }
    assert_eq!(state.events.len(), 500);
    assert!(state.events.iter().all(|line| line.what.chars().count() <= 1000));
    press(&mut state, KeyCode::Tab);
    press(&mut state, KeyCode::Home);
    assert_eq!(state.back, 499);
    screen(&mut state, 80, 24);
}

#[test]
fn a_hostler_that_ends_is_said_and_the_next_one_seen() {
    let mut state = busy();
    state.take(Message::Gone("no shared hostler is running".to_owned()));
    assert!(screen(&mut state, 100, 32).contains("no shared hostler is running"));
    state.take(status(0));
    assert!(screen(&mut state, 100, 32).contains("process 42"));
}
