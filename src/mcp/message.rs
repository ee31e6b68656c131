//! JSON-RPC lines: parsing, writing, and the answer to a line that cannot be parsed.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, RequestId};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::{TOO_DEEP, deep_argument, is_too_deep, keys_to_the_depth};

/// A line from the client.
pub(super) enum Incoming<'a> {
    /// Expects an answer.
    Request { id: RequestId, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// Expects no answer.
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// Answers one of our requests.
    Response { id: RequestId, answer: Result<&'a RawValue, &'a RawValue> },
    /// Not meant as a message: the output of a shell or of a package manager.
    Noise,
    /// Cannot be parsed; the answer to it.
    Unreadable(Vec<u8>),
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Method<'a>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// Borrowed unless it contains escapes, as serde does for a `Cow` that is not in an `Option`.
#[derive(Deserialize)]
struct Method<'a>(#[serde(borrow)] Cow<'a, str>);

/// A member that is present, even if it is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parses a line.
pub(super) fn parse(line: &[u8]) -> Incoming<'_> {
    let line = line.trim_ascii();
    if line.starts_with(b"[") && serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(line).is_ok() {
        return Incoming::Unreadable(invalid(
            &Value::Null,
            "batches are not supported: send each message on a line of its own",
        ));
    }
    if !line.starts_with(b"{") {
        return Incoming::Noise;
    }
    let Ok(text) = std::str::from_utf8(line) else { return Incoming::Unreadable(unreadable(line, None)) };
    let Line { id, method, params, result, error } = match serde_json::from_str(text) {
        Ok(parsed) => parsed,
        Err(error) => return Incoming::Unreadable(unreadable(line, Some(&error))),
    };
    let known = id.filter(|id| id.get() != "null").map(|id| serde_json::from_str::<RequestId>(id.get()));
    match (method, known) {
        (Some(Method(method)), Some(Ok(id))) => Incoming::Request { id, method, params },
        (Some(Method(method)), None) => Incoming::Notification { method, params },
        (None, Some(Ok(id))) if result.is_some() || error.is_some() => {
            Incoming::Response { id, answer: error.map_or_else(|| Ok(result.unwrap_or(RawValue::NULL)), Err) }
        }
        (_, Some(Err(_))) => {
            Incoming::Unreadable(invalid(&Value::Null, "the id of a request is a string or an integer"))
        }
        (None, _) => {
            let id = id.and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or_default();
            Incoming::Unreadable(invalid(&id, "a message has a `method`, or a `result` or `error`"))
        }
    }
}

/// The parameters of a request. Missing parameters are an empty object.
pub(super) fn params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, serde_json::Error> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        // serde would fill a struct's fields from a list, in order.
        return Err(serde::de::Error::custom("the params are an object"));
    }
    serde_json::from_str(text)
}

#[derive(Serialize)]
struct Reply<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorData>,
}

/// A result as a line.
pub(super) fn result(id: &RequestId, result: impl Serialize) -> Vec<u8> {
    line(&Reply { jsonrpc: "2.0", id, result: Some(result), error: None })
}

/// An error as a line.
pub(super) fn error(id: &RequestId, error: &ErrorData) -> Vec<u8> {
    line(&Reply::<()> { jsonrpc: "2.0", id, result: None, error: Some(error) })
}

/// A notification as a line.
pub(super) fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: P,
    }
    line(&Notification { jsonrpc: "2.0", method, params })
}

/// One of our requests as a line.
pub(super) fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: P,
    }
    line(&Request { jsonrpc: "2.0", id, method, params })
}

fn line(message: &impl Serialize) -> Vec<u8> {
    // Most answers fit, and need no second allocation.
    let mut line = Vec::with_capacity(512);
    if serde_json::to_writer(&mut line, message).is_err() {
        line.clear();
    }
    line.push(b'\n');
    line
}

/// The answer to a line that is not valid JSON. Without an answer, its sender would wait forever.
fn unreadable(line: &[u8], error: Option<&serde_json::Error>) -> Vec<u8> {
    let message = match error {
        Some(error) if is_too_deep(error) => too_deep(line),
        Some(error) => {
            format!("this message is not valid JSON: {error}; use whole characters and numbers that fit a double")
        }
        None => "this message is not UTF-8".to_owned(),
    };
    answer(&id_of(line), ErrorCode::PARSE_ERROR, &message)
}

