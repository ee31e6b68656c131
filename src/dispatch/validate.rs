//! Arguments against the tool's schema, before any worker is asked: what is wrong, where, what was expected, what came.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::whole::{Inexact, whole};
use crate::config::section::nearest;
use crate::outcome::{Code, Fault};
use crate::registry::Tool;

/// How many mistakes are told at once.
const MOST: usize = 5;

/// Checks a call's arguments, an object, and makes integers of its whole numbers where the schema wants them.
pub(super) fn arguments(tool: &Tool, arguments: &mut Value) -> Result<(), Fault> {
    let Some(validator) = tool.validator() else { return Ok(()) };
    if validator.is_valid(arguments) {
        return whole(arguments, tool.input_schema()).map_err(|Inexact(at)| inexact(tool, &place(&at)));
    }
    let mistakes: Vec<String> =
        validator.iter_errors(arguments).take(MOST).map(|error| sentence(tool, &error)).collect();
    let message = format!("{} was not called: {}", tool.name, mistakes.join("; "));
    Err(Fault::new(Code::InvalidParams, message))
}

fn inexact(tool: &Tool, place: &str) -> Fault {
    let message = format!(
        "{} was not called: `{place}` must be an integer, and one this large does not arrive exactly; let the tool take \
         it as a string",
        tool.name
    );
    Fault::new(Code::InvalidParams, message)
}

fn sentence(tool: &Tool, error: &ValidationError<'_>) -> String {
    let place = place(&error.instance_path().to_string());
    let of = |name: &str| if place.is_empty() { format!("`{name}`") } else { format!("`{place}.{name}`") };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = properties(tool);
            let one = |name: &String| match nearest(name, known.iter().map(String::as_str)) {
                Some(near) if place.is_empty() => format!("unknown argument `{name}`, did you mean `{near}`?"),
                _ if place.is_empty() && known.is_empty() => format!("unknown argument `{name}`, it takes none"),
                _ if place.is_empty() => format!("unknown argument `{name}`, it takes {}", known.join(", ")),
                _ => format!("unknown field {}", of(name)),
            };
            unexpected.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            if place.is_empty() {
                format!("missing argument `{name}`{}", expected(tool, name))
            } else {
                format!("missing field {}", of(name))
            }
        }
        ValidationErrorKind::Type { kind } => {
            format!("`{place}` must be {}, and {} came", types(kind), came(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            format!("`{place}` must be one of {options}, and {} came", came(error.instance()))
        }
        ValidationErrorKind::AnyOf { context } => any_of(tool, error, context),
        _ => format!("`{place}`: {error}"),
    }
}

/// A value that fits none of several branches. Where it is of the kind that one of them wants, what is wrong within it is
/// told; else which kinds are wanted.
fn any_of(tool: &Tool, error: &ValidationError<'_>, branches: &[Vec<ValidationError<'_>>]) -> String {
    let here = error.instance_path();
    let kind_of = |inner: &ValidationError<'_>| (inner.instance_path() == here).then(|| wanted(inner)).flatten();
    let is_of_its_kind = |branch: &&Vec<ValidationError<'_>>| branch.iter().all(|inner| kind_of(inner).is_none());
    if let Some(branch) = branches.iter().find(is_of_its_kind) {
        return branch.iter().take(MOST).map(|inner| sentence(tool, inner)).collect::<Vec<_>>().join("; ");
    }
    let mut kinds: Vec<String> = branches.iter().flatten().filter_map(kind_of).collect();
    kinds.dedup();
    format!("`{}` must be {}, and {} came", place(&here.to_string()), kinds.join(" or "), came(error.instance()))
}

/// What one branch of an `anyOf` asked for.
fn wanted(error: &ValidationError<'_>) -> Option<String> {
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

fn properties(tool: &Tool) -> Vec<String> {
    let properties = tool.input_schema().get("properties").and_then(Value::as_object);
    properties.map(|map| map.keys().cloned().collect()).unwrap_or_default()
}

fn expected(tool: &Tool, name: &str) -> String {
    let property = tool.input_schema().get("properties").and_then(|all| all.get(name));
    let kind = property.and_then(|property| property.get("type")?.as_str());
    kind.map(|kind| format!(" ({kind})")).unwrap_or_default()
}

/// A JSON pointer as people write it: `items[2].name`.
pub(super) fn place(pointer: &str) -> String {
    let mut text = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push('[');
            text.push_str(&step);
            text.push(']');
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&step);
        }
    }
    text
}

/// A value as a person would name it, shortened.
fn came(value: &Value) -> String {
    let text = value.to_string();
    let short: String = text.chars().take(60).collect();
    let cut = if short.len() < text.len() { "…" } else { "" };
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format!("the boolean {short}"),
        Value::Number(_) => format!("the number {short}"),
        Value::String(_) => format!("the string {short}{cut}"),
        Value::Array(_) => format!("the list {short}{cut}"),
        Value::Object(_) => format!("the object {short}{cut}"),
    }
}
