//! One tool's own help: how it is called from here, and what each argument is.

use serde_json::{Map, Value};

use super::show::type_word;
use super::style;
use crate::registry::Tool;

/// `hostler call --help TOOL`
pub(super) fn help(tool: &Tool, width: Option<usize>) -> String {
    let schema = tool.input_schema();
    let mut text = String::new();
    if let Some(description) = tool.description() {
        text.extend([description, "\n\n"]);
    }
    text.extend(["Usage: hostler call ", &tool.name]);
    for (name, property) in properties(schema) {
        let word = format!("{name}={}", placeholder(resolved(schema, property)));
        text.extend([" ", &if is_required(schema, name) { word } else { format!("[{word}]") }]);
    }
    text.push_str("\n\nArguments:\n");
    text.push_str(&arguments(schema, width));
    if let Some(words) = example(tool) {
        text.extend(["\nFor example:\n  hostler call ", &tool.name, &words, "\n"]);
    }
    text
}

/// A table of arguments: name, kind, need, text.
pub(super) fn arguments(schema: &Map<String, Value>, width: Option<usize>) -> String {
    let rows: Vec<Vec<String>> = properties(schema)
        .map(|(name, property)| {
            let default = property.get("default").map(|value| format!("default {value}"));
            let need = if is_required(schema, name) {
                "required".to_owned()
            } else {
                default.unwrap_or("optional".to_owned())
            };
            let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
            vec![format!("  {name}"), type_word(resolved(schema, property)), need, text.to_owned()]
        })
        .collect();
    if rows.is_empty() { "  none\n".to_owned() } else { style::table(&rows, width) }
}

pub(super) fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// A property, or the definition it refers to.
pub(super) fn resolved<'s>(schema: &'s Map<String, Value>, property: &'s Value) -> &'s Value {
    let name = property.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/$defs/"));
    name.and_then(|name| schema.get("$defs")?.get(name)).unwrap_or(property)
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
}

fn placeholder(property: &Value) -> String {
    match property.get("type").and_then(Value::as_str) {
        Some("string") => "TEXT",
        Some("integer" | "number") => "NUMBER",
        Some("boolean") => "yes|no",
        _ => return format!("({})", type_word(property)),
    }
    .to_owned()
}

/// Words that call the tool, as far as its required arguments can be made up.
fn example(tool: &Tool) -> Option<String> {
    let schema = tool.input_schema();
    let mut words = String::new();
    for (name, property) in properties(schema).filter(|(name, _)| is_required(schema, name)) {
        let property = resolved(schema, property);
        let value = match (property.get("enum"), property.get("type").and_then(Value::as_str)) {
            (Some(Value::Array(options)), _) => options.first()?.as_str().map(str::to_owned)?,
            (_, Some("string")) => "'some text'".to_owned(),
            (_, Some("integer" | "number")) => "3".to_owned(),
            (_, Some("boolean")) => "yes".to_owned(),
            _ => return None,
        };
        words.extend([" ", name, "=", &value]);
    }
    Some(words)
}
