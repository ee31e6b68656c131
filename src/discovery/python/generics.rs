//! Generic classes of the file, with arguments for their type parameters: `Box[int]`.

use ruff_python_ast::{Expr, ExprSubscript, Operator, StmtClassDef};

use super::classes::ClassKind;
use super::module::Module;
use super::names::{Named, dotted};
use super::schema::Schema;
use super::types::Hints;

impl<'a> Hints<'_, 'a> {
    /// A class of the file with arguments for its type parameters. Of a pydantic model, pydantic makes a class of its own; others leave
    /// their parameters open.
    pub(super) fn bound(&mut self, class: &'a StmtClassDef, generic: &ExprSubscript) -> Schema {
        let is_model = self.module.ancestry(class).kind == ClassKind::Model;
        let written = written_type(self.module, &generic.slice, DEEPEST_WRITTEN).filter(|_| is_model);
        let name = written.and_then(|arguments| Some(format!("{}[{arguments}]", dotted(&generic.value)?)));
        name.and_then(|name| self.live_named(self.module.name_for_worker(&generic.value, name)?))
            .unwrap_or_else(|| self.class(class))
    }
}

/// Deeper arguments of generic classes are left open.
const DEEPEST_WRITTEN: usize = 8;

/// A hint as text that means the same at the top level of the file. `None` for one that mentions a type parameter, or anything but types.
fn written_type(module: &Module<'_>, hint: &Expr, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let part = |hint| written_type(module, hint, depth);
    match hint {
        Expr::NoneLiteral(_) => Some("None".to_owned()),
        Expr::Name(_) | Expr::Attribute(_) => match module.resolve(hint) {
            Named::Outside(_) | Named::Class(_) => dotted(hint),
            _ => None,
        },
        Expr::Subscript(generic) => Some(format!("{}[{}]", part(&generic.value)?, part(&generic.slice)?)),
        Expr::Tuple(tuple) => {
            let parts: Option<Vec<String>> = tuple.elts.iter().map(part).collect();
            parts.map(|parts| parts.join(", "))
        }
        Expr::BinOp(operation) if operation.op == Operator::BitOr => {
            Some(format!("{} | {}", part(&operation.left)?, part(&operation.right)?))
        }
        _ => None,
    }
}

/// Whether a value is a type parameter, which stands for any type: `TypeVar("T")`.
pub(super) fn is_parameter(module: &Module<'_>, value: &Expr) -> bool {
    let made = value.as_call_expr().and_then(|call| module.outside_name(&call.func));
    made.is_some_and(|name| matches!(name.as_str(), "typing.TypeVar" | "typing_extensions.TypeVar"))
}
