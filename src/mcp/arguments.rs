//! Arguments of resources and prompts: clients send strings, and functions take what their schema says.

use serde_json::{Map, Value};

/// Values beyond this are not listed, as MCP demands.
const MAX_VALUES: usize = 100;

/// The most schemas within one another that are looked at.
const DEEPEST: usize = 8;

/// The arguments of a call: a string that the schema does not admit is read as JSON, if that is what it holds.
pub(super) fn converted<'a>(
    schema: &Map<String, Value>,
    given: impl Iterator<Item = (&'a str, String)>,
) -> Map<String, Value> {
    let property = |name: &str| schema.get("properties").and_then(|all| all.get(name));
    let convert = |(name, text): (&'a str, String)| {
        let takes_it = property(name).is_none_or(|property| admits_text(schema, property, &text, DEEPEST));
        let value = if takes_it { None } else { serde_json::from_str(&text).ok() };
        (name.to_owned(), value.unwrap_or(Value::String(text)))
    };
    given.map(convert).collect()
}

/// Whether a schema admits a string.
fn admits_text(whole: &Map<String, Value>, schema: &Value, text: &str, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return true };
    let schema = target(whole, schema);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().any(|value| value == text);
    }
    if let Some(value) = schema.get("const") {
        return value == text;
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        return branches.iter().any(|branch| admits_text(whole, branch, text, left));
    }
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => true,
    }
}

/// The values of an argument that begin with what was written, and how many there are.
pub(super) fn completions(schema: &Map<String, Value>, name: &str, written: &str) -> (Vec<String>, usize) {
    let mut values = Vec::new();
    if let Some(property) = schema.get("properties").and_then(|all| all.get(name)) {
        collect(schema, property, &mut values, DEEPEST);
    }
    let start = written.to_lowercase();
    values.retain(|value| value.to_lowercase().starts_with(&start));
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| seen.insert(value.clone()));
    let total = values.len();
    values.truncate(MAX_VALUES);
    (values, total)
}

fn collect(whole: &Map<String, Value>, schema: &Value, values: &mut Vec<String>, left: usize) {
    let Some(left) = left.checked_sub(1) else { return };
    let schema = target(whole, schema);
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
    values.extend(
        listed
            .filter(|value| !value.is_null())
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    );
    if schema.get("type").is_some_and(|kind| kind == "boolean") && schema.get("enum").is_none() {
        values.extend(["true", "false"].map(str::to_owned));
    }
    for branch in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        collect(whole, branch, values, left);
    }
}

/// The schema that a reference means.
fn target<'s>(whole: &'s Map<String, Value>, schema: &'s Value) -> &'s Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/"));
    name.and_then(|name| whole.get("$defs")?.get(name)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Map<String, Value> {
        let schema = json!({
            "properties": {
                "text": {"type": "string"}, "count": {"type": "integer"}, "flag": {"type": "boolean"}, "open": {},
                "list": {"type": "array"}, "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "size": {"enum": ["small", "Large"]}, "level": {"enum": [1, 2]}, "colour": {"$ref": "#/$defs/Colour"},
                "self": {"$ref": "#/$defs/Self"},
            },
            "$defs": {"Colour": {"enum": ["red", "green"], "type": "string"}, "Self": {"anyOf": [{"$ref": "#/$defs/Self"}]}},
        });
        schema.as_object().unwrap().clone()
    }

    #[test]
    fn a_string_becomes_what_the_schema_admits() {
        for (name, text, expected) in [
            ("text", "7", json!("7")),
            ("count", "7", json!(7)),
            ("count", "seven", json!("seven")),
            ("flag", "true", json!(true)),
            ("list", "[1]", json!([1])),
            ("maybe", "null", json!(null)),
            ("either", "7", json!("7")),
            ("level", "2", json!(2)),
            ("size", "small", json!("small")),
            ("colour", "red", json!("red")),
            ("open", "7", json!("7")),
            ("unknown", "7", json!("7")),
            ("self", "7", json!("7")),
        ] {
            let converted = converted(&schema(), [(name, text.to_owned())].into_iter());
            assert_eq!(converted[name], expected, "{name} {text}");
        }
    }

    #[test]
    fn an_argument_is_completed_from_its_values() {
        for (name, written, expected) in [
            ("size", "", vec!["small", "Large"]),
            ("size", "l", vec!["Large"]),
            ("size", "x", vec![]),
            ("level", "", vec!["1", "2"]),
            ("colour", "g", vec!["green"]),
            ("flag", "", vec!["true", "false"]),
            ("text", "", vec![]),
            ("unknown", "", vec![]),
            ("self", "", vec![]),
        ] {
            assert_eq!(completions(&schema(), name, written).0, expected, "{name} {written}");
        }
        let many: Vec<String> = (0..250).map(|number| format!("v{number}")).collect();
        let schema = json!({"properties": {"x": {"enum": many}}});
        let (values, total) = completions(schema.as_object().unwrap(), "x", "V");
        assert_eq!((values.len(), total), (MAX_VALUES, 250));
    }
}
