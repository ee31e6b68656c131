//! Functions that something else calls than an agent: programs, their command lines, and what frameworks call at their own moments.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, Stmt, StmtFunctionDef};

use super::frameworks::{is_server_class, last_name, package, runs_a_server};
use super::handed::Handed;
use super::module::{Module, name_of};
use super::names::Named;
use super::syntax::Depth;
use crate::discovery::is_standard;

/// The functions of a file that are no tools unless its `__all__` names them.
pub(super) struct Entries<'m, 'a> {
    module: &'m Module<'a>,
    run: HashSet<&'a str>,
    decorators: HashSet<&'a str>,
    handed: Handed<'a>,
    uses_argparse: bool,
    /// Whether it imports more than Python has.
    uses_packages: bool,
}

impl<'m, 'a> Entries<'m, 'a> {
    pub(super) fn of(module: &'m Module<'a>, body: &'a [Stmt]) -> Self {
        let tops = || module.imports.iter().map(|import| import.split('.').next().unwrap_or_default());
        let uses_packages = tops().any(|top| !is_standard(top));
        Self {
            module,
            run: run_at_top(module).collect(),
            decorators: Decorators::of(body),
            handed: if uses_packages { Handed::of(module, body) } else { Handed::default() },
            uses_argparse: tops().any(|top| top == "argparse"),
            uses_packages,
        }
    }

    pub(super) fn has(&self, function: &StmtFunctionDef) -> bool {
        let name = function.name.as_str();
        self.run.contains(name)
            || self.decorators.contains(name)
            || self.handed.has(self.module, function)
            || is_of_lambda(function)
            || is_hook(self.module, function)
            || self.uses_argparse && (self.takes_namespace(function) || MakesParser::is_in(self.module, function))
            || self.uses_packages
                && (takes_request(self.module, function)
                    || returns_a_server(self.module, function)
                    || runs_a_server(self.module, &[], function))
    }

    /// `def search(args: argparse.Namespace)`, `def search(args)`
    fn takes_namespace(&self, function: &StmtFunctionDef) -> bool {
        let mut parameters = function.parameters.iter_non_variadic_params();
        let Some(first) = parameters.next().filter(|_| parameters.next().is_none()) else { return false };
        match first.annotation() {
            Some(annotation) => self.module.outside_name(annotation).is_some_and(|full| full == "argparse.Namespace"),
            None => first.parameter.name.as_str() == "args" && ReadsArgs::is_in(function),
        }
    }
}

/// The names of the decorators of a file: `timed` of `@timed`, `retry` of `@retry(3)`.
#[derive(Default)]
struct Decorators<'a> {
    names: HashSet<&'a str>,
    /// The names of the functions and classes within those around.
    local: Vec<&'a str>,
    depth: Depth,
}

impl<'a> Decorators<'a> {
    fn of(body: &'a [Stmt]) -> HashSet<&'a str> {
        let mut search = Self::default();
        search.visit_body(body);
        search.names
    }
}

impl<'a> Visitor<'a> for Decorators<'a> {
    fn visit_decorator(&mut self, decorator: &'a Decorator) {
        let called = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &call.func);
        self.names.extend(name_of(called).filter(|name| !self.local.contains(name)));
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let inner = match statement {
            Stmt::ClassDef(class) => &class.body[..],
            Stmt::FunctionDef(function) => &function.body[..],
            _ => &[],
        };
        let outer = self.local.len();
        self.local.extend(inner.iter().filter_map(|statement| match statement {
            Stmt::FunctionDef(function) => Some(function.name.as_str()),
            Stmt::ClassDef(class) => Some(class.name.as_str()),
            _ => None,
        }));
        if self.depth.enter() {
            visitor::walk_stmt(self, statement);
            self.depth.leave();
        }
        self.local.truncate(outer);
    }

    fn visit_expr(&mut self, _expression: &'a Expr) {}
}

/// Whether a function reads `args.name`.
#[derive(Default)]
struct ReadsArgs {
    found: bool,
    depth: Depth,
}

impl ReadsArgs {
    fn is_in(function: &StmtFunctionDef) -> bool {
        let mut search = Self::default();
        search.visit_body(&function.body);
        search.found
    }
}

