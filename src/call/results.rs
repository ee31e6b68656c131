//! Checks of results: valid JSON for common parsers, and a match with the function's annotation.

use jsonschema::error::ValidationErrorKind;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::nesting::{TOO_DEEP, is_too_deep};
use super::places::{declared_place, place};
use super::validate::types;
use crate::outcome::{Code, Details, Fault, each_file, may_hold_files, without_bytes};
use crate::registry::Tool;

/// Returns the result unchanged if common JSON parsers accept it and it matches the tool's output schema.
pub(super) fn check(tool: &Tool, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    readable(&tool.name, raw).and_then(|raw| matches_annotation(tool, raw))
}

fn matches_annotation(tool: &Tool, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    let Some(promised) = tool.promised_schema() else { return Ok(raw) };
    let wrapped = promised.get("properties").and_then(|all| all.get("result"));
    if wrapped.is_some_and(|schema| has_plain_type(schema, raw.get())) {
        return Ok(raw);
    }
    let Ok(mut result) = serde_json::from_str::<Value>(raw.get()) else { return Ok(raw) };
    if may_hold_files(raw.get()) {
        // As clients receive it.
        each_file(&mut result, &mut |object| without_bytes(object, 1));
    }
    let structured = if result.is_object() { result } else { json!({ "result": result }) };
    let mut failed = None;
    for check in tool.output_checks() {
        if check.validator.is_valid(&structured) {
            return Ok(raw);
        }
        failed = Some(check.validator);
    }
    let error = failed.and_then(|validator| validator.iter_errors(&structured).next());
    let Some(error) = error else { return Ok(raw) };
    let at = place(&error.instance_path().to_string());
    let at = if at.is_empty() || at.starts_with("result") { at } else { format!("result.{at}") };
    let at = if at.is_empty() { "result" } else { &at };
    let wrong = match error.kind() {
        ValidationErrorKind::Type { kind } => {
            format!("expected {}, got {}", types(kind), kind_of(error.instance()))
        }
        ValidationErrorKind::Required { property } => format!("missing {property}"),
        ValidationErrorKind::Enum { options } => format!("expected one of {options}"),
        kind => violated(kind, error.instance()),
    };
    let message = format!(
        "the result of {} does not match its annotation: `{at}`: {wrong}; return what the annotation says, correct it, or \
         set `validate = false` under [tool.{}] in hostler.toml",
        tool.name, tool.entry.file.pack
    );
    let places = vec![declared_place(error.evaluation_path().as_str())];
    Err(Fault::new(Code::InvalidOutput, message).with(Details { places, ..Details::default() }))
}

/// The limit that a result violates, without the value.
fn violated(kind: &ValidationErrorKind, got: &Value) -> String {
    use ValidationErrorKind as Kind;
    let items = got.as_array().map_or(0, Vec::len);
    let length = got.as_str().map_or(0, |text| text.chars().count());
    let entries = got.as_object().map_or(0, serde_json::Map::len);

    match kind {
        Kind::MaxItems { limit } | Kind::MinItems { limit } => {
            format!("expected {limit} items, got {items}")
        }
        Kind::AdditionalItems { limit } => format!("expected {limit} items, got {items}"),
        Kind::UniqueItems => "duplicate items; each must be unique".to_owned(),
        Kind::MaxLength { limit } => format!("expected at most {limit} characters, got {length}"),
        Kind::MinLength { limit } => format!("expected at least {limit} characters, got {length}"),
        Kind::MaxProperties { limit } => format!("expected at most {limit} entries, got {entries}"),
        Kind::MinProperties { limit } => format!("expected at least {limit} entries, got {entries}"),
        Kind::Maximum { limit } => format!("expected at most {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}"),
        Kind::Minimum { limit } => format!("expected at least {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("expected a match of `{pattern}`"),
        Kind::Format { format } => format!("expected the format {format}"),
        Kind::Constant { expected_value } => format!("expected {expected_value}"),
        // Keys may be secret too: keep them out of logs.
        Kind::AdditionalProperties { .. } => "entries that the annotation does not name".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("no type of the annotation matches {}", kind_of(got))
        }
        kind => format!("breaks `{}`", kind.keyword()),
    }
}

/// The kind of a value without its content: faults go to logs, and a result may hold secrets.
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

/// Whether the first bytes prove the type: most results have one plain type and need no parsing.
fn has_plain_type(schema: &Value, text: &str) -> bool {
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

/// Returns the result unchanged if its callers can read it.
fn readable(tool: &str, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    if is_readable(raw.get()) {
        return Ok(raw);
    }
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(_) => Ok(raw),
        Err(error) => {
            let message = if is_too_deep(&error) {
                format!("the result of {tool} is {TOO_DEEP}, more than callers can read; flatten it")
            } else {
                format!(
                    "the result of {tool} is JSON that its callers cannot read: {error}; return a simpler structure"
                )
            };
            Err(Fault::new(Code::InvalidOutput, message))
        }
    }
}

/// Whether a scan proves that every parser accepts the JSON: shallow, no exponents, no overlong numbers, no `\u`
/// escapes. Everything else is parsed.
fn is_readable(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped, mut last, mut digits) = (0_usize, false, false, 0_u8, 0_usize);
    for byte in json.bytes() {
        if in_string {
            if escaped && byte == b'u' {
                return false;
            }
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'e' | b'E' if last.is_ascii_digit() => return false,
                _ => {}
            }
            digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
            if depth > DEEPEST || digits > LONGEST {
                return false;
            }
        }
        last = byte;
    }
    true
}

