//! Functions that are registered within a function, or in a loop over them: `def main(): … mcp.tool()(search)`,
//! `for function in (search, count): mcp.add_tool(function)`.

use std::collections::HashSet;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Expr, ExprCall, Stmt, StmtFor, StmtFunctionDef};

use super::local::{LocalImports, module_of};
use super::loops::Loop;
use super::{
    FRAMEWORKS, FUNCTION, MAKERS, Offer, SERVERS, function_in, function_named, imports_a_framework, is_agent, is_class,
    is_server_class, keyword, last_name, listed_offer, listed_tools, package, read_offer, text, word_of,
};
use crate::discovery::given::OWN;
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::names::Named;
use crate::discovery::python::syntax::Depth;
use crate::discovery::{Given, is_standard};

/// Further packages whose agents are given functions.
pub(super) const AGENTS: [&str; 4] = ["langgraph", "autogen_agentchat", "deepagents", "haystack"];

/// More functions of other files are not read.
const MOST: usize = 1000;

/// The functions of the top level that such calls make tools, with what the calls say of them, and those of other files.
pub(super) fn registered<'m, 'a>(module: &'m Module<'a>, body: &'a [Stmt]) -> Registered<'m, 'a> {
    let mut search = Registered {
        module,
        local: Vec::new(),
        within: HashSet::new(),
        known: HashSet::new(),
        depth: Depth::default(),
        found: Vec::new(),
        given: Vec::new(),
        gives: false,
        unread: Vec::new(),
    };
    if imports_a_framework(module) {
        search.visit_body(body);
    }
    search
}

pub(super) struct Registered<'m, 'a> {
    module: &'m Module<'a>,
    /// What names mean in the functions around what is visited.
    local: Vec<Names<'a>>,
    /// Where calls begin that are called or decorate: what they are given is a name or a description.
    within: HashSet<usize>,
    /// Names of tools that are made by a framework's class, and of those that loops over literal lists have.
    known: HashSet<&'a str>,
    depth: Depth,
    pub found: Vec<(&'a StmtFunctionDef, Offer<'a>)>,
    pub given: Vec<Given>,
    /// Whether the file gives functions to a server, in a function or of other files.
    pub gives: bool,
    /// Calls that give a server something that cannot be resolved by reading the file, and what they give.
    pub unread: Vec<(&'a ExprCall, &'a Expr)>,
}