impl<'e> Visitor<'e> for ReadsArgs {
    fn visit_expr(&mut self, expression: &'e Expr) {
        self.found |= expression.as_attribute_expr().is_some_and(|it| name_of(&it.value) == Some("args"));
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// `def lambda_handler(event, context)`, which AWS Lambda calls.
fn is_of_lambda(function: &StmtFunctionDef) -> bool {
    let parameters = function.parameters.iter_non_variadic_params().map(|it| it.parameter.name.as_str());
    function.name.as_str() == "lambda_handler" && parameters.eq(["event", "context"])
}

/// `async def health(request: Request)` of a web application
fn takes_request(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    const REQUESTS: [&str; 4] = ["starlette", "fastapi", "aiohttp", "sanic"];
    let mut parameters = function.parameters.iter_non_variadic_params();
    let only = parameters.next().filter(|_| parameters.next().is_none());
    let full = only.and_then(|parameter| module.outside_name(parameter.annotation()?)).unwrap_or_default();
    full.split_once('.').is_some_and(|(package, rest)| REQUESTS.contains(&package) && rest.ends_with("Request"))
}

/// `def build() -> FastMCP`, `def build() -> Starlette`, or without a hint `return Server(…)`
fn returns_a_server(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    const APPLICATIONS: [&str; 9] = [
        "aiohttp.Application",
        "fastapi.FastAPI",
        "flask.Flask",
        "litestar.Litestar",
        "mcp.Server",
        "quart.Quart",
        "sanic.Sanic",
        "starlette.Starlette",
        "tornado.Application",
    ];
    let is_one = |class: &Expr| {
        let class = class.as_subscript_expr().map_or(class, |it| &it.value);
        let named = match class.as_string_literal_expr() {
            Some(text) => {
                let mut parts = text.value.to_str().split('.');
                let first = parts.next().unwrap_or_default();
                module.bound(first, &parts.collect::<Vec<_>>())
            }
            None => module.resolve(class),
        };
        let Named::Outside(full) = named else { return false };
        let short = format!("{}.{}", package(&full), last_name(&full));
        is_server_class(&full) || APPLICATIONS.contains(&short.as_str())
    };
    if let Some(hint) = function.returns.as_deref() {
        return is_one(hint);
    }
    let made = |value: &Expr| value.as_call_expr().is_some_and(|call| is_one(&call.func));
    let returned = function.body.iter().rev().find_map(|statement| statement.as_return_stmt()?.value.as_deref());
    returned.is_some_and(|value| {
        let mut assigned = function.body.iter().filter_map(Stmt::as_assign_stmt);
        made(value)
            || assigned.any(|one| {
                made(&one.value) && one.targets.iter().any(|it| name_of(it).is_some() && name_of(it) == name_of(value))
            })
    })
}

/// Whether a function makes the parser of the file's command line.
struct MakesParser<'m, 'a> {
    module: &'m Module<'a>,
    found: bool,
    depth: Depth,
}

impl<'m, 'a> MakesParser<'m, 'a> {
    /// One that needs arguments parses those.
    fn is_in(module: &'m Module<'a>, function: &StmtFunctionDef) -> bool {
        let mut parameters = function.parameters.iter_non_variadic_params();
        if parameters.any(|parameter| parameter.default().is_none()) {
            return false;
        }
        let mut search = Self { module, found: false, depth: Depth::default() };
        search.visit_body(&function.body);
        search.found
    }
}

impl<'e> Visitor<'e> for MakesParser<'_, '_> {
    fn visit_expr(&mut self, expression: &'e Expr) {
        if let Expr::Call(call) = expression {
            let full = self.module.outside_name(&call.func);
            let is_local = || call.func.as_attribute_expr().is_some_and(|it| it.attr.as_str() == "ArgumentParser");
            self.found |= full.map_or_else(is_local, |full| full == "argparse.ArgumentParser");
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// What frameworks call at their own moments: `@agent.system_prompt`, `@app.exception_handler(ValueError)`.
const HOOKS: [&str; 22] = [
    "input_guardrail",
    "output_guardrail",
    "on_message",
    "on_chat_start",
    "on_chat_end",
    "system_prompt",
    "instructions",
    "output_validator",
    "result_validator",
    "exception_handler",
    "errorhandler",
    "on_event",
    "on_startup",
    "on_shutdown",
    "middleware",
    "before_request",
    "after_request",
    "teardown_request",
    "before_serving",
    "after_serving",
    "listens_for",
    "fixture",
];

/// The packages whose decorators these are.
const HOOKING: [&str; 12] = [
    "agents",
    "aiohttp",
    "chainlit",
    "fastapi",
    "flask",
    "litestar",
    "pydantic_ai",
    "pytest",
    "quart",
    "sanic",
    "sqlalchemy",
    "starlette",
];

fn is_hook(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    let package = |import: &String| HOOKING.contains(&import.split('.').next().unwrap_or_default());
    module.imports.iter().any(package)
        && function.decorator_list.iter().any(|decorator| {
            let called = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &call.func);
            let word = called.as_attribute_expr().map(|attribute| attribute.attr.to_string());
            let word = word.or_else(|| module.outside_name(called)?.rsplit('.').next().map(str::to_owned));
            word.is_some_and(|word| HOOKS.contains(&word.as_str()))
        })
}

/// The functions that the file runs when it is loaded: `asyncio.run(main())`.
fn run_at_top<'a>(module: &Module<'a>) -> impl Iterator<Item = &'a str> {
    let loops =
        module.calls.iter().filter(|call| module.outside_name(&call.func).is_some_and(|full| full == "asyncio.run"));
    // One with arguments is an example of a call.
    let plain =
        loops.filter_map(|call| call.arguments.args.first()?.as_call_expr().filter(|it| it.arguments.is_empty()));
    plain.filter_map(|run| name_of(&run.func))
}
