//! Constraints beside a type: `Annotated[X, …]`, `Field(…)`, and types that a call makes, such as `conint(ge=1)`.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use serde_json::{Value, json};

use super::fields::FieldInfo;
use super::known_types::{KnownType, Side};
use super::literals::{keyword, literal};
use super::module::Module;
use super::names::Named;
use super::schema::Schema;
use super::types::Hints;

/// Constraints by their names in pydantic and typer.
#[derive(Default)]
pub(super) struct Constraints(Vec<(&'static str, Value)>);

const NAMES: [&str; 11] =
    ["ge", "gt", "le", "lt", "min", "max", "multiple_of", "min_length", "max_length", "pattern", "regex"];

impl Constraints {
    /// Reads the keywords of `Field(…)`, `StringConstraints(…)`, `conint(…)` and similar calls.
    pub(super) fn of_keywords(module: &Module<'_>, call: &ExprCall) -> Self {
        let is_of_typer = || module.outside_name(&call.func).is_some_and(|name| name.starts_with("typer."));
        let names = NAMES.iter().filter(|name| !matches!(**name, "min" | "max") || is_of_typer());
        let constraints = names.filter_map(|name| Some((*name, literal(keyword(call, name)?, module)?)));
        Self(constraints.collect())
    }

    /// Reads an argument of `Annotated` by its full name: `annotated_types.Ge(0)`, `StringConstraints(pattern="…")`.
    pub(super) fn of_note(module: &Module<'_>, name: &str, call: &ExprCall) -> Self {
        let Some(note) = name.strip_prefix("annotated_types.") else {
            let is_known =
                matches!(name, "pydantic.StringConstraints" | "pydantic.types.StringConstraints" | "msgspec.Meta");
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

    /// Adds the constraints that apply to the type of a schema. Results have none: an annotation does not keep a function from
    /// returning other values.
    pub(super) fn constrain(&self, schema: &mut Schema, side: Side) {
        if !side.is_input() || self.0.is_empty() {
            return;
        }
        let is_decimal = *schema == KnownType::Decimal.bare(side);
        if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
            let is_null = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "null");
            let mut others: Vec<&mut Value> = branches.iter_mut().filter(|branch| !is_null(branch)).collect();
            // With several types, it is unknown which one a constraint is for.
            if others.len() > 1 && !is_decimal {
                return;
            }
            others.iter_mut().filter_map(|branch| branch.as_object_mut()).for_each(|branch| self.write(branch));
        } else {
            self.write(schema);
        }
    }

    fn write(&self, schema: &mut Schema) {
        // The length counts bytes, not the characters of base64.
        if schema.contains_key("contentEncoding") {
            return;
        }
        let kind = schema.get("type").and_then(Value::as_str).map(str::to_owned);
        for (limit, value) in &self.0 {
            let key = match (*limit, kind.as_deref()) {
                ("ge" | "min", Some("integer" | "number")) => "minimum",
                ("gt", Some("integer" | "number")) => "exclusiveMinimum",
                ("le" | "max", Some("integer" | "number")) => "maximum",
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

/// Whether pydantic changes a string before it checks these limits: `StringConstraints(strip_whitespace=True)`.
fn changes_text(module: &Module<'_>, call: &ExprCall) -> bool {
    let says =
        |name: &&str| keyword(call, name).is_some_and(|value| literal(value, module) != Some(Value::Bool(false)));
    ["strip_whitespace", "to_lower", "to_upper"].iter().any(says)
}

/// Leaves out what a string may satisfy only once pydantic has changed it.
pub(super) fn drop_limits_of_texts(schema: &mut Schema) {
    if schema.get("type").is_some_and(|kind| kind == "string") {
        schema.retain(|key, _| !matches!(key.as_str(), "maxLength" | "pattern"));
    }
    let branches = schema.get_mut("anyOf").and_then(Value::as_array_mut);
    branches.into_iter().flatten().filter_map(Value::as_object_mut).for_each(drop_limits_of_texts);
}

/// Whether a keyword may have this value. An invalid one would leave the whole tool without validation.
fn is_sound(key: &str, value: &Value) -> bool {
    match key {
        // Regular expressions of Python and of JSON Schema differ.
        "pattern" => value.is_string() && jsonschema::validator_for(&json!({ "pattern": value })).is_ok(),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        _ if key.starts_with("min") && key != "minimum" || key.starts_with("max") && key != "maximum" => value.is_u64(),
        _ => value.is_number(),
    }
}

/// Functions that describe a parameter as `pydantic.Field` does.
const FIELDS: [&str; 10] = [
    "pydantic.Field",
    "pydantic.fields.Field",
    "fastapi.Query",
    "fastapi.Body",
    "fastapi.Path",
    "fastapi.Header",
    "fastapi.Form",
    "fastapi.Cookie",
    "typer.Option",
    "typer.Argument",
];

/// Whether a full name is of a function that describes a field.
pub(super) fn is_field(name: &str) -> bool {
    FIELDS.contains(&name)
}

/// The call of a function that describes a field.
pub(super) fn field_call<'e, 'a: 'e>(module: &Module<'a>, expression: &'e Expr) -> Option<&'e ExprCall> {
    let call = constant(module, expression).as_call_expr()?;
    is_field(&module.outside_name(&call.func)?).then_some(call)
}

/// What a constant is bound to: `LIMIT` with `LIMIT = Field(10, ge=1)`.
fn constant<'e, 'a: 'e>(module: &Module<'a>, expression: &'e Expr) -> &'e Expr {
    match module.resolve(expression) {
        Named::Value { value, is_alias: false, .. } => value,
        _ => expression,
    }
}

/// Annotations of pydantic that read a value before its type does, so that it may be anything.
const COME_FIRST: [&str; 4] =
    ["pydantic.BeforeValidator", "pydantic.PlainValidator", "pydantic.WrapValidator", "pydantic.WithJsonSchema"];
/// Annotations of pydantic after which the written form is unknown.
const WRITE_ANYHOW: [&str; 3] = ["pydantic.PlainSerializer", "pydantic.WrapSerializer", "pydantic.WithJsonSchema"];

impl Hints<'_, '_> {
    /// `Annotated[X, …]`: a string is the description; constraints of pydantic and of `annotated_types` apply to arguments.
    pub(super) fn annotated(&mut self, inner: &Expr, notes: &[Expr]) -> Schema {
        let mut schema = self.hint(inner);
        let mut changes = false;
        for note in notes {
            if let Expr::StringLiteral(text) = note {
                schema.insert("description".to_owned(), text.value.to_str().into());
                continue;
            }
            let note = constant(self.module, note);
            let call = note.as_call_expr();
            if self.defines_its_own_form(call.map_or(note, |call| &call.func)) {
                return Schema::new();
            }
            let Some(name) = self.module.outside_name(call.map_or(note, |call| &call.func)) else { continue };
            if self.is_overruled_by(&name) {
                return Schema::new();
            }
            if let Some(call) = call {
                self.note(&name, call, &mut schema);
                changes |= changes_text(self.module, call);
            }
        }
        if changes {
            drop_limits_of_texts(&mut schema);
        }
        schema
    }

    /// Whether an annotation is of a class of the file that defines its own form for pydantic.
    fn defines_its_own_form(&self, note: &Expr) -> bool {
        let Named::Class(class) = self.module.resolve(note) else { return false };
        let mut functions = class.body.iter().filter_map(Stmt::as_function_def_stmt);
        functions.any(|function| function.name.as_str() == "__get_pydantic_core_schema__")
    }

    fn is_overruled_by(&self, note: &str) -> bool {
        match self.side {
            Side::Given | Side::Validated => COME_FIRST.contains(&note),
            Side::Dumped => WRITE_ANYHOW.contains(&note),
            Side::Returned => false,
        }
    }

    fn note(&self, name: &str, call: &ExprCall, schema: &mut Schema) {
        let description = match name {
            name if is_field(name) => {
                let info = FieldInfo::of_call(self.module, call);
                info.constraints.constrain(schema, self.side);
                schema.extend(info.annotations);
                info.description
            }
            "typing_extensions.Doc" | "annotated_doc.Doc" => {
                let text = call.arguments.args.first().and_then(|text| text.as_string_literal_expr());
                text.map(|text| text.value.to_str().to_owned())
            }
            _ => {
                Constraints::of_note(self.module, name, call).constrain(schema, self.side);
                let text = keyword(call, "description").filter(|_| name == "msgspec.Meta");
                text.and_then(|text| literal(text, self.module)?.as_str().map(str::to_owned))
            }
        };
        schema.extend(description.map(|text| ("description".to_owned(), Value::String(text))));
    }
}

/// A type that a call makes.
pub(super) fn called_type(hints: &mut Hints<'_, '_>, call: &ExprCall) -> Schema {
    let Some(name) = hints.module.outside_name(&call.func) else { return Schema::new() };
    let first = call.arguments.args.first();
    let mut schema = match (name.as_str(), &*call.arguments.args) {
        ("pydantic.conint", []) => KnownType::Integer.bare(hints.side),
        ("pydantic.confloat", []) => KnownType::Number.bare(hints.side),
        ("pydantic.constr", []) => KnownType::Text.bare(hints.side),
        ("pydantic.condecimal", []) => KnownType::Decimal.bare(hints.side),
        ("pydantic.conlist", [_]) => KnownType::List.bare(hints.side),
        ("pydantic.conset" | "pydantic.confrozenset", [_]) => KnownType::Set.bare(hints.side),
        _ => match (KnownType::named(&name), &*call.arguments.args) {
            (Some(KnownType::NewType | KnownType::MadeAlias), [_, inner]) => return hints.hint(inner),
            _ => return Schema::new(),
        },
    };
    if let Some(item) = first.filter(|_| !schema.is_empty()) {
        let item = hints.inner(item);
        schema.extend((!item.is_empty()).then_some(("items".to_owned(), Value::Object(item))));
    }
    Constraints::of_keywords(hints.module, call).constrain(&mut schema, hints.side);
    if changes_text(hints.module, call) {
        drop_limits_of_texts(&mut schema);
    }
    schema
}
