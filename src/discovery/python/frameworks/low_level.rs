//! Servers of the MCP SDK's low level: one function lists all tools with their schemas, and another one is called for each of them.

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, ExprCall, StmtFunctionDef};
use serde_json::{Map, Value};

use super::{annotations, has_server_decorator, last_name, package, tool_name};
use crate::config::origin::Setting;
use crate::config::tool::ToolLayer;
use crate::discovery::python::known_types::Side;
use crate::discovery::python::literals::{keyword, literal};
use crate::discovery::python::module::{Module, Named};
use crate::discovery::python::schema::{Schema, of_type};
use crate::discovery::python::types::Hints;
use crate::discovery::{Function, JsonSchema, Role};
use crate::words::first_paragraph;

/// The class of these servers.
pub(super) const SERVER: &[&str] = &["Server"];
/// The rule of `check` about tools that cannot be read.
pub(in crate::discovery::python) const RULE: &str = "low-level-server";
/// Schemas that nest deeper are left open.
const DEEPEST: usize = 32;

/// The tools that the file's `@server.list_tools()` lists as literal `Tool(…)`, for its `@server.call_tool()`. Those that are computed
/// are left out, with a warning.
pub(in crate::discovery::python) fn low_level_tools(module: &mut Module<'_>) -> Vec<Function> {
    let with = |word| module.functions().into_iter().find(|it| has_server_decorator(module, it, SERVER, &[word]));
    let (Some(list), Some(call)) = (with("list_tools"), with("call_tool")) else { return Vec::new() };
    let mut found = Tools { module, calls: Vec::new() };
    found.visit_body(&list.body);
    let mut calls = found.calls;
    if calls.is_empty() {
        calls.extend(module.calls.iter().filter(|call| is_tool(module, call)));
    }
    let tools: Vec<Option<Function>> = calls.iter().map(|made| tool(module, call, made)).collect();
    let is_unread = tools.is_empty() || tools.iter().any(Option::is_none);
    if is_unread {
        let line = module.lines.of_node(&list.name);
        let what = format!("`{}` lists tools whose names are computed, and these are not served", list.name);
        module.warn(line, RULE, what, "write each as `Tool(name=\"…\", inputSchema={…})` in this file");
    }
    tools.into_iter().flatten().collect()
}

struct Tools<'m, 'a> {
    module: &'m Module<'a>,
    calls: Vec<&'a ExprCall>,
}

impl<'a> Visitor<'a> for Tools<'_, 'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression.as_call_expr().filter(|call| is_tool(self.module, call)) {
            Some(call) => self.calls.push(call),
            None => walk_expr(self, expression),
        }
    }
}

/// `Tool(…)`, `types.Tool(…)` of the SDK.
fn is_tool(module: &Module<'_>, call: &ExprCall) -> bool {
    let full = module.outside_name(&call.func);
    full.is_some_and(|full| last_name(&full) == "Tool" && matches!(package(&full), "mcp" | "mcp_types"))
}

fn tool<'a>(module: &Module<'a>, handler: &StmtFunctionDef, call: &'a ExprCall) -> Option<Function> {
    let text = |key| keyword(call, key).and_then(|value| text(module, value));
    let name = text("name")?;
    let description = text("description");
    let schema = ["inputSchema", "input_schema"].into_iter().find_map(|key| keyword(call, key));
    let hints = keyword(call, "annotations").map(|written| annotations(module, written));
    let (mut hints, effects) = hints.unwrap_or_default();
    hints.title = text("title").or(hints.title);
    let declared = effects
        .map(|effects| Box::new(ToolLayer { effects: Some(Setting::declared(effects)), ..ToolLayer::default() }));
    Some(Function {
        symbol: Some(format!("call_tool:{}:{name}", handler.name)),
        name: tool_name(&name),
        served_as: None,
        summary: description.as_deref().map(first_paragraph),
        description: description.map(|text| text.trim().to_owned()),
        input_schema: JsonSchema::of(
            &schema.map_or_else(|| of_type("object"), |schema| written_schema(module, schema)),
        ),
        output_schema: None,
        is_async: true,
        line: module.lines.of_node(call),
        role: Role::Tool,
        declared,
        hints: hints.if_any(),
        defined_in: None,
    })
}

/// A literal text, or the value of an enumeration's member: `Names.SEARCH.value`.
fn text(module: &Module<'_>, value: &Expr) -> Option<String> {
    let member = value.as_attribute_expr().filter(|it| it.attr.as_str() == "value").map_or(value, |it| &*it.value);
    match literal(value, module).or_else(|| literal(member, module))? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The schema of arguments that is written as a dictionary, or `Search.model_json_schema()`. What is computed in it is left open.
pub(super) fn written_schema<'a>(module: &Module<'a>, schema: &'a Expr) -> Schema {
    if let Some(class) = schema.as_call_expr().and_then(|call| call.func.as_attribute_expr())
        && matches!(class.attr.as_str(), "model_json_schema" | "schema")
    {
        return of_class(module, &class.value);
    }
    let written = match partly_literal(module, schema, DEEPEST) {
        Some(Value::Object(mut schema)) => {
            schema.shift_remove("$schema");
            schema.insert("type".to_owned(), "object".into());
            Value::Object(schema)
        }
        _ => Value::Null,
    };
    match written {
        Value::Object(schema) if jsonschema::validator_for(&Value::Object(schema.clone())).is_ok() => schema,
        _ => of_type("object"),
    }
}

/// The schema of a model or a typed dictionary as arguments.
pub(super) fn of_class(module: &Module<'_>, class: &Expr) -> Schema {
    let Named::Class(class) = module.resolve(class) else { return of_type("object") };
    let mut hints = Hints::new(module, Side::Validated);
    let mut schema = hints.definition_of(class);
    schema.entry("type").or_insert_with(|| "object".into());
    let definitions = module.gather(hints.references);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// A literal without the parts that are computed. Those restrict what is accepted, so that less of them is more open.
fn partly_literal(module: &Module<'_>, value: &Expr, depth: usize) -> Option<Value> {
    let Expr::Dict(dictionary) = value else {
        return literal(value, module).or_else(|| constant(module, value, depth));
    };
    let depth = depth.checked_sub(1)?;
    if !module.budget.spend(dictionary.items.len() + 1) {
        return None;
    }
    let mut object = Map::new();
    for item in &dictionary.items {
        let key = item.key.as_ref()?.as_string_literal_expr()?.value.to_str();
        let value = match partly_literal(module, &item.value, depth) {
            // The names of arguments are known, whatever their schemas are.
            None if item.value.is_dict_expr() || key == "properties" => return None,
            other => other,
        };
        object.extend(value.map(|value| (key.to_owned(), value)));
    }
    Some(Value::Object(object))
}

/// A dictionary that the file has as a constant.
fn constant(module: &Module<'_>, value: &Expr, depth: usize) -> Option<Value> {
    match module.resolve(value) {
        Named::Value { value, is_alias: false, .. } if value.is_dict_expr() => {
            partly_literal(module, value, depth.checked_sub(1)?)
        }
        _ => None,
    }
}
