//! What names in hints and defaults mean.

use ruff_python_ast::{Expr, StmtClassDef, TypeParams};

use super::known_types::KnownType;
use super::module::{Binding, Module};
use crate::discovery::is_standard;

/// What a name in a hint means.
#[derive(Clone)]
pub(super) enum Named<'a> {
    /// Something from outside the file, by its full dotted name (`builtins.int`, `typing.Optional`).
    Outside(String),
    /// A class of the file.
    Class(&'a StmtClassDef),
    /// A name with one value, which may be an alias of a type.
    Value {
        name: &'a str,
        value: &'a Expr,
        /// Whether it is an explicit alias: `type X = …`, `X: TypeAlias = …`.
        is_alias: bool,
        /// The type parameters of `type X[T] = …`.
        parameters: Option<&'a TypeParams>,
    },
    /// Unknown.
    Nothing,
}

/// A dotted name as it is written.
pub(super) fn dotted(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => Some(format!("{}.{}", dotted(&attribute.value)?, attribute.attr)),
        _ => None,
    }
}

impl<'a> Module<'a> {
    /// Resolves a dotted name without looking into other files.
    pub(super) fn resolve_here(&self, expression: &Expr) -> Named<'a> {
        let mut parts = Vec::new();
        let mut at = expression;
        while let Expr::Attribute(attribute) = at {
            parts.push(attribute.attr.as_str());
            at = &attribute.value;
        }
        let Some(first) = at.as_name_expr() else { return Named::Nothing };
        parts.reverse();
        self.bound(&first.id, &parts)
    }

    /// What a name of the top level means, with its attributes.
    pub(super) fn bound(&self, first: &str, parts: &[&str]) -> Named<'a> {
        let dotted = |head: &str| parts.iter().fold(head.to_owned(), |path, part| path + "." + part);
        match self.bindings.get_key_value(first) {
            Some((_, Binding::Import(full))) => Named::Outside(dotted(full)),
            Some((_, Binding::Class(class))) if parts.is_empty() => Named::Class(class),
            Some((name, Binding::Value(value))) if parts.is_empty() => {
                Named::Value { name, value, is_alias: false, parameters: None }
            }
            Some((name, Binding::Alias(value, parameters))) if parts.is_empty() => {
                Named::Value { name, value, is_alias: true, parameters: *parameters }
            }
            Some(_) => Named::Nothing,
            None => Named::Outside(dotted(&self.unbound(first))),
        }
    }

    /// Whether an expression names a class of the file.
    pub(super) fn is_class(&self, expression: &Expr) -> bool {
        matches!(self.resolve(expression), Named::Class(_))
    }

    /// The full dotted name of an expression, when it comes from outside the file.
    pub(super) fn outside_name(&self, expression: &Expr) -> Option<String> {
        if let Named::Outside(name) = self.resolve(expression) { Some(name) } else { None }
    }

    /// Keeps a name of another file, which may be a neighbour.
    pub(super) fn note_borrowed(&self, full: &str) {
        let (top, rest) = full.split_once('.').unwrap_or((full, ""));
        let is_unbound = top == "builtins" && !self.star_imports.is_empty();
        if is_standard(top) && !is_unbound {
            return;
        }
        let mut borrowed = self.borrowed.borrow_mut();
        if is_unbound {
            borrowed.extend(self.star_imports.iter().map(|module| join(module, rest)));
        } else if !borrowed.contains(full) {
            borrowed.insert(full.to_owned());
        }
    }

    /// The names of other files that were looked up since the last call.
    pub(super) fn take_borrowed(&self) -> Vec<String> {
        self.borrowed.take().into_iter().collect()
    }

    /// An unbound name is a builtin, or imported with `*`.
    fn unbound(&self, name: &str) -> String {
        let mut from_stars = self.star_imports.iter().map(|module| format!("{module}.{name}"));
        let known = from_stars.find(|full| KnownType::named(full).is_some());
        known.unwrap_or_else(|| format!("builtins.{name}"))
    }
}

/// The name of something in a module: `shop.units.Unit`, `.units.Unit`, `.Unit`.
pub(super) fn join(module: &str, name: &str) -> String {
    let is_of_package = module.ends_with('.') || module.is_empty();
    if is_of_package { format!("{module}{name}") } else { format!("{module}.{name}") }
}
