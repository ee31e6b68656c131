//! What is read of a file beyond its own tools, for other files that use it.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ruff_python_ast::{Expr, ModModule, StmtClassDef};
use ruff_python_parser::Parsed;

use super::frameworks::{Calls, methods_of_class};
use super::functions::describe;
use super::module::{Binding, Module};
use super::names::Named;
use super::{bytes_of, syntax_tree};
use crate::discovery::Function;
use crate::pep723;

/// What the functions of a file call. `None` if it cannot be read.
pub(in crate::discovery) fn calls_of(path: &Path) -> Option<Calls> {
    of_module(path, |module, parsed| Calls::of(module, parsed.suite()))
}

/// The classes of a file, and the instances of these that it makes, by name.
#[derive(Default)]
pub(in crate::discovery) struct Classes {
    pub names: HashSet<String>,
    pub instances: HashSet<String>,
}

/// Empty if the file cannot be read.
pub(in crate::discovery) fn classes_of(path: &Path) -> Classes {
    of_module(path, |module, _| {
        let those = |is_class: bool| {
            let names = module.bindings.keys().filter(|name| class_of(module, name, is_class).is_some());
            names.map(|name| (*name).to_owned()).collect()
        };
        Classes { names: those(true), instances: those(false) }
    })
    .unwrap_or_default()
}

/// The tools of a class of a file, or of an instance of one, that another file calls `holder`.
pub(in crate::discovery) fn methods_of(path: &Path, name: &str, is_class: bool, holder: &str) -> Option<Vec<Function>> {
    of_module(path, |module, _| {
        let served = methods_of_class(module, class_of(module, name, is_class)?, holder);
        Some(served.into_iter().filter_map(|one| describe(module, one)).collect())
    })?
}

fn class_of<'a>(module: &Module<'a>, name: &str, is_class: bool) -> Option<&'a StmtClassDef> {
    let made = |value: &Expr| match module.resolve(&value.as_call_expr()?.func) {
        Named::Class(class) => Some(class),
        _ => None,
    };
    match module.bindings.get(name)? {
        Binding::Class(class) if is_class => Some(class),
        Binding::Value(value) if !is_class => made(value),
        _ => None,
    }
}

fn of_module<T>(path: &Path, read: impl for<'a> FnOnce(&mut Module<'a>, &'a Parsed<ModModule>) -> T) -> Option<T> {
    let source = pep723::decode(&bytes_of(path).ok()?).ok()?;
    let parsed = syntax_tree(&source)?;
    catch_unwind(AssertUnwindSafe(|| read(&mut Module::read(&source, parsed.suite()), &parsed))).ok()
}
