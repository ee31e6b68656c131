//! Lines that look like messages and cannot be read: half a character, a number beyond every type, too many levels, bytes
//! that are no text. rmcp passes over them in silence, and whoever sent one would wait for ever.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::{TOO_DEEP, deep_argument, is_too_deep, keys_to_the_depth};

/// JSON-RPC's word for it.
const PARSE_ERROR: i64 = -32700;
const INVALID_PARAMS: i64 = -32602;

/// The answer to a line that cannot be read; none for one that can, or that was never meant to be a message.
pub(super) fn answer(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii();
    if !line.starts_with(b"{") {
        return None;
    }
    let error = match serde_json::from_slice::<Value>(line) {
        Ok(message) => return by_place(&message),
        Err(error) => error,
    };
    let message = if is_too_deep(&error) {
        match &keys_to_the_depth(line, 3)[..] {
            [params, arguments, name] if params == "params" && arguments == "arguments" => deep_argument(name),
            _ => format!("this message is {TOO_DEEP}; flatten it"),
        }
    } else {
        format!(
            "this message cannot be read as JSON: {error}. Send UTF-8 without halves of characters, and numbers that fit a \
             double"
        )
    };
    let answer = json!({"jsonrpc": "2.0", "id": id(line), "error": {"code": PARSE_ERROR, "message": message}});
    Some((answer.to_string() + "\n").into_bytes())
}

/// The answer to a request whose parameters are a list, which JSON-RPC has and MCP has not.
fn by_place(message: &Value) -> Option<Vec<u8>> {
    let (id, method) = (message.get("id")?, message.get("method")?);
    message.get("params")?.as_array()?;
    let text = format!("the params of {method} are an object, not a list");
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": INVALID_PARAMS, "message": text}});
    Some((answer.to_string() + "\n").into_bytes())
}

/// The message's own id, as far as it can be made out. One deeper within is somebody else's.
fn id(line: &[u8]) -> Value {
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
                    return value(rest).unwrap_or(Value::Null);
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

/// A number or a string at the beginning of a text.
fn value(text: &[u8]) -> Option<Value> {
    let first = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>().next()?.ok()?;
    serde_json::from_str(first.get()).ok().filter(|value: &Value| value.is_number() || value.is_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str) -> Option<Value> {
        Some(serde_json::from_slice(&answer(line.as_bytes())?).unwrap())
    }

    #[test]
    fn what_cannot_be_read_is_answered_under_its_id() {
        let deep = format!(r#"{{"id":"d","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"params":"\ud800"}"#, json!(7)),
            (r#"{"params":{"x":1e400},"jsonrpc":"2.0","id":"last"}"#, json!("last")),
            (deep.as_str(), json!("d")),
            (r#"{"params":{"id":3,"text":"\ud800 \"id\":4"},"id" : 5}"#, json!(5)),
            (r#"{"id":[1],"x":}"#, Value::Null),
            ("{", Value::Null),
        ] {
            let answer = answered(line).unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(PARSE_ERROR)), "{line}");
        }
        assert!(answer(b"{\"id\":3,\"x\":\"\xff\"}").is_some());
    }

    #[test]
    fn what_is_too_deep_is_told_with_the_name_of_the_argument() {
        let deep = format!("{}{}", "[".repeat(125), "]".repeat(125));
        let call = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"f","arguments":{{"x":{deep}}}}}}}"#);
        let told = |line: &str| answered(line).unwrap()["error"]["message"].clone();
        assert_eq!(told(&call), "`x` is nested deeper than about 120 levels; flatten it");
        let other = format!(r#"{{"id":1,"params":{{"_meta":{{"x":[{deep}]}}}}}}"#);
        assert_eq!(told(&other), "this message is nested deeper than about 120 levels; flatten it");
    }

    #[test]
    fn messages_and_noise_are_not() {
        for line in [r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, "", "   ", "npm warn something", "[1"] {
            assert!(answered(line).is_none(), "{line}");
        }
    }
}
