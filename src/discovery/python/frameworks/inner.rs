//! Tools that a function makes when it is called: `def create_server(): … @mcp.tool …`, `def register(mcp): …`. The worker calls such
//! a function itself where it needs no more than a server (`frameworks/inner.py` of the worker).

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Decorator, Expr, Stmt, StmtClassDef, StmtFunctionDef};

use super::bound::{Bound, bound_methods};
use super::low_level::{Handlers, handlers_within, imports_mcp};
use super::obstacles::{ARGUMENTS, MORE, MOVE, OF_CLASS, Obstacle, Uses, obstacle};
use super::{MAKERS, NAME, Offer, is_maker, keyword, offer_of_decorator, read_offer};
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::several::MADE;
use crate::pep723::is_identifier;

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
    /// Its handlers of a low-level server.
    pub handlers: Handlers<'a>,
    /// Methods of its class that it makes tools, and what it says of each.
    pub(super) methods: Vec<Bound<'a>>,
}

/// A tool that a function makes.
pub(in crate::discovery::python) struct Made<'a> {
    /// What the worker knows it by.
    pub symbol: String,
    pub function: &'a StmtFunctionDef,
    pub offer: Offer<'a>,
    /// Whether its first parameter is the instance.
    pub is_bound: bool,
    /// Whether it is one of a server or agent.
    pub is_of_server: bool,
}

impl<'a> Maker<'a> {
    fn new(function: &'a StmtFunctionDef, class: Option<&'a StmtClassDef>) -> Self {
        let (tools, methods) = (Vec::new(), Vec::new());
        Self { function, class, obstacle: None, waits: false, tools, handlers: Handlers::default(), methods }
    }

    /// What the worker calls to make them: `create_server`, `Server.register`.
    pub fn name(&self) -> String {
        let class = self.class.map(|class| format!("{}.", class.name)).unwrap_or_default();
        class + &self.function.name
    }

    /// The functions within it that are decorated as tools or as their handlers.
    pub(super) fn marked(&self) -> impl Iterator<Item = &'a StmtFunctionDef> {
        self.tools.iter().copied().chain(self.handlers.list).chain(self.handlers.call)
    }

    /// Whether it gives tools computed names, as one does that is called several times.
    pub fn computes_names(&self) -> bool {
        self.tools.iter().any(|tool| tool.decorator_list.iter().any(names_by_computation))
            || self.methods.iter().any(|method| method.has_computed_name)
    }

    /// Its tools that are served, or are where it is called.
    pub fn served(&self, module: &Module<'a>) -> Vec<Made<'a>> {
        let is_there = self.obstacle.is_none() || self.waits;
        let served = self.tools.iter().filter(|tool| is_there && is_identifier(&tool.name));
        let offer = |tool: &'a StmtFunctionDef| {
            let offer = tool.decorator_list.iter().find_map(|decorator| offer_of(module, decorator))?;
            if self.waits && tool.decorator_list.iter().any(names_by_computation) {
                return None;
            }
            let symbol = self.symbol_of(module, tool);
            Some(Made { symbol, function: tool, offer, is_bound: false, is_of_server: is_of_server(tool) })
        };
        let methods =
            self.methods.iter().filter(|_| is_there).filter(|method| !(self.waits && method.has_computed_name));
        let methods = methods.map(|method| {
            let symbol = self.symbol_of_method(module, method.function);
            let (function, offer) = (method.function, method.offer);
            Made { symbol, function, offer, is_bound: true, is_of_server: method.is_of_server }
        });
        served.filter_map(|tool| offer(tool)).chain(methods).collect()
    }

    /// What the worker knows a function by that it defines. Two may have one name.
    pub(super) fn symbol_of(&self, module: &Module<'a>, function: &StmtFunctionDef) -> String {
        let line = module.lines.at(function.range.start().to_usize());
        format!("{MADE}{}:{line}:{}", self.name(), function.name)
    }

    /// The same of a method of its class.
    pub(super) fn symbol_of_method(&self, module: &Module<'a>, method: &StmtFunctionDef) -> String {
        let line = module.lines.at(method.range.start().to_usize());
        format!("{MADE}{}:{line}:.{}", self.name(), method.name)
    }
}

/// The outermost functions of a file that make tools, in the order of their lines.
pub(super) fn makers_of_tools<'a>(module: &Module<'a>, body: &'a [Stmt]) -> Vec<Maker<'a>> {
    let mut search = Search { module, around: None, is_tool: false, classes: Vec::new(), found: Vec::new() };
    search.visit_body(body);
    let mut found = search.found;
    for (class, function, method) in bound_methods(module, body) {
        maker_of(&mut found, function, Some(class)).methods.push(method);
    }
    if imports_mcp(module) {
        for (class, function) in functions_and_methods(body) {
            if let Some(handlers) = handlers_within(module, function, class) {
                maker_of(&mut found, function, class).handlers = handlers;
            }
        }
    }
    found.sort_by_key(|maker| maker.function.range.start());
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

/// The maker of a function, which is added if it is not there yet.
fn maker_of<'f, 'a>(
    found: &'f mut Vec<Maker<'a>>,
    function: &'a StmtFunctionDef,
    class: Option<&'a StmtClassDef>,
) -> &'f mut Maker<'a> {
    let place = found.iter().position(|maker| std::ptr::eq(maker.function, function)).unwrap_or(found.len());
    if place == found.len() {
        found.push(Maker::new(function, class));
    }
    &mut found[place]
}

/// The functions of the top level, and the methods of its classes with these.
fn functions_and_methods(body: &[Stmt]) -> impl Iterator<Item = (Option<&StmtClassDef>, &StmtFunctionDef)> {
    body.iter().flat_map(|statement| {
        let class = statement.as_class_def_stmt();
        let inside = class.map_or(std::slice::from_ref(statement), |class| &class.body);
        inside.iter().filter_map(move |one| Some((class, one.as_function_def_stmt()?)))
    })
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
            self.found.push(Maker { obstacle, ..Maker::new(around, class) });
        }
        let Some(maker) = self.found.last_mut() else { return };
        match tool.decorator_list.iter().find_map(word) {
            Some("list_tools") => maker.handlers.list = Some(tool),
            Some("call_tool") => maker.handlers.call = Some(tool),
            _ => maker.tools.push(tool),
        }
    }

    /// `@mcp.tool()`, `@self.server.call_tool()`, and `@tool` of a framework
    fn is_tool(&self, function: &StmtFunctionDef) -> bool {
        function.decorator_list.iter().any(|decorator| {
            let is_of_server = word(decorator)
                .is_some_and(|word| MAKERS.contains(&word) || ["list_tools", "call_tool"].contains(&word));
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

/// Whether something that its function has or is given makes it a tool: `@mcp.tool`, not `@tool`.
pub(in crate::discovery::python) fn is_of_server(tool: &StmtFunctionDef) -> bool {
    tool.decorator_list.iter().any(|decorator| word(decorator).is_some_and(|word| MAKERS.contains(&word)))
}

/// Whether a decorator is one of this server: `@mcp.tool`.
pub(super) fn is_decorated_by(tool: &StmtFunctionDef, server: &str) -> bool {
    let mut servers = tool.decorator_list.iter().filter_map(|one| decorated_by(one).as_attribute_expr());
    servers.any(|attribute| name_of(&attribute.value) == Some(server))
}
