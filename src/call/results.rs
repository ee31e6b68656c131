//! Results before they reach a caller: JSON that every ordinary reader can read, and what the function's annotation promises.

use jsonschema::error::ValidationErrorKind;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::nesting::{TOO_DEEP, is_too_deep};
use super::validate::{place, types};
use crate::outcome::{Code, Fault, each_file, may_hold_files, without_bytes};
use crate::registry::Tool;

/// Passes a result on, unchanged, when every ordinary reader of JSON can read it and it is what the tool's output schema says.
pub(super) fn check(tool: &Tool, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    readable(&tool.name, raw).and_then(|raw| as_promised(tool, raw))
}

fn as_promised(tool: &Tool, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
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
        kind => broken(kind, error.instance()),
    };
    let message = format!(
        "{} returned something else than its annotation says: `{at}` {wrong}; return what the annotation says, or correct \
         or remove the annotation",
        tool.name
    );
    Err(Fault::new(Code::InvalidOutput, message))
}

/// A limit that a result breaks, in plain words.
fn broken(kind: &ValidationErrorKind, came: &Value) -> String {
    use ValidationErrorKind as Kind;
    let items = came.as_array().map_or(0, Vec::len);
    let length = came.as_str().map_or(0, |text| text.chars().count());
    let entries = came.as_object().map_or(0, serde_json::Map::len);
    let is = |limit: u64| if limit == 1 { "is" } else { "are" };
    match kind {
        Kind::MaxItems { limit } | Kind::MinItems { limit } => {
            format!("has {items} items where {limit} {} promised", is(*limit))
        }
        Kind::AdditionalItems { limit } => format!("has {items} items where {limit} {} promised", is(*limit as u64)),
        Kind::UniqueItems => "holds an item twice where each is to be there once".to_owned(),
        Kind::MaxLength { limit } => format!("is {length} characters long where {limit} are the most"),
        Kind::MinLength { limit } => format!("is {length} characters long where {limit} are the least"),
        Kind::MaxProperties { limit } => format!("has {entries} entries where {limit} are the most"),
        Kind::MinProperties { limit } => format!("has {entries} entries where {limit} are the least"),
        Kind::Maximum { limit } => format!("is more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("is not less than {limit}"),
        Kind::Minimum { limit } => format!("is less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("is not more than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("is no multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("does not have the form `{pattern}`"),
        Kind::Format { format } => format!("is no {format}"),
        Kind::Constant { expected_value } => format!("is not {expected_value}"),
        // Keys are data as well, and not for a log.
        Kind::AdditionalProperties { .. } => "has entries that no annotation names".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("is of none of the types that are promised: {} came", kind_of(came))
        }
        kind => format!("breaks `{}`", kind.keyword()),
    }
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

/// Passes a result on, unchanged, when its callers can read it.
fn readable(tool: &str, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    if is_readable(raw.get()) {
        return Ok(raw);
    }
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(_) => Ok(raw),
        Err(error) => {
            let message = if is_too_deep(&error) {
                format!("what {tool} returned is {TOO_DEEP}, which is as deep as callers read; flatten it")
            } else {
                format!(
                    "what {tool} returned is JSON that its callers cannot read: {error}; return it in a simpler shape"
                )
            };
            Err(Fault::new(Code::InvalidOutput, message))
        }
    }
}

/// Whether JSON can be told at a glance to be what everybody can read: not deep, no exponents, no number beyond every
/// type, no escapes of half a character. What cannot is looked at closely.
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

/// Readers of JSON stop somewhere beyond a hundred levels.
const DEEPEST: usize = 100;

/// Numbers of more digits may be beyond 1.8e308, which many readers refuse, and with it the whole answer.
const LONGEST: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Incoming, parse};

    #[test]
    fn a_limit_that_is_broken_is_told_in_plain_words() {
        let told = |schema: Value, result: Value| {
            let error = jsonschema::validate(&schema, &result).unwrap_err();
            broken(error.kind(), error.instance())
        };
        let tuple =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}], "additionalItems": false});
        for (schema, result, words) in [
            (json!({"maxItems": 2}), json!([1, 2, 3]), "has 3 items where 2 are promised"),
            (json!({"minItems": 2}), json!([1]), "has 1 items where 2 are promised"),
            (json!({"minItems": 1}), json!([]), "has 0 items where 1 is promised"),
            (tuple, json!([1, 2]), "has 2 items where 1 is promised"),
            (json!({"uniqueItems": true}), json!([1, 1]), "holds an item twice where each is to be there once"),
            (json!({"maxLength": 1}), json!("secret"), "is 6 characters long where 1 are the most"),
            (json!({"minLength": 3}), json!("ü"), "is 1 characters long where 3 are the least"),
            (json!({"maxProperties": 1}), json!({"a": 1, "b": 2}), "has 2 entries where 1 are the most"),
            (json!({"minProperties": 2}), json!({"a": 1}), "has 1 entries where 2 are the least"),
            (json!({"maximum": 2}), json!(3), "is more than 2"),
            (json!({"exclusiveMaximum": 2}), json!(2), "is not less than 2"),
            (json!({"minimum": 2}), json!(1), "is less than 2"),
            (json!({"exclusiveMinimum": 2}), json!(2), "is not more than 2"),
            (json!({"multipleOf": 2}), json!(3), "is no multiple of 2"),
            (json!({"pattern": "^a+$"}), json!("b"), "does not have the form `^a+$`"),
            (json!({"const": 7}), json!(8), "is not 7"),
            (json!({"not": {"type": "string"}}), json!("x"), "breaks `not`"),
        ] {
            assert_eq!(told(schema, result), words);
        }
        for (result, came) in [
            (json!(null), "null"),
            (json!(true), "a boolean"),
            (json!(1.5), "a number with a fraction"),
            (json!(1), "a whole number"),
            (json!("hunter2"), "a string"),
            (json!(["hunter2"]), "a list"),
            (json!({"hunter2": 1}), "an object"),
        ] {
            let words = format!("is of none of the types that are promised: {came} came");
            assert_eq!(told(json!({"anyOf": [{"const": "a"}, {"const": "b"}]}), result), words);
        }
        let secret = told(json!({"properties": {}, "additionalProperties": false}), json!({"hunter2": 1}));
        assert_eq!(secret, "has entries that no annotation names");
    }

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

    #[test]
    fn a_glance_lets_nothing_pass_that_a_reader_may_refuse() {
        assert!(is_readable("{\"e\": \"1e9 [[[ \\\" \", \"b\": true}"));
        assert!(!is_readable("[1e9]") && !is_readable("\"\\u0041\""));
    }

    #[test]
    fn what_ordinary_readers_refuse_is_refused_and_everything_else_passes() {
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
            // Whatever is passed on can be read where it will stand.
            let stands = checked.map(|raw| format!("{{\"result\":{{\"structuredContent\":{{\"result\":{raw}}}}}}}"));
            assert!(stands.is_err() || serde_json::from_str::<Value>(&stands.unwrap()).is_ok(), "{text}");
        }
    }
}
