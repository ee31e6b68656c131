//! Tools that a function makes when it is called: `def create_server(): … @mcp.tool …`, `def register(mcp): …`. The worker calls such
//! a function itself where it needs no more than a server (`frameworks/inner.py` of the worker).

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, ParameterWithDefault, Stmt, StmtClassDef, StmtFunctionDef};

use super::{MAKERS, Offer, SERVERS, is_maker, offer_of_decorator, read_offer, word_of};
use crate::discovery::python::module::{Binding, Module, name_of};
use crate::pep723::is_identifier;

/// The rule of `check` about them.
pub(in crate::discovery::python) const RULE: &str = "inner-tools";
/// What decorates the handlers of a low-level server.
const HANDLERS: [&str; 2] = ["list_tools", "call_tool"];
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

/// A function or method that makes tools.
#[derive(Debug)]
pub(in crate::discovery::python) struct Maker<'a> {
    pub function: &'a StmtFunctionDef,
    /// The class that it is a method of.
    class: Option<&'a StmtClassDef>,
    /// Why its tools are not served.
    pub obstacle: Option<&'static str>,
    tools: Vec<&'a StmtFunctionDef>,
}

impl<'a> Maker<'a> {
    /// What the worker calls to make them: `create_server`, `Server.register`.
    fn name(&self) -> String {
        let class = self.class.map(|class| format!("{}.", class.name)).unwrap_or_default();
        class + &self.function.name
    }

    /// Its tools that are served: what the worker knows each by, and what makes it one.
    pub fn served(&self, module: &Module<'a>) -> Vec<(String, &'a StmtFunctionDef, Offer<'a>)> {
        let served = self.tools.iter().filter(|tool| self.obstacle.is_none() && is_identifier(&tool.name));
        let offer = |tool: &'a StmtFunctionDef| {
            let offer = tool.decorator_list.iter().find_map(|decorator| offer_of(module, decorator))?;
            Some((format!("made:{}:{}", self.name(), tool.name), tool, offer))
        };
        served.filter_map(|tool| offer(tool)).collect()
    }
}

/// The outermost functions of a file that make tools, in the order of their lines.
pub(super) fn makers_of_tools<'a>(module: &Module<'a>, body: &'a [Stmt]) -> Vec<Maker<'a>> {
    let mut search = Search { module, around: None, classes: Vec::new(), found: Vec::new() };
    search.visit_body(body);
    let mut found = search.found;
    for maker in &mut found {
        maker.obstacle = maker.obstacle.or_else(|| obstacle(module, maker));
    }
    found
}

struct Search<'m, 'a> {
    module: &'m Module<'a>,
    /// The outermost function around the statement that is visited.
    around: Option<&'a StmtFunctionDef>,
    /// The classes around that.
    classes: Vec<&'a StmtClassDef>,
    found: Vec<Maker<'a>>,
}

impl<'a> Search<'_, 'a> {
    fn note(&mut self, around: &'a StmtFunctionDef, tool: &'a StmtFunctionDef) {
        let is_tool = |function: &StmtFunctionDef| function.decorator_list.iter().any(|one| self.makes_tool(one));
        // A tool may have an agent with tools of its own.
        if !is_tool(tool) || is_tool(around) {
            return;
        }
        if self.found.last().is_none_or(|last| !std::ptr::eq(last.function, around)) {
            let class = self.classes.last().copied();
            let obstacle = (self.classes.len() > 1).then_some("it is a method of a class within another");
            self.found.push(Maker { function: around, class, obstacle, tools: Vec::new() });
        }
        let Some(maker) = self.found.last_mut() else { return };
        if tool.decorator_list.iter().any(|decorator| word(decorator).is_some_and(|word| HANDLERS.contains(&word))) {
            maker.obstacle = Some("its server is one of the low level");
        } else {
            maker.tools.push(tool);
        }
    }

    /// `@mcp.tool()`, `@self.server.call_tool()`, and `@tool` of a framework
    fn makes_tool(&self, decorator: &Decorator) -> bool {
        let is_of_server = word(decorator).is_some_and(|word| MAKERS.contains(&word) || HANDLERS.contains(&word));
        is_of_server || decorator.expression.is_name_expr() && is_maker(self.module, &decorator.expression)
    }
}

impl<'a> StatementVisitor<'a> for Search<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                let outer = self.around;
                if let Some(around) = outer {
                    self.note(around, function);
                }
                self.around = outer.or(Some(function));
                walk_stmt(self, statement);
                self.around = outer;
            }
            Stmt::ClassDef(class) if self.around.is_none() => {
                self.classes.push(class);
                walk_stmt(self, statement);
                self.classes.pop();
            }
            _ => walk_stmt(self, statement),
        }
    }
}

