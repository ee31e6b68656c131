//! One function as a tool: its schemas from signature, hints and docstring.

use std::collections::HashSet;

use ruff_python_ast::{Expr, ParameterWithDefault, StmtFunctionDef};
use serde_json::{Map, Value};

use super::Function;
use super::classes::ClassKind;
use super::defaults::literal;
use super::docstring::Docstring;
use super::facts::Facts;
use super::hints::Hints;
use super::known::Known;
use super::limits::call_of;
use super::module::{Module, docstring_of};
use super::names::Named;
use super::result::output_schema;
use super::schema::{Schema, nullable, of_type};
use super::side::Side;
use super::text::JsonSchema;

/// Describes a public function; what cannot be called by name becomes a warning.
pub(super) fn describe<'a>(module: &mut Module<'a>, function: &'a StmtFunctionDef) -> Function {
    if let Some(rest) = &function.parameters.vararg {
        let text = format!(
            "`{}` takes *{}, which cannot be given by name and stays empty; take a list instead",
            function.name, rest.name
        );
        module.warn(module.lines.of_node(&**rest), "star-args", text);
    }
    let docs = docstring_of(&function.body).map(Docstring::parse).unwrap_or_default();
    Function {
        name: function.name.to_string(),
        input_schema: JsonSchema::of(&input_schema(module, function, &docs)),
        output_schema: output_schema(module, function, docs.returns.as_deref()).as_ref().map(JsonSchema::of),
        is_async: function.is_async,
        line: module.lines.of_node(&function.name),
        summary: docs.summary,
        description: docs.description,
        declared: None,
    }
}

fn input_schema<'a>(module: &Module<'a>, function: &'a StmtFunctionDef, docs: &Docstring) -> Schema {
    let mut hints = Hints::new(module, Side::Given);
    let mut schema = of_type("object");
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in function.parameters.iter_non_variadic_params() {
        let name = parameter.parameter.name.as_str();
        let (property, is_required) = property(&mut hints, parameter, docs.parameters.get(name));
        properties.insert(name.to_owned(), Value::Object(property));
        if is_required {
            required.push(Value::String(name.to_owned()));
        }
    }
    let further = match &function.parameters.kwarg {
        Some(rest) => match unpacked(&mut hints, rest.annotation()) {
            Some(mut options) => {
                if let Some(Value::Object(named)) = options.remove("properties") {
                    properties.extend(named);
                }
                if let Some(Value::Array(needed)) = options.remove("required") {
                    required.extend(needed);
                }
                Value::Bool(false)
            }
            None => hints.further_arguments(rest.annotation()),
        },
        None => Value::Bool(false),
    };
    schema.insert("properties".to_owned(), Value::Object(properties));
    // A name that stands there twice is no Python, but is parsed.
    let mut seen = HashSet::new();
    required.retain(|name: &Value| name.as_str().is_some_and(|name| seen.insert(name.to_owned())));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), further);
    let definitions = module.gather(hints.references);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// The schema of a parameter, and whether it must be given.
fn property(hints: &mut Hints<'_, '_>, parameter: &ParameterWithDefault, text: Option<&String>) -> (Schema, bool) {
    let mut schema = parameter.parameter.annotation().map(|hint| hints.hint(hint)).unwrap_or_default();
    let facts = match parameter.default() {
        None => Facts::required(),
        // As FastMCP has it: `count: int = Field(10, ge=1)`. The worker puts the default in its place.
        Some(value) => match call_of(hints.module, value, "pydantic.Field") {
            Some(call) => Facts::of_call(hints.module, call),
            None => Facts { default: literal(value, hints.module), ..Facts::default() },
        },
    };
    facts.limits.constrain(&mut schema, Side::Given);
    // `x: int = None` is how many people write an optional one.
    if parameter.default().is_some_and(Expr::is_none_literal_expr) {
        schema = nullable(schema);
    }
    schema.extend(facts.description.map(|text| ("description".to_owned(), Value::String(text))));
    if let Some(text) = text {
        schema.entry("description").or_insert_with(|| Value::String(text.clone()));
    }
    schema.extend(facts.default.map(|value| ("default".to_owned(), value)));
    (schema, facts.is_required)
}

/// `**options: Unpack[Options]`: the keys of a typed dictionary, as arguments.
fn unpacked(hints: &mut Hints<'_, '_>, hint: Option<&Expr>) -> Option<Schema> {
    let generic = hint?.as_subscript_expr()?;
    if hints.known(&generic.value) != Some(Known::Unpack) {
        return None;
    }
    let Named::Class(class) = hints.module.resolve(&generic.slice) else { return None };
    let is_dictionary = hints.module.lineage(class).kind == ClassKind::TypedDict;
    is_dictionary.then(|| hints.definition_of(class)).filter(|schema| schema.contains_key("properties"))
}
