//! Functions that are registered within a function, or in a loop over them: `def main(): … mcp.tool()(search)`,
//! `for function in (search, count): mcp.add_tool(function)`.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFor, StmtFunctionDef};

use super::{
    FRAMEWORKS, FUNCTION, MAKERS, Offer, function_in, function_named, is_class, keyword, listed_tools, package,
    read_offer,
};
use crate::discovery::python::module::{Module, Named, name_of};
use crate::discovery::python::syntax::Depth;

/// The functions of the top level that such calls make tools, with what the calls say of them.
pub(super) fn registered<'a>(module: &Module<'a>, body: &'a [Stmt]) -> Vec<(&'a StmtFunctionDef, Offer<'a>)> {
    let mut search = Registered { module, local: Vec::new(), depth: Depth::default(), found: Vec::new() };
    if module.imports.iter().any(|import| FRAMEWORKS.contains(&package(import))) {
        search.visit_body(body);
    }
    search.found
}

struct Registered<'m, 'a> {
    module: &'m Module<'a>,
    /// The names of the functions around what is visited that mean something else in them.
    local: Vec<HashSet<&'a str>>,
    depth: Depth,
    found: Vec<(&'a StmtFunctionDef, Offer<'a>)>,
}

impl<'a> Registered<'_, 'a> {
    fn in_function(&mut self, call: &'a ExprCall) {
        let listed = listed_tools(self.module, call).iter().filter_map(|one| function_named(self.module, one));
        let listed = listed.map(|function| (function, Offer::default()));
        let by = registering(call).or_else(|| is_class(self.module, &call.func).then_some(call));
        let made = by.and_then(|by| Some((function_in(self.module, call)?, read_offer(self.module, by))));
        let is_of_file = |function: &StmtFunctionDef| !self.local.iter().any(|names| names.contains(&*function.name));
        self.found.extend(listed.chain(made).filter(|(function, _)| is_of_file(function)));
    }

    fn in_loop(&mut self, each: &'a StmtFor) {
        let Some(name) = name_of(&each.target) else { return };
        let items = match self.module.resolve(&each.iter) {
            Named::Value { value, .. } => value,
            _ => &each.iter,
        };
        let items = match items {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            _ => return,
        };
        let mut calls = Calls { of: name, by: None, depth: Depth::default() };
        calls.visit_body(&each.body);
        if let Some(by) = calls.by {
            let functions = items.iter().filter_map(|item| function_named(self.module, item));
            self.found.extend(functions.map(|function| (function, read_offer(self.module, by))));
        }
    }
}

impl<'a> Visitor<'a> for Registered<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::For(each) = statement {
            self.in_loop(each);
        }
        let Stmt::FunctionDef(function) = statement else { return visitor::walk_stmt(self, statement) };
        self.local.push(names_in(function));
        visitor::walk_stmt(self, statement);
        self.local.pop();
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && !self.local.is_empty()
        {
            self.in_function(call);
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// The names of its parameters, and of functions in it.
fn names_in(function: &StmtFunctionDef) -> HashSet<&str> {
    let inner = function.body.iter().filter_map(Stmt::as_function_def_stmt).map(|inner| inner.name.as_str());
    function.parameters.iter().map(|parameter| parameter.name().as_str()).chain(inner).collect()
}

/// The call that registers a name.
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
            if given.any(|value| name_of(value) == Some(self.of)) {
                self.by = Some(by);
            }
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// The call with what is said of the tool: `mcp.tool(name="x")` of `mcp.tool(name="x")(f)`, all of `mcp.add_tool(f, name="x")`.
fn registering(call: &ExprCall) -> Option<&ExprCall> {
    let by = call.func.as_call_expr().unwrap_or(call);
    let word = by.func.as_attribute_expr()?.attr.as_str();
    MAKERS.contains(&word).then_some(by)
}
