//! Functions that a file hands to something which calls them at its own moments: `Route("/", home)`, `FastAPI(lifespan=opened)`,
//! `Agent(…, before_agent_callback=note)`, `graph.add_node(plan)`.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, ExprCall, Stmt, StmtFunctionDef};

use super::frameworks::is_agent;
use super::module::{Module, name_of};
use super::syntax::Depth;

/// Decorators of web applications, whose first argument is a path.
const ROUTES: [&str; 11] =
    ["route", "get", "post", "put", "delete", "patch", "head", "options", "websocket", "api_route", "websocket_route"];
/// What web applications call a handler.
const HANDLERS: [&str; 4] = ["endpoint", "view_func", "handler", "lifespan"];
/// Methods of graphs of `langgraph`.
const OF_GRAPHS: [&str; 3] = ["add_node", "add_conditional_edges", "set_conditional_entry_point"];
/// Decorators whose functions return something to enter, and no result.
const MANAGERS: [&str; 2] = ["contextlib.asynccontextmanager", "contextlib.contextmanager"];

/// These functions of a file.
#[derive(Default)]
pub(super) struct Handed<'a> {
    names: HashSet<&'a str>,
    /// Whether a server of MCP has the handlers of web requests as its tools: `FastMCP.from_fastapi(app)`.
    offers_handlers: bool,
}

impl<'a> Handed<'a> {
    pub(super) fn of(module: &Module<'a>, body: &'a [Stmt]) -> Self {
        let has_graphs = module.imports.iter().any(|import| import.starts_with("langgraph"));
        let mut search = Search { module, has_graphs, depth: Depth::default(), found: Self::default() };
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
            is_route && !self.offers_handlers && call.is_some_and(begins_with_path) || is_manager()
        };
        self.names.contains(function.name.as_str()) || function.decorator_list.iter().any(is_for_others)
    }
}

/// `"/users/{id}"`
fn begins_with_path(call: &ExprCall) -> bool {
    let first = call.arguments.args.first().and_then(Expr::as_string_literal_expr);
    first.is_some_and(|text| text.value.to_str().starts_with('/'))
}

struct Search<'m, 'a> {
    module: &'m Module<'a>,
    /// Whether the file uses `langgraph`.
    has_graphs: bool,
    depth: Depth,
    found: Handed<'a>,
}

impl<'a> Search<'_, 'a> {
    fn call(&mut self, call: &'a ExprCall) {
        let method = call.func.as_attribute_expr().map(|method| method.attr.as_str());
        let of_graph = self.has_graphs && method.is_some_and(|name| OF_GRAPHS.contains(&name));
        if of_graph || begins_with_path(call) {
            self.found.names.extend(call.arguments.args.iter().filter_map(name_of));
        }
        self.found.offers_handlers |= method == Some("from_fastapi");
        let is_agent = self.module.outside_name(&call.func).is_some_and(|full| is_agent(&full));
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else { continue };
            if is_agent && name.as_str() != "tools" || HANDLERS.contains(&name.as_str()) {
                let values = keyword.value.as_list_expr().map_or(std::slice::from_ref(&keyword.value), |it| &it.elts);
                self.found.names.extend(values.iter().filter_map(name_of));
            }
        }
    }
}

impl<'a> Visitor<'a> for Search<'_, 'a> {
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
