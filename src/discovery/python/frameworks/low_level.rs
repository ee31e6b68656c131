//! Servers of the MCP SDK's low level: one function lists all tools with their schemas, and another one is called for each of them.

use ruff_python_ast::statement_visitor::{self, StatementVisitor};
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef, StmtFunctionDef};
use serde_json::{Map, Value};

use super::of_instance::of_instance;
use super::{Maker, annotations, function_named, has_server_decorator, last_name, package, tool_name};
use crate::config::origin::Setting;
use crate::config::tool::ToolLayer;
use crate::discovery::python::known_types::Side;
use crate::discovery::python::literals::{keyword, literal};
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::names::Named;
use crate::discovery::python::schema::{Schema, of_type};
use crate::discovery::python::syntax::Depth;
use crate::discovery::python::types::Hints;
use crate::discovery::several::LOW_LEVEL;
use crate::discovery::{Function, JsonSchema, Role};
use crate::words::first_paragraph;

/// The class of these servers.
pub(super) const SERVER: &[&str] = &["Server"];
/// What a server is given its handlers by.
const LIST: &str = "on_list_tools";
const CALL: &str = "on_call_tool";
/// Schemas that nest deeper are left open.
const DEEPEST: usize = 32;

/// The functions of a low-level server that are marked by decorators, or that it is given.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::discovery::python) struct Handlers<'a> {
    pub list: Option<&'a StmtFunctionDef>,
    pub call: Option<&'a StmtFunctionDef>,
    /// Whether it is given them, as in the SDK's second version.
    pub are_given: bool,
}

/// A low-level server, and what the worker knows its `@server.call_tool()` by.
pub(in crate::discovery::python) struct LowLevel<'a> {
    list: &'a StmtFunctionDef,
    symbol: String,
    /// The function that makes it.
    around: Option<&'a StmtFunctionDef>,
    /// Whether that needs what only another function gives it.
    waits: bool,
}

impl<'a> LowLevel<'a> {
    /// That of a function that makes one.
    pub(in crate::discovery::python) fn made_by(module: &Module<'a>, maker: &Maker<'a>) -> Option<Self> {
        let call = maker.handlers.call?;
        // Another method of its class may list them.
        let class = |maker: &Maker<'a>| maker.class.map(|class| class.range.start());
        let mut of_class = module.offers.makers.iter().filter(|it| it.class.is_some() && class(it) == class(maker));
        let list = maker.handlers.list.or_else(|| of_class.find_map(|it| it.handlers.list))?;
        let is_method = !maker.function.range.contains_range(call.range);
        let symbol = if is_method { maker.symbol_of_method(module, call) } else { maker.symbol_of(module, call) };
        let around = Some(maker.function);
        Some(Self { list, symbol, around, waits: maker.waits })
    }

    /// That of the SDK's second version: `Server("x", on_list_tools=listed, on_call_tool=called)`, anywhere in the file.
    fn constructed(module: &Module<'a>) -> Option<Self> {
        let (list, call) = module.offers.given_handlers?;
        Some(Self { list, symbol: format!("on_call_tool:{}", call.name), around: None, waits: false })
    }

    fn of_file(module: &Module<'a>) -> Option<Self> {
        let with = |word| module.functions().into_iter().find(|it| has_server_decorator(module, it, SERVER, &[word]));
        let (list, call) = (with("list_tools")?, with("call_tool")?);
        Some(Self { list, symbol: format!("call_tool:{}", call.name), around: None, waits: false })
    }

