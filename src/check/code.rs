//! What the names of a file stand for, as far as its imports say: `getenv` after `from os import getenv` is `os.getenv`.

use std::collections::HashMap;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt};

/// Imported names and what they mean.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, String>);

impl Names {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut names = Self::default();
        names.visit_body(body);
        names
    }

    /// The dotted name of an expression that is nothing but names: `os.environ.get`. Names that nobody imported stand
    /// for themselves.
    pub(super) fn dotted(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Name(name) => Some(self.0.get(name.id.as_str()).cloned().unwrap_or_else(|| name.id.to_string())),
            Expr::Attribute(attribute) => Some(format!("{}.{}", self.dotted(&attribute.value)?, attribute.attr)),
            _ => None,
        }
    }
}

impl<'a> StatementVisitor<'a> for Names {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    if let Some(name) = &alias.asname {
                        self.0.insert(name.to_string(), alias.name.to_string());
                    }
                }
            }
            Stmt::ImportFrom(import) if import.level == 0 => {
                let module = import.module.as_deref().unwrap_or_default();
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.0.insert(name.to_string(), format!("{module}.{}", alias.name));
                }
            }
            _ => walk_stmt(self, statement),
        }
    }
}
