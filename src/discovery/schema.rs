//! Small steps in building a JSON Schema. The empty schema means "not known" and admits anything.

use serde_json::{Map, Value, json};

/// A JSON Schema that is an object.
pub(super) type Schema = Map<String, Value>;

/// The schema in a `json!` literal.
pub(super) fn schema(value: Value) -> Schema {
    if let Value::Object(schema) = value { schema } else { Schema::new() }
}

pub(super) fn of_type(name: &str) -> Schema {
    schema(json!({ "type": name }))
}

/// Whether a schema says nothing about the value itself.
pub(super) fn admits_anything(schema: &Schema) -> bool {
    schema.keys().all(|key| matches!(key.as_str(), "description" | "default" | "title"))
}

/// Whether `null` is certainly among the values of a schema.
fn admits_null(schema: &Schema) -> bool {
    let is_null = schema.get("type").is_some_and(|kind| kind == "null");
    let in_enum = schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.contains(&Value::Null));
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let in_branch = branches.is_some_and(|all| all.iter().filter_map(Value::as_object).any(admits_null));
    admits_anything(schema) || is_null || in_enum || in_branch
}

/// Any of several schemas; one unknown among them makes the whole unknown.
pub(super) fn any_of(branches: impl IntoIterator<Item = Schema>) -> Schema {
    let mut distinct: Vec<Value> = Vec::new();
    for mut branch in branches {
        if admits_anything(&branch) {
            return Schema::new();
        }
        let inner = if branch.len() == 1 { branch.remove("anyOf") } else { None };
        let parts = match inner {
            Some(Value::Array(parts)) => parts,
            _ => vec![Value::Object(branch)],
        };
        for part in parts {
            if !distinct.contains(&part) {
                distinct.push(part);
            }
        }
    }
    match (distinct.len(), distinct.pop()) {
        (1, Some(only)) => schema(only),
        (_, Some(last)) => {
            distinct.push(last);
            schema(json!({ "anyOf": distinct }))
        }
        _ => Schema::new(),
    }
}

/// The same schema, or `null`. What is said about the value (its description) stays on the outside.
pub(super) fn nullable(mut inner: Schema) -> Schema {
    if admits_null(&inner) {
        return inner;
    }
    let description = inner.remove("description");
    let mut outer = any_of([inner, of_type("null")]);
    outer.extend(description.map(|text| ("description".to_owned(), text)));
    outer
}

/// One of a few values; all of one type are given that type too, which some clients need.
pub(super) fn one_of(values: Vec<Value>) -> Schema {
    let mut distinct: Vec<Value> = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    let mut kinds = distinct.iter().map(kind_of);
    let kind = kinds.next().flatten().filter(|first| kinds.all(|other| other == Some(*first)));
    let mut built = kind.map(of_type).unwrap_or_default();
    built.insert("enum".to_owned(), Value::Array(distinct));
    built
}

fn kind_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) => Some("string"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::Bool(_) => Some("boolean"),
        _ => None,
    }
}