/// JSON parsers stop somewhere beyond a hundred levels.
const DEEPEST: usize = 100;

/// Longer numbers may exceed 1.8e308, where many parsers refuse the whole answer.
const LONGEST: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Incoming, parse};

    #[test]
    fn a_violated_limit_names_the_limit_and_not_the_value() {
        let violation = |schema: Value, result: Value| {
            let error = jsonschema::validate(&schema, &result).unwrap_err();
            violated(error.kind(), error.instance())
        };
        let tuple =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}], "additionalItems": false});
        for (schema, result, words) in [
            (json!({"maxItems": 2}), json!([1, 2, 3]), "expected 2 items, got 3"),
            (json!({"minItems": 2}), json!([1]), "expected 2 items, got 1"),
            (json!({"minItems": 1}), json!([]), "expected 1 items, got 0"),
            (tuple, json!([1, 2]), "expected 1 items, got 2"),
            (json!({"uniqueItems": true}), json!([1, 1]), "duplicate items; each must be unique"),
            (json!({"maxLength": 1}), json!("secret"), "expected at most 1 characters, got 6"),
            (json!({"minLength": 3}), json!("ü"), "expected at least 3 characters, got 1"),
            (json!({"maxProperties": 1}), json!({"a": 1, "b": 2}), "expected at most 1 entries, got 2"),
            (json!({"minProperties": 2}), json!({"a": 1}), "expected at least 2 entries, got 1"),
            (json!({"maximum": 2}), json!(3), "expected at most 2"),
            (json!({"exclusiveMaximum": 2}), json!(2), "expected less than 2"),
            (json!({"minimum": 2}), json!(1), "expected at least 2"),
            (json!({"exclusiveMinimum": 2}), json!(2), "expected more than 2"),
            (json!({"multipleOf": 2}), json!(3), "expected a multiple of 2"),
            (json!({"pattern": "^a+$"}), json!("b"), "expected a match of `^a+$`"),
            (json!({"const": 7}), json!(8), "expected 7"),
            (json!({"not": {"type": "string"}}), json!("x"), "breaks `not`"),
        ] {
            assert_eq!(violation(schema, result), words);
        }
        for (result, got) in [
            (json!(null), "null"),
            (json!(true), "a boolean"),
            (json!(1.5), "a number with a fraction"),
            (json!(1), "a whole number"),
            (json!("hunter2"), "a string"),
            (json!(["hunter2"]), "a list"),
            (json!({"hunter2": 1}), "an object"),
        ] {
            let words = format!("no type of the annotation matches {got}");
            assert_eq!(violation(json!({"anyOf": [{"const": "a"}, {"const": "b"}]}), result), words);
        }
        let secret = violation(json!({"properties": {}, "additionalProperties": false}), json!({"hunter2": 1}));
        assert_eq!(secret, "entries that the annotation does not name");
    }

    #[test]
    fn the_quick_type_check_accepts_plain_results_only() {
        let plain = |schema: Value, text: &str| has_plain_type(&schema, text);
        assert!(plain(json!({"type": "integer", "description": "n"}), "-12"));
        assert!(plain(json!({"type": "string"}), "\"x\"") && plain(json!({"type": "array"}), "[1]"));
        assert!(plain(json!({"type": "number"}), "1.5") && plain(json!({"type": "null"}), "null"));
        assert!(!plain(json!({"type": "integer"}), "1.5") && !plain(json!({"type": "integer"}), "\"1\""));
        assert!(!plain(json!({"type": "string", "enum": ["x"]}), "\"y\""));
        assert!(!plain(json!({"type": "array", "items": {}}), "[1]") && !plain(json!({}), "1"));
    }

    #[test]
    fn the_quick_scan_rejects_whatever_a_parser_may_refuse() {
        assert!(is_readable("{\"e\": \"1e9 [[[ \\\" \", \"b\": true}"));
        assert!(!is_readable("[1e9]") && !is_readable("\"\\u0041\""));
    }

    #[test]
    fn results_that_common_parsers_refuse_are_refused_and_others_pass() {
        let levels = |many: usize| format!("{}{}", "[".repeat(many), "]".repeat(many));
        let refused = ["\"\\ud800\"", "[\"\\udc00\\ud800\"]", "1e400", "-1E400", &"9".repeat(400), &levels(100_000)];
        let passed = ["{\"a\":1,\"a\":2}", "1e-400", "\"\\ud83d\\ude82\"", &"9".repeat(299), &levels(100)];
        for (text, is_fine) in refused.map(|text| (text, false)).into_iter().chain(passed.map(|text| (text, true))) {
            let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{text}}}");
            let Ok(Incoming::Reply { answer: Ok(raw), .. }) = parse(frame.as_bytes()) else {
                panic!("no reply: {frame}")
            };
            let checked = readable("a.b", raw);
            assert_eq!(checked.as_ref().err().map(|fault| fault.code), (!is_fine).then_some(Code::InvalidOutput));
            // Every accepted result can be read inside its envelope.
            let stands = checked.map(|raw| format!("{{\"result\":{{\"structuredContent\":{{\"result\":{raw}}}}}}}"));
            assert!(stands.is_err() || serde_json::from_str::<Value>(&stands.unwrap()).is_ok(), "{text}");
        }
    }
}
