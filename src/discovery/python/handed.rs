//! Functions that a file hands to something which calls them at its own moments: `Route("/", home)`, `FastAPI(lifespan=opened)`,
//! `Agent(…, before_agent_callback=note)`, `graph.add_node(plan)`.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, ExprCall, Stmt, StmtFunctionDef};

use super::frameworks::{is_agent, package};
use super::module::{Module, name_of};
use super::syntax::Depth;

/// The packages of web applications.
const WEB: [&str; 10] =
    ["aiohttp", "bottle", "fastapi", "flask", "litestar", "quart", "sanic", "starlette", "tornado", "falcon"];
/// Decorators of web applications, whose first argument is a path.
const ROUTES: [&str; 11] =
    ["route", "get", "post", "put", "delete", "patch", "head", "options", "websocket", "api_route", "websocket_route"];
/// Methods that add a handler.
const ADDING: [&str; 7] = [
    "add_route",
    "add_api_route",
    "add_url_rule",
    "add_websocket_route",
    "add_api_websocket_route",
    "add_get",
    "add_post",
];
/// What they call the handler.
const HANDLERS: [&str; 2] = ["endpoint", "view_func"];
/// What agents ask for their words.
const INSTRUCTIONS: [&str; 5] = ["instruction", "instructions", "global_instruction", "system_prompt", "prompt"];
/// Methods of graphs of `langgraph`.
const OF_GRAPHS: [&str; 3] = ["add_node", "add_conditional_edges", "set_conditional_entry_point"];
/// Decorators whose functions return something to enter, and no result.
const MANAGERS: [&str; 2] = ["contextlib.asynccontextmanager", "contextlib.contextmanager"];

/// These functions of a file.
#[derive(Default)]
pub(super) struct Handed<'a> {
    names: HashSet<&'a str>,
    /// Whether the file has a web application.
    is_web: bool,
    /// Whether a server of MCP has the handlers of web requests as its tools: `FastMCP.from_fastapi(app)`, `FastApiMCP(app)`.
    offers_handlers: bool,
}

impl<'a> Handed<'a> {
    pub(super) fn of(module: &Module<'a>, body: &'a [Stmt]) -> Self {
        let has_graphs = module.imports.iter().any(|import| import.starts_with("langgraph"));
        let is_web = module.imports.iter().any(|import| WEB.contains(&package(import)));
        let found = Self { is_web, ..Self::default() };
        let mut search = Search { module, has_graphs, local: Vec::new(), depth: Depth::default(), found };
        search.visit_body(body);
        search.found
    }

    /// Also where its decorators say so: a handler of web requests, a context manager.
    pub(super) fn has(&self, module: &Module<'_>, function: &StmtFunctionDef) -> bool {
        let is_for_others = |decorator: &Decorator| {
            let call = decorator.expression.as_call_expr();
            let method = call.and_then(|call| call.func.as_attribute_expr());
            let is_route = method.is_some_and(|method| ROUTES.contains(&method.attr.as_str()));
            let is_manager = || module.outside_name(&decorator.expression).is_some_and(|it| MANAGERS.contains(&&*it));
            is_route && self.is_web && !self.offers_handlers && call.is_some_and(begins_with_path) || is_manager()
        };
        self.names.contains(function.name.as_str()) || function.decorator_list.iter().any(is_for_others)
    }
}

/// `"/users/{id}"`, or `"GET", "/users/{id}"`
fn begins_with_path(call: &ExprCall) -> bool {
    let mut first = call.arguments.args.iter().take(2).filter_map(Expr::as_string_literal_expr);
    first.any(|text| text.value.to_str().starts_with('/'))
}

struct Search<'m, 'a> {
    module: &'m Module<'a>,
    /// Whether the file uses `langgraph`.
    has_graphs: bool,
    /// The parameters and variables of the functions around what is visited.
    local: Vec<HashSet<&'a str>>,
    depth: Depth,
    found: Handed<'a>,
}

impl<'a> Search<'_, 'a> {
    fn call(&mut self, call: &'a ExprCall) {
        let method = call.func.as_attribute_expr().map(|method| method.attr.as_str());
        let full = self.module.outside_name(&call.func).unwrap_or_default();
        self.found.offers_handlers |= method == Some("from_fastapi") || full == "fastapi_mcp.FastApiMCP";
        let is_of_web = WEB.contains(&package(&full));
        let adds = self.found.is_web && method.is_some_and(|name| ADDING.contains(&name));
        let is_route = (is_of_web || adds) && begins_with_path(call);
        let of_graph = self.has_graphs && method.is_some_and(|name| OF_GRAPHS.contains(&name));
        if of_graph || is_route {
            for value in &call.arguments.args {
                self.add(value);
            }
        }
        // `db = Depends(connect)`
        if full.rsplit('.').next() == Some("Depends") {
            let named = call.arguments.keywords.iter().map(|keyword| &keyword.value);
            call.arguments.args.iter().take(1).chain(named).for_each(|value| self.add(value));
        }
        let is_agent = is_agent(&full);
        for keyword in &call.arguments.keywords {
            let Some(name) = keyword.arg.as_deref() else { continue };
            let is_hook = || ["callback", "callbacks", "guardrails"].iter().any(|end| name.ends_with(end));
            let is_of_agent = is_agent && (INSTRUCTIONS.contains(&name) || is_hook());
            let serves = is_of_web || ["fastmcp", "mcp"].contains(&package(&full));
            // `Client(server, sampling_callback=answer)`
            let is_of_client = serves && ["_callback", "_handler"].iter().any(|end| name.ends_with(end));
            let is_lifespan = serves && name == "lifespan";
            if is_of_agent || is_of_client || is_lifespan || is_route && HANDLERS.contains(&name) {
                let values = keyword.value.as_list_expr().map_or(std::slice::from_ref(&keyword.value), |it| &it.elts);
                for value in values {
                    self.add(value);
                }
            }
        }
    }

    /// Not what the functions around call so.
    fn add(&mut self, value: &'a Expr) {
        let name = name_of(value).filter(|name| !self.local.iter().any(|names| names.contains(name)));
        self.found.names.extend(name);
    }
}

impl<'a> Visitor<'a> for Search<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let Stmt::FunctionDef(function) = statement else { return visitor::walk_stmt(self, statement) };
        let bound = function.body.iter().filter_map(Stmt::as_assign_stmt).flat_map(|assign| &assign.targets);
        let parameters = function.parameters.iter().map(|parameter| parameter.name().as_str());
        self.local.push(parameters.chain(bound.filter_map(name_of)).collect());
        visitor::walk_stmt(self, statement);
        self.local.pop();
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.call(call);
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
