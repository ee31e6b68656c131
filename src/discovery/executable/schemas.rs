//! The schemas of arguments and results in the output of `--schema`, in the forms that programs print them.

use serde_json::{Map, Value, json};

use super::printed::{shortened, unusable};
use crate::config::origin::Diagnosis;

pub(super) type Schema = Map<String, Value>;

/// Common names of types that are not JSON Schema's.
const ALIASES: [(&str, &str); 10] = [
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("map", "object"),
    ("list", "array"),
    ("none", "null"),
];
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "object", "array", "null"];

/// The keys of schemas, and those of maps of parameters, which may be schemas too.
const SCHEMAS: [&str; 4] = ["input_schema", "inputSchema", "parametersJsonSchema", "json_schema"];
const PARAMETERS: [&str; 7] = ["parameters", "params", "arguments", "args", "inputs", "input", "schema"];

/// What else a tool may declare.
const OTHERS: [&str; 6] = ["annotations", "examples", "icon", "icons", "author", "metadata"];
/// What says that something is a tool.
const DESCRIBING: [&str; 4] = ["name", "title", "description", "summary"];
/// What it may declare for hostler.
const DECLARED: [&str; 15] = [
    "allowed_modes",
    "category",
    "effects",
    "input_option",
    "output",
    "protocol",
    "rate_limit_per_hour",
    "requires_approval",
    "requires_sandbox",
    "risk_level",
    "secrets",
    "tags",
    "timeout",
    "timeout_seconds",
    "version",
];
/// The schema of the results.
const RESULTS: [&str; 3] = ["output_schema", "outputSchema", "returns"];

/// The schema of the arguments.
pub(super) fn input_of(tool: &Schema) -> Result<Schema, Diagnosis> {
    let tool = &in_lower_case(tool);
    if let Some((key, value)) = first_of(tool, &SCHEMAS) {
        let Value::Object(value) = value else { return Err(unusable(format!("`{key}` is not an object"))) };
        return checked(key, value.clone());
    }
    if let Some((key, value)) = first_of(tool, &PARAMETERS) {
        let Value::Object(value) = value else { return Err(unusable(format!("`{key}` is not an object"))) };
        return checked(key, if is_schema(value) { value.clone() } else { from_parameters(value)? });
    }
    if is_bare_schema(tool) {
        let mut schema = tool.clone();
        for key in ["name", "description", "title", "$schema", "$id"] {
            schema.shift_remove(key);
        }
        return checked("properties", schema);
    }
    // A map of parameters alone.
    let is_parameter = |value: &Value| value.get("type").is_some_and(Value::is_string);
    if !tool.is_empty() && tool.values().all(is_parameter) {
        return checked("parameters", from_parameters(tool)?);
    }
    let may_describe = |value: &Value| match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(Value::is_object),
        _ => false,
    };
    let strange = tool.iter().filter(|(key, value)| may_describe(value) && !OTHERS.contains(&key.as_str()));
    let strange = strange.filter(|(key, _)| !RESULTS.contains(&key.as_str()));
    let strange: Vec<String> = strange.take(5).map(|(key, _)| format!("`{}`", shortened(key.clone()))).collect();
    if strange.is_empty() {
        let mut of_tool = DESCRIBING.iter().chain(&OTHERS).chain(&DECLARED).chain(&RESULTS);
        let is_schema = tool.get("type").is_some_and(|kind| kind == "object");
        if tool.is_empty() || is_schema || of_tool.any(|key| tool.contains_key(*key)) {
            return Ok(of_any_arguments());
        }
        let keys: Vec<String> = tool.keys().take(5).map(|key| format!("`{}`", shortened(key.clone()))).collect();
        return Err(unusable(format!("the output of `--schema` describes no tool, but has {}", keys.join(", "))));
    }
    Err(unusable(format!("the output of `--schema` has no schema of the arguments, but {}", strange.join(", "))))
}

pub(super) fn of_any_arguments() -> Schema {
    object(json!({"type": "object"}))
}

/// Whether what was printed is the schema of the arguments itself.
fn is_bare_schema(tool: &Schema) -> bool {
    tool.get("type").is_some_and(|kind| kind == "object") && tool.get("properties").is_some_and(Value::is_object)
}

