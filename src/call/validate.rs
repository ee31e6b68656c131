//! Validates arguments against the tool's schema before a worker runs: where, what was expected, what was received.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::places::{declared_place, described, place, shortened};
use crate::config::section::nearest;
use crate::outcome::{Code, Details, Fault};
use crate::registry::{Check, Tool};

/// The most mistakes that one message lists.
const MAX_MISTAKES: usize = 5;
/// The most bytes of a name that no parameter has.
const MAX_NAME: usize = 200;

/// Validates a call's arguments, and converts whole floats to integers where the schema has integers.
pub fn arguments(tool: &Tool, arguments: &mut Value) -> Result<(), Fault> {
    let mut failed = None;
    for check in tool.input_checks() {
        if check.validator.is_valid(arguments) {
            return whole(arguments, check.schema).map_err(|Inexact(at)| inexact(tool, &place(&at)));
        }
        failed = Some(check);
    }
    let Some(Check { schema, validator }) = failed else { return Ok(()) };
    let mistakes = validator.iter_errors(arguments).take(MAX_MISTAKES);
    let (sentences, places): (Vec<String>, Vec<String>) =
        mistakes.map(|error| (sentence(schema, &error), declared_place(error.evaluation_path().as_str()))).unzip();
    let message = format!("{} was not called: {}", tool.name, sentences.join("; "));
    Err(Fault::new(Code::InvalidParams, message).with(Details { places, ..Details::default() }))
}

fn inexact(tool: &Tool, place: &str) -> Fault {
    let message = format!(
        "{} was not called: `{place}`: expected an exact integer, got a float too large to be exact; change the \
         parameter to a string",
        tool.name
    );
    Fault::new(Code::InvalidParams, message)
}

fn sentence(root: &Map<String, Value>, error: &ValidationError<'_>) -> String {
    let place = place(&error.instance_path().to_string());
    let of = |name: &str| if place.is_empty() { format!("`{name}`") } else { format!("`{place}.{name}`") };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known: Vec<&str> = properties(root, error).map(|(name, _)| name.as_str()).collect();
            let what = if place.is_empty() { "argument" } else { "field" };
            let one = |name: &String| {
                let name = &name[..name.floor_char_boundary(MAX_NAME)];
                match nearest(name, known.iter().copied()) {
                    Some(near) => format!("unknown {what} {}, did you mean `{near}`?", of(name)),
                    None if known.is_empty() => format!("unknown {what} {}, expected none", of(name)),
                    None => format!("unknown {what} {}, expected {}", of(name), known.join(", ")),
                }
            };
            unexpected.iter().take(MAX_MISTAKES).map(one).collect::<Vec<_>>().join("; ")
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let what = if place.is_empty() { "argument" } else { "field" };
            let property = properties(root, error).find(|(known, _)| *known == name);
            let kind = property.and_then(|(_, property)| referred(root, property).get("type")?.as_str());
            let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
            format!("missing {what} {}{kind}", of(name))
        }
        ValidationErrorKind::Type { kind } => {
            let of = |one: &str| types(kind).split(" or ").any(|kind| kind == one);
            format!(
                "`{place}`: expected {}, got {}{}",
                types(kind),
                described(error.instance()),
                json_hint(error.instance(), of)
            )
        }
        ValidationErrorKind::Enum { options } => {
            format!("`{place}`: expected one of {options}, got {}", described(error.instance()))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            any_of(root, error, context)
        }
        _ => format!("`{place}`: {}", error.masked_with(shortened(error.instance()))),
    }
}

