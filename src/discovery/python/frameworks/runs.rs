//! Where functions run a server, which they do not return from: the worker ends them there, or has them wait (`frameworks/runs.py`).

use std::collections::{HashMap, HashSet};

use ruff_python_ast::statement_visitor::{self, StatementVisitor};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{ExceptHandler, Expr, ExprCall, Stmt, StmtFunctionDef, StmtReturn, StmtTry};

use super::inner::Maker;
use super::{FRAMEWORKS, SERVERS, function_named, last_name, package, word_of};
use crate::discovery::is_standard;
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::names::Named;
use crate::discovery::python::syntax::Depth;
use crate::pep723::is_well_known;

/// Methods that serve or work, and return when that is over.
const RUNS: [&str; 14] = [
    "run",
    "run_async",
    "run_sync",
    "run_stdio_async",
    "run_sse_async",
    "run_http_async",
    "run_streamable_http_async",
    "run_forever",
    "run_until_complete",
    "serve",
    "serve_forever",
    "start",
    "launch",
    "invoke",
];

/// Those of them where the worker ends a function, or has a coroutine wait (`frameworks/runs.py`).
const ENDS: [&str; 7] =
    ["run", "run_async", "run_stdio_async", "run_sse_async", "run_http_async", "run_streamable_http_async", "serve"];

/// Functions that run what another one has made, or a coroutine.
const LOOPS: [&str; 2] = ["asyncio.run", "anyio.run"];

/// Whether a function runs a server, which it does not return from: `main`, `serve`. Others may have methods of these names, too, so
/// that only what is a server, or is called so, counts.
pub(in crate::discovery::python) fn runs_a_server<'a>(
    module: &Module<'a>,
    makers: &[Maker<'a>],
    function: &StmtFunctionDef,
) -> bool {
    let mut servers = ServerNames::within(module, &function.body);
    servers.retain(|_, made| is_server_made(module, makers, made));
    let parameters = function.parameters.iter_non_variadic_params().map(|it| it.parameter.name.as_str()).collect();
    let depth = Depth::default();
    let mut search = ServerRuns { module, makers, servers, parameters, depth, found: false };
    search.visit_body(&function.body);
    search.found
}

/// `FastMCP(…)`, `create_server(…)`, or a call of a function that makes tools.
fn is_server_made(module: &Module<'_>, makers: &[Maker<'_>], made: &ExprCall) -> bool {
    match function_named(module, &made.func) {
        Some(function) => {
            makers.iter().any(|maker| std::ptr::eq(maker.function, function)) || is_called_a_server(&function.name)
        }
        None => makes_server(module, &made.func),
    }
}

struct ServerRuns<'s, 'm, 'a> {
    module: &'m Module<'a>,
    makers: &'s [Maker<'a>],
    /// The names of servers that the function makes, and the calls that do.
    servers: HashMap<&'m str, &'m ExprCall>,
    parameters: HashSet<&'m str>,
    depth: Depth,
    found: bool,
}

impl ServerRuns<'_, '_, '_> {
    fn is_run(&self, call: &ExprCall) -> bool {
        let is_maker =
            |name: &str| self.makers.iter().any(|maker| maker.class.is_none() && *maker.function.name == *name);
        if name_of(&call.func).is_some_and(is_maker)
            || self.module.outside_name(&call.func).is_some_and(|full| full == "uvicorn.run")
        {
            return true;
        }
        let Some(method) = call.func.as_attribute_expr().filter(|method| ENDS.contains(&method.attr.as_str())) else {
            return false;
        };
        if let Some(made) = method.value.as_call_expr() {
            return is_server_made(self.module, self.makers, made);
        }
        // `server.run("restart")` is a command for another one.
        let is_plain = call.arguments.args.is_empty();
        match name_of(&method.value) {
            Some(name) if self.parameters.contains(name) => false,
            Some(name) => self.servers.contains_key(name) || is_plain && is_called_a_server(name),
            None => is_plain && is_server(self.module, &method.value),
        }
    }
}