impl<'a> Registered<'_, 'a> {
    fn in_function(&mut self, call: &'a ExprCall) {
        let listed = listed_tools(self.module, call).iter().filter_map(|one| function_named(self.module, one));
        let listed = listed.map(|function| (function, listed_offer(self.module, call)));
        let by = registering(call).or_else(|| is_class(self.module, &call.func).then_some(call));
        let made = by.and_then(|by| Some((function_in(self.module, call)?, read_offer(self.module, by))));
        let is_of_server = || {
            let full = self.module.outside_name(&call.func);
            registering(call).is_some_and(|by| self.is_by_server(by))
                || full.is_some_and(|full| ["fastmcp", "mcp"].contains(&package(&full)))
        };
        self.gives |= made.is_some() && is_of_server();
        let of_file: Vec<_> = listed.chain(made).filter(|(function, _)| !self.is_local(&function.name)).collect();
        self.found.extend(of_file);
    }

    /// `mcp.tool(name="x")(notes.search)`, where `notes` is another module.
    fn of_other_file(&mut self, call: &'a ExprCall) {
        let full = self.module.outside_name(&call.func);
        let is_server = full.is_some_and(|full| SERVERS.contains(&last_name(&full)));
        for one in listed_tools(self.module, call) {
            let made = one.as_call_expr().filter(|made| is_class(self.module, &made.func));
            let is_given = match made {
                Some(made) => {
                    given_to(made).is_some_and(|value| self.give(value, &read_offer(self.module, made), None))
                }
                None => self.give(one, &Offer::default(), None),
            };
            self.gives |= is_given && is_server; // an agent needs none
        }
        let Some(by) = registering(call).filter(|by| self.is_by_server(by)) else { return };
        let Some(value) = given_to(call) else { return };
        if !self.within.contains(&call.arguments.range.start().to_usize()) && !self.is_read(value) {
            self.unread.push((call, value));
        }
        match value.as_call_expr().filter(|made| is_class(self.module, &made.func)) {
            Some(made) => self.give_made(made, None),
            None => self.gives |= self.give(value, &read_offer(self.module, by), None),
        }
    }

    /// Also by a parameter of a function around: `def register(m: FastMCP)`
    fn is_by_server(&self, by: &ExprCall) -> bool {
        let holder = by.func.as_attribute_expr().and_then(|method| name_of(&method.value));
        let is_parameter = |name: &str| self.local.iter().any(|names| names.servers.contains(name));
        is_by_server(self.module, by) || holder.is_some_and(is_parameter)
    }

    /// The full name of something that a function around imports.
    fn imported_here(&self, value: &Expr) -> Option<String> {
        self.local.iter().rev().find_map(|names| names.imports.full_name(value))
    }

    fn is_local(&self, name: &str) -> bool {
        self.local.iter().any(|names| names.all.contains(name))
    }

    /// Whether what a server is given is a function of the file or of another one, a method, or a tool that is made of such a one.
    fn is_read(&self, value: &Expr) -> bool {
        match value {
            Expr::Name(name) => {
                let is_value = || matches!(self.module.resolve(value), Named::Value { .. } | Named::Nothing);
                let is_own = || function_named(self.module, value).is_some() || !is_value();
                self.known.contains(&*name.id)
                    || self.imported_here(value).is_some()
                    || !self.is_local(&name.id) && is_own()
            }
            Expr::Attribute(attribute) => match name_of(&attribute.value) {
                Some(name) => {
                    let is_known = self.known.contains(name) || ["self", "cls"].contains(&name);
                    is_known || self.imported_here(value).is_some() || !self.is_local(name)
                }
                None => true,
            },
            Expr::Call(made) => is_class(self.module, &made.func),
            // Its name: `@mcp.tool("search")`
            Expr::StringLiteral(_) | Expr::NoneLiteral(_) | Expr::FString(_) => true,
            _ => false,
        }
    }

    /// `Tool.from_function(notes.search, name="x")`
    fn give_made(&mut self, made: &'a ExprCall, bound: Option<&str>) {
        let value = given_to(made);
        if let Some(own) = value.and_then(|value| function_named(self.module, value))
            && bound.is_some()
        {
            let offer = read_offer(self.module, made);
            self.given.push(offer.given(self.module, format!("{OWN}{}", own.name), bound));
            self.gives = true;
        } else if let Some(value) = value {
            self.gives |= self.give(value, &read_offer(self.module, made), bound);
        }
    }

    /// Returns whether it may be a function of another file.
    fn give(&mut self, value: &Expr, offer: &Offer<'a>, bound: Option<&str>) -> bool {
        let mut first = value;
        while let Expr::Attribute(attribute) = first {
            first = &attribute.value;
        }
        let is_local = name_of(first).is_some_and(|name| self.is_local(name));
        let target = match self.imported_here(value) {
            Some(target) => Some(target),
            None if is_local => None,
            None => self.module.outside_name(value),
        };
        let Some(target) = target.filter(|_| !offer.is_off) else { return false };
        let top = package(&target);
        let may_be = !is_standard(top) && !FRAMEWORKS.contains(&top) && self.given.len() < MOST;
        if may_be {
            self.given.push(offer.given(self.module, target, bound));
        }
        may_be
    }

    fn in_loop(&mut self, each: &'a StmtFor) {
        let Some(items) = Loop::of(self.module, each) else { return };
        let calls = items.names.iter().enumerate();
        let calls = calls.filter_map(|(place, name)| Some((place, calls_with(name, &each.body)?)));
        // The others are names and descriptions.
        let texts = |place: usize| items.rows.iter().filter(|row| text(row[place]).is_some()).count();
        let Some((function, by)) = calls.min_by_key(|(place, _)| (texts(*place), usize::MAX - place)) else {
            let last = items.names.last().filter(|_| items.is_whole);
            return self.known.extend(last);
        };
        let naming = items.naming(by, function);
        let is_named = |row: &Vec<&'a Expr>| naming.is_none_or(|place| text(row[place]).is_some());
        // Those that are left out are reported.
        if items.is_whole && items.rows.iter().all(is_named) {
            self.known.insert(items.names[function]);
        }
        let is_by_server = self.is_by_server(by);
        for row in items.rows.iter().filter(|row| is_named(row)) {
            let mut offer = read_offer(self.module, by);
            offer.name = naming.and_then(|place| text(row[place])).or(offer.name);
            offer.description = offer.description.or_else(|| items.text_of(row, keyword(by, "description")));
            if is_by_server {
                self.gives |= self.give(row[function], &offer, None);
            }
            self.found.extend(function_named(self.module, row[function]).map(|function| (function, offer)));
        }
    }
}

impl<'a> Visitor<'a> for Registered<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::For(each) = statement {
            self.in_loop(each);
        }
        if let Stmt::Assign(assign) = statement
            && let (Some(bound), Some(made)) = (assign.targets.first().and_then(name_of), assign.value.as_call_expr())
            && is_class(self.module, &made.func)
        {
            self.known.insert(bound);
            self.give_made(made, Some(bound));
        }
        let Stmt::FunctionDef(function) = statement else { return visitor::walk_stmt(self, statement) };
        let decorators = function.decorator_list.iter().filter_map(|decorator| decorator.expression.as_call_expr());
        self.within.extend(decorators.map(|call| call.arguments.range.start().to_usize()));
        let servers = servers_given_to(self.module, function);
        self.local.push(Names { servers, ..Names::of(function) });
        visitor::walk_stmt(self, statement);
        self.local.pop();
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.within.extend(call.func.as_call_expr().map(|inner| inner.arguments.range.start().to_usize()));
            self.of_other_file(call);
            let is_agent = || self.module.outside_name(&call.func).is_some_and(|full| is_agent(&full));
            if !self.local.is_empty() || is_agent() {
                self.in_function(call);
            }
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// The function that a call makes a tool.
pub(super) fn given_to(call: &ExprCall) -> Option<&Expr> {
    let named = FUNCTION.iter().find_map(|name| keyword(call, name));
    named.or(call.arguments.args.first())
}

