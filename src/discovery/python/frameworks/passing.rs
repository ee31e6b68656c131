//! Decorators of the file that give a server what they decorate: `def tool(function): return mcp.tool()(function)`.

use std::collections::HashMap;

use ruff_python_ast::{Decorator, Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::registered::{calls_with, is_by_server};
use super::{NAME, Offer, decorated_by, function_named, place, read_offer, text};
use crate::discovery::python::literals::keyword;
use crate::discovery::python::module::{Module, name_of};

/// Such functions that decorate others of the file.
pub(super) struct Passing<'a> {
    /// By the place of each.
    known: HashMap<usize, Passes<'a>>,
}

/// What one of them does.
struct Passes<'a> {
    function: &'a StmtFunctionDef,
    /// The call that makes a tool: `mcp.tool(name=name)`.
    by: &'a ExprCall,
    /// Whether it makes a tool of what is given to the function within it, which it returns: `@tool()`
    is_factory: bool,
}

impl<'a> Passing<'a> {
    pub(super) fn of(module: &Module<'a>, functions: &[&'a StmtFunctionDef]) -> Self {
        let mut seen: HashMap<usize, Option<Passes<'a>>> = HashMap::new();
        for decorator in functions.iter().flat_map(|function| &function.decorator_list) {
            if let Some(function) = function_named(module, decorated_by(decorator)) {
                seen.entry(place(function)).or_insert_with(|| Passes::of(module, function));
            }
        }
        Self { known: seen.into_iter().filter_map(|(place, passes)| Some((place, passes?))).collect() }
    }

    /// What such a decorator says of the tool. `None` for any other.
    pub(super) fn offer_of(&self, module: &Module<'a>, decorator: &'a Decorator) -> Option<Offer<'a>> {
        let passes = self.known.get(&place(function_named(module, decorated_by(decorator))?))?;
        let call = decorator.expression.as_call_expr();
        (call.is_some() == passes.is_factory || passes.has_own_parameter()).then(|| passes.offer(module, call))
    }

    /// Whether a call is what one of them gives its functions by.
    pub(super) fn has(&self, call: &ExprCall) -> bool {
        self.known.values().any(|passes| call.range().contains_range(passes.by.range()))
    }
}

impl<'a> Passes<'a> {
    /// A name that is computed otherwise than from the function's own is not known.
    fn of(module: &Module<'a>, function: &'a StmtFunctionDef) -> Option<Self> {
        let inner = function.body.iter().filter_map(Stmt::as_function_def_stmt).map(|inner| (inner, true));
        let found = inner.chain([(function, false)]).find_map(|(around, is_factory)| {
            let mut parameters = around.parameters.iter_non_variadic_params();
            let name = parameters.next()?.parameter.name.as_str();
            let by = calls_with(name, &around.body).filter(|by| is_by_server(module, by))?;
            Some(Self { function, by, is_factory })
        })?;
        let is_known = |name: &Expr| match name {
            Expr::StringLiteral(_) | Expr::NoneLiteral(_) | Expr::Name(_) => true,
            Expr::Attribute(attribute) => attribute.attr.as_str() == "__name__",
            _ => false,
        };
        found.name().is_none_or(is_known).then_some(found)
    }

    /// What the tool is called.
    fn name(&self) -> Option<&'a Expr> {
        let is_registration = self.by.func.as_attribute_expr().is_some_and(|it| it.attr.as_str() != "add_tool");
        let first = || self.by.arguments.args.first().filter(|_| is_registration && self.by.arguments.args.len() == 1);
        NAME.iter().find_map(|name| keyword(self.by, name)).or_else(first)
    }

    /// `def tool(function=None, …)`, for `@tool` and `@tool()`
    fn has_own_parameter(&self) -> bool {
        let first = self.function.parameters.iter_non_variadic_params().next();
        first.is_some_and(|first| first.default().is_some_and(Expr::is_none_literal_expr))
    }

    fn offer(&self, module: &Module<'a>, call: Option<&'a ExprCall>) -> Offer<'a> {
        let passes_all = self.by.arguments.keywords.iter().any(|keyword| keyword.arg.is_none());
        if let Some(call) = call.filter(|call| passes_all && call.arguments.args.is_empty()) {
            return read_offer(module, call);
        }
        let own = read_offer(module, self.by);
        let passed = |value: Option<&Expr>| keyword(call?, name_of(value?)?);
        let said = |name: &str| passed(keyword(self.by, name));
        Offer {
            name: own.name.or(passed(self.name()).and_then(text)),
            description: own.description.or(said("description").and_then(text)),
            title: own.title.or(said("title").and_then(text)),
            annotations: said("annotations").or(own.annotations),
            ..own
        }
    }
}