impl<'e> Visitor<'e> for ServerRuns<'_, '_, '_> {
    fn visit_expr(&mut self, expression: &'e Expr) {
        self.found |= expression.as_call_expr().is_some_and(|call| self.is_run(call));
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// What the statements of a function do, without those of functions within it.
pub(super) struct Own<'m, 'a> {
    module: &'m Module<'a>,
    /// The names of servers that it makes.
    servers: HashMap<&'m str, &'m ExprCall>,
    /// Whether it waits where it runs a server. One that does not ends there, so that `with` or `finally` around it would be over.
    is_async: bool,
    pub runs: bool,
    pub yields: bool,
    depth: Depth,
}

impl<'m, 'a> Own<'m, 'a> {
    pub(super) fn of(module: &'m Module<'a>, function: &'m StmtFunctionDef) -> Self {
        Self::within(module, &function.body, function.is_async)
    }

    /// The same of statements that are not in a function.
    pub(super) fn of_program(module: &'m Module<'a>, body: &'m [Stmt]) -> Self {
        Self::within(module, body, false)
    }

    fn within(module: &'m Module<'a>, body: &'m [Stmt], is_async: bool) -> Self {
        let servers = ServerNames::within(module, body);
        let mut own = Self { module, servers, is_async, runs: false, yields: false, depth: Depth::default() };
        own.statements(body);
        own
    }

    fn statements(&mut self, body: &'m [Stmt]) {
        for statement in body {
            match statement {
                Stmt::If(branch) => {
                    self.visit_expr(&branch.test);
                    self.statements(&branch.body);
                    for clause in &branch.elif_else_clauses {
                        clause.test.iter().for_each(|test| self.visit_expr(test));
                        self.statements(&clause.body);
                    }
                }
                Stmt::Try(attempt) if lets_through(attempt) => {
                    self.statements(&attempt.body);
                    for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
                        self.visit_body(&handler.body);
                    }
                    self.statements(&attempt.orelse);
                }
                _ if self.is_end(statement) => {}
                _ => self.visit_stmt(statement),
            }
        }
    }

    /// Whether a statement runs a server, and nothing else.
    fn is_end(&self, statement: &Stmt) -> bool {
        let value = match statement {
            Stmt::Expr(expression) => &expression.value,
            Stmt::Return(StmtReturn { value: Some(value), .. }) => value,
            _ => return false,
        };
        let is_exit = |call: &ExprCall| self.module.outside_name(&call.func).is_some_and(|full| full == "sys.exit");
        let exited = value.as_call_expr().filter(|call| is_exit(call)).and_then(|call| call.arguments.args.first());
        let run = exited.unwrap_or(value).as_call_expr();
        run.is_some_and(|call| self.runs_server(call) || self.runs_function(call))
    }

    /// `mcp.run()`, `uvicorn.run(app)`, `asyncio.run(mcp.run_async())`
    fn runs_server(&self, call: &ExprCall) -> bool {
        let call = within_loop(self.module, call);
        if self.module.outside_name(&call.func).is_some_and(|full| full == "uvicorn.run") {
            return true;
        }
        let Some(method) = call.func.as_attribute_expr().filter(|method| ENDS.contains(&method.attr.as_str())) else {
            return false;
        };
        let is_made = method.value.as_call_expr().is_some_and(|made| makes_server(self.module, &made.func));
        is_made
            || name_of(&method.value).is_some_and(|name| self.servers.contains_key(name))
            || is_server(self.module, &method.value)
    }

    /// `mcp.run`
    fn is_run_method(&self, given: &Expr) -> bool {
        let method = given.as_attribute_expr().filter(|method| ENDS.contains(&method.attr.as_str()));
        method
            .and_then(|method| name_of(&method.value))
            .is_some_and(|name| self.servers.contains_key(name) || is_called_a_server(name))
    }

    /// `asyncio.run(serve(path))`, `anyio.run(serve)`: of a function, not a method of anything.
    fn runs_function(&self, call: &ExprCall) -> bool {
        let of = call.arguments.args.first().filter(|_| is_loop(self.module, call));
        of.is_some_and(|of| {
            of.is_name_expr()
                || self.is_run_method(of)
                || of.as_call_expr().is_some_and(|call| self.is_function(&call.func))
        })
    }

    fn is_function(&self, called: &Expr) -> bool {
        called.is_name_expr() || self.module.outside_name(called).is_some()
    }
}

/// Whether what ends a function goes through a `try`, which then does nothing.
fn lets_through(attempt: &StmtTry) -> bool {
    let is_limited = |ExceptHandler::ExceptHandler(handler): &ExceptHandler| {
        handler.type_.as_deref().is_some_and(|kind| name_of(kind) != Some("BaseException"))
    };
    attempt.finalbody.is_empty() && attempt.handlers.iter().all(is_limited)
}

/// The names that statements give to servers, and the calls that make those.
struct ServerNames<'m, 'a> {
    module: &'m Module<'a>,
    names: HashMap<&'m str, &'m ExprCall>,
}

impl<'m, 'a> ServerNames<'m, 'a> {
    fn within(module: &'m Module<'a>, body: &'m [Stmt]) -> HashMap<&'m str, &'m ExprCall> {
        let mut made = Self { module, names: HashMap::new() };
        made.visit_body(body);
        made.names
    }
}

