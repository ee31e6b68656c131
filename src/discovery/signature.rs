//! One function as a tool: its schema from signature, hints and docstring.

use std::sync::Arc;

use ruff_python_ast::{Expr, ParameterWithDefault, StmtFunctionDef};
use serde_json::{Map, Value};

use super::Function;
use super::defaults::literal;
use super::docstring::Docstring;
use super::hints::Hints;
use super::module::{Module, docstring_of};
use super::schema::{Schema, nullable, of_type};

/// Describes a public function; what cannot be called by name becomes a warning.
pub(super) fn describe(module: &mut Module<'_>, function: &StmtFunctionDef) -> Function {
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
        input_schema: Arc::new(input_schema(module, function, &docs)),
        output_schema: None,
        is_async: function.is_async,
        line: module.lines.of_node(&function.name),
        summary: docs.summary,
        description: docs.description,
    }
}

fn input_schema(module: &Module<'_>, function: &StmtFunctionDef, docs: &Docstring) -> Schema {
    let mut hints = Hints::new(module);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in function.parameters.iter_non_variadic_params() {
        let name = parameter.parameter.name.as_str();
        let property = property(&mut hints, parameter, docs.parameters.get(name));
        properties.insert(name.to_owned(), Value::Object(property));
        if parameter.default.is_none() {
            required.push(Value::String(name.to_owned()));
        }
    }
    let further = match &function.parameters.kwarg {
        Some(rest) => hints.further_arguments(rest.annotation()),
        None => Value::Bool(false),
    };
    let mut schema = of_type("object");
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), further);
    if !hints.definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(hints.definitions));
    }
    schema
}

fn property(hints: &mut Hints<'_, '_>, parameter: &ParameterWithDefault, text: Option<&String>) -> Schema {
    let mut schema = parameter.parameter.annotation().map(|hint| hints.hint(hint)).unwrap_or_default();
    let default = parameter.default().and_then(|value| literal(value, hints.module));
    // `x: int = None` is how many people write an optional one.
    if parameter.default().is_some_and(Expr::is_none_literal_expr) {
        schema = nullable(schema);
    }
    if let Some(text) = text {
        schema.entry("description").or_insert_with(|| Value::String(text.clone()));
    }
    schema.extend(default.map(|value| ("default".to_owned(), value)));
    schema
}
