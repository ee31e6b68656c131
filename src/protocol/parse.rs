//! The parser of a worker's lines.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Number;
use serde_json::value::RawValue;

use super::{HostMethod, Incoming, WireError, wire_code};

/// A line that is not a frame of this protocol.
#[derive(Debug, thiserror::Error)]
#[error("not a frame of protocol v1: {0}")]
pub struct BadFrame(pub String);

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Distinguishes a `null` result from a missing one.
pub(super) fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&'de RawValue>::deserialize(deserializer).map(Some)
}

/// Parses one line (without its newline).
pub fn parse(line: &[u8]) -> Result<Incoming, BadFrame> {
    if let Some(reply) = parse_plain_result(line) {
        return Ok(reply);
    }
    // Serde would read a list as the members in order; a list is output of the tool.
    if line.trim_ascii_start().first() == Some(&b'[') {
        return Err(BadFrame("a list".to_owned()));
    }
    let frame: Frame<'_> = serde_json::from_slice(line).map_err(|error| BadFrame(error.to_string()))?;
    if let Some(method) = frame.method {
        return parse_method(&method, frame.id, frame.params);
    }
    let number = frame.id.and_then(|id| whole_of(id.get()));
    let Some(id) = number else { return unnumbered(&frame) };
    match (frame.result, frame.error) {
        (_, Some(error)) => Ok(Incoming::Reply { id, answer: Err(read_error(error)) }),
        (Some(result), None) => Ok(Incoming::Reply { id, answer: Ok(result.to_owned()) }),
        // Output of a tool or its children may have its own `id`.
        (None, None) if frame.jsonrpc.is_none() => Err(BadFrame("neither method, result nor error".to_owned())),
        // A Node program that returns undefined writes this. It ends the call like an unreadable error.
        (None, None) => {
            Ok(wrong(id, "its answer has neither `result` nor `error`; write `\"result\":null` for no result"))
        }
    }
}

/// An invalid answer still ends its call, which would otherwise time out.
fn wrong(id: u64, message: &str) -> Incoming {
    let error = WireError { code: wire_code::INVALID_OUTPUT, message: message.to_owned(), data: None };
    Incoming::Reply { id, answer: Err(error) }
}

/// A reply needs a numeric id; a numeric string gets an error that says so.
fn unnumbered(frame: &Frame<'_>) -> Result<Incoming, BadFrame> {
    let digits = frame.id.and_then(|id| id.get().strip_prefix('"')?.strip_suffix('"'));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(id) if frame.jsonrpc.is_some() => {
            Ok(wrong(id, "the `id` of its answer is a string; write it as the number in the call"))
        }
        _ => Err(BadFrame("a reply without a number as its id".to_owned())),
    }
}

/// An unreadable error still ends its call.
fn read_error(error: &RawValue) -> WireError {
    serde_json::from_str(error.get()).unwrap_or_else(|reason| {
        let message = format!("the call failed, and its worker's error is unreadable: {reason}");
        WireError { code: wire_code::TOOL_RAISED, message, data: None }
    })
}

const PLAIN: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";

/// The fast path for the usual shape, without a map of fields. The result is still checked to be JSON.
fn parse_plain_result(line: &[u8]) -> Option<Incoming> {
    let (id, rest) = plain_id(line)?;
    let result = rest.strip_prefix(b",\"result\":")?.strip_suffix(b"}")?;
    let result: Box<RawValue> = serde_json::from_slice(result).ok()?;
    Some(Incoming::Reply { id, answer: Ok(result) })
}

fn parse_method(method: &str, id: Option<&RawValue>, params: Option<&RawValue>) -> Result<Incoming, BadFrame> {
    let text = params.map_or("{}", RawValue::get);
    let bad = |error: serde_json::Error| BadFrame(format!("{method}: {error}"));
    match (method, id) {
        ("output", None) => serde_json::from_str(text).map(Incoming::Output).map_err(bad),
        ("progress", None) => serde_json::from_str(text).map(Incoming::Progress).map_err(bad),
        ("dropped", None) => serde_json::from_str(text).map(Incoming::Dropped).map_err(bad),
        ("described", None) => serde_json::from_str(text).map(Incoming::Described).map_err(bad),
        (_, None) => Ok(Incoming::Unknown(method.to_owned())),
        (_, Some(id)) => {
            let Some(method) = HostMethod::from_name(method) else {
                return Ok(Incoming::UnknownRequest { id: id.to_owned(), method: method.to_owned() });
            };
            let params = params.map_or_else(|| RawValue::NULL.to_owned(), ToOwned::to_owned);
            Ok(Incoming::Ask { id: id.to_owned(), call: asking(text), method, params })
        }
    }
}

