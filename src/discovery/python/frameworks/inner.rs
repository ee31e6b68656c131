//! Tools that a function makes when it is called: `def create_server(): … @mcp.tool …`, `def register(mcp): …`. The worker calls such
//! a function itself where it needs no more than a server (`frameworks/inner.py` of the worker).

use std::collections::{HashMap, HashSet};

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, ExprCall, ParameterWithDefault, Stmt, StmtClassDef, StmtFunctionDef};

use super::{
    MAKERS, NAME, Offer, SERVERS, function_named, is_maker, keyword, last_name, offer_of_decorator, package,
    read_offer, word_of,
};
use crate::discovery::is_standard;
use crate::discovery::python::module::{Binding, Module, name_of};
use crate::discovery::python::syntax::Depth;
use crate::discovery::several::MADE;
use crate::pep723::is_identifier;

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

/// Functions that run what another one has made.
const LOOPS: [&str; 2] = ["asyncio.run", "anyio.run"];

/// Decorators that keep the function.
const KEEPING: [&str; 4] = ["cache", "lru_cache", "functools.cache", "functools.lru_cache"];

/// Decorators of methods that no instance is needed for.
const WITHOUT_INSTANCE: [&str; 2] = ["builtins.staticmethod", "builtins.classmethod"];

/// A function or method that makes tools.
#[derive(Debug)]
pub(in crate::discovery::python) struct Maker<'a> {
    pub function: &'a StmtFunctionDef,
    /// The class that it is a method of.
    pub class: Option<&'a StmtClassDef>,
    /// Why the worker does not call it, and what to do.
    pub obstacle: Option<Obstacle>,
    /// Whether that is what it needs: where something else of the file's program calls it, its tools are served.
    pub waits: bool,
    tools: Vec<&'a StmtFunctionDef>,
}

/// Why, and what to do.
pub(in crate::discovery::python) type Obstacle = (&'static str, &'static str);

const MOVE: &str = "move the functions of the tools to the top level of the file";
const CALL: &str =
    "call it at the top level of the file or in a function without arguments, or move the functions of the tools there";
const ARGUMENTS: Obstacle = ("it needs arguments", CALL);
const MORE: Obstacle = ("the file gives it more arguments than the server", CALL);
const OF_CLASS: Obstacle = ("its class or the method needs arguments", MOVE);
const SPLIT: &str =
    "make them in a function that does nothing else, or move the functions of the tools to the top level of the file";

impl<'a> Maker<'a> {
    /// What the worker calls to make them: `create_server`, `Server.register`.
    pub fn name(&self) -> String {
        let class = self.class.map(|class| format!("{}.", class.name)).unwrap_or_default();
        class + &self.function.name
    }

    /// Whether it gives tools computed names, as one does that is called several times.
    pub fn computes_names(&self) -> bool {
        self.tools.iter().any(|tool| tool.decorator_list.iter().any(names_by_computation))
    }

    /// Its tools that are served, or are where it is called: what the worker knows each by, and what makes it one.
    pub fn served(&self, module: &Module<'a>) -> Vec<(String, &'a StmtFunctionDef, Offer<'a>)> {
        let is_there = self.obstacle.is_none() || self.waits;
        let served = self.tools.iter().filter(|tool| is_there && is_identifier(&tool.name));
        let offer = |tool: &'a StmtFunctionDef| {
            let offer = tool.decorator_list.iter().find_map(|decorator| offer_of(module, decorator))?;
            if self.waits && tool.decorator_list.iter().any(names_by_computation) {
                return None;
            }
            // Two functions of one maker may have one name.
            let line = module.lines.at(tool.range.start().to_usize());
            Some((format!("{MADE}{}:{line}:{}", self.name(), tool.name), tool, offer))
        };
        served.filter_map(|tool| offer(tool)).collect()
    }
}