/// A value that matches no branch of a union. Where it has the type of some branches, describes the mistake inside the one that is
/// likely meant: its tag has the right value, and it has the fewest mistakes. Otherwise lists the expected types.
fn any_of(root: &Map<String, Value>, error: &ValidationError<'_>, branches: &[Vec<ValidationError<'_>>]) -> String {
    let here = error.instance_path();
    let kind_of = |inner: &ValidationError<'_>| (inner.instance_path() == here).then(|| expected(inner)).flatten();
    let is_of_its_kind = |branch: &&Vec<ValidationError<'_>>| branch.iter().all(|inner| kind_of(inner).is_none());
    let similar: Vec<_> = branches.iter().filter(is_of_its_kind).collect();
    if let Some(sentence) = no_such_tag(error, &similar) {
        return sentence;
    }
    let is_tagged_otherwise = |branch: &[ValidationError<'_>]| branch.iter().any(|inner| is_tag(error, inner));
    if let Some(branch) = similar.iter().min_by_key(|branch| (is_tagged_otherwise(branch), branch.len())) {
        return branch.iter().take(MAX_MISTAKES).map(|inner| sentence(root, inner)).collect::<Vec<_>>().join("; ");
    }
    // A branch with exact values is described by those, not by its type.
    let is_exact = |inner: &&ValidationError<'_>| {
        matches!(inner.kind(), ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. })
    };
    let exact = |branch: &Vec<ValidationError<'_>>| branch.iter().find(is_exact).and_then(kind_of);
    let mut kinds: Vec<String> = branches
        .iter()
        .flat_map(|branch| exact(branch).map_or_else(|| branch.iter().filter_map(kind_of).collect(), |one| vec![one]))
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    kinds.retain(|kind| seen.insert(kind.clone()));
    let hint = json_hint(error.instance(), |kind| kinds.iter().any(|one| one == kind));
    let got = described(error.instance());
    format!("`{}`: expected {}, got {got}{hint}", place(&here.to_string()), kinds.join(" or "))
}

/// Whether a mistake is that a member of the value is not one of the exact values allowed, as for the tag of a class.
fn is_tag(error: &ValidationError<'_>, inner: &ValidationError<'_>) -> bool {
    let inside = inner.instance_path().as_str().strip_prefix(error.instance_path().as_str());
    let is_member = inside.and_then(|rest| rest.strip_prefix('/')).is_some_and(|name| !name.contains('/'));
    is_member && matches!(inner.kind(), ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. })
}

/// What a tag may be, where every branch has one at the same place and none has this value.
fn no_such_tag(error: &ValidationError<'_>, branches: &[&Vec<ValidationError<'_>>]) -> Option<String> {
    let tags = branches.iter().map(|branch| branch.iter().find(|inner| is_tag(error, inner)));
    let tags: Vec<_> = tags.collect::<Option<_>>()?;
    let (first, at) = (tags.first()?, tags.first()?.instance_path().as_str());
    if tags.len() < 2 || tags.iter().any(|tag| tag.instance_path().as_str() != at) {
        return None;
    }
    let values = tags.iter().flat_map(|tag| match tag.kind() {
        ValidationErrorKind::Constant { expected_value } => vec![Value::clone(expected_value)],
        ValidationErrorKind::Enum { options } => options.as_array().cloned().unwrap_or_default(),
        _ => Vec::new(),
    });
    let mut distinct: Vec<Value> = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    let values = Value::Array(distinct);
    Some(format!("`{}`: expected one of {values}, got {}", place(at), described(first.instance())))
}

/// A hint for a string that contains the expected value as JSON.
fn json_hint(value: &Value, is_expected: impl Fn(&str) -> bool) -> &'static str {
    let text = value.as_str().unwrap_or_default().trim_start();
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    match text.bytes().next() {
        Some(b'[') if is_expected("array") && is_json() => {
            "; the string contains JSON: remove the quotes around it to send a list"
        }
        Some(b'{') if is_expected("object") && is_json() => {
            "; the string contains JSON: remove the quotes around it to send an object"
        }
        _ => "",
    }
}

/// What one branch of an `anyOf` expects.
fn expected(error: &ValidationError<'_>) -> Option<String> {
    match error.kind() {
        ValidationErrorKind::Type { kind } => Some(types(kind)),
        ValidationErrorKind::Enum { options } => Some(format!("one of {options}")),
        ValidationErrorKind::Constant { expected_value } => Some(expected_value.to_string()),
        _ => None,
    }
}

