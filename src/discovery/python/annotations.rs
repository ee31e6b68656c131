//! What a field says for readers of its schema, and for no validator: a title, examples, that it is deprecated.

use ruff_python_ast::ExprCall;
use serde_json::Value;

use super::literals::{keyword, literal};
use super::module::Module;
use super::schema::Schema;

const KEYS: [&str; 7] = ["title", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];

/// Whether a key of a schema restricts no value.
pub(super) fn is_annotation(key: &str) -> bool {
    matches!(key, "description" | "default") || KEYS.contains(&key) || key.starts_with("x-")
}

/// The annotations among the arguments of `Field(…)` and in its `json_schema_extra`. Other keys there would be checked by hostler, and are
/// not by pydantic.
pub(super) fn of_field(module: &Module<'_>, call: &ExprCall) -> Schema {
    let further = keyword(call, "json_schema_extra").and_then(|extra| literal(extra, module));
    let mut found = further.map(sound).unwrap_or_default();
    for key in ["title", "examples", "deprecated"] {
        let value = keyword(call, key).and_then(|value| literal(value, module));
        // A reason is a text.
        let value = value.map(|value| if key == "deprecated" && value.is_string() { Value::Bool(true) } else { value });
        found.extend(value.map(|value| (key.to_owned(), value)));
    }
    sound(Value::Object(found))
}

/// The annotations of `json_schema_extra`.
pub(super) fn sound(extra: Value) -> Schema {
    let Value::Object(mut found) = extra else { return Schema::new() };
    found.retain(|key, value| is_annotation(key) && key != "default" && is_sound(key, value));
    found
}

fn is_sound(key: &str, value: &Value) -> bool {
    match key {
        "examples" => value.is_array(),
        "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "title" | "description" | "$comment" => value.is_string(),
        _ => true,
    }
}