    /// The tools that it lists as literal `Tool(…)`: in its `@server.list_tools()`, else around that, else anywhere in the file and its
    /// helpers. Those that are computed are left out, with a warning.
    pub(in crate::discovery::python) fn tools(&self, module: &mut Module<'a>, body: &'a [Stmt]) -> Vec<Function> {
        let places = [Some(&*self.list.body), self.around.map(|around| &*around.body)];
        let near =
            places.into_iter().flatten().map(|place| tools_within(module, place)).find(|calls| !calls.is_empty());
        // Those from elsewhere are of the first server that lists such.
        let is_first = module.servers.listing.handler.is_none();
        if near.is_none() && !self.waits && is_first {
            module.servers.listing.handler = Some(self.symbol.clone());
        }
        let calls = near.or_else(|| is_first.then(|| tools_within(module, body))).unwrap_or_default();
        let tools: Vec<Option<Function>> = calls.iter().map(|made| tool(module, &self.symbol, made)).collect();
        let is_unread = tools.is_empty() || tools.iter().any(Option::is_none);
        if is_unread {
            let line = module.lines.of_node(&self.list.name);
            let what = format!("`{}` lists tools whose names are computed, and these are not served", self.list.name);
            module.warn(line, LOW_LEVEL, what, "write each as `Tool(name=\"…\", inputSchema={…})` in this file");
        }
        tools.into_iter().flatten().collect()
    }
}

/// Whether a file marks handlers of a low-level server with decorators, as in the SDK's first version.
pub(super) fn marks_handlers(module: &Module<'_>) -> bool {
    let is_marked = |handlers: Handlers<'_>| handlers.list.is_some() && !handlers.are_given;
    LowLevel::of_file(module).is_some() || module.offers.makers.iter().any(|it| is_marked(it.handlers))
}

/// The functions of the file that a `Server(…)` is given to list and to call tools.
pub(super) fn given_handlers<'a>(
    module: &Module<'a>,
    body: &'a [Stmt],
) -> Option<(&'a StmtFunctionDef, &'a StmtFunctionDef)> {
    if !imports_mcp(module) {
        return None;
    }
    let handler = |call: &'a ExprCall, word| function_named(module, keyword(call, word)?);
    let servers = Calls::within(body, |call| is_server(module, call));
    servers.into_iter().find_map(|call| Some((handler(call, LIST)?, handler(call, CALL)?)))
}

/// The handlers that a function gives a `Server(…)`: functions within it, or methods of its class.
pub(super) fn handlers_within<'a>(
    module: &Module<'a>,
    around: &'a StmtFunctionDef,
    class: Option<&'a StmtClassDef>,
) -> Option<Handlers<'a>> {
    let own = |value: &Expr| match value {
        Expr::Name(name) => Local::named(&name.id, &around.body),
        Expr::Attribute(method) if name_of(&method.value) == Some("self") => {
            let mut methods = class?.body.iter().filter_map(Stmt::as_function_def_stmt);
            methods.find(|function| function.name.as_str() == method.attr.as_str())
        }
        _ => None,
    };
    // The one that lists them is only read.
    let listing = |value: &Expr| own(value).or_else(|| function_named(module, value));
    let servers = Calls::within(&around.body, |call| is_server(module, call));
    let (list, call) =
        servers.into_iter().find_map(|call| Some((listing(keyword(call, LIST)?)?, own(keyword(call, CALL)?)?)))?;
    Some(Handlers { list: Some(list), call: Some(call), are_given: true })
}

/// A function of some name within another one.
struct Local<'n, 'a> {
    name: &'n str,
    found: Option<&'a StmtFunctionDef>,
}

impl<'n, 'a> Local<'n, 'a> {
    fn named(name: &'n str, body: &'a [Stmt]) -> Option<&'a StmtFunctionDef> {
        let mut search = Self { name, found: None };
        search.visit_body(body);
        search.found
    }
}

impl<'a> StatementVisitor<'a> for Local<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) if function.name.as_str() == self.name => self.found = Some(function),
            // Their own functions are not seen here.
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            _ => statement_visitor::walk_stmt(self, statement),
        }
    }
}

/// `Server(…)`, `Server[State](…)` of the SDK.
fn is_server(module: &Module<'_>, call: &ExprCall) -> bool {
    let class = call.func.as_subscript_expr().map_or(&*call.func, |it| &*it.value);
    let full = module.outside_name(class);
    full.is_some_and(|full| SERVER.contains(&last_name(&full)) && package(&full) == "mcp")
}

pub(super) fn imports_mcp(module: &Module<'_>) -> bool {
    module.imports.iter().any(|import| matches!(package(import), "mcp" | "mcp_types"))
}

