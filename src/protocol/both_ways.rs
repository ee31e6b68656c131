//! Property tests: the fast path of the frame parser agrees with the slow one. A leading blank disables the fast path.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{CallFrame, Incoming, TraceContext, parse};

/// The parsed frame; `None` if the line is not a frame.
fn said(line: &[u8]) -> Option<String> {
    parse(line).ok().map(|frame| format!("{frame:?}"))
}

fn hold(line: &[u8]) {
    let shown = String::from_utf8_lossy(line);
    assert_eq!(said(line), said(&[b" ", line].concat()), "{shown}");
    let Ok(Incoming::Reply { id, answer: Ok(result) }) = parse(line) else { return };
    // Members that hostler ignores may hold any bytes.
    let Ok(text) = str::from_utf8(line) else { return };
    let plainly: BTreeMap<String, &RawValue> = serde_json::from_str(text).expect("a frame is an object");
    let text = |name: &str| plainly.get(name).map(|value| value.get());
    // `1.0` equals `1`, within the precision of floats.
    let digits = text("id").map(|digits| match digits.parse::<f64>() {
        Ok(float) if float < 9_007_199_254_740_992.0 => float.abs().to_string(),
        _ => digits.to_owned(),
    });
    assert_eq!((digits, text("result")), (Some(id.to_string()), Some(result.get())), "{shown}");
}

fn spaces() -> &'static str {
    "[ \t\r]{0,2}"
}

/// JSON text with every kind of whitespace, number and escape.
fn texts() -> impl Strategy<Value = String> {
    let string = r#""([a-z\{\}\[\]:, é🚂]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,6}""#;
    let number = "-?(0|[1-9][0-9]{0,25})([.][0-9]{1,3})?([eE][+-]?[0-9]{1,3})?";
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".to_owned()), string, number];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let item = (spaces(), inner, spaces()).prop_map(|(before, text, after)| format!("{before}{text}{after}"));
        let member = (string, item.clone()).prop_map(|(name, item)| format!("{name}:{item}"));
        prop_oneof![
            prop::collection::vec(item, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

fn ids() -> impl Strategy<Value = String> {
    let odd = ["", "00", "007", "-0", "-1", "1.0", "1e2", "+1", "18446744073709551615", "18446744073709551616", "null"];
    prop_oneof![any::<u16>().prop_map(|id| id.to_string()), prop::sample::select(odd.to_vec()).prop_map(str::to_owned)]
}

/// Frames in the usual form, and variants that mean the same or nearly the same.
fn frames() -> impl Strategy<Value = String> {
    let plain = (ids(), spaces(), texts(), spaces()).prop_map(|(id, before, text, after)| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{before}{text}{after}}}"#)
    });
    let names = ["jsonrpc", "id", "result", "error", "method", "params", "note", "r\\u0065sult"];
    let value = prop_oneof![
        texts(),
        ids(),
        Just("\"output\"".to_owned()),
        Just("\"host.call\"".to_owned()),
        Just(r#"{"code":-32000,"message":"no"}"#.to_owned()),
    ];
    let member = (prop::sample::select(names.to_vec()), spaces(), value)
        .prop_map(|(name, space, value)| format!("\"{name}\"{space}:{space}{value}"));
    let reply = (ids(), texts()).prop_map(|(id, text)| [format!("\"id\": {id}"), format!("\"result\":{text}")]);
    let any = (reply, prop::collection::vec(member, 0..3))
        .prop_map(|(reply, more)| reply.into_iter().chain(more).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(|members| format!("{{{}}}", members.join(",")));
    prop_oneof![2 => plain, 1 => any]
}

/// A line with one byte removed, inserted or replaced, or truncated.
fn slightly_wrong() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![prop::sample::select(b"{}[]\",:\\0 \t\n-e.u".to_vec()), any::<u8>()];
    (frames(), any::<prop::sample::Index>(), bytes, 0..4).prop_map(|(frame, place, byte, what)| {
        let mut line = frame.into_bytes();
        let place = place.index(line.len());
        match what {
            0 => drop(line.remove(place)),
            1 => line.insert(place, byte),
            2 => line[place] = byte,
            _ => line.truncate(place),
        }
        line
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_paths_parse_a_frame_equally(frame in frames()) {
        hold(frame.as_bytes());
    }

    #[test]
    fn both_paths_refuse_the_same_lines(line in slightly_wrong()) {
        hold(&line);
    }

    #[test]
    fn a_call_is_one_line_and_keeps_its_parts(
        function in "\\PC{0,8}", call_id in ".{0,8}", name in ".{0,4}", number in any::<i64>(), id in any::<u64>(),
        trace in proptest::option::of("[0-9a-f]{15}[1-9a-f]"), tags in proptest::collection::vec(".{0,4}", 0..3)
    ) {
        let value = json!({ name: [number, {"deep": [null, 1.5]}] });
        let kwargs = RawValue::from_string(serde_json::to_string_pretty(&value).unwrap()).unwrap();
        let (config, secrets) = (&*kwargs, &*kwargs);
        let state = trace.is_some().then_some("a=\"1\"");
        let trace = trace.and_then(|span| TraceContext::read(&format!("00-{span}{span}-{span}-01"), state));
        let (trace, tags) = (trace.as_ref(), &*tags);
        let call = CallFrame {
            id, function: &function, kwargs: &kwargs, config, secrets, call_id: &call_id, deadline_ms: id, trace, tags,
            session: 7,
        };
        let line = call.frame();
        prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        let read: Value = serde_json::from_slice(&line).unwrap();
        let mut wanted = json!({
            "function": function, "kwargs": value, "config": value, "secrets": value,
            "call": {"id": call_id, "deadline_ms": id, "trace": trace.map(TraceContext::traceparent), "tags": tags, "session": "0000000000000007"},
        });
        if trace.is_some() {
            wanted["call"]["tracestate"] = json!("a=\"1\"");
        }
        prop_assert_eq!((&read["id"], &read["params"]), (&json!(id), &wanted));
    }
}

#[test]
fn both_paths_agree_on_json_that_parsers_refuse() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for result in [r#""\ud800""#, "1e400", r#"{"a":1,"a":2}"#, &deep, "007", "NaN", "\"\u{2028}\"", "\"\0\""] {
        hold(format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#).as_bytes());
    }
    hold(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}");
    hold(br#"{"jsonrpc":"2.0","id":7,"result":1,"result":2}"#);
}
