//! Arguments on the command line: `key=value`, converted by the tool's schema, and `key:=JSON`.

use std::collections::BTreeSet;
use std::io::Read;

use serde_json::{Map, Value};

use super::style::Refusal;
use crate::call::{deep_argument, is_too_deep, keys_to_the_depth};

/// That a word is neither `key=value` nor `key:=JSON`.
pub(super) fn no_key(word: &str) -> Refusal {
    let fix = "write key=value or key:=JSON, without dashes and without spaces around `=`";
    Refusal::new(format!("`{word}` is not an argument"), fix)
}

/// Reads standard input for `--input -`: once, whatever does the call's work, and before signals are listened for, so that they
/// end the program.
pub(super) fn read_input(input: &mut String) -> Result<(), Refusal> {
    if input == "-" {
        input.clear();
        let read = std::io::stdin().read_to_string(input);
        read.map_err(|error| Refusal::io("cannot read standard input", error))?;
    }
    Ok(())
}

/// The arguments that `--input` has.
pub(super) fn input(text: Option<&str>) -> Result<Map<String, Value>, Refusal> {
    text.map_or_else(|| Ok(Map::new()), object)
}

/// Reads `--input`.
fn object(text: &str) -> Result<Map<String, Value>, Refusal> {
    let refused = |why: String| Refusal::new(format!("--input must be a JSON object: {why}"), "");
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(refused(format!("got {other}"))),
        Err(error) if is_too_deep(&error) => {
            let name = keys_to_the_depth(text.as_bytes(), 1).pop();
            Err(Refusal::new(deep_argument(name.as_deref().unwrap_or("--input")), ""))
        }
        Err(error) => Err(refused(error.to_string())),
    }
}

/// Adds the typed words to the arguments. A key of a list that is given twice adds an element.
pub(super) fn add(
    arguments: &mut Map<String, Value>,
    typed: &[String],
    schema: Option<&Map<String, Value>>,
) -> Result<(), Refusal> {
    let root = schema.cloned().map(Value::Object).unwrap_or_default();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for word in typed {
        let (key, text) = word.split_once('=').ok_or_else(|| no_key(word))?;
        let (key, is_json) = key.strip_suffix(':').map_or((key, false), |key| (key, true));
        if key.is_empty() || key.starts_with('-') {
            return Err(no_key(word));
        }
        let property = schema.and_then(|schema| schema.get("properties")?.get(key));
        let kinds = property.map(|property| kinds(property, &root, 0)).unwrap_or_default();
        let takes = |kind: &str| kinds.iter().any(|one| one == kind);
        let must_be_json =
            is_json || text.starts_with(['[', '{']) && !takes("string") && (takes("array") || takes("object"));
        let value = match serde_json::from_str(text) {
            Err(error) if is_too_deep(&error) && (must_be_json || kinds.is_empty()) => {
                return Err(Refusal::new(deep_argument(key), ""));
            }
            Err(error) if must_be_json => {
                let is_text = kinds.is_empty() || takes("string");
                let plain = if is_text { format!(", or write {key}=TEXT for plain text") } else { String::new() };
                let example =
                    format!("put names and strings in double quotes, as in '{key}:={{\"name\": [\"text\", 3]}}'");
                return Err(Refusal::new(format!("`{key}` is not valid JSON: {error}"), example + &plain));
            }
            Ok(value) if is_json => value,
            _ => coerce(text, property, &root),
        };
        let is_again = !seen.insert(key);
        match (arguments.get_mut(key), value) {
            (Some(Value::Array(list)), Value::Array(more)) if !is_json => list.extend(more),
            (Some(Value::Array(list)), more @ Value::String(_)) if is_again && !is_json => list.push(more),
            // A string where a list of strings is accepted too.
            (Some(first @ Value::String(_)), more) if is_again && !is_json && takes("array") => {
                *first = Value::Array(vec![first.take(), more]);
            }
            (Some(_), _) if is_again => {
                return Err(Refusal::new(format!("`{key}` is given twice"), "keep one of them"));
            }
            (_, value) => {
                arguments.insert(key.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// Converts a text to the first accepted kind that it can be. Otherwise it stays text, and the validation of the call reports it.
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
            // Where a string is accepted too, it is one.
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

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

/// An integer of any size; one that is too large is reported by the validation.
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

/// The kinds of value that a schema accepts; none means any.
fn kinds(schema: &Value, root: &Value, depth: usize) -> Vec<String> {
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
    fn values_are_converted_by_the_schema() {
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
    fn one_string_stays_a_string_where_lists_are_accepted_too() {
        assert_eq!(typed(&["either=a"]), json!({"either": "a"}));
        assert_eq!(typed(&["either=[\"a\"]"]), json!({"either": ["a"]}));
        assert_eq!(typed(&["either=a", "either=b", "either=c"]), json!({"either": ["a", "b", "c"]}));
    }

    #[test]
    fn what_cannot_be_converted_stays_text() {
        assert_eq!(typed(&["count=three"]), json!({"count": "three"}));
        assert!(typed(&["count=36893488147419103232"])["count"].is_number());
    }

    fn refused(word: &str, more: &[&str]) -> String {
        let schema = json!({"properties": {
            "n": {"type": "integer"}, "name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object"}, "either": {"type": ["string", "object"]},
        }});
        let words: Vec<String> = [word].iter().chain(more).map(|word| (*word).to_owned()).collect();
        add(&mut Map::new(), &words, schema.as_object()).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn words_that_are_not_arguments_are_refused() {
        for word in ["x", "=", "=x", ":=x", "-1", "--name", "--name=x"] {
            assert!(refused(word, &[]).starts_with(&format!("`{word}` is not an argument")), "{word}");
        }
        for (word, again) in [("name=x", "name=y"), ("n:=1", "n=2"), ("tags=1", "tags:=[2]")] {
            assert!(refused(word, &[again]).contains("twice"), "{word}");
        }
    }

    #[test]
    fn what_has_to_be_json_is_refused_with_the_parsers_reason() {
        for word in ["free={a:1}", "free:={a:1}", "tags=[a,1]", "tags=['a']", "name:=a", "whatever:=[a]"] {
            let message = refused(word, &[]);
            assert!(message.contains("is not valid JSON: ") && message.contains("column"), "{word}: {message}");
        }
        assert!(
            refused("name:=a", &[]).ends_with("name=TEXT for plain text") && !refused("free:=a", &[]).contains("TEXT")
        );
        for fine in ["either={a:1}", "name=[a]", "whatever={a", "n=[1", "free=foo", "tags=a,b"] {
            assert_eq!(refused(fine, &[]), "", "{fine}");
        }
    }

    #[test]
    fn deep_values_are_refused_as_such() {
        let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
        for word in ["tags=", "tags:=", "whatever=", "name:="] {
            let name = word.trim_end_matches(['=', ':']);
            assert!(
                refused(&format!("{word}{deep}"), &[]).starts_with(&format!("`{name}` is nested deeper")),
                "{word}"
            );
        }
        assert_eq!(refused(&format!("name={deep}"), &[]), "", "a string is a string");
        let input = object(&format!("{{\"a\":{deep}}}")).unwrap_err().to_string();
        assert!(input.starts_with("`a` is nested deeper"), "{input}");
    }
}
