//! Tools that take all arguments as one dictionary, and say apart from their parameters which those are: Claude's SDK,
//! `@tool("add", "Adds two numbers.", {"a": float, "b": float})`, and modules of Strands with `TOOL_SPEC = {"name": "add", …}`.

use ruff_python_ast::{Expr, ExprCall, ExprDict, StmtFunctionDef};
use serde_json::{Map, Value};

use super::low_level::{of_class, written_schema};
use super::{Arguments, Offer, package, text};
use crate::discovery::python::known_types::Side;
use crate::discovery::python::literals::keyword;
use crate::discovery::python::module::{Binding, Module};
use crate::discovery::python::names::Named;
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

/// What the worker knows a function by that `TOOL_SPEC` describes (`frameworks/strands.py`).
pub(in crate::discovery::python) const TOOL_SPEC: &str = "tool_spec:";

/// The function that the file's `TOOL_SPEC` describes: `def add(tool: ToolUse, **kwargs)`.
pub(super) fn described_by_spec<'a>(module: &Module<'a>) -> Option<(&'a StmtFunctionDef, Offer<'a>)> {
    let Some(Binding::Value(Expr::Dict(spec))) = module.bindings.get("TOOL_SPEC") else { return None };
    let name = text(member(spec, "name")?)?;
    let Some(Binding::Function(function)) = module.bindings.get(name) else { return None };
    let declared = member(spec, "inputSchema").and_then(Expr::as_dict_expr).and_then(|schema| member(schema, "json"));
    let description = member(spec, "description").and_then(text);
    let arguments = Arguments::Request(declared);
    Some((function, Offer { name: Some(name), description, arguments, remakes_result: true, ..Offer::default() }))
}

pub(super) fn member<'a>(dictionary: &'a ExprDict, wanted: &str) -> Option<&'a Expr> {
    let is_wanted = |key: &Option<Expr>| key.as_ref().and_then(text) == Some(wanted);
    dictionary.items.iter().find(|item| is_wanted(&item.key)).map(|item| &item.value)
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
