//! What a program of click or typer has of other files: `cli.add_command(products)`, `app.add_typer(users.app, name="users")`,
//! `app.command("setup")(setup)`. And what it has for them: the commands of each of its own groups.

use ruff_python_ast::{Expr, ExprCall};

use super::commands::{is_group, is_of_click};
use super::groups::{Owner, name_of, owner, owners_of};
use super::{package, text};
use crate::discovery::python::literals::keyword;
use crate::discovery::python::module::{Binding, Module};
use crate::discovery::{Attached, Group, Program};

/// The packages that make commands.
const COMMANDS: [&str; 3] = ["click", "rich_click", "typer"];

/// The groups of a module, and what it attaches to them.
pub(super) fn program_of(module: &Module<'_>) -> Program {
    let mut program = Program::default();
    if !module.imports.iter().any(|import| COMMANDS.contains(&package(import))) {
        return program;
    }
    for function in module.functions() {
        if is_group(module, function) && owners_of(module, function).is_empty() {
            let called = name_of(module, Owner::Group(function)).unwrap_or_default();
            program.groups.push(Group { name: function.name.to_string(), called, commands: Vec::new() });
        }
    }
    let mut applications: Vec<_> =
        module.bindings.iter().filter_map(|(name, binding)| application(module, name, binding)).collect();
    applications.sort_by(|a, b| a.name.cmp(&b.name));
    program.groups.extend(applications);
    for function in module.functions() {
        if module.offers.get(function).is_none_or(|offer| offer.command.is_none()) {
            continue;
        }
        let outermost = owners_of(module, function).pop();
        let line = module.lines.of_node(&function.name);
        if let Some(owner) = outermost
            && let Some(group) = program.groups.iter_mut().find(|group| group.name == written(owner))
        {
            group.commands.push(line);
        }
    }
    program.attached = module.calls.iter().filter_map(|call| attached(module, call)).collect();
    program
}

/// `app = typer.Typer(name="users")`
fn application(module: &Module<'_>, name: &str, binding: &Binding<'_>) -> Option<Group> {
    let Binding::Value(Expr::Call(call)) = binding else { return None };
    let made = module.outside_name(&call.func)?;
    let is_one = made == "typer.Typer" || ["Group", "MultiCommand"].iter().any(|word| is_of_click(&made, word));
    let called = keyword(call, "name").and_then(text).unwrap_or_default().to_owned();
    is_one.then(|| Group { name: name.to_owned(), called, commands: Vec::new() })
}

fn attached(module: &Module<'_>, call: &ExprCall) -> Option<Attached> {
    let target = module.outside_name(call.arguments.args.first()?).filter(|full| !full.starts_with("builtins."))?;
    let (method, name) = if let Some(by) = call.func.as_call_expr() {
        // `app.command("setup")(setup)`
        let method = by.func.as_attribute_expr().filter(|it| it.attr.as_str() == "command")?;
        (method, by.arguments.args.first().or_else(|| keyword(by, "name")))
    } else {
        let method = call.func.as_attribute_expr()?;
        let is_one = matches!(method.attr.as_str(), "add_command" | "add_typer");
        (is_one.then_some(method)?, keyword(call, "name").or_else(|| call.arguments.args.get(1)))
    };
    let mut owners = vec![owner(module, &method.value)?];
    owners.extend(super::groups::owners_above(module, owners[0]));
    let below = written(owners.pop()?).to_owned();
    let words = owners.into_iter().rev().filter_map(|owner| name_of(module, owner)).collect();
    Some(Attached { below, words, name: name.and_then(text).map(str::to_owned), target })
}

/// Its name in the file.
fn written(owner: Owner<'_>) -> &str {
    match owner {
        Owner::Group(function) => &function.name,
        Owner::Application(name) => name,
    }
}
