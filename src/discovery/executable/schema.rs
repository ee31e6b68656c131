//! Schemas out of what executables print: JSON Schema as it is, and the maps of names that others print instead.

use serde_json::{Map, Value, json};

type Schema = Map<String, Value>;

/// Words for types that are common and are none of JSON Schema's.
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

/// What the tool takes.
pub(super) fn input_of(tool: &Schema) -> Result<Schema, String> {
    let Some((key, value)) = first_of(tool, &["input_schema", "inputSchema", "parameters"]) else {
        return Ok(object(json!({"type": "object"})));
    };
    let Value::Object(value) = value else { return Err(format!("`{key}` is no object")) };
    let schema = if key == "parameters" && !is_schema(value) { from_parameters(value)? } else { value.clone() };
    checked(key, schema)
}

/// What the tool returns, as clients get it: the result when that is an object, `{"result": …}` when it is not. Any tool may
/// say instead that its operation failed.
pub(super) fn output_of(tool: &Schema) -> Result<Option<Schema>, String> {
    let Some((key, value)) = first_of(tool, &["output_schema", "outputSchema", "returns"]) else { return Ok(None) };
    let schema = match value {
        Value::Object(value) if key != "returns" || value.get("type").is_some_and(Value::is_string) => value.clone(),
        Value::Object(value) => object(json!({"type": "object", "properties": properties(value)?})),
        // A word for people.
        Value::String(_) | Value::Null => return Ok(None),
        _ => return Err(format!("`{key}` is no object")),
    };
    let schema = checked(key, schema)?;
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    let wanted = if is_object {
        schema
    } else {
        object(json!({"type": "object", "required": ["result"], "properties": {"result": schema}}))
    };
    let failed = json!({"type": "object", "required": ["error"], "properties": {"error": {}}});
    Ok(Some(object(json!({"type": "object", "anyOf": [wanted, failed]}))))
}

fn first_of<'t>(tool: &'t Schema, keys: &[&'static str]) -> Option<(&'static str, &'t Value)> {
    keys.iter().find_map(|key| Some((*key, tool.get(*key)?)))
}

/// Whether `parameters` is a schema, and no map of names to what they are.
fn is_schema(value: &Schema) -> bool {
    value.get("type").is_some_and(|kind| kind == "object") && value.get("properties").is_none_or(Value::is_object)
}

fn from_parameters(parameters: &Schema) -> Result<Schema, String> {
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

fn properties(of: &Schema) -> Result<Schema, String> {
    let property = |(name, value): (&String, &Value)| match value {
        Value::Object(value) if let Some(Value::String(word)) = value.get("required") => {
            Err(format!("`required` of `{name}` is \"{word}\"; write true or false"))
        }
        Value::Object(value) => Ok((name.clone(), Value::Object(property(value)))),
        Value::String(kind) => Ok((name.clone(), Value::Object(property(&object(json!({"type": kind})))))),
        _ => Err(format!("`{name}` is neither an object nor the word for a type")),
    };
    of.iter().map(property).collect()
}

/// What is said of one name, in JSON Schema's words. A type that nobody knows is left open.
fn property(said: &Schema) -> Schema {
    let mut property = said.clone();
    if property.get("required").is_some_and(Value::is_boolean) {
        property.remove("required");
    }
    if let Some(kind) = said.get("type").and_then(Value::as_str) {
        let known = ALIASES.iter().find(|(alias, _)| *alias == kind).map_or(kind, |(_, known)| known);
        if TYPES.contains(&known) {
            property.insert("type".to_owned(), known.into());
        } else {
            property.remove("type");
        }
    }
    property
}

/// A schema that can be used.
fn checked(key: &str, schema: Schema) -> Result<Schema, String> {
    let value = Value::Object(schema);
    if let Err(error) = jsonschema::validator_for(&value) {
        let reason = error.to_string();
        return Err(format!("`{key}` is no JSON Schema: {}", reason.lines().next().unwrap_or_default()));
    }
    Ok(object(value))
}

fn object(value: Value) -> Schema {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