/// The call that a worker's request belongs to.
fn asking(params: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default, deserialize_with = "maybe_whole")]
        id: Option<u64>,
    }
    serde_json::from_str::<Params>(params).ok()?.id
}

/// The call that a line answers though it is not valid: `"result": NaN`, text that is not UTF-8, a member twice. Without
/// this, such a call would run into its time limit.
pub fn id_of_answer(line: &[u8]) -> Option<u64> {
    let has = |part: &[u8]| line.windows(part.len()).any(|window| window == part);
    let is_answer = line.trim_ascii_start().starts_with(b"{")
        && has(b"\"jsonrpc\"")
        && !has(b"\"method\"")
        && (has(b"\"result\"") || has(b"\"error\""));
    if !is_answer {
        return None;
    }
    let key = b"\"id\"";
    let after = line.windows(key.len()).position(|window| window == key)? + key.len();
    let rest = line[after..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

/// The answer of a call whose own answer is not valid.
pub fn invalid_answer(id: u64, error: &BadFrame) -> Incoming {
    wrong(id, &format!("its answer is not valid JSON: {}", error.0))
}

/// The reply id at the beginning of a frame that is too long to read.
pub fn peek_id(beginning: &[u8]) -> Option<u64> {
    plain_id(beginning).map(|(id, _)| id)
}

/// The id of a frame in the usual shape, and the rest of the frame.
fn plain_id(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.strip_prefix(PLAIN)?;
    let (digits, rest) = rest.split_at(rest.iter().position(|byte| !byte.is_ascii_digit())?);
    // JSON has no numbers with leading zeros.
    if digits.len() > 1 && digits.starts_with(b"0") {
        return None;
    }
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

/// The whole number that a JSON text represents.
pub(super) fn whole_of(text: &str) -> Option<u64> {
    /// From here on floats do not represent every whole number.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let number: f64 = text.parse().ok().filter(|number| (0.0..LARGEST).contains(number) && number.fract() == 0.0)?;
    format!("{number}").parse().ok()
}

/// A whole-number field.
pub(super) fn whole<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    read(&Number::deserialize(deserializer)?)
}

/// A whole-number field, or `null`.
pub(super) fn maybe_whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::<Number>::deserialize(deserializer)?.as_ref().map(read).transpose()
}

fn read<T: TryFrom<u64>, E: Error>(number: &Number) -> Result<T, E> {
    let whole = number.as_u64().or_else(|| whole_of(&number.to_string()));
    let fitting = whole.and_then(|whole| T::try_from(whole).ok());
    fitting.ok_or_else(|| E::custom(format_args!("expected a whole number in range, got {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(line: &str) -> (u64, String) {
        match parse(line.as_bytes()).unwrap() {
            Incoming::Reply { id, answer: Ok(result) } => (id, result.get().to_owned()),
            other => panic!("not a reply: {other:?}"),
        }
    }

    #[test]
    fn a_result_is_read_in_any_order_of_fields() {
        assert_eq!(reply(r#"{"jsonrpc":"2.0","id":7,"result":[1,2]}"#), (7, "[1,2]".to_owned()));
        assert_eq!(reply(r#"{ "result" : [1,2] , "id" : 7 }"#), (7, "[1,2]".to_owned()));
        assert_eq!(reply(r#"{"jsonrpc":"2.0","id":7,"result":1,"note":2}"#), (7, "1".to_owned()));
    }

    #[test]
    fn an_id_returned_as_a_float_is_the_same_number() {
        for id in ["7.0", "7e0", "0.7e1"] {
            assert_eq!(reply(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#)), (7, "1".to_owned()), "{id}");
        }
        assert_eq!(reply(r#"{"id":0.0,"result":1}"#).0, 0);
        for id in ["7.5", "-1.0", "1e300", "9007199254740993.0", "\"7\"", "true"] {
            assert!(parse(format!(r#"{{"id":{id},"result":1}}"#).as_bytes()).is_err(), "{id}");
        }
    }

    #[test]
    fn an_id_returned_as_a_string_fails_its_call() {
        let line = r#"{"jsonrpc":"2.0","id":"7","result":1}"#;
        let Ok(Incoming::Reply { id: 7, answer: Err(wrong) }) = parse(line.as_bytes()) else { panic!("no answer") };
        assert_eq!(wrong.code, wire_code::INVALID_OUTPUT);
        assert!(wrong.message.contains("write it as the number"), "{}", wrong.message);
    }

    #[test]
    fn null_is_a_result() {
        assert_eq!(reply(r#"{"id":1,"result":null}"#).1, "null");
        assert_eq!(reply(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).1, "null");
    }

    #[test]
    fn a_request_names_its_call() {
        let asked = |params| match parse(format!(r#"{{"id":"w1","method":"host.tools","params":{params}}}"#).as_bytes())
        {
            Ok(Incoming::Ask { call, .. }) => call,
            other => panic!("no question: {other:?}"),
        };
        assert_eq!([asked(r#"{"id":7}"#), asked(r#"{"id":"x"}"#), asked("{}")], [Some(7), None, None]);
        assert_eq!([asked(r#"{"id":7.0}"#), asked(r#"{"id":null}"#)], [Some(7), None]);
    }

    #[test]
    fn a_note_may_name_its_call_by_a_float() {
        let note = |line: &str| match parse(line.as_bytes()).unwrap() {
            Incoming::Output(note) => note.id,
            Incoming::Progress(note) => note.id,
            Incoming::Dropped(note) => note.id.filter(|_| note.fields == ["Sub.a"]),
            other => panic!("no note: {other:?}"),
        };
        assert_eq!(note(r#"{"method":"progress","params":{"id":7.0,"progress":1}}"#), Some(7));
        assert_eq!(note(r#"{"method":"dropped","params":{"id":7,"fields":["Sub.a"]}}"#), Some(7));
        assert_eq!(note(r#"{"method":"output","params":{"id":7.0,"text":""}}"#), Some(7));
        assert_eq!(note(r#"{"method":"output","params":{"id":null,"text":""}}"#), None);
        assert_eq!(note(r#"{"method":"output","params":{"text":""}}"#), None);
    }

    #[test]
    fn noise_is_refused_with_a_reason() {
        for line in [
            "",
            "hello",
            "{}",
            "[1]",
            "[1,null,null,2]",
            r#"{"id":"x","result":1}"#,
            r#"{"userId":1,"id":1,"title":"printed by a child"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":}"#,
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn an_unreadable_error_still_ends_its_call() {
        let deep = format!("{{\"code\":-32000,\"message\":\"no\",\"data\":{}1{}}}", "[".repeat(500), "]".repeat(500));
        for error in
            ["\"no\"", r#"{"code":-32000,"message":"\ud800"}"#, r#"{"code":1,"message":"","data":1e400}"#, &deep]
        {
            let Ok(Incoming::Reply { id: 7, answer: Err(read) }) =
                parse(format!(r#"{{"id":7,"error":{error}}}"#).as_bytes())
            else {
                panic!("no answer: {error}")
            };
            assert_eq!(read.code, wire_code::TOOL_RAISED);
            assert!(
                read.message.starts_with("the call failed, and its worker's error is unreadable: "),
                "{}",
                read.message
            );
        }
    }

    #[test]
    fn unknown_notifications_are_ignored_and_unknown_requests_are_returned() {
        assert!(matches!(parse(br#"{"method":"sparkle"}"#), Ok(Incoming::Unknown(_))));
        let Ok(Incoming::UnknownRequest { id, method }) = parse(br#"{"id":"w1","method":"sparkle"}"#) else {
            panic!("the worker waits for an answer")
        };
        assert_eq!((id.get(), method.as_str()), ("\"w1\"", "sparkle"));
    }

    #[test]
    fn the_id_of_an_overlong_frame_is_read_from_its_beginning() {
        assert_eq!(peek_id(br#"{"jsonrpc":"2.0","id":42,"result":"aaaa"#), Some(42));
        assert_eq!(peek_id(b"aaaa"), None);
    }
}
