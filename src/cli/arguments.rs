//! `key=value` as the tool's schema wants it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{loose, typed};
use crate::call::{deep_argument, is_too_deep, keys_to_the_depth};
use crate::process::shell_word;

/// Something typed that cannot be an argument.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadArgument {
    /// Neither `key=value` nor `key:=JSON`.
    #[error("`{0}` is not an argument; write key=value or key:=JSON")]
    NoKey(String),
    /// A shell made several words of it.
    #[error("an argument has no blanks around `=`; write {0}")]
    Blanks(String),
    /// Written as options are.
    #[error("`{written}` is no option: a tool's arguments have no dashes; write {right}")]
    Dashes {
        /// The word.
        written: String,
        /// The argument.
        right: String,
    },
    /// Only lists are given in pieces.
    #[error("`{0}` is given twice; keep one of the two")]
    Twice(String),
    /// A list written as no list is.
    #[error("`{key}` is a list; write '{key}:={whole}', or {key}=… once for each item")]
    List {
        /// The key.
        key: String,
        /// The list in JSON.
        whole: String,
    },
    /// A text for an object.
    #[error("`{key}` is an object; write '{key}:={like}'")]
    Object {
        /// The key.
        key: String,
        /// Its fields.
        like: String,
    },
    /// The text after `:=` is not JSON.
    #[error("`{key}` is not JSON: {reason}; quote strings, or use {key}=value for plain text")]
    NotJson {
        /// The key.
        key: String,
        /// The parser's reason.
        reason: String,
    },
    /// A list or an object that is nearly JSON.
    #[error("`{key}` is not JSON: {reason}; names and texts stand in double quotes there: {advice}")]
    Loose {
        /// The key.
        key: String,
        /// The parser's reason.
        reason: String,
        /// What to write.
        advice: String,
    },
    /// More levels than anybody reads.
    #[error("{}", deep_argument(.0))]
    Deep(String),
    /// `--input` is not an object.
    #[error("--input must be a JSON object: {0}")]
    NotObject(String),
}

/// Reads `--input`.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, BadArgument> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(BadArgument::NotObject(format!("this is {other}"))),
        Err(error) if is_too_deep(&error) => {
            let name = keys_to_the_depth(text.as_bytes(), 1).pop();
            Err(BadArgument::Deep(name.unwrap_or_else(|| "--input".to_owned())))
        }
        Err(error) => {
            let right = loose::meant(text, false).filter(Value::is_object).map(|right| right.to_string());
            let right = right.map(|right| {
                format!("; names and texts stand in double quotes there: write --input {}", shell_word(&right))
            });
            Err(BadArgument::NotObject(format!("{error}{}", right.unwrap_or_default())))
        }
    }
}

