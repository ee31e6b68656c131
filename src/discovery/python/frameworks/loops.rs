//! Loops over what is written in the file: `for function in (search, count):`, `for name, function in TOOLS.items():`.

use ruff_python_ast::{Expr, ExprCall, StmtFor};

use super::{NAME, fixed, keyword, text};
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::names::Named;

/// A loop over literal items.
pub(super) struct Loop<'a> {
    /// What it calls the key of each, or its first part, where it has one.
    pub key: Option<&'a str>,
    /// What it calls each item.
    pub value: &'a str,
    /// The items with their keys, as far as these are strings.
    pub items: Vec<(Option<&'a str>, &'a Expr)>,
    /// Whether these are all.
    pub is_whole: bool,
}

impl<'a> Loop<'a> {
    pub(super) fn of(module: &Module<'a>, each: &'a StmtFor) -> Option<Self> {
        let (key, value) = match &*each.target {
            Expr::Tuple(pair) => match &*pair.elts {
                [key, value] => (Some(name_of(key)?), name_of(value)?),
                _ => return None,
            },
            target => (None, name_of(target)?),
        };
        let (items, is_whole) = items(module, &each.iter, key.is_some())?;
        Some(Self { key, value, items, is_whole })
    }
}

type Items<'a> = Vec<(Option<&'a str>, &'a Expr)>;

fn items<'a>(module: &Module<'a>, of: &'a Expr, in_pairs: bool) -> Option<(Items<'a>, bool)> {
    let items = match constant(module, of) {
        Expr::List(list) => &list.elts,
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::Call(call) => return of_dictionary(module, call, in_pairs),
        _ => return None,
    };
    if !in_pairs {
        return Some((items.iter().map(|item| (None, item)).collect(), true));
    }
    let pairs = items.iter().filter_map(|item| match &*item.as_tuple_expr()?.elts {
        [key, value] => Some((text(key), value)),
        _ => None,
    });
    let pairs: Items<'a> = pairs.collect();
    let is_whole = pairs.len() == items.len();
    Some((pairs, is_whole))
}

/// `TOOLS.items()`, `TOOLS.values()`
fn of_dictionary<'a>(module: &Module<'a>, call: &'a ExprCall, in_pairs: bool) -> Option<(Items<'a>, bool)> {
    let method = call.func.as_attribute_expr().filter(|_| call.arguments.is_empty())?;
    if method.attr.as_str() != if in_pairs { "items" } else { "values" } {
        return None;
    }
    let dictionary = constant(module, &method.value).as_dict_expr()?;
    let is_fixed = name_of(&method.value).is_none_or(|name| fixed(module, name).is_some());
    // `**OTHER` has no key.
    let is_whole = is_fixed && dictionary.items.iter().all(|item| item.key.is_some());
    let own = dictionary.items.iter().filter(|item| item.key.is_some());
    Some((own.map(|item| (item.key.as_ref().and_then(text), &item.value)).collect(), is_whole))
}

fn constant<'a>(module: &Module<'a>, value: &'a Expr) -> &'a Expr {
    match module.resolve(value) {
        Named::Value { value, .. } => value,
        _ => value,
    }
}

/// Whether a call gives a tool the name that a variable holds: `mcp.tool(name)`, `mcp.add_tool(function, name=name)`.
pub(super) fn names_with(by: &ExprCall, variable: &str) -> bool {
    let named = NAME.iter().filter_map(|name| keyword(by, name));
    // `mcp.tool(name)`, `mcp.add_tool(function, name)`
    named.chain(by.arguments.args.iter().take(2)).any(|value| name_of(value) == Some(variable))
}
