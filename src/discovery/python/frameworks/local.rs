//! What functions import: names that mean something within them only.

use std::collections::HashMap;

use ruff_python_ast::{Alias, Expr, StmtImportFrom};

use crate::discovery::modules::join;
use crate::discovery::python::module::name_of;

/// More dots than this are no import that could succeed.
const MOST_DOTS: u32 = 16;

/// The imports of a function, by the names that they bind.
#[derive(Debug, Default)]
pub(super) struct LocalImports<'a>(HashMap<&'a str, String>);

impl<'a> LocalImports<'a> {
    /// Adds an import of a module, or `from` one. Returns the name that it binds: `a` of `import a.b`.
    pub fn add(&mut self, from: Option<&str>, alias: &'a Alias) -> &'a str {
        let whole = alias.name.as_str();
        let (bound, full) = match (&alias.asname, from) {
            (Some(name), None) => (name.as_str(), whole.to_owned()),
            (None, None) => {
                let top = whole.split('.').next().unwrap_or(whole);
                (top, top.to_owned())
            }
            (name, Some(from)) => (name.as_ref().unwrap_or(&alias.name).as_str(), join(from, whole)),
        };
        self.0.insert(bound, full);
        bound
    }

    /// The full name of `search` or `notes.search`, where it is imported.
    pub fn full_name(&self, value: &Expr) -> Option<String> {
        match value {
            Expr::Attribute(attribute) => Some(join(&self.full_name(&attribute.value)?, &attribute.attr)),
            _ => self.0.get(name_of(value)?).cloned(),
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// `..notes` of `from ..notes import search`.
pub(super) fn module_of(import: &StmtImportFrom) -> String {
    let module = import.module.as_ref().map_or("", |module| module.as_str());
    ".".repeat(import.level.min(MOST_DOTS) as usize) + module
}