/// Adds what was typed to the arguments. A key given twice where a list is wanted gives two elements.
pub(super) fn add(
    arguments: &mut Map<String, Value>,
    typed: &[String],
    schema: Option<&Map<String, Value>>,
) -> Result<(), BadArgument> {
    let root = schema.cloned().map(Value::Object).unwrap_or_default();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for (at, word) in typed.iter().enumerate() {
        let (key, text) = word.split_once('=').ok_or_else(|| typed::no_argument(typed, at))?;
        let (key, is_json) = key.strip_suffix(':').map_or((key, false), |key| (key, true));
        if key.is_empty() || typed::is_dashed(key) {
            return Err(typed::no_argument(typed, at));
        }
        let is_split = text.is_empty() && typed.get(at + 1).is_some_and(|next| !next.contains('='));
        if is_split {
            return Err(typed::no_argument(typed, at + 1));
        }
        let property = schema.and_then(|schema| schema.get("properties")?.get(key));
        let value = if is_json {
            serde_json::from_str(text).map_err(|error| typed::not_json(key, text, &error, property, &root))?
        } else {
            coerce(text, property, &root)
        };
        if let Some(bad) = typed::unread(key, text, property, &root).filter(|_| !is_json) {
            return Err(bad);
        }
        if let Some(bad) = typed::misread(key, text, &value, property, &root).filter(|_| !is_json) {
            return Err(bad);
        }
        let is_again = !told.insert(key);
        match (arguments.get_mut(key), value) {
            (Some(Value::Array(list)), Value::Array(more)) if !is_json => list.extend(more),
            (Some(Value::Array(list)), more @ Value::String(_)) if is_again && !is_json => list.push(more),
            // A text that may as well be one of several.
            (Some(first @ Value::String(_)), more) if is_again && !is_json && takes_list(property, &root) => {
                *first = Value::Array(vec![first.take(), more]);
            }
            (Some(_), _) if is_again => return Err(BadArgument::Twice(key.to_owned())),
            (_, value) => {
                arguments.insert(key.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// The text as the first kind of value it can be among those that are wanted; text otherwise, so that the tool's own
/// validation says what is wrong.
fn coerce(text: &str, schema: Option<&Value>, root: &Value) -> Value {
    let kinds = schema.map(|schema| kinds(schema, root, 0)).unwrap_or_default();
    let as_json = || serde_json::from_str::<Value>(text).ok();
    let plain = || Value::String(text.to_owned());
    if kinds.is_empty() {
        return as_json().unwrap_or_else(plain);
    }
    for kind in &kinds {
        let value = match kind.as_str() {
            "integer" => text
                .parse::<i64>()
                .ok()
                .map(Value::from)
                .or_else(|| as_json().filter(|value| is_integer(value) || is_whole(text))),
            "number" => as_json().filter(Value::is_number),
            "boolean" => boolean(text),
            "null" => (text == "null").then_some(Value::Null),
            "object" => as_json().filter(Value::is_object),
            // Where a text is wanted as well, it is one.
            "array" if kinds.iter().any(|kind| kind == "string") => as_json().filter(Value::is_array),
            "array" => Some(as_json().filter(Value::is_array).unwrap_or_else(|| {
                let items = schema.and_then(|schema| schema.get("items"));
                Value::Array(vec![coerce(text, items, root)])
            })),
            _ => None,
        };
        if let Some(value) = value {
            return value;
        }
    }
    plain()
}

fn takes_list(property: Option<&Value>, root: &Value) -> bool {
    property.is_some_and(|property| kinds(property, root, 0).iter().any(|kind| kind == "array"))
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

/// One that is too large stays a number, so that it is told what is wrong with it.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn boolean(text: &str) -> Option<Value> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true.into()),
        "false" | "no" | "off" | "0" => Some(false.into()),
        _ => None,
    }
}

/// The kinds of value a schema allows; none means any.
pub(super) fn kinds(schema: &Value, root: &Value, depth: usize) -> Vec<String> {
    if depth > 16 {
        return Vec::new();
    }
    if let Some(pointer) = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#')) {
        return root.pointer(pointer).map(|target| kinds(target, root, depth + 1)).unwrap_or_default();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(|value| kind_of(value).to_owned()).collect();
    }
    if let Some(value) = schema.get("const") {
        return vec![kind_of(value).to_owned()];
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        let each: Vec<Vec<String>> = branches.iter().map(|branch| kinds(branch, root, depth + 1)).collect();
        return if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() };
    }
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(|kind| kind.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(words: &[&str]) -> Value {
        let schema = json!({
            "properties": {
                "count": {"type": "integer"}, "ratio": {"type": "number"}, "text": {"type": "string"},
                "flag": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "mode": {"$ref": "#/$defs/Mode"},
                "any": {}, "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            },
            "$defs": {"Mode": {"enum": ["1", "fast"]}},
        });
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut arguments = Map::new();
        add(&mut arguments, &words, schema.as_object()).unwrap();
        Value::Object(arguments)
    }

    #[test]
    fn values_become_what_the_schema_wants() {
        assert_eq!(typed(&["count=3", "ratio=1.5", "text=3"]), json!({"count": 3, "ratio": 1.5, "text": "3"}));
        assert_eq!(typed(&["flag=yes", "maybe=null"]), json!({"flag": true, "maybe": null}));
        assert_eq!(typed(&["maybe=7", "mode=1"]), json!({"maybe": 7, "mode": "1"}));
        assert_eq!(typed(&["any=3", "any2=x=y"]), json!({"any": 3, "any2": "x=y"}));
    }

    #[test]
    fn a_list_is_json_or_the_same_key_again() {
        assert_eq!(typed(&["tags=a", "tags=b"]), json!({"tags": ["a", "b"]}));
        assert_eq!(typed(&["tags=[\"a\",\"b\"]"]), json!({"tags": ["a", "b"]}));
        assert_eq!(typed(&["text:=[1]"]), json!({"text": [1]}));
    }

    #[test]
    fn where_a_text_or_a_list_is_wanted_one_text_is_a_text() {
        assert_eq!(typed(&["either=a"]), json!({"either": "a"}));
        assert_eq!(typed(&["either=[\"a\"]"]), json!({"either": ["a"]}));
        assert_eq!(typed(&["either=a", "either=b", "either=c"]), json!({"either": ["a", "b", "c"]}));
    }

    #[test]
    fn what_cannot_be_coerced_stays_text_for_the_validator_to_name() {
        assert_eq!(typed(&["count=three"]), json!({"count": "three"}));
        assert!(typed(&["count=36893488147419103232"])["count"].is_number());
    }
}
