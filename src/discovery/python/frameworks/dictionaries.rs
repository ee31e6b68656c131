//! Tools that take all arguments as one dictionary, and say which those are in their decorator: Claude's SDK,
//! `@tool("add", "Adds two numbers.", {"a": float, "b": float})`.

use ruff_python_ast::{Expr, ExprCall};
use serde_json::{Map, Value};

use super::low_level::{of_class, written_schema};
use super::{Arguments, Offer, package};
use crate::discovery::python::known_types::Side;
use crate::discovery::python::literals::keyword;
use crate::discovery::python::module::{Module, Named};
use crate::discovery::python::schema::{Schema, of_type};
use crate::discovery::python::types::Hints;

/// Whether the decorator is that of Claude's SDK.
pub(super) fn is_of_claude(module: &Module<'_>, call: &ExprCall) -> bool {
    let full = module.outside_name(&call.func);
    full.is_some_and(|full| matches!(package(&full), "claude_agent_sdk" | "claude_code_sdk"))
}

/// The third argument is a dictionary of types, a JSON Schema or a class.
pub(super) fn offer_of<'a>(call: &'a ExprCall, offer: Offer<'a>) -> Offer<'a> {
    let declared = call.arguments.args.get(2).or_else(|| keyword(call, "input_schema"));
    Offer { arguments: Arguments::Dictionary(declared), remakes_result: true, ..offer }
}

/// The schema of such arguments.
pub(in crate::discovery::python) fn arguments_in<'a>(module: &Module<'a>, declared: Option<&'a Expr>) -> Schema {
    let Some(declared) = declared else { return of_type("object") };
    let declared = match module.resolve(declared) {
        Named::Value { value, is_alias: false, .. } => value,
        _ => declared,
    };
    let Expr::Dict(types) = declared else { return of_class(module, declared) };
    let mut hints = Hints::new(module, Side::Given);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for item in &types.items {
        let Some(name) = item.key.as_ref().and_then(Expr::as_string_literal_expr) else { return of_type("object") };
        if item.value.is_string_literal_expr() || item.value.is_dict_expr() {
            return written_schema(module, declared);
        }
        properties.insert(name.value.to_str().to_owned(), Value::Object(hints.hint(&item.value)));
        let name = Value::from(name.value.to_str());
        if !required.contains(&name) {
            required.push(name);
        }
    }
    let mut schema = of_type("object");
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), Value::Array(required));
    let definitions = module.gather(hints.references);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}