/// The outermost functions of a file that make tools, in the order of their lines.
pub(super) fn makers_of_tools<'a>(module: &Module<'a>, body: &'a [Stmt]) -> Vec<Maker<'a>> {
    let mut search = Search { module, around: None, is_tool: false, classes: Vec::new(), found: Vec::new() };
    search.visit_body(body);
    let mut found = search.found;
    if found.is_empty() {
        return found;
    }
    let uses = Uses::of(module, body);
    for maker in &mut found {
        maker.obstacle = maker.obstacle.or_else(|| obstacle(module, &uses, maker));
        maker.waits = maker.obstacle.is_some_and(|obstacle| [ARGUMENTS, MORE, OF_CLASS].contains(&obstacle));
    }
    found
}

struct Search<'m, 'a> {
    module: &'m Module<'a>,
    /// The outermost function around the statement that is visited.
    around: Option<&'a StmtFunctionDef>,
    /// Whether that is a tool itself.
    is_tool: bool,
    /// The classes around that.
    classes: Vec<&'a StmtClassDef>,
    found: Vec<Maker<'a>>,
}

impl<'a> Search<'_, 'a> {
    fn note(&mut self, around: &'a StmtFunctionDef, tool: &'a StmtFunctionDef) {
        // A tool may have an agent with tools of its own.
        if self.is_tool || !self.is_tool(tool) {
            return;
        }
        if self.found.last().is_none_or(|last| !std::ptr::eq(last.function, around)) {
            let class = self.classes.last().copied();
            let obstacle = (self.classes.len() > 1).then_some(("it is a method of a class within another", MOVE));
            self.found.push(Maker { function: around, class, obstacle, waits: false, tools: Vec::new() });
        }
        let Some(maker) = self.found.last_mut() else { return };
        if tool.decorator_list.iter().any(|decorator| word(decorator).is_some_and(|word| HANDLERS.contains(&word))) {
            maker.obstacle = Some(("its server is one of the low level", MOVE));
        } else {
            maker.tools.push(tool);
        }
    }

    /// `@mcp.tool()`, `@self.server.call_tool()`, and `@tool` of a framework
    fn is_tool(&self, function: &StmtFunctionDef) -> bool {
        function.decorator_list.iter().any(|decorator| {
            let is_of_server = word(decorator).is_some_and(|word| MAKERS.contains(&word) || HANDLERS.contains(&word));
            let by = decorated_by(decorator);
            is_of_server || by.is_name_expr() && is_maker(self.module, by)
        })
    }
}

impl<'a> StatementVisitor<'a> for Search<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                if let Some(around) = self.around {
                    self.note(around, function);
                    return walk_stmt(self, statement);
                }
                (self.around, self.is_tool) = (Some(function), self.is_tool(function));
                walk_stmt(self, statement);
                self.around = None;
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

fn names_by_computation(decorator: &Decorator) -> bool {
    let Some(call) = decorator.expression.as_call_expr() else { return false };
    let named = NAME.iter().find_map(|name| keyword(call, name));
    named.or(call.arguments.args.first()).is_some_and(|name| !name.is_string_literal_expr())
}

pub(super) fn decorated_by(decorator: &Decorator) -> &Expr {
    decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &call.func)
}

/// How a file uses its own functions and classes.
struct Uses<'a> {
    /// Those that it calls at its top level: what they make is there when it has run.
    at_top: HashSet<&'a str>,
    /// The most arguments that its functions give each.
    arguments: HashMap<&'a str, usize>,
    /// The classes that can be made without arguments, as far as the file tells.
    plain_classes: HashSet<usize>,
    depth: Depth,
}

impl<'a> Uses<'a> {
    fn of(module: &Module<'a>, body: &'a [Stmt]) -> Self {
        let at_top = module.calls.iter().filter_map(|call| name_of(&call.func)).collect();
        let mut uses =
            Self { at_top, arguments: HashMap::new(), plain_classes: HashSet::new(), depth: Depth::default() };
        for statement in body {
            match statement {
                Stmt::FunctionDef(_) => uses.visit_stmt(statement),
                Stmt::ClassDef(class) => {
                    if is_made_without_arguments(module, class) {
                        uses.plain_classes.insert(class.range.start().to_usize());
                    }
                    uses.visit_stmt(statement);
                }
                _ => {}
            }
        }
        uses
    }
}