/// The tools of a file's low-level servers that the worker can make as they are.
pub(in crate::discovery::python) fn low_level_tools<'a>(module: &mut Module<'a>, body: &'a [Stmt]) -> Vec<Function> {
    let of_makers = module.offers.makers.iter().map(|maker| maker.handlers);
    let (lists, calls): (Vec<_>, Vec<_>) = of_makers.map(|it| (it.list, it.call)).unzip();
    if let (None, Some(call)) = (lists.into_iter().flatten().next(), calls.into_iter().flatten().next()) {
        let what = format!("`{}` is called for tools that no function of the file lists", call.name);
        module.warn(
            module.lines.of_node(&call.name),
            LOW_LEVEL,
            what,
            "list them with the server's `@list_tools()` in this file",
        );
    }
    let makers = module.offers.makers.iter().filter(|maker| maker.obstacle.is_none());
    let made = makers.filter_map(|maker| LowLevel::made_by(module, maker));
    let own = LowLevel::of_file(module).or_else(|| LowLevel::constructed(module));
    let servers: Vec<LowLevel<'a>> = own.into_iter().chain(made).collect();
    servers.iter().flat_map(|server| server.tools(module, body)).collect()
}

/// The tools that a file without a server of its own has for one of another file.
pub(in crate::discovery::python) fn tools_for_others<'a>(module: &mut Module<'a>, body: &'a [Stmt]) -> Vec<Function> {
    if module.servers.listing.has_handlers || !imports_mcp(module) || LowLevel::constructed(module).is_some() {
        return Vec::new();
    }
    let calls = tools_within(module, body);
    calls.iter().filter_map(|made| tool(module, "", made)).collect()
}

fn tools_within<'a>(module: &Module<'a>, body: &'a [Stmt]) -> Vec<&'a ExprCall> {
    Calls::within(body, |call| is_tool(module, call))
}

/// The outermost calls of a kind.
struct Calls<'a, F> {
    is_wanted: F,
    found: Vec<&'a ExprCall>,
    depth: Depth,
}

impl<'a, F: Fn(&ExprCall) -> bool> Calls<'a, F> {
    fn within(body: &'a [Stmt], is_wanted: F) -> Vec<&'a ExprCall> {
        let mut found = Self { is_wanted, found: Vec::new(), depth: Depth::default() };
        found.visit_body(body);
        found.found
    }
}

impl<'a, F: Fn(&ExprCall) -> bool> Visitor<'a> for Calls<'a, F> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression.as_call_expr().filter(|call| (self.is_wanted)(call)) {
            Some(call) => self.found.push(call),
            None if self.depth.enter() => {
                walk_expr(self, expression);
                self.depth.leave();
            }
            None => {}
        }
    }
}

/// `Tool(…)`, `types.Tool(…)` of the SDK.
fn is_tool(module: &Module<'_>, call: &ExprCall) -> bool {
    let full = module.outside_name(&call.func);
    full.is_some_and(|full| last_name(&full) == "Tool" && matches!(package(&full), "mcp" | "mcp_types"))
}

/// `handler` is what the worker knows the function by that is called for it.
fn tool<'a>(module: &Module<'a>, handler: &str, call: &'a ExprCall) -> Option<Function> {
    let written = |key| keyword(call, key).map(|value| of_instance(module, call, value).unwrap_or(value));
    let text = |key| written(key).and_then(|value| text(module, value));
    // What comes before this character is the way to a function.
    let name = text("name").filter(|name| !name.contains('>'))?;
    let description = text("description");
    let schema = ["inputSchema", "input_schema"].into_iter().find_map(written);
    let hints = written("annotations").map(|written| annotations(module, written));
    let (mut hints, effects) = hints.unwrap_or_default();
    hints.title = text("title").or(hints.title);
    let declared = effects
        .map(|effects| Box::new(ToolLayer { effects: Some(Setting::declared(effects)), ..ToolLayer::default() }));
    Some(Function {
        symbol: Some(format!("{handler}:{name}")),
        name: tool_name(&name),
        served_as: None,
        wanted: None,
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
        server: None,
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
pub(in crate::discovery::python) fn written_schema<'a>(module: &Module<'a>, schema: &'a Expr) -> Schema {
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