impl<'m> StatementVisitor<'m> for ServerNames<'m, '_> {
    fn visit_stmt(&mut self, statement: &'m Stmt) {
        if let Some(assign) = statement.as_assign_stmt()
            && let Some(made) = assign.value.as_call_expr().filter(|call| makes_server(self.module, &call.func))
        {
            self.names.extend(assign.targets.iter().filter_map(name_of).map(|name| (name, made)));
        }
        if !statement.is_function_def_stmt() && !statement.is_class_def_stmt() {
            statement_visitor::walk_stmt(self, statement);
        }
    }
}

/// Whether a name means a server, of the file or by its name of another.
fn is_server(module: &Module<'_>, named: &Expr) -> bool {
    match module.resolve(named) {
        Named::Value { value, .. } => value.as_call_expr().is_some_and(|call| makes_server(module, &call.func)),
        Named::Outside(full) => is_called_a_server(&full),
        Named::Class(_) | Named::Nothing => false,
    }
}

/// `create_server`, `app.mcp`; not of the standard library. A name that is imported within a function is not a builtin.
fn is_called_a_server(full: &str) -> bool {
    let word = last_name(full);
    // Relative names have no package.
    let is_standard = !["builtins", ""].contains(&package(full)) && is_standard(package(full));
    let names_one = ["server", "mcp"].iter().any(|part| word.contains(part));
    word.starts_with(|c: char| c.is_ascii_lowercase()) && names_one && !is_standard
}

/// `FastMCP`, a function of the file, or one of another module with such a name.
fn makes_server(module: &Module<'_>, called: &Expr) -> bool {
    if function_named(module, called).is_some() {
        return true;
    }
    let full = module.outside_name(called);
    let is_other = |full: &str| last_name(full) == "Server" && matches!(package(full), "mcp" | "uvicorn");
    word_of(module, called).is_some_and(|class| SERVERS.contains(&class.as_str()))
        || full.is_some_and(|full| is_other(&full) || is_called_a_server(&full))
}

/// Whether a function is likely imported from another file of the project: from no package that is known, nor what runs applications.
fn is_of_project(module: &Module<'_>, called: &Expr) -> bool {
    const RUNNERS: [&str; 14] = [
        "uvicorn",
        "hypercorn",
        "granian",
        "gunicorn",
        "waitress",
        "werkzeug",
        "cheroot",
        "trio",
        "uvloop",
        "gradio",
        "streamlit",
        "flet",
        "nicegui",
        "panel",
    ];
    let is_foreign =
        |top: &str| is_standard(top) || FRAMEWORKS.contains(&top) || RUNNERS.contains(&top) || is_well_known(top);
    module.outside_name(called).is_some_and(|full| !is_foreign(package(&full)))
}

pub(super) fn is_loop(module: &Module<'_>, call: &ExprCall) -> bool {
    module.outside_name(&call.func).is_some_and(|full| LOOPS.contains(&full.as_str()))
}

/// `mcp.run_async()` of `asyncio.run(mcp.run_async())`
fn within_loop<'e>(module: &Module<'_>, call: &'e ExprCall) -> &'e ExprCall {
    call.arguments.args.first().and_then(Expr::as_call_expr).filter(|_| is_loop(module, call)).unwrap_or(call)
}

impl<'a> Visitor<'a> for Own<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !statement.is_function_def_stmt() && !statement.is_class_def_stmt() {
            visitor::walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            let word = match call.func.as_attribute_expr() {
                Some(method) => Some(method.attr.to_string()),
                // A function of another file of the project is followed.
                None => word_of(self.module, &call.func).filter(|_| !is_of_project(self.module, &call.func)),
            };
            let waits_there = self.is_async && self.runs_server(call);
            // `loop.run_in_executor(None, mcp.run)`
            self.runs |=
                !is_loop(self.module, call) && call.arguments.args.iter().any(|given| self.is_run_method(given));
            self.runs |= !waits_there && word.is_some_and(|word| RUNS.contains(&word.as_str()));
        }
        self.yields |= matches!(expression, Expr::Yield(_) | Expr::YieldFrom(_));
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ENDS;

    #[test]
    fn the_worker_stops_what_is_taken_for_an_end() {
        let worker = include_str!("../../../../worker-shims/python/hostler_worker/frameworks/runs.py");
        let listed = worker.lines().find_map(|line| line.strip_prefix("_RUNS = (")?.strip_suffix(')')).unwrap();
        let listed: Vec<&str> = listed.split(", ").map(|word| word.trim_matches('"')).collect();
        assert_eq!(listed, ENDS);
    }
}
