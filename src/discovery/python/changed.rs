//! Names whose lists and dictionaries may hold something else than what they are first assigned.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprContext, Stmt};

use super::module::name_of;
use super::syntax::Depth;

/// Methods that change what they are called on.
const CHANGING: [&str; 8] = ["append", "extend", "insert", "remove", "pop", "clear", "update", "setdefault"];

/// The names of a file that something changes, or that mean something else in a function.
pub(super) fn changed_names(body: &[Stmt]) -> HashSet<&str> {
    let mut search = Changed::default();
    search.visit_body(body);
    search.names
}

#[derive(Default)]
struct Changed<'a> {
    names: HashSet<&'a str>,
    functions: usize,
    depth: Depth,
}

impl<'a> Visitor<'a> for Changed<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::AugAssign(assign) = statement {
            self.names.extend(name_of(&assign.target));
        }
        let function = statement.as_function_def_stmt();
        if let Some(function) = function {
            self.names.extend(function.parameters.iter().map(|parameter| parameter.name().as_str()));
            self.functions += 1;
        }
        if self.depth.enter() {
            visitor::walk_stmt(self, statement);
            self.depth.leave();
        }
        self.functions -= usize::from(function.is_some());
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if self.functions > 0 && name.ctx == ExprContext::Store => {
                self.names.insert(&name.id);
            }
            Expr::Subscript(subscript) if subscript.ctx != ExprContext::Load => {
                self.names.extend(name_of(&subscript.value));
            }
            Expr::Attribute(method) if CHANGING.contains(&method.attr.as_str()) => {
                self.names.extend(name_of(&method.value));
            }
            _ => {}
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
