//! What a file imports, wherever it does.

use std::collections::BTreeSet;

use ruff_python_ast::Stmt;
use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};

/// More dots lead further up than any package.
const MOST_DOTS: u32 = 16;

/// Every import of a file, also inside functions: `x.y` and `x` of `from x import y`, with the dots that a relative one begins with.
pub(super) fn all_imports(body: &[Stmt]) -> BTreeSet<String> {
    let mut imports = Imports(BTreeSet::new());
    imports.visit_body(body);
    imports.0
}

/// The modules that a file must be able to import to be loaded, in the order of its lines: not those within functions, under conditions,
/// or where an error is caught.
pub(super) fn imports_at_start(body: &[Stmt]) -> Vec<String> {
    let mut found = Vec::new();
    for statement in body {
        match statement {
            Stmt::Import(import) => found.extend(import.names.iter().map(|alias| alias.name.to_string())),
            Stmt::ImportFrom(import) if import.level == 0 => {
                found.extend(import.module.as_ref().map(ToString::to_string));
            }
            _ => {}
        }
    }
    found
}

struct Imports(BTreeSet<String>);

impl<'a> StatementVisitor<'a> for Imports {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => self.0.extend(import.names.iter().map(|alias| alias.name.to_string())),
            Stmt::ImportFrom(import) => {
                let from = import.module.as_ref().map_or("", |module| module.as_str());
                // `from x import y` may mean the file x/y.py as well as a name in x.py. Dots before it lead to the folder and upwards.
                let dots = ".".repeat(import.level.min(MOST_DOTS) as usize);
                let inside = if from.is_empty() { dots.clone() } else { format!("{dots}{from}.") };
                self.0.extend(import.names.iter().map(|alias| format!("{inside}{}", alias.name)));
                self.0.extend((!from.is_empty()).then(|| format!("{dots}{from}")));
            }
            _ => walk_stmt(self, statement),
        }
    }
}
