//! The bare protocol: `{"function","kwargs","config","secrets"}` in, `{"result","error"}` out, one line each, one call at
//! a time.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::WireError;
use super::frame::{CallFrame, push_one_line, push_string};
use super::parse::present;
use super::wire_code;

/// A line from a bare worker.
#[derive(Debug)]
pub enum BareLine {
    /// The answer to its current call.
    Answer(Result<Box<RawValue>, WireError>),
    /// Anything else: output of the tool.
    Output,
}

/// A call as a line. It has no id: the next answer belongs to it.
pub fn bare_call(call: &CallFrame<'_>) -> Vec<u8> {
    let pieces = call.kwargs.get().len() + call.config.get().len() + call.secrets.get().len();
    let mut out = Vec::with_capacity(pieces + call.function.len() + 64);
    out.extend_from_slice(b"{\"function\":");
    push_string(&mut out, call.function);
    for (name, value) in [("kwargs", call.kwargs), ("config", call.config), ("secrets", call.secrets)] {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        push_one_line(&mut out, value.get());
    }
    out.extend_from_slice(b"}\n");
    out
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Parses one line (without its newline). An object with `result` or `error` is an answer, whatever else it holds.
pub fn parse_bare(line: &[u8]) -> BareLine {
    // A byte order mark, which some programs write first.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if !may_be_answer(line) {
        return BareLine::Output;
    }
    match serde_json::from_slice(line) {
        Err(error) if is_meant_as_answer(line) => {
            let text = String::from_utf8_lossy(line);
            let advice = match ["NaN", "Infinity"].iter().find(|word| text.contains(**word)) {
                Some(word) => format!("{word} is not valid JSON; use null or a string"),
                None => "write one object with `result` or `error` on a line of its own, in UTF-8".to_owned(),
            };
            let message = format!("the line is not JSON: {error}; {advice}");
            BareLine::Answer(Err(WireError { code: wire_code::INVALID_OUTPUT, message, data: None }))
        }
        Ok(Answer { result: None, error: None }) | Err(_) => BareLine::Output,
        Ok(Answer { result, error }) => BareLine::Answer(match error.and_then(message) {
            Some(message) => Err(WireError { code: wire_code::TOOL_RAISED, message, data: None }),
            None => Ok(result.unwrap_or(RawValue::NULL).to_owned()),
        }),
    }
}

/// Whether a line begins like an answer.
pub fn may_be_answer(line: &[u8]) -> bool {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii_start().starts_with(b"{")
}

/// Whether a line that is not JSON was intended as an answer: Python writes NaN, and some programs invalid UTF-8.
/// Treated as output, it would make the call time out.
fn is_meant_as_answer(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')).map(str::trim_start);
    inner.is_some_and(|inner| ["\"result\"", "\"error\""].iter().any(|key| inner.starts_with(key)))
}

/// The error message in `error`, if any. A value that is not a string is shown as JSON.
fn message(error: &RawValue) -> Option<String> {
    match serde_json::from_str(error.get()) {
        Ok(serde_json::Value::Null) => None,
        Ok(serde_json::Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
        Ok(serde_json::Value::Object(members)) => {
            let text = members.get("message").and_then(serde_json::Value::as_str);
            Some(text.unwrap_or(error.get()).to_owned())
        }
        _ => Some(error.get().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        match parse_bare(line.as_bytes()) {
            BareLine::Answer(Ok(result)) => format!("result {}", result.get()),
            BareLine::Answer(Err(error)) => format!("error {}", error.message),
            BareLine::Output => "output".to_owned(),
        }
    }

    #[test]
    fn a_call_is_one_line_with_four_members() {
        let kwargs = RawValue::from_string("{\n\"a\": \"x\\ny\"}".to_owned()).unwrap();
        let (config, secrets) = (RawValue::from_string("{\"k\":1}".to_owned()).unwrap(), "{\"KEY\":\"v\"}".to_owned());
        let secrets = RawValue::from_string(secrets).unwrap();
        let (function, call_id) = ("sea\"rch", "c1");
        let call = CallFrame {
            id: 7,
            function,
            kwargs: &kwargs,
            config: &config,
            secrets: &secrets,
            call_id,
            deadline_ms: 1,
            trace: None,
            tags: &[],
            session: 7,
        };
        let line = bare_call(&call);
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let expected = serde_json::json!({
            "function": "sea\"rch", "kwargs": {"a": "x\ny"}, "config": {"k": 1}, "secrets": {"KEY": "v"}
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn an_object_with_a_result_or_an_error_is_an_answer() {
        for (line, meaning) in [
            (r#"{"result": 1.50, "error": null}"#, "result 1.50"),
            (r#"{"result":null,"error":null}"#, "result null"),
            (r#"{"result":[1]}"#, "result [1]"),
            (r#" {"error":null,"ms":3}"#, "result null"),
            (r#"{"result":1,"error":""}"#, "result 1"),
            (r#"{"result":null,"error":"ValueError: no"}"#, "error ValueError: no"),
            (r#"{"result":1,"error":"no"}"#, "error no"),
            (r#"{"error":{"type":"E","message":"no"}}"#, "error no"),
            (r#"{"error":{"code":3}}"#, r#"error {"code":3}"#),
            (r#"{"error":false}"#, "error false"),
        ] {
            assert_eq!(read(line), meaning, "{line}");
        }
        let no_number = read(r#"{"result": [NaN], "error": null}"#);
        assert!(
            no_number.starts_with("error the line is not JSON") && no_number.contains("NaN is not valid JSON"),
            "{no_number}"
        );
        for (line, words) in [(&b"{\"result\":\"\xff\"}"[..], "UTF-8"), (b"{\"result\":1}{\"result\":2}", "one object")]
        {
            let BareLine::Answer(Err(error)) = parse_bare(line) else { panic!("expected an answer") };
            assert!(error.message.contains(words), "{}", error.message);
        }
        assert_eq!(read("\u{feff}{\"result\":1}"), "result 1");
    }

    #[test]
    fn every_other_line_is_output() {
        for line in ["", "hello", "7", "null", "[1]", "{}", r#"{"level":"info"}"#, r#"{"result":"#, "{broken}"] {
            assert_eq!(read(line), "output", "{line}");
        }
    }
}