/// The schema of the structured content: the result when that is an object, `{"result": …}` when it is not, or `{"error": …}`
/// when the operation failed.
pub(super) fn output_of(tool: &Schema) -> Result<Option<Schema>, Diagnosis> {
    let tool = &in_lower_case(tool);
    let Some((key, value)) = first_of(tool, &RESULTS) else { return Ok(None) };
    let schema = match value {
        Value::Object(value) if key != "returns" || value.get("type").is_some_and(Value::is_string) => value.clone(),
        Value::Object(value) => object(json!({"type": "object", "properties": properties(value)?})),
        // Words for people.
        Value::String(_) | Value::Null => return Ok(None),
        _ => return Err(unusable(format!("`{key}` is not an object"))),
    };
    let schema = checked(key, schema)?;
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    let result = if is_object {
        schema
    } else {
        object(json!({"type": "object", "required": ["result"], "properties": {"result": schema}}))
    };
    let failed = json!({"type": "object", "required": ["error"], "properties": {"error": {}}});
    Ok(Some(object(json!({"type": "object", "anyOf": [result, failed]}))))
}

fn first_of<'t>(tool: &'t Schema, keys: &[&'static str]) -> Option<(&'static str, &'t Value)> {
    keys.iter().find_map(|key| Some((*key, tool.get(*key)?)))
}

/// Whether `parameters` is a schema, and not a map of names to parameters.
fn is_schema(value: &Schema) -> bool {
    value.get("type").is_some_and(|kind| kind == "object") && value.get("properties").is_none_or(Value::is_object)
}

fn from_parameters(parameters: &Schema) -> Result<Schema, Diagnosis> {
    let is_required = |value: &Value| value.get("required").and_then(Value::as_bool).unwrap_or(false);
    let required = parameters.iter().filter(|(_, value)| is_required(value)).map(|(name, _)| name.as_str());
    let required: Vec<&str> = required.collect();
    let properties = properties(parameters)?;
    let mut schema = object(json!({"type": "object", "properties": properties, "additionalProperties": false}));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    Ok(schema)
}

fn properties(of: &Schema) -> Result<Schema, Diagnosis> {
    let property = |(name, value): (&String, &Value)| match value {
        Value::Object(value) if let Some(Value::String(word)) = value.get("required") => {
            Err(unusable(format!("`required` of `{name}`: expected a boolean, got \"{word}\"")))
        }
        Value::Object(value) => Ok((name.clone(), Value::Object(property(value)))),
        Value::String(kind) => Ok((name.clone(), Value::Object(property(&object(json!({"type": kind})))))),
        _ => Err(unusable(format!("`{name}` is neither an object nor the name of a type"))),
    };
    of.iter().map(property).collect()
}

/// One parameter as JSON Schema. An unknown type is removed.
fn property(printed: &Schema) -> Schema {
    let mut property = printed.clone();
    if property.get("required").is_some_and(Value::is_boolean) {
        property.remove("required");
    }
    if let Some(kind) = printed.get("type").and_then(Value::as_str) {
        let known = ALIASES.iter().find(|(alias, _)| *alias == kind).map_or(kind, |(_, known)| known);
        if TYPES.contains(&known) {
            property.insert("type".to_owned(), known.into());
        } else {
            property.remove("type");
        }
    }
    property
}

/// A valid schema.
fn checked(key: &str, schema: Schema) -> Result<Schema, Diagnosis> {
    let value = Value::Object(schema);
    if let Err(error) = jsonschema::validator_for(&value) {
        let reason = error.to_string();
        return Err(unusable(format!("`{key}` is not a JSON Schema: {}", reason.lines().next().unwrap_or_default())));
    }
    Ok(object(value))
}

fn object(value: Value) -> Schema {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// With the names of types as JSON Schema writes them: Gemini's are in upper case.
fn in_lower_case(schema: &Schema) -> Schema {
    let lowered = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::String(word) if key == "type" && TYPES.contains(&word.to_lowercase().as_str()) => {
                Value::String(word.to_lowercase())
            }
            // Their values are no schemas.
            value if ["enum", "const", "default", "example", "examples"].contains(&key.as_str()) => value.clone(),
            Value::Object(inner) => Value::Object(in_lower_case(inner)),
            Value::Array(items) => Value::Array(items.iter().map(item_in_lower_case).collect()),
            value => value.clone(),
        };
        (key.clone(), value)
    };
    schema.iter().map(lowered).collect()
}

fn item_in_lower_case(item: &Value) -> Value {
    match item {
        Value::Object(inner) => Value::Object(in_lower_case(inner)),
        other => other.clone(),
    }
}