/// The error for a message that is nested too deeply, with the argument that it is in if that is known.
pub(super) fn too_deep(line: &[u8]) -> String {
    match &keys_to_the_depth(line, 3)[..] {
        [params, arguments, name] if params == "params" && arguments == "arguments" => deep_argument(name),
        _ => format!("this message is {TOO_DEEP}; flatten it"),
    }
}

/// The answer to a line that exceeds the limit for messages; `begin` is the beginning of the line.
pub(super) fn oversized(begin: &[u8], most: usize) -> Vec<u8> {
    answer(&id_of(begin), ErrorCode::INVALID_REQUEST, &format!("this message is longer than {} MB", most >> 20))
}

/// The answer to a line whose middle a killed process had read.
pub(super) fn interrupted(begin: &[u8]) -> Vec<u8> {
    answer(&id_of(begin), ErrorCode::INTERNAL_ERROR, "hostler was killed while this message arrived; repeat it")
}

/// The answer to a request that a shared hostler could not answer if it were killed.
pub(super) fn unrecorded(id: &RequestId) -> Vec<u8> {
    let text = "this request has an id of more than 200 bytes, or 4096 requests are open";
    answer(&json!(id), ErrorCode::INVALID_REQUEST, text)
}

fn invalid(id: &Value, message: &str) -> Vec<u8> {
    answer(id, ErrorCode::INVALID_REQUEST, message)
}

fn answer(id: &Value, code: ErrorCode, message: &str) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

/// The message's own id, if it can be found. An id at a deeper level belongs to something else.
fn id_of(line: &[u8]) -> Value {
    let (mut depth, mut string, mut escaped) = (0_usize, None, false);
    for (at, byte) in line.iter().enumerate() {
        match (string, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(begin), b'"') => {
                string = None;
                let rest = line[at + 1..].trim_ascii_start();
                if depth == 1
                    && &line[begin..at] == b"id"
                    && let Some(rest) = rest.strip_prefix(b":")
                {
                    return first_value(rest).unwrap_or(Value::Null);
                }
            }
            (None, b'"') => string = Some(at + 1),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Value::Null
}

/// A number or a string at the beginning of the text.
fn first_value(text: &[u8]) -> Option<Value> {
    let first = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>().next()?.ok()?;
    serde_json::from_str(first.get()).ok().filter(|value: &Value| value.is_number() || value.is_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str) -> Option<Value> {
        match parse(line.as_bytes()) {
            Incoming::Unreadable(answer) => Some(serde_json::from_slice(&answer).unwrap()),
            _ => None,
        }
    }

    #[test]
    fn an_unreadable_line_is_answered_under_its_id() {
        let parse_error = json!(ErrorCode::PARSE_ERROR);
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"params":"\x"}"#, json!(7)),
            (r#"{"params":{"id":3,"text":"\" \"id\":4"},"id" : 5"#, json!(5)),
            ("{", Value::Null),
        ] {
            let answer = answered(line).unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &parse_error), "{line}");
        }
        assert!(matches!(parse(b"{\"id\":3,\"x\":\"\xff\"}"), Incoming::Unreadable(_)));
    }

    #[test]
    fn a_message_of_no_kind_is_an_invalid_request() {
        let invalid = json!(ErrorCode::INVALID_REQUEST);
        for (line, id) in
            [(r#"{"id":7}"#, json!(7)), (r#"{"id":[1],"method":"ping"}"#, Value::Null), ("{}", Value::Null)]
        {
            let answer = answered(line).unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &invalid), "{line}");
        }
    }

    #[test]
    fn requests_notifications_responses_and_noise_are_told_apart() {
        assert!(
            matches!(parse(br#"{"method":"ping","id":"x"}"#), Incoming::Request { method, .. } if method == "ping")
        );
        assert!(matches!(parse(br#"{"method":"a","id":null}"#), Incoming::Notification { .. }));
        assert!(matches!(parse(br#"{"id":1,"result":null}"#), Incoming::Response { answer: Ok(_), .. }));
        assert!(matches!(parse(br#"{"id":1,"error":{}}"#), Incoming::Response { answer: Err(_), .. }));
        assert!(matches!(parse(br#"[{"method":"ping","id":1}]"#), Incoming::Unreadable(_)), "a batch");
        for line in ["", "   ", "npm warn something", "[1"] {
            assert!(matches!(parse(line.as_bytes()), Incoming::Noise), "{line}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_answered_under_its_id() {
        let answer: Value =
            serde_json::from_slice(&oversized(br#"{"jsonrpc":"2.0","id":9,"params":{"x":"aaaa"#, 1 << 20)).unwrap();
        assert_eq!(answer["id"], 9);
    }
}