impl<'a> Visitor<'a> for Uses<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && let Some(name) = name_of(&call.func)
        {
            let most = self.arguments.entry(name).or_default();
            *most = (*most).max(call.arguments.args.len() + call.arguments.keywords.len());
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// Why the worker cannot have these tools made.
fn obstacle(module: &Module<'_>, uses: &Uses<'_>, maker: &Maker<'_>) -> Option<Obstacle> {
    let (function, name) = (maker.function, maker.class.map_or(&maker.function.name, |class| &class.name));
    if let Some(obstacle) = obstacle_to_name(module, maker.class, function) {
        return Some(obstacle);
    }
    if uses.at_top.contains(name.as_str()) {
        return None;
    }
    if let Some(obstacle) = obstacle_to_call(module, function) {
        return Some(obstacle);
    }
    if function.parameters.kwonlyargs.iter().any(|parameter| parameter.default().is_none()) {
        return Some(ARGUMENTS);
    }
    let required = required_by(function);
    if maker.class.is_some() && !function.decorator_list.is_empty() {
        return Some(OF_CLASS);
    }
    if let Some(class) = maker.class {
        let is_made = required.len() == 1 && uses.plain_classes.contains(&class.range.start().to_usize());
        return (!is_made).then_some(OF_CLASS);
    }
    match &required[..] {
        [] => None,
        [server] if maker.tools.iter().all(|tool| is_decorated_by(tool, &server.parameter.name)) => {
            let is_given_more = uses.arguments.get(name.as_str()).is_some_and(|most| *most > 1);
            is_given_more.then_some(MORE)
        }
        _ => Some(ARGUMENTS),
    }
}

/// Why a name may not mean this function or method.
fn obstacle_to_name(module: &Module<'_>, class: Option<&StmtClassDef>, function: &StmtFunctionDef) -> Option<Obstacle> {
    let name = class.map_or(&function.name, |class| &class.name);
    let is_there = match (class, module.bindings.get(name.as_str())) {
        (None, Some(Binding::Function(other))) => std::ptr::eq(*other, function),
        (Some(class), Some(Binding::Class(other))) => std::ptr::eq(*other, class),
        _ => false,
    };
    if !is_there {
        return Some(("its name means something else when the file has run", MOVE));
    }
    let keeps = |decorator: &Decorator| {
        let full = module.outside_name(decorated_by(decorator));
        let known: &[&str] = if class.is_some() { &WITHOUT_INSTANCE } else { &KEEPING };
        full.is_some_and(|full| known.contains(&full.as_str()))
    };
    let is_kept = function.decorator_list.iter().all(keeps);
    (!is_kept).then_some(("its decorator may make something else of it", MOVE))
}

/// Why the worker does not call a function, whatever it needs.
fn obstacle_to_call(module: &Module<'_>, function: &StmtFunctionDef) -> Option<Obstacle> {
    let own = Own::of(module, &function.body);
    if function.is_async || own.yields {
        return Some(("it is asynchronous, or a generator", MOVE));
    }
    own.runs.then_some(("it also runs or starts something", SPLIT))
}

/// Whether the worker can call a function of the top level as it is.
pub(super) fn is_callable(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    required_by(function).is_empty()
        && obstacle_to_name(module, None, function).is_none()
        && obstacle_to_call(module, function).is_none()
}

/// Whether something that its function has or is given makes it a tool: `@mcp.tool`, not `@tool`.
pub(in crate::discovery::python) fn is_of_server(tool: &StmtFunctionDef) -> bool {
    tool.decorator_list.iter().any(|decorator| word(decorator).is_some_and(|word| MAKERS.contains(&word)))
}

/// Whether a decorator is one of this server: `@mcp.tool`.
fn is_decorated_by(tool: &StmtFunctionDef, server: &str) -> bool {
    let mut servers = tool.decorator_list.iter().filter_map(|one| decorated_by(one).as_attribute_expr());
    servers.any(|attribute| name_of(&attribute.value) == Some(server))
}

pub(super) fn required_by(function: &StmtFunctionDef) -> Vec<&ParameterWithDefault> {
    function.parameters.iter_non_variadic_params().filter(|parameter| parameter.default().is_none()).collect()
}

/// Whether an instance can be made by `Class()`, as far as the file tells.
fn is_made_without_arguments(module: &Module<'_>, class: &StmtClassDef) -> bool {
    let mut methods = class.body.iter().filter_map(Stmt::as_function_def_stmt);
    let bases = class.arguments.as_ref().is_some_and(|arguments| !arguments.args.is_empty());
    match methods.find(|method| method.name.as_str() == "__init__") {
        Some(init) => required_by(init).len() == 1 && !Own::of(module, &init.body).runs,
        None => !bases && class.decorator_list.is_empty(),
    }
}

/// What the statements of a function do, without those of functions within it.
struct Own<'m, 'a> {
    module: &'m Module<'a>,
    runs: bool,
    yields: bool,
    depth: Depth,
}

impl<'m, 'a> Own<'m, 'a> {
    /// A function that makes a server may run it as one of its own statements: the worker stops before that. Within `with` or `try`, what
    /// follows would already be undone.
    fn of(module: &'m Module<'a>, body: &'m [Stmt]) -> Self {
        let mut own = Own { module, runs: false, yields: false, depth: Depth::default() };
        let mut servers: HashSet<&str> = HashSet::new();
        for statement in body {
            if let Some(assign) = statement.as_assign_stmt()
                && assign.value.as_call_expr().is_some_and(|call| makes_server(module, &call.func))
            {
                servers.extend(assign.targets.iter().filter_map(name_of));
            }
            let call = statement.as_expr_stmt().and_then(|it| it.value.as_call_expr());
            let method = call.and_then(|call| within_loop(module, call).func.as_attribute_expr());
            let is_own_run = method.is_some_and(|method| {
                RUNS.contains(&method.attr.as_str())
                    && name_of(&method.value).is_some_and(|name| servers.contains(name))
            });
            if !is_own_run {
                own.visit_stmt(statement);
            }
        }
        own
    }
}

/// `FastMCP`, a function of the file, or one of another module with such a name: `create_server`.
fn makes_server(module: &Module<'_>, called: &Expr) -> bool {
    if function_named(module, called).is_some() {
        return true;
    }
    let names_one = |word: &str| ["server", "mcp"].iter().any(|part| word.contains(part));
    let is_other = |full: &str| {
        let word = last_name(full);
        // A name that is imported within a function is not a builtin.
        let is_standard = package(full) != "builtins" && is_standard(package(full));
        word.starts_with(|c: char| c.is_ascii_lowercase()) && names_one(word) && !is_standard
    };
    word_of(module, called).is_some_and(|class| SERVERS.contains(&class.as_str()))
        || module.outside_name(called).is_some_and(|full| is_other(&full))
}

/// `mcp.run_async()` of `asyncio.run(mcp.run_async())`
fn within_loop<'e>(module: &Module<'_>, call: &'e ExprCall) -> &'e ExprCall {
    let is_loop = || module.outside_name(&call.func).is_some_and(|full| LOOPS.contains(&full.as_str()));
    call.arguments.args.first().and_then(Expr::as_call_expr).filter(|_| is_loop()).unwrap_or(call)
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
                None => word_of(self.module, &call.func),
            };
            self.runs |= word.is_some_and(|word| RUNS.contains(&word.as_str()));
        }
        self.yields |= matches!(expression, Expr::Yield(_) | Expr::YieldFrom(_));
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
