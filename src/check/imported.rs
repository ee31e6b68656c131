//! The imports of a file that have to succeed, and whether it looks for modules in places of its own.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Identifier, Stmt};

use super::guards::{IMPORT_ERRORS, asks_where_it_runs, catches, is_main, is_type_checking, suppresses};
use super::names::Names;

pub(super) struct Imports<'a, 'n> {
    names: &'n Names,
    /// Dotted modules, with the name to point at.
    pub(super) found: Vec<(String, &'a Identifier)>,
    /// Whether the file touches `sys.path`, so that what is found where is not known.
    pub(super) changes_path: bool,
}

impl<'a, 'n> Imports<'a, 'n> {
    pub(super) fn of(body: &'a [Stmt], names: &'n Names) -> Self {
        let mut imports = Self { names, found: Vec::new(), changes_path: false };
        imports.visit_body(body);
        imports
    }
}

impl<'a> Visitor<'a> for Imports<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                self.found.extend(import.names.iter().map(|alias| (alias.name.to_string(), &alias.name)));
            }
            Stmt::ImportFrom(import) if import.level == 0 => {
                self.found.extend(import.module.iter().map(|module| (module.to_string(), module)));
            }
            // What is caught may be missing, and what is done instead is often one of several ways.
            Stmt::Try(tried) if catches(tried, IMPORT_ERRORS) => self.visit_body(&tried.finalbody),
            Stmt::With(with) if suppresses(with, self.names, IMPORT_ERRORS) => {}
            Stmt::If(branch) if is_type_checking(&branch.test) || is_main(&branch.test) => {
                branch.elif_else_clauses.iter().for_each(|clause| self.visit_body(&clause.body));
            }
            Stmt::If(branch) if asks_where_it_runs(&branch.test, self.names) => {}
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let touches = |name: &str| name == "sys.path" || name == "site.addsitedir";
        self.changes_path |= self.names.dotted(expression).is_some_and(|name| touches(&name));
        walk_expr(self, expression);
    }
}
