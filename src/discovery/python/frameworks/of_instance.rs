//! What a class gives each of its instances, where that is written: `self.name` in a method of a class with `name = "search"`, or with
//! `super().__init__("search")`.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef, StmtFunctionDef};

use super::classes::{bases, place};
use super::keyword;
use crate::discovery::python::module::{Binding, Module, name_of};
use crate::discovery::python::names::Named;

/// Classes that extend each other further are not followed.
const DEEPEST: usize = 8;

/// What `self.name` is within this call, if it is that and can be read.
pub(super) fn of_instance<'a>(module: &Module<'a>, call: &ExprCall, value: &Expr) -> Option<&'a Expr> {
    let attribute = value.as_attribute_expr().filter(|it| name_of(&it.value) == Some("self"))?;
    let mut classes = module.bindings.values().filter_map(|binding| match binding {
        Binding::Class(class) => Some(*class),
        _ => None,
    });
    let class = classes.find(|class| class.range.contains_range(call.arguments.range))?;
    // A class that derives from it may have another value.
    let is_leaf = || !bases(module).contains(&place(class));
    attribute_of(module, class, &attribute.attr, None, DEEPEST).filter(|_| is_leaf())
}

/// An attribute of the instances of a class. `made` is the call of its constructor, if it is known.
fn attribute_of<'a>(
    module: &Module<'a>,
    class: &'a StmtClassDef,
    name: &str,
    made: Option<&'a ExprCall>,
    depth: usize,
) -> Option<&'a Expr> {
    let depth = depth.checked_sub(1)?;
    let init =
        class.body.iter().filter_map(Stmt::as_function_def_stmt).find(|method| method.name.as_str() == "__init__");
    let base = || {
        let bases = class.arguments.iter().flat_map(|arguments| &arguments.args);
        bases.map(|base| module.resolve_here(base)).find_map(|base| match base {
            Named::Class(base) => Some(base),
            _ => None,
        })
    };
    if let Some(init) = init {
        if assigns_within(init, name) {
            return None;
        }
        if let Some(value) = init.body.iter().find_map(|statement| assigned_to_self(statement, name)) {
            return match name_of(value).filter(|name| parameter_of(init, name).is_some()) {
                Some(parameter) => given(init, parameter, made),
                None => Some(value),
            };
        }
        if let Some(call) = init.body.iter().find_map(call_of_base)
            && let Some(found) = base().and_then(|base| attribute_of(module, base, name, Some(call), depth))
        {
            return Some(found);
        }
    }
    let own = class.body.iter().find_map(|statement| assigned(statement, |target| name_of(target) == Some(name)));
    // Without a constructor of its own, it has that of its base.
    let made = made.filter(|_| init.is_none());
    own.or_else(|| base().and_then(|base| attribute_of(module, base, name, made, depth)))
}

/// What a statement assigns to a wanted target.
fn assigned(statement: &Stmt, is_wanted: impl Fn(&Expr) -> bool) -> Option<&Expr> {
    match statement {
        Stmt::Assign(assign) => assign.targets.iter().any(is_wanted).then_some(&*assign.value),
        Stmt::AnnAssign(assign) if is_wanted(&assign.target) => assign.value.as_deref(),
        _ => None,
    }
}

fn assigned_to_self<'a>(statement: &'a Stmt, name: &str) -> Option<&'a Expr> {
    assigned(statement, |target| {
        target
            .as_attribute_expr()
            .is_some_and(|target| target.attr.as_str() == name && name_of(&target.value) == Some("self"))
    })
}

/// `super().__init__(…)`
fn call_of_base(statement: &Stmt) -> Option<&ExprCall> {
    let call = statement.as_expr_stmt()?.value.as_call_expr()?;
    let method = call.func.as_attribute_expr().filter(|method| method.attr.as_str() == "__init__")?;
    let of = method.value.as_call_expr()?;
    (name_of(&of.func) == Some("super")).then_some(call)
}

/// The place of a parameter behind `self`.
fn parameter_of(init: &StmtFunctionDef, name: &str) -> Option<usize> {
    init.parameters.iter_non_variadic_params().skip(1).position(|it| it.parameter.name.as_str() == name)
}

/// What a call gives a parameter. A default counts only for a call that is known.
fn given<'a>(init: &'a StmtFunctionDef, parameter: &str, made: Option<&'a ExprCall>) -> Option<&'a Expr> {
    let (place, call) = (parameter_of(init, parameter)?, made?);
    let by_call = keyword(call, parameter).or_else(|| call.arguments.args.get(place));
    by_call.or_else(|| init.parameters.iter_non_variadic_params().nth(place + 1)?.default())
}

/// Whether a constructor assigns an attribute of the instance somewhere else than in its own statements, as under a condition.
fn assigns_within(init: &StmtFunctionDef, name: &str) -> bool {
    let mut search = Assigned { name, count: 0 };
    search.visit_body(&init.body);
    search.count > init.body.iter().filter(|statement| assigned_to_self(statement, name).is_some()).count()
}

struct Assigned<'n> {
    name: &'n str,
    count: usize,
}

impl<'e> StatementVisitor<'e> for Assigned<'_> {
    fn visit_stmt(&mut self, statement: &'e Stmt) {
        self.count += usize::from(assigned_to_self(statement, self.name).is_some());
        walk_stmt(self, statement);
    }
}
