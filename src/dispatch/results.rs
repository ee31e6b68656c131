//! Results against what the function's annotation promises: clients have been told, and some refuse what breaks it.

use jsonschema::error::ValidationErrorKind;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::validate::{place, types};
use crate::outcome::{Code, Fault, each_file, may_hold_files, without_bytes};
use crate::registry::Tool;

/// Passes a result on, unchanged, when it is what the tool's output schema says.
pub(super) fn check(tool: &Tool, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    let Some(promised) = tool.promised_schema() else { return Ok(raw) };
    let wrapped = promised.get("properties").and_then(|all| all.get("result"));
    if wrapped.is_some_and(|schema| is_plainly(schema, raw.get())) {
        return Ok(raw);
    }
    let Some(validator) = tool.result_validator() else { return Ok(raw) };
    let Ok(mut result) = serde_json::from_str::<Value>(raw.get()) else { return Ok(raw) };
    if may_hold_files(raw.get()) {
        // As clients get it.
        each_file(&mut result, &mut |object| without_bytes(object, 1));
    }
    let structured = if result.is_object() { result } else { json!({ "result": result }) };
    let Some(error) = validator.iter_errors(&structured).next() else { return Ok(raw) };
    if tool.entry.is_only_remembered() {
        return Ok(raw);
    }
    let at = place(&error.instance_path().to_string());
    let at = if at.is_empty() || at.starts_with("result") { at } else { format!("result.{at}") };
    let at = if at.is_empty() { "result" } else { &at };
    let wrong = match error.kind() {
        ValidationErrorKind::Type { kind } => {
            format!("is to be {}, and {} came", types(kind), kind_of(error.instance()))
        }
        ValidationErrorKind::Required { property } => format!("has no {property}"),
        ValidationErrorKind::Enum { options } => format!("is none of {options}"),
        kind => format!("breaks `{}`", kind.keyword()),
    };
    let message = format!(
        "{} returned something else than its annotation says: `{at}` {wrong}; return what the annotation says, or correct \
         or remove the annotation",
        tool.name
    );
    Err(Fault::new(Code::InvalidOutput, message))
}

/// What came, without saying it: a fault goes to logs, and a result may hold what must not.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether a glance at the text is enough: most results are of one plain type, and need not be read.
fn is_plainly(schema: &Value, text: &str) -> bool {
    let Some(kind) = schema.get("type").and_then(Value::as_str) else { return false };
    let is_bare = schema.as_object().is_some_and(|all| all.keys().all(|key| PLAIN_KEYS.contains(&key.as_str())));
    let first = text.bytes().next().unwrap_or_default();
    is_bare
        && match kind {
            "string" => first == b'"',
            "boolean" => matches!(first, b't' | b'f'),
            "null" => first == b'n',
            "array" => first == b'[',
            "number" => first == b'-' || first.is_ascii_digit(),
            "integer" => text.bytes().enumerate().all(|(at, byte)| byte.is_ascii_digit() || at == 0 && byte == b'-'),
            _ => false,
        }
}

/// Keywords that do not narrow a type.
const PLAIN_KEYS: [&str; 5] = ["type", "description", "format", "contentEncoding", "title"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glance_tells_plain_results_and_never_lets_another_pass() {
        let plain = |schema: Value, text: &str| is_plainly(&schema, text);
        assert!(plain(json!({"type": "integer", "description": "n"}), "-12"));
        assert!(plain(json!({"type": "string"}), "\"x\"") && plain(json!({"type": "array"}), "[1]"));
        assert!(plain(json!({"type": "number"}), "1.5") && plain(json!({"type": "null"}), "null"));
        assert!(!plain(json!({"type": "integer"}), "1.5") && !plain(json!({"type": "integer"}), "\"1\""));
        assert!(!plain(json!({"type": "string", "enum": ["x"]}), "\"y\""));
        assert!(!plain(json!({"type": "array", "items": {}}), "[1]") && !plain(json!({}), "1"));
    }
}