pub(super) fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(many) => many.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or "),
    }
}

/// The properties of the object that an error is about: the tool's arguments, or the fields of a nested class.
fn properties<'t>(
    root: &'t Map<String, Value>,
    error: &ValidationError<'_>,
) -> impl Iterator<Item = (&'t String, &'t Value)> {
    let path = error.schema_path().to_string();
    let mut steps: Vec<&str> = path.split('/').skip(1).collect();
    // The last step is the violated keyword; the object precedes it.
    steps.pop();
    let mut object = None;
    for step in steps {
        let here = object.map_or_else(|| root.get(step), |value| below(value, step));
        object = here.map(|value| referred(root, value));
    }
    let properties = match object {
        None => root.get("properties"),
        Some(object) => object.get("properties"),
    };
    properties.and_then(Value::as_object).into_iter().flatten()
}

fn below<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match (value, step) {
        // The reference is already resolved.
        (value, "$ref") => Some(value),
        (Value::Array(items), step) => items.get(step.parse::<usize>().ok()?),
        (value, step) => value.get(step),
    }
}

/// A schema, or the definition that it references.
fn referred<'t>(root: &'t Map<String, Value>, schema: &'t Value) -> &'t Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix("#/$defs/"));
    let definition = name.and_then(|name| root.get("$defs")?.get(name));
    definition.unwrap_or(schema)
}

/// Floats from 2^53 on do not represent every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The JSON pointer of an integer that is too large to be exact.
pub(super) struct Inexact(pub String);

/// Converts whole floats to integers where the schema has integers.
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
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the schema accepted it as whole, and it is below 2^53"
            )]
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

/// The schema that applies to a value: itself, or the only union branch that fits its kind and, for objects, its
/// names.
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

/// Whether the schema accepts an integer here and no other number.
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
    fn a_whole_float_becomes_an_integer_only_where_the_schema_has_one() {
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
    fn a_mistake_in_a_union_is_that_of_the_branch_that_is_meant() {
        let tagged = |tag: &str, rest: Value| json!({"type": "object", "properties": {"type": {"const": tag}, "x": rest}, "required": ["type", "x"]});
        let schema = json!({"properties": {
            "tree": {"anyOf": [tagged("and", json!({"type": "array"})), tagged("leaf", json!({"minimum": 1}))]},
            "either": {"anyOf": [
                {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"], "additionalProperties": false},
                {"type": "object", "properties": {"c": {"type": "integer"}}, "required": ["c"]},
            ]},
        }});
        let validator = jsonschema::validator_for(&schema).unwrap();
        for (given, words) in [
            (json!({"tree": {"type": "leaf", "x": 0}}), "`tree.x`: 0 is less than the minimum of 1"),
            (
                json!({"tree": {"type": "or", "x": 2}}),
                "`tree.type`: expected one of [\"and\",\"leaf\"], got the string \"or\"",
            ),
            (json!({"tree": {"x": 2}}), "missing field `tree.type`"),
            (json!({"tree": 1}), "`tree`: expected object, got the number 1"),
            (json!({"either": {"c": "x"}}), "`either.c`: expected integer, got the string \"x\""),
        ] {
            let error = validator.iter_errors(&given).next().unwrap();
            assert_eq!(sentence(schema.as_object().unwrap(), &error), words);
        }
    }

    #[test]
    fn an_integer_too_large_to_be_exact_is_refused() {
        assert_eq!(made(json!({"count": 1e16})).unwrap_err(), "/count");
        assert_eq!(made(json!({"rows": [[1], [2, 1e300]]})).unwrap_err(), "/rows/1/1");
        assert_eq!(made(json!({"count": u64::MAX})).unwrap(), json!({"count": u64::MAX}));
    }
}
