//! Literal values, and the arguments of calls by name.

use ruff_python_ast::{Expr, ExprCall, Number, UnaryOp};
use serde_json::{Map, Value};

use super::module::Module;
use super::names::Named;

/// The keyword argument of a call.
pub(super) fn keyword<'e>(call: &'e ExprCall, name: &str) -> Option<&'e Expr> {
    let mut keywords = call.arguments.keywords.iter();
    keywords.find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|found| &found.value)
}

const DEEPEST_LITERAL: usize = 32;

/// The value of a literal or of a member of an enumeration; `None` when it is computed.
pub(super) fn literal(expression: &Expr, module: &Module<'_>) -> Option<Value> {
    literal_within(expression, module, DEEPEST_LITERAL)
}

fn literal_within(expression: &Expr, module: &Module<'_>, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let all = |items: &[Expr]| -> Option<Vec<Value>> {
        items.iter().map(|item| literal_within(item, module, depth)).collect()
    };
    match expression {
        Expr::NoneLiteral(_) => Some(Value::Null),
        Expr::BooleanLiteral(literal) => Some(Value::Bool(literal.value)),
        Expr::StringLiteral(literal) => Some(Value::String(literal.value.to_str().to_owned())),
        Expr::NumberLiteral(literal) => number(&literal.value),
        Expr::UnaryOp(operation) => negative(operation.op, &operation.operand),
        Expr::List(list) => all(&list.elts).map(Value::Array),
        Expr::Tuple(tuple) => all(&tuple.elts).map(Value::Array),
        Expr::Dict(dict) => {
            let mut object = Map::new();
            for item in &dict.items {
                let key = item.key.as_ref()?.as_string_literal_expr()?.value.to_str();
                object.insert(key.to_owned(), literal_within(&item.value, module, depth)?);
            }
            Some(Value::Object(object))
        }
        Expr::Attribute(_) => module.enum_member(expression).or_else(|| constant(expression, module, depth)),
        Expr::Name(_) => constant(expression, module, depth),
        _ => None,
    }
}

/// The value of a constant of the file or of a neighbour. A list may change at run time.
fn constant(name: &Expr, module: &Module<'_>, depth: usize) -> Option<Value> {
    let Named::Value { value, is_alias: false, .. } = module.resolve(name) else { return None };
    literal_within(value, module, depth).filter(|value| !value.is_array() && !value.is_object())
}

fn number(number: &Number) -> Option<Value> {
    match number {
        Number::Int(integer) => integer.as_u64().map(Value::from),
        // `from_f64` rejects infinite values.
        Number::Float(float) => serde_json::Number::from_f64(*float).map(Value::Number),
        Number::Complex { .. } => None,
    }
}

fn negative(operator: UnaryOp, operand: &Expr) -> Option<Value> {
    let value = number(&operand.as_number_literal_expr()?.value)?;
    match operator {
        UnaryOp::UAdd => Some(value),
        UnaryOp::USub => match value.as_u64() {
            Some(whole) => 0_i64.checked_sub_unsigned(whole).map(Value::from),
            None => serde_json::Number::from_f64(-value.as_f64()?).map(Value::Number),
        },
        UnaryOp::Not | UnaryOp::Invert => None,
    }
}
