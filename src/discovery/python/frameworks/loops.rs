//! Loops over what is written in the file: `for function in (search, count):`, `for name, function in TOOLS.items():`.

use ruff_python_ast::{Expr, ExprCall, StmtFor};

use super::{NAME, fixed, keyword, text};
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::names::Named;

/// A loop over literal items.
pub(super) struct Loop<'a> {
    /// What it calls the parts of each item, or the item.
    pub names: Vec<&'a str>,
    /// The items, each with as many parts.
    pub rows: Vec<Vec<&'a Expr>>,
    /// Whether these are all.
    pub is_whole: bool,
}

impl<'a> Loop<'a> {
    pub(super) fn of(module: &Module<'a>, each: &'a StmtFor) -> Option<Self> {
        let names = match &*each.target {
            Expr::Tuple(parts) => parts.elts.iter().map(name_of).collect::<Option<Vec<_>>>()?,
            target => vec![name_of(target)?],
        };
        let (rows, is_whole) = rows(module, &each.iter, names.len())?;
        Some(Self { names, rows, is_whole })
    }

    /// The place of the part that a call gives a tool's name by: `mcp.tool(name)`, `mcp.add_tool(function, name=name)`.
    pub(super) fn naming(&self, by: &ExprCall, function: usize) -> Option<usize> {
        let is_naming = |(place, name): (usize, &&str)| place != function && names_with(by, name);
        self.names.iter().enumerate().position(is_naming)
    }

    /// The text that a call gives by one of the parts: `description=text`
    pub(super) fn text_of(&self, row: &[&'a Expr], value: Option<&Expr>) -> Option<&'a str> {
        let name = name_of(value?)?;
        text(row[self.names.iter().position(|other| *other == name)?])
    }
}

type Rows<'a> = Vec<Vec<&'a Expr>>;

fn rows<'a>(module: &Module<'a>, of: &'a Expr, width: usize) -> Option<(Rows<'a>, bool)> {
    let items = match constant(module, of) {
        Expr::List(list) => &list.elts,
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::Call(call) => return of_dictionary(module, call, width),
        _ => return None,
    };
    if width == 1 {
        return Some((items.iter().map(|item| vec![item]).collect(), true));
    }
    let parts = |item: &'a Expr| Some(item.as_tuple_expr()?.elts.iter().collect::<Vec<_>>());
    let rows: Rows<'a> = items.iter().filter_map(parts).filter(|row| row.len() == width).collect();
    let is_whole = rows.len() == items.len();
    Some((rows, is_whole))
}

/// `TOOLS.items()`, `TOOLS.values()`
fn of_dictionary<'a>(module: &Module<'a>, call: &'a ExprCall, width: usize) -> Option<(Rows<'a>, bool)> {
    let method = call.func.as_attribute_expr().filter(|_| call.arguments.is_empty())?;
    let is_read = matches!((method.attr.as_str(), width), ("items", 2) | ("values", 1));
    if !is_read {
        return None;
    }
    let dictionary = constant(module, &method.value).as_dict_expr()?;
    let is_fixed = name_of(&method.value).is_none_or(|name| fixed(module, name).is_some());
    // `**OTHER` has no key.
    let is_whole = is_fixed && dictionary.items.iter().all(|item| item.key.is_some());
    let own = dictionary.items.iter().filter_map(|item| Some([item.key.as_ref()?, &item.value]));
    Some((own.map(|row| row[2 - width..].to_vec()).collect(), is_whole))
}

fn constant<'a>(module: &Module<'a>, value: &'a Expr) -> &'a Expr {
    match module.resolve(value) {
        Named::Value { value, .. } => value,
        _ => value,
    }
}

/// Whether a call gives a tool the name that a variable holds.
fn names_with(by: &ExprCall, variable: &str) -> bool {
    let named = NAME.iter().filter_map(|name| keyword(by, name));
    // `mcp.tool(name)`, `mcp.add_tool(function, name)`
    named.chain(by.arguments.args.iter().take(2)).any(|value| name_of(value) == Some(variable))
}
