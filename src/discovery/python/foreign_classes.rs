//! Classes whose fields another library collects: attrs and msgspec.

use ruff_python_ast::{Expr, ExprCall, StmtClassDef};
use serde_json::Value;

use super::classes::class_keyword;
use super::literals::{keyword, literal};
use super::module::Module;

/// The functions that describe a field, by their full names.
const FIELDS: [&str; 6] = ["attrs.field", "attr.field", "attr.ib", "attr.attrib", "msgspec.field", "dataclasses.field"];
/// The decorators of attrs that take annotations for fields.
const DECORATORS: [&str; 7] =
    ["attrs.define", "attrs.frozen", "attrs.mutable", "attr.define", "attr.frozen", "attr.mutable", "attr.dataclass"];

/// Whether a full name is of a function that describes a field of a dataclass, or of a class of attrs or msgspec.
pub(super) fn is_class_field(name: &str) -> bool {
    FIELDS.contains(&name)
}

impl Module<'_> {
    /// Whether attrs makes fields of the annotations of a class.
    pub(super) fn is_of_attrs(&self, class: &StmtClassDef) -> bool {
        let made = class.decorator_list.iter().any(|decorator| {
            let call = decorator.expression.as_call_expr();
            let name = self.outside_name(call.map_or(&decorator.expression, |call| &*call.func)).unwrap_or_default();
            let says = |key: &str| Some(literal(keyword(call?, key)?, self)? == Value::Bool(true));
            match name.as_str() {
                "attr.s" | "attr.attrs" => says("auto_attribs") == Some(true),
                name => DECORATORS.contains(&name) && says("auto_attribs") != Some(false),
            }
        });
        // One field without an annotation makes attrs ignore all annotations.
        made && !class.body.iter().any(|statement| {
            let value = statement.as_assign_stmt().and_then(|assign| assign.value.as_call_expr());
            value.is_some_and(|call| self.outside_name(&call.func).is_some_and(|name| is_class_field(&name)))
        })
    }

    /// Whether msgspec refuses other names.
    pub(super) fn refuses_unknown(&self, class: &StmtClassDef) -> bool {
        class_keyword(class, "forbid_unknown_fields").and_then(|value| literal(value, self)) == Some(Value::Bool(true))
    }

    /// The name in JSON that a field of msgspec is given: `field(name="…")`.
    pub(super) fn name_in_json(&self, value: Option<&Expr>) -> Option<String> {
        let call = value.and_then(Expr::as_call_expr)?;
        let name = keyword(call, "name")
            .filter(|_| self.outside_name(&call.func).is_some_and(|name| is_class_field(&name)))?;
        Some(literal(name, self)?.as_str()?.to_owned())
    }

    /// Whether a field's values are made of something else than its type.
    pub(super) fn is_converted(&self, value: Option<&Expr>) -> bool {
        let is_one = |call: &ExprCall| self.outside_name(&call.func).is_some_and(|name| is_class_field(&name));
        value.and_then(Expr::as_call_expr).is_some_and(|call| is_one(call) && keyword(call, "converter").is_some())
    }
}

/// Whether the JSON form of a class of msgspec is its fields by their names: none is renamed, tagged, or in an array.
pub(super) fn is_plain_struct(class: &StmtClassDef) -> bool {
    ["rename", "tag", "tag_field", "array_like"].iter().all(|key| class_keyword(class, key).is_none())
}
