//! What a name in a hint means: imports, aliases and the file's own classes followed.

use ruff_python_ast::{Expr, StmtClassDef};

use super::module::{Binding, Module};

/// What an expression names.
pub(super) enum Named<'a> {
    /// Something from outside the file, by its full dotted name (`builtins.int`, `typing.Optional`).
    Outside(String),
    /// A class of the file.
    Class(&'a StmtClassDef),
    /// A name that was given a value once: perhaps an alias of a type.
    Value {
        name: &'a str,
        value: &'a Expr,
        /// Whether the author says that it is a type: `type X = …`, `X: TypeAlias = …`.
        is_alias: bool,
    },
    /// Nothing that can be told.
    Nothing,
}

/// A name, or names with dots between them, as it is written.
pub(super) fn dotted(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => Some(format!("{}.{}", dotted(&attribute.value)?, attribute.attr)),
        _ => None,
    }
}

impl<'a> Module<'a> {
    /// Follows a name or a dotted name to what it stands for.
    pub(super) fn resolve(&self, expression: &Expr) -> Named<'a> {
        let mut parts = Vec::new();
        let mut at = expression;
        while let Expr::Attribute(attribute) = at {
            parts.push(attribute.attr.as_str());
            at = &attribute.value;
        }
        let Some(first) = at.as_name_expr() else { return Named::Nothing };
        parts.reverse();
        let dotted = |head: &str| parts.iter().fold(head.to_owned(), |path, part| path + "." + part);
        match self.bindings.get_key_value(first.id.as_str()) {
            Some((_, Binding::Import(full))) => Named::Outside(dotted(full)),
            Some((_, Binding::Class(class))) if parts.is_empty() => Named::Class(class),
            Some((name, Binding::Value(value))) if parts.is_empty() => Named::Value { name, value, is_alias: false },
            Some((name, Binding::Alias(value))) if parts.is_empty() => Named::Value { name, value, is_alias: true },
            Some(_) => Named::Nothing,
            None => Named::Outside(dotted(&self.unbound(&first.id))),
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

    /// A name nobody bound is a builtin, or came with a star.
    fn unbound(&self, name: &str) -> String {
        let mut from_stars = self.star_imports.iter().map(|module| format!("{module}.{name}"));
        let known = from_stars.find(|full| super::known::Known::named(full).is_some());
        known.unwrap_or_else(|| format!("builtins.{name}"))
    }
}
