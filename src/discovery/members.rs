//! The members of an enumeration and their values.

use ruff_python_ast::{Expr, Stmt};
use serde_json::Value;

use super::classes::{ClassKind, Lineage};
use super::defaults::literal;
use super::module::{Module, name_of};
use super::names::Named;

impl<'a> Module<'a> {
    /// Every member with its value, or `None` when they cannot all be told.
    pub(super) fn members(&self, lineage: &Lineage<'a>) -> Option<Vec<(&'a str, Value)>> {
        let inherits = |name: &str| lineage.outside.iter().any(|outside| outside == name);
        // The members of a flag combine into values that no list holds.
        if inherits("enum.Flag") || inherits("enum.IntFlag") {
            return None;
        }
        let must_be_text = inherits("enum.StrEnum") || inherits("builtins.str");
        let must_be_whole = inherits("enum.IntEnum") || inherits("builtins.int");
        let mut members: Vec<(&str, Value)> = Vec::new();
        for statement in lineage.classes.iter().flat_map(|class| &class.body) {
            let Some((name, value)) = member(statement)? else { continue };
            let value = if self.is_auto(value) {
                automatic(name, &members, inherits("enum.StrEnum"), must_be_text)?
            } else {
                literal(value, self)?
            };
            let fits = (!must_be_text || value.is_string()) && (!must_be_whole || value.is_i64() || value.is_u64());
            if !fits || value.is_object() {
                return None;
            }
            members.push((name, value));
        }
        (!members.is_empty()).then_some(members)
    }

    /// The value of `Colour.RED` or `Colour.RED.value`.
    pub(super) fn enum_member(&self, expression: &Expr) -> Option<Value> {
        let attribute = expression.as_attribute_expr()?;
        let inner = attribute.value.as_attribute_expr().filter(|_| attribute.attr.as_str() == "value");
        let attribute = inner.unwrap_or(attribute);
        let Named::Class(class) = self.resolve(&attribute.value) else { return None };
        let lineage = self.lineage(class);
        // Only an enumeration's attributes are values a caller can send.
        (lineage.kind == ClassKind::Enumeration).then_some(())?;
        let members = self.members(&lineage)?;
        members.into_iter().find(|(name, _)| *name == attribute.attr.as_str()).map(|(_, value)| value)
    }

    fn is_auto(&self, value: &Expr) -> bool {
        value.as_call_expr().and_then(|call| self.outside_name(&call.func)).is_some_and(|name| name == "enum.auto")
    }
}

/// The member a statement of the body makes: `Some(None)` for none, `None` when the values are no longer certain.
#[expect(clippy::option_option, reason = "the outer one ends the reading, the inner one goes on")]
fn member(statement: &Stmt) -> Option<Option<(&str, &Expr)>> {
    match statement {
        Stmt::Assign(assign) => match &*assign.targets {
            [target] => Some(name_of(target).filter(|name| !name.starts_with('_')).map(|name| (name, &*assign.value))),
            _ => None,
        },
        Stmt::AnnAssign(assign) => {
            let name = name_of(&assign.target).filter(|name| !name.starts_with('_'));
            Some(name.zip(assign.value.as_deref()))
        }
        // These decide what a value is, or which others are taken for one.
        Stmt::FunctionDef(function) => {
            let decides =
                matches!(function.name.as_str(), "__new__" | "__init__" | "_missing_" | "_generate_next_value_");
            (!decides).then_some(None)
        }
        Stmt::Expr(_) | Stmt::Pass(_) | Stmt::ClassDef(_) => Some(None),
        _ => None,
    }
}

/// The value of `auto()`: the name in lower case, or one more than the last number.
fn automatic(name: &str, before: &[(&str, Value)], names: bool, must_be_text: bool) -> Option<Value> {
    if names {
        return Some(Value::String(name.to_lowercase()));
    }
    if must_be_text {
        return None;
    }
    let numbers: Option<Vec<i64>> = before.iter().map(|(_, value)| value.as_i64()).collect();
    let numbers = numbers?;
    // Python 3.11 goes on from the highest, older ones from the last; where the two differ nothing is certain.
    let last = numbers.last().copied().unwrap_or(0);
    (last == numbers.iter().copied().max().unwrap_or(0)).then(|| last.checked_add(1)).flatten().map(Value::from)
}
