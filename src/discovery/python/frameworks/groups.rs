//! The groups above a command, whose options a caller gives together with the command's own.

use ruff_python_ast::{Decorator, Expr, StmtFunctionDef};

use super::commands::{is_group, is_of_click};
use super::function_named;
use crate::discovery::python::module::{Module, Named};

/// Deeper groups are not read.
const DEEPEST: usize = 16;

/// The functions of the groups above a command, from the inner to the outer: those decorated with `click.group`, and the callbacks of
/// typer's applications.
pub(in crate::discovery::python) fn groups_of<'a>(
    module: &Module<'a>,
    command: &StmtFunctionDef,
) -> Vec<&'a StmtFunctionDef> {
    let mut groups: Vec<&'a StmtFunctionDef> = Vec::new();
    let mut above = owner_of_function(module, command);
    for _ in 0..DEEPEST {
        let Some(owner) = above else { break };
        let group = match owner {
            Owner::Group(group) => Some(group),
            Owner::Application(name) => callback_of(module, name),
        };
        if group.is_some_and(|group| groups.iter().any(|known| std::ptr::eq(*known, group))) {
            break;
        }
        groups.extend(group);
        above = match owner {
            Owner::Group(group) => owner_of_function(module, group),
            Owner::Application(name) => owner_by_call(module, "add_typer", name),
        };
    }
    groups
}

/// What a command or a group belongs to.
#[derive(Clone, Copy)]
enum Owner<'a> {
    /// A function that click makes a group.
    Group(&'a StmtFunctionDef),
    /// The name of an application of typer.
    Application(&'a str),
}

/// `@cli.command()`, `@cli.group()`, `cli.add_command(function)`
fn owner_of_function<'a>(module: &Module<'a>, function: &StmtFunctionDef) -> Option<Owner<'a>> {
    let by_decorator = function.decorator_list.iter().find_map(|decorator| {
        let attribute = called(decorator).as_attribute_expr()?;
        matches!(attribute.attr.as_str(), "command" | "group").then(|| owner(module, &attribute.value))?
    });
    by_decorator.or_else(|| owner_by_call(module, "add_command", &function.name))
}

/// `app.add_typer(users, name="users")`
fn owner_by_call<'a>(module: &Module<'a>, word: &str, name: &str) -> Option<Owner<'a>> {
    module.calls.iter().find_map(|call| {
        let attribute = call.func.as_attribute_expr().filter(|it| it.attr.as_str() == word)?;
        let is_meant = call.arguments.args.first()?.as_name_expr()?.id.as_str() == name;
        is_meant.then(|| owner(module, &attribute.value))?
    })
}

fn owner<'a>(module: &Module<'a>, value: &Expr) -> Option<Owner<'a>> {
    if let Some(group) = function_named(module, value) {
        return is_group(module, group).then_some(Owner::Group(group));
    }
    match module.resolve(value) {
        Named::Value { name, .. } => Some(Owner::Application(name)),
        _ => None,
    }
}

/// `@app.callback()`
fn callback_of<'a>(module: &Module<'a>, application: &str) -> Option<&'a StmtFunctionDef> {
    let is_callback = |decorator: &Decorator| {
        called(decorator).as_attribute_expr().is_some_and(|it| {
            let of = it.value.as_name_expr();
            it.attr.as_str() == "callback" && of.is_some_and(|name| name.id.as_str() == application)
        })
    };
    module.functions().into_iter().find(|function| function.decorator_list.iter().any(is_callback))
}

/// Whether a decorator makes a group, and adds no parameter.
pub(super) fn makes_group(module: &Module<'_>, called: &Expr) -> bool {
    let is_nested = called.as_attribute_expr().is_some_and(|it| it.attr.as_str() == "group");
    module.outside_name(called).map_or(is_nested, |full| is_of_click(&full, "group"))
}

fn called(decorator: &Decorator) -> &Expr {
    decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &*call.func)
}