/// `tool` of `@mcp.tool()`
fn word(decorator: &Decorator) -> Option<&str> {
    decorated_by(decorator).as_attribute_expr().map(|attribute| attribute.attr.as_str())
}

/// What is offered by a decorator, which may be of a server that the file's top level does not know.
fn offer_of<'a>(module: &Module<'a>, decorator: &'a Decorator) -> Option<Offer<'a>> {
    let is_of_server = word(decorator).is_some_and(|word| MAKERS.contains(&word));
    let read = || decorator.expression.as_call_expr().map_or_else(Offer::default, |call| read_offer(module, call));
    offer_of_decorator(module, decorator).or_else(|| is_of_server.then(read))
}

fn decorated_by(decorator: &Decorator) -> &Expr {
    decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &call.func)
}

/// Why the worker cannot have these tools made.
fn obstacle(module: &Module<'_>, maker: &Maker<'_>) -> Option<&'static str> {
    let function = maker.function;
    let is_there = match (maker.class, module.bindings.get(maker.class.map_or(&*function.name, |class| &*class.name))) {
        (None, Some(Binding::Function(other))) => std::ptr::eq(*other, function),
        (Some(class), Some(Binding::Class(other))) => std::ptr::eq(*other, class),
        _ => false,
    };
    if !is_there {
        return Some("its name means something else when the file has run");
    }
    let name = maker.class.map_or(&function.name, |class| &class.name);
    // What it makes is there when the file has run.
    if module.calls.iter().any(|call| name_of(&call.func) == Some(name.as_str())) {
        return None;
    }
    let mut own = Own { module, body: &function.body, runs: false, yields: false };
    own.visit_body(&function.body);
    if function.is_async || own.yields {
        return Some("it is asynchronous, or a generator");
    }
    if own.runs {
        return Some("it also runs what it makes");
    }
    let required = required_by(function);
    if let Some(class) = maker.class {
        let is_made = required.len() == 1 && is_made_without_arguments(module, class);
        return (!is_made).then_some("its class or the method needs arguments");
    }
    match &required[..] {
        [] => None,
        [server] if maker.tools.iter().all(|tool| is_decorated_by(tool, &server.parameter.name)) => None,
        _ => Some("it needs arguments"),
    }
}

/// Whether a decorator is one of this server: `@mcp.tool`.
fn is_decorated_by(tool: &StmtFunctionDef, server: &str) -> bool {
    let servers = tool.decorator_list.iter().filter_map(|one| decorated_by(one).as_attribute_expr());
    servers.into_iter().any(|attribute| name_of(&attribute.value) == Some(server))
}

fn required_by(function: &StmtFunctionDef) -> Vec<&ParameterWithDefault> {
    function.parameters.iter_non_variadic_params().filter(|parameter| parameter.default().is_none()).collect()
}

/// Whether an instance can be made by `Class()`, as far as the file tells.
fn is_made_without_arguments(module: &Module<'_>, class: &StmtClassDef) -> bool {
    let methods = || class.body.iter().filter_map(Stmt::as_function_def_stmt);
    let bases = class.arguments.as_ref().is_some_and(|arguments| !arguments.args.is_empty());
    match methods().find(|method| method.name.as_str() == "__init__") {
        Some(init) => {
            let mut own = Own { module, body: &init.body, runs: false, yields: false };
            own.visit_body(&init.body);
            required_by(init).len() == 1 && !own.runs
        }
        None => !bases && class.decorator_list.is_empty(),
    }
}

/// What the statements of a function do, without those of functions within it.
struct Own<'m, 'a> {
    module: &'m Module<'a>,
    body: &'m [Stmt],
    runs: bool,
    yields: bool,
}

impl Own<'_, '_> {
    /// Whether a name is a server that the function makes: the worker stops before that is run.
    fn is_own_server(&self, value: &Expr) -> bool {
        let Some(name) = name_of(value) else { return false };
        let made = self.body.iter().filter_map(Stmt::as_assign_stmt);
        let mut made = made.filter(|assign| assign.targets.iter().any(|target| name_of(target) == Some(name)));
        made.any(|assign| {
            let class = assign.value.as_call_expr().and_then(|call| word_of(self.module, &call.func));
            class.is_some_and(|class| SERVERS.contains(&class.as_str()))
        })
    }
}

impl<'a> Visitor<'a> for Own<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !statement.is_function_def_stmt() && !statement.is_class_def_stmt() {
            visitor::walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && let Some(method) = call.func.as_attribute_expr()
        {
            self.runs |= RUNS.contains(&method.attr.as_str()) && !self.is_own_server(&method.value);
        }
        self.yields |= matches!(expression, Expr::Yield(_) | Expr::YieldFrom(_));
        visitor::walk_expr(self, expression);
    }
}