/// Whether what registers is a server: made by its class, or called so. Others may have methods of these names, too.
pub(super) fn is_by_server(module: &Module<'_>, by: &ExprCall) -> bool {
    let Some(holder) = by.func.as_attribute_expr().map(|method| &*method.value) else { return false };
    let name = name_of(holder).or_else(|| holder.as_attribute_expr().map(|it| it.attr.as_str()));
    let is_called_so = name.is_some_and(|name| {
        let name = name.to_lowercase();
        ["mcp", "server"].iter().any(|part| name.contains(part)) || name == "app"
    });
    match module.resolve(holder) {
        Named::Value { value: Expr::Call(call), .. } if !module.is_class(&call.func) => {
            is_called_so || word_of(module, &call.func).is_some_and(|class| SERVERS.contains(&class.as_str()))
        }
        Named::Value { .. } | Named::Class(_) => false,
        Named::Outside(_) | Named::Nothing => is_called_so,
    }
}

/// The parameters of a function that are servers, as their annotations say.
pub(super) fn servers_given_to<'a>(module: &Module<'a>, function: &'a StmtFunctionDef) -> HashSet<&'a str> {
    let is_server = |hint: &Expr| match text(hint) {
        Some(written) => is_server_class(written),
        None => module.outside_name(hint).is_some_and(|full| is_server_class(&full)),
    };
    let given = function.parameters.iter_non_variadic_params().map(|it| &it.parameter);
    given.filter(|it| it.annotation().is_some_and(is_server)).map(|it| it.name.as_str()).collect()
}

/// The names that a function has: its parameters and what its statements bind.
#[derive(Default)]
struct Names<'a> {
    all: HashSet<&'a str>,
    imports: LocalImports<'a>,
    /// The parameters that are servers.
    servers: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn of(function: &'a StmtFunctionDef) -> Self {
        let mut names = Self::default();
        names.all.extend(function.parameters.iter().map(|parameter| parameter.name().as_str()));
        names.visit_body(&function.body);
        names
    }

    fn import(&mut self, from: Option<&str>, aliases: &'a [Alias]) {
        for alias in aliases {
            let bound = self.imports.add(from, alias);
            self.all.insert(bound);
        }
    }
}

impl<'a> StatementVisitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => return self.all.extend([function.name.as_str()]),
            Stmt::ClassDef(class) => return self.all.extend([class.name.as_str()]),
            Stmt::Assign(assign) => self.all.extend(assign.targets.iter().filter_map(name_of)),
            Stmt::AnnAssign(assign) => self.all.extend(name_of(&assign.target)),
            Stmt::For(each) => match &*each.target {
                Expr::Tuple(targets) => self.all.extend(targets.elts.iter().filter_map(name_of)),
                target => self.all.extend(name_of(target)),
            },
            Stmt::With(with) => {
                self.all.extend(with.items.iter().filter_map(|item| name_of(item.optional_vars.as_deref()?)));
            }
            Stmt::Import(import) => return self.import(None, &import.names),
            Stmt::ImportFrom(import) => return self.import(Some(&module_of(import)), &import.names),
            _ => {}
        }
        walk_stmt(self, statement);
    }
}

/// The call of these statements that registers a name.
pub(super) fn calls_with<'a>(name: &'a str, body: &'a [Stmt]) -> Option<&'a ExprCall> {
    let mut calls = Calls { of: name, by: None, depth: Depth::default() };
    calls.visit_body(body);
    calls.by
}

/// The search for it.
struct Calls<'a> {
    of: &'a str,
    by: Option<&'a ExprCall>,
    depth: Depth,
}

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && let Some(by) = registering(call)
        {
            let named = FUNCTION.iter().filter_map(|name| keyword(call, name));
            let mut given = call.arguments.args.iter().chain(named);
            if given.any(|value| name_of(value).or_else(|| of_tool(value)) == Some(self.of)) {
                self.by = Some(by);
            }
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// `tool` of `tool.fn`, the function of a tool.
fn of_tool(value: &Expr) -> Option<&str> {
    let attribute = value.as_attribute_expr().filter(|attribute| attribute.attr.as_str() == "fn")?;
    name_of(&attribute.value)
}

/// The call with what is said of the tool: `mcp.tool(name="x")` of `mcp.tool(name="x")(f)`, all of `mcp.add_tool(f, name="x")`.
pub(super) fn registering(call: &ExprCall) -> Option<&ExprCall> {
    let by = call.func.as_call_expr().unwrap_or(call);
    let word = by.func.as_attribute_expr()?.attr.as_str();
    MAKERS.contains(&word).then_some(by)
}
