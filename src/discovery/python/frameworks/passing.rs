//! Decorators of the file that give a server what they decorate: `def tool(function): return mcp.tool()(function)`.

use ruff_python_ast::{Decorator, Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::registered::{calls_with, is_by_server};
use super::{Offer, decorated_by, function_named, read_offer};
use crate::discovery::python::module::Module;

/// Whether a decorator is such a function, or returns one.
pub(super) fn passes_on(module: &Module<'_>, decorated_by: &Expr) -> bool {
    function_named(module, decorated_by).is_some_and(|function| gives_server(module, function))
}

/// What the call of such a decorator says of the tool. What its positional arguments mean is the function's own.
pub(super) fn offer_of<'a>(module: &Module<'a>, call: &'a ExprCall) -> Offer<'a> {
    if call.arguments.args.is_empty() { read_offer(module, call) } else { Offer::default() }
}

/// Whether a call is in such a function, and the file decorates tools with that.
pub(super) fn is_in_used(module: &Module<'_>, call: &ExprCall) -> bool {
    let decorators = || module.functions().into_iter().flat_map(|function| &function.decorator_list);
    let is_used = |function: &StmtFunctionDef| {
        let is_it = |decorator: &Decorator| function_named(module, decorated_by(decorator));
        decorators().filter_map(is_it).any(|used| std::ptr::eq(used, function))
    };
    let mut around = module.functions().into_iter().filter(|function| function.range.contains_range(call.range()));
    around.any(|function| is_used(function) && gives_server(module, function))
}

/// Whether a function gives a server its parameter, or that of a function within it.
fn gives_server(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    let inner = function.body.iter().filter_map(Stmt::as_function_def_stmt);
    let mut parameters = std::iter::once(function).chain(inner).flat_map(|function| function.parameters.iter());
    parameters.any(|parameter| calls_with(parameter.name(), &function.body).is_some_and(|by| is_by_server(module, by)))
}
