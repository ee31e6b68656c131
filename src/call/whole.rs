//! Whole numbers. JSON has one kind of number, and `2.0` is an integer to its schemas; Python has two, and `range(2.0)`
//! fails. Where a schema says integer, the tool gets one.

use serde_json::{Map, Value};

/// From here on, numbers that were written with a point or an exponent, or with more than 64 bits, are no longer exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// An integer that was too large to be read exactly, and where it stands, as a JSON pointer.
pub(super) struct Inexact(pub String);

/// Makes integers of the numbers that the schema calls integers.
pub(super) fn whole(arguments: &mut Value, root: &Map<String, Value>) -> Result<(), Inexact> {
    members(arguments, root, root)
}

fn members(object: &mut Value, schema: &Map<String, Value>, root: &Map<String, Value>) -> Result<(), Inexact> {
    let Value::Object(object) = object else { return Ok(()) };
    let of = |name: &str| schema.get("properties").and_then(|all| all.get(name)).or(schema.get("additionalProperties"));
    for (name, value) in object {
        if let Some(schema) = of(name) {
            within(value, schema, root).map_err(|Inexact(rest)| Inexact(format!("/{name}{rest}")))?;
        }
    }
    Ok(())
}

fn within(value: &mut Value, schema: &Value, root: &Map<String, Value>) -> Result<(), Inexact> {
    let schema = behind(schema, root);
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if !says_integer(schema, float, root) {
                return Ok(());
            }
            if float.abs() >= EXACT {
                return Err(Inexact(String::new()));
            }
            #[expect(clippy::cast_possible_truncation, reason = "the schema has found it whole, and it is below 2^53")]
            let integer = float as i64;
            *value = integer.into();
        }
        Value::Array(_) => {
            let Some(schema) = branch(schema, root, value) else { return Ok(()) };
            let Value::Array(items) = value else { return Ok(()) };
            let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let rest = schema.get("items").filter(|each| each.is_object());
            for (index, item) in items.iter_mut().enumerate() {
                let Some(each) = first.get(index).or(rest) else { continue };
                within(item, each, root).map_err(|Inexact(rest)| Inexact(format!("/{index}{rest}")))?;
            }
        }
        Value::Object(_) => {
            if let Some(schema) = branch(schema, root, value).and_then(Value::as_object) {
                members(value, schema, root)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn behind<'s>(schema: &'s Value, root: &'s Map<String, Value>) -> &'s Value {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/"));
    reference.and_then(|name| root.get("$defs")?.get(name)).unwrap_or(schema)
}

/// What a schema says of a value: itself, or the branch for its kind and, of objects, for the names that are there. Where
/// several could be meant nothing is changed.
fn branch<'s>(schema: &'s Value, root: &'s Map<String, Value>, value: &Value) -> Option<&'s Value> {
    let Some(branches) = schema.get("anyOf").and_then(Value::as_array) else { return Some(schema) };
    let kind = if value.is_array() { "array" } else { "object" };
    let is_there = |name: &Value| name.as_str().is_some_and(|name| value.get(name).is_some());
    let fits = |branch: &&Value| {
        let required = branch.get("required").and_then(Value::as_array);
        branch.get("type").is_none_or(|other| other == kind) && required.is_none_or(|all| all.iter().all(is_there))
    };
    let mut fitting = branches.iter().map(|branch| behind(branch, root)).filter(fits);
    fitting.next().filter(|_| fitting.next().is_none())
}

/// Integer and no other number, perhaps or null or text; or one of a few values, and that one an integer.
fn says_integer(schema: &Value, value: f64, root: &Map<String, Value>) -> bool {
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let kinds = branches.map_or_else(|| vec![schema], |branches| branches.iter().map(|it| behind(it, root)).collect());
    let says = |word: &str| kinds.iter().any(|kind| kind.get("type").is_some_and(|kind| kind == word));
    let is_it = |one: &Value| !one.is_f64() && one.as_f64() == Some(value);
    let mut listed = kinds.iter().filter_map(|kind| kind.get("enum")?.as_array()).flatten();
    (says("integer") || listed.any(is_it)) && !says("number")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(mut arguments: Value) -> Result<Value, String> {
        let schema = json!({"properties": {
            "count": {"type": "integer"}, "ratio": {"type": "number"}, "any": {},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "number"}]},
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "choice": {"enum": ["a", 1, true, null]},
            "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "number"}], "items": {"type": "integer"}},
            "spots": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Spot"}}, {"$ref": "#/$defs/Spot"}, {"type": "null"}]},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}}, "spot": {"$ref": "#/$defs/Spot"},
        }, "$defs": {"Spot": {"type": "object", "properties": {"x": {"type": "integer"}}}}});
        let done = whole(&mut arguments, schema.as_object().unwrap());
        done.map(|()| arguments).map_err(|Inexact(place)| place)
    }

    #[test]
    fn a_whole_number_is_an_integer_where_the_schema_says_so_and_only_there() {
        let given = json!({"count": 2.0, "maybe": -3.0, "rows": [[1.0], [2]], "ratio": 2.0, "either": 2.0, "any": 2.0, "more": 2.0});
        let wanted = r#"{"count":2,"maybe":-3,"rows":[[1],[2]],"ratio":2.0,"either":2.0,"any":2.0,"more":2.0}"#;
        assert_eq!(made(given).unwrap().to_string(), wanted);
        let given = json!({"counts": {"a": 1.0}, "spot": {"x": 2.0, "y": 2.0}});
        assert_eq!(made(given).unwrap().to_string(), r#"{"counts":{"a":1},"spot":{"x":2,"y":2.0}}"#);
        let given = json!({"pair": [1.0, 2.0, 3.0], "spots": [{"x": 1.0}]});
        assert_eq!(made(given).unwrap().to_string(), r#"{"pair":[1,2.0,3],"spots":[{"x":1}]}"#);
        assert_eq!(made(json!({"choice": 1.0})).unwrap().to_string(), r#"{"choice":1}"#);
        assert_eq!(made(json!({"spots": {"x": 1.0}})).unwrap().to_string(), r#"{"spots":{"x":1}}"#);
        assert_eq!(made(json!({"maybe": null, "rows": []})).unwrap(), json!({"maybe": null, "rows": []}));
    }

    #[test]
    fn one_that_may_be_another_number_by_now_is_refused() {
        assert_eq!(made(json!({"count": 1e16})).unwrap_err(), "/count");
        assert_eq!(made(json!({"rows": [[1], [2, 1e300]]})).unwrap_err(), "/rows/1/1");
        assert_eq!(made(json!({"count": u64::MAX})).unwrap(), json!({"count": u64::MAX}));
    }
}
