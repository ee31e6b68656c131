//! The groups above a command, whose options a caller gives together with the command's own.

use std::collections::HashMap;

use ruff_python_ast::{Decorator, Expr, ExprCall, StmtFunctionDef};

use super::commands::{is_group, is_of_click};
use super::{function_named, text};
use crate::discovery::python::literals::keyword;
use crate::discovery::python::module::Module;
use crate::discovery::python::names::Named;

/// Deeper groups are not read.
const DEEPEST: usize = 16;
/// What click leaves out of a function's name.
const SUFFIXES: [&str; 4] = ["_command", "_cmd", "_group", "_grp"];

/// The functions of the groups above a command, from the inner to the outer: those decorated with `click.group`, and the callbacks of
/// typer's applications.
pub(in crate::discovery::python) fn groups_of<'a>(
    module: &Module<'a>,
    command: &StmtFunctionDef,
) -> Vec<&'a StmtFunctionDef> {
    let function = |owner| match owner {
        Owner::Group(group) => Some(group),
        Owner::Application(name) => callback_of(module, name),
    };
    owners_of(module, command).into_iter().filter_map(function).collect()
}

/// The words before the name of a command, as on a command line: the names of the groups between the outermost one and the command.
pub(in crate::discovery::python) fn words_before(module: &Module<'_>, command: &StmtFunctionDef) -> Vec<String> {
    let mut owners = owners_of(module, command);
    owners.pop();
    owners.into_iter().rev().filter_map(|owner| name_of(module, owner)).collect()
}

pub(super) fn owners_of<'a>(module: &Module<'a>, command: &StmtFunctionDef) -> Vec<Owner<'a>> {
    let Some(owner) = owner_of_function(module, command) else { return Vec::new() };
    let mut owners = vec![owner];
    owners.extend(owners_above(module, owner));
    owners
}

/// The groups above a group, from the inner to the outer.
pub(super) fn owners_above<'a>(module: &Module<'a>, owner: Owner<'a>) -> Vec<Owner<'a>> {
    let above = |owner: &Owner<'a>| match *owner {
        Owner::Group(group) => owner_of_function(module, group),
        Owner::Application(name) => owner_by_call(module, "add_typer", name),
    };
    std::iter::successors(above(&owner), above).take(DEEPEST).collect()
}

/// What a group is called on a command line. A typer application without a name adds its commands to the one above.
pub(super) fn name_of(module: &Module<'_>, owner: Owner<'_>) -> Option<String> {
    match owner {
        Owner::Group(group) => {
            let name = group.decorator_list.iter().find_map(|decorator| {
                let call =
                    decorator.expression.as_call_expr().filter(|_| makes_group(module, &decorator.expression))?;
                text(call.arguments.args.first().or_else(|| keyword(call, "name"))?)
            });
            let own = || SUFFIXES.iter().find_map(|suffix| group.name.strip_suffix(suffix)).unwrap_or(&group.name);
            Some(name.unwrap_or_else(own).to_owned())
        }
        Owner::Application(name) => {
            let call = call_with(module, "add_typer", name)?;
            Some(text(keyword(call, "name")?)?.to_owned())
        }
    }
}

/// What a command or a group belongs to.
#[derive(Clone, Copy)]
pub(super) enum Owner<'a> {
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

/// What the functions and calls of a file say of groups.
#[derive(Debug)]
pub(in crate::discovery::python) struct GroupIndex<'a> {
    /// By application of typer, its callback.
    callbacks: HashMap<&'a str, &'a StmtFunctionDef>,
    /// By the method and the name of its first argument: `cli.add_command(show)`
    calls: HashMap<(&'a str, &'a str), &'a ExprCall>,
}

impl<'a> GroupIndex<'a> {
    fn of(module: &Module<'a>) -> Self {
        let mut index = Self { callbacks: HashMap::new(), calls: HashMap::new() };
        for function in module.functions() {
            for decorator in &function.decorator_list {
                let method = called(decorator).as_attribute_expr().filter(|it| it.attr.as_str() == "callback");
                if let Some(application) = method.and_then(|it| it.value.as_name_expr()) {
                    index.callbacks.entry(application.id.as_str()).or_insert(function);
                }
            }
        }
        for call in &module.calls {
            let first = call.arguments.args.first().and_then(Expr::as_name_expr);
            if let (Some(method), Some(first)) = (call.func.as_attribute_expr(), first) {
                index.calls.entry((method.attr.as_str(), first.id.as_str())).or_insert(call);
            }
        }
        index
    }
}

fn index<'m, 'a>(module: &'m Module<'a>) -> &'m GroupIndex<'a> {
    module.groups.get_or_init(|| GroupIndex::of(module))
}

/// `app.add_typer(users, name="users")`
fn owner_by_call<'a>(module: &Module<'a>, word: &str, name: &str) -> Option<Owner<'a>> {
    owner(module, &call_with(module, word, name)?.func.as_attribute_expr()?.value)
}

fn call_with<'a>(module: &Module<'a>, word: &str, name: &str) -> Option<&'a ExprCall> {
    index(module).calls.get(&(word, name)).copied()
}

pub(super) fn owner<'a>(module: &Module<'a>, value: &Expr) -> Option<Owner<'a>> {
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
    index(module).callbacks.get(application).copied()
}

/// Whether a decorator makes a group, and adds no parameter: `@click.group(cls=DefaultGroup)`, `@cli.group()`,
/// `@click.command(cls=AliasedGroup)`.
pub(super) fn makes_group(module: &Module<'_>, decorator: &Expr) -> bool {
    let call = decorator.as_call_expr();
    let called = call.map_or(decorator, |call| &*call.func);
    let class = call.and_then(|call| keyword(call, "cls"));
    let is_word = |word: &str| match module.outside_name(called) {
        Some(full) => is_of_click(&full, word),
        None => called.as_attribute_expr().is_some_and(|it| it.attr.as_str() == word),
    };
    is_word("group") || class.is_some_and(|class| is_class_of_groups(module, class)) && is_word("command")
}

/// `click.Group`, a class of the file that derives from it, or another with such a name.
fn is_class_of_groups(module: &Module<'_>, class: &Expr) -> bool {
    let has_name = |full: &str| ["Group", "MultiCommand", "CommandCollection"].iter().any(|end| full.ends_with(end));
    match module.resolve(class) {
        Named::Class(class) => module.ancestry(class).outside.iter().any(|base| has_name(base)),
        Named::Outside(full) => has_name(&full),
        _ => false,
    }
}

fn called(decorator: &Decorator) -> &Expr {
    decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &*call.func)
}
