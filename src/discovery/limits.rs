//! Limits on values: bounds, lengths and patterns, as pydantic and `annotated_types` spell them.

use ruff_python_ast::{Expr, ExprCall};
use serde_json::{Value, json};

use super::defaults::literal;
use super::facts::keyword;
use super::known::Known;
use super::module::Module;
use super::schema::Schema;
use super::side::Side;

/// Limits by their names in pydantic.
#[derive(Default)]
pub(super) struct Limits(Vec<(&'static str, Value)>);

const NAMES: [&str; 9] = ["ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern", "regex"];

impl Limits {
    /// Reads the keywords of `Field(…)`, `StringConstraints(…)`, `conint(…)` and their like.
    pub(super) fn of_keywords(module: &Module<'_>, call: &ExprCall) -> Self {
        let limits = NAMES.iter().filter_map(|name| Some((*name, literal(keyword(call, name)?, module)?)));
        Self(limits.collect())
    }

    /// Reads a note of `Annotated` by its full name: `annotated_types.Ge(0)`, `StringConstraints(pattern="…")`.
    pub(super) fn of_note(module: &Module<'_>, name: &str, call: &ExprCall) -> Self {
        let Some(note) = name.strip_prefix("annotated_types.") else {
            let is_known = matches!(name, "pydantic.StringConstraints" | "pydantic.types.StringConstraints");
            return if is_known { Self::of_keywords(module, call) } else { Self::default() };
        };
        let at = |index: usize, word: &str| {
            let value = call.arguments.args.get(index).or_else(|| keyword(call, word));
            value.and_then(|value| literal(value, module)).filter(|value| !value.is_null())
        };
        let one = |limit: &'static str| at(0, limit).map(|value| (limit, value)).into_iter().collect();
        Self(match note {
            "Ge" => one("ge"),
            "Gt" => one("gt"),
            "Le" => one("le"),
            "Lt" => one("lt"),
            "MultipleOf" => one("multiple_of"),
            "MinLen" => one("min_length"),
            "MaxLen" => one("max_length"),
            "Interval" => return Self::of_keywords(module, call),
            "Len" => {
                let both = [("min_length", at(0, "min_length")), ("max_length", at(1, "max_length"))];
                both.into_iter().filter_map(|(limit, value)| Some((limit, value?))).collect()
            }
            _ => Vec::new(),
        })
    }

    /// Writes the limits that have a meaning for the type of a schema into it. A result is not held to them: the
    /// annotation does not stop a function from returning more.
    pub(super) fn constrain(&self, schema: &mut Schema, side: Side) {
        if !side.is_input() || self.0.is_empty() {
            return;
        }
        let is_decimal = *schema == Known::Decimal.bare(side);
        if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
            let is_null = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "null");
            let mut others: Vec<&mut Value> = branches.iter_mut().filter(|branch| !is_null(branch)).collect();
            // Of several types it is not certain which one a limit is for.
            if others.len() > 1 && !is_decimal {
                return;
            }
            others.iter_mut().filter_map(|branch| branch.as_object_mut()).for_each(|branch| self.write(branch));
        } else {
            self.write(schema);
        }
    }

    fn write(&self, schema: &mut Schema) {
        // The characters of base64 are not the bytes that are counted.
        if schema.contains_key("contentEncoding") {
            return;
        }
        let kind = schema.get("type").and_then(Value::as_str).map(str::to_owned);
        for (limit, value) in &self.0 {
            let key = match (*limit, kind.as_deref()) {
                ("ge", Some("integer" | "number")) => "minimum",
                ("gt", Some("integer" | "number")) => "exclusiveMinimum",
                ("le", Some("integer" | "number")) => "maximum",
                ("lt", Some("integer" | "number")) => "exclusiveMaximum",
                ("multiple_of", Some("integer" | "number")) => "multipleOf",
                ("min_length", Some("string")) => "minLength",
                ("max_length", Some("string")) => "maxLength",
                ("min_length", Some("array")) => "minItems",
                ("max_length", Some("array")) => "maxItems",
                ("min_length", Some("object")) => "minProperties",
                ("max_length", Some("object")) => "maxProperties",
                ("pattern" | "regex", Some("string")) => "pattern",
                _ => continue,
            };
            if is_sound(key, value) {
                schema.insert(key.to_owned(), value.clone());
            }
        }
    }
}

/// Whether a keyword may have this value: one that does not compile would leave the whole tool unchecked.
fn is_sound(key: &str, value: &Value) -> bool {
    match key {
        // Python's expressions and those of JSON Schema are not quite the same language.
        "pattern" => value.is_string() && jsonschema::validator_for(&json!({ "pattern": value })).is_ok(),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        _ if key.starts_with("min") && key != "minimum" || key.starts_with("max") && key != "maximum" => value.is_u64(),
        _ => value.is_number(),
    }
}

/// Whether an expression is a call of a function from outside the file, by its full name.
pub(super) fn call_of<'e>(module: &Module<'_>, expression: &'e Expr, name: &str) -> Option<&'e ExprCall> {
    let call = expression.as_call_expr()?;
    (module.outside_name(&call.func)? == name).then_some(call)
}
