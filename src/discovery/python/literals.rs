//! Literal values, and the arguments of calls by name.

use std::cell::Cell;

use ruff_python_ast::{Expr, ExprCall, Number, Operator, UnaryOp};
use serde_json::{Map, Value};

use super::module::Module;
use super::names::Named;

/// The keyword argument of a call.
pub(super) fn keyword<'e>(call: &'e ExprCall, name: &str) -> Option<&'e Expr> {
    let mut keywords = call.arguments.keywords.iter();
    keywords.find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|found| &found.value)
}

const DEEPEST_LITERAL: usize = 32;
/// Longer strings are not put together.
const LONGEST_COMPUTED: usize = 1_000;
/// More constants and operations are not followed for one value.
const MOST_COMPUTED: usize = 1_000;

/// The value of a literal or of a member of an enumeration; `None` when it is computed.
pub(super) fn literal(expression: &Expr, module: &Module<'_>) -> Option<Value> {
    literal_within(expression, module, DEEPEST_LITERAL, &Cell::new(MOST_COMPUTED))
}

fn literal_within(expression: &Expr, module: &Module<'_>, depth: usize, left: &Cell<usize>) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let all = |items: &[Expr]| -> Option<Vec<Value>> {
        items.iter().map(|item| literal_within(item, module, depth, left)).collect()
    };
    match expression {
        Expr::NoneLiteral(_) => Some(Value::Null),
        Expr::BooleanLiteral(literal) => Some(Value::Bool(literal.value)),
        Expr::StringLiteral(literal) => Some(Value::String(literal.value.to_str().to_owned())),
        Expr::NumberLiteral(literal) => number(&literal.value),
        Expr::UnaryOp(operation) => negative(operation.op, &operation.operand),
        Expr::BinOp(operation) => {
            left.set(left.get().checked_sub(1)?);
            let side = |side: &Expr| literal_within(side, module, depth, left);
            computed(&side(&operation.left)?, operation.op, &side(&operation.right)?)
        }
        Expr::Set(set) => all(&set.elts).map(Value::Array),
        Expr::Call(call) => empty(call, module),
        Expr::List(list) => all(&list.elts).map(Value::Array),
        Expr::Tuple(tuple) => all(&tuple.elts).map(Value::Array),
        Expr::Dict(dict) => {
            let mut object = Map::new();
            for item in &dict.items {
                let key = item.key.as_ref()?.as_string_literal_expr()?.value.to_str();
                object.insert(key.to_owned(), literal_within(&item.value, module, depth, left)?);
            }
            Some(Value::Object(object))
        }
        Expr::Attribute(_) => module.enum_member(expression).or_else(|| constant(expression, module, depth, left)),
        Expr::Name(_) => constant(expression, module, depth, left),
        _ => None,
    }
}

/// The value of a constant of the file or of a neighbour. A list may change at run time, a tuple not.
fn constant(name: &Expr, module: &Module<'_>, depth: usize, left: &Cell<usize>) -> Option<Value> {
    left.set(left.get().checked_sub(1)?);
    let Named::Value { value, is_alias: false, .. } = module.resolve(name) else { return None };
    let is_fixed = |value: &Value| !value.is_array() && !value.is_object();
    let found = literal_within(value, module, depth, left)?;
    let is_tuple = || value.is_tuple_expr() && found.as_array().is_some_and(|items| items.iter().all(is_fixed));
    (is_fixed(&found) || is_tuple()).then_some(found)
}

/// `60 * 60`, `2 ** 20`, `PREFIX + "name"`, as far as JSON has the result.
fn computed(left: &Value, operator: Operator, right: &Value) -> Option<Value> {
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        let is_short = left.len() + right.len() <= LONGEST_COMPUTED;
        return (operator == Operator::Add && is_short).then(|| Value::String(format!("{left}{right}")));
    }
    if operator == Operator::Div {
        // `from_f64` rejects what a division by zero gives.
        return serde_json::Number::from_f64(left.as_f64()? / right.as_f64()?).map(Value::Number);
    }
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        let small = || u32::try_from(right).ok();
        let whole = match operator {
            Operator::Add => left.checked_add(right),
            Operator::Sub => left.checked_sub(right),
            Operator::Mult => left.checked_mul(right),
            Operator::Pow => left.checked_pow(small()?),
            Operator::LShift => 1_i64.checked_shl(small()?).filter(|it| *it > 0).and_then(|it| left.checked_mul(it)),
            // Python rounds down.
            Operator::FloorDiv if left >= 0 && right > 0 => Some(left / right),
            Operator::Mod if left >= 0 && right > 0 => Some(left % right),
            _ => None,
        };
        return whole.map(Value::from);
    }
    // Integers of more than 64 bits would lose digits.
    if !left.is_f64() && !right.is_f64() {
        return None;
    }
    let (left, right) = (left.as_f64()?, right.as_f64()?);
    let found = match operator {
        Operator::Add => left + right,
        Operator::Sub => left - right,
        Operator::Mult => left * right,
        _ => return None,
    };
    serde_json::Number::from_f64(found).map(Value::Number)
}

/// `list()`, `dict()`, `frozenset()`
fn empty(call: &ExprCall, module: &Module<'_>) -> Option<Value> {
    let class = call.arguments.is_empty().then(|| module.outside_name(&call.func))??;
    match class.as_str() {
        "builtins.list" | "builtins.tuple" | "builtins.set" | "builtins.frozenset" => Some(Value::Array(Vec::new())),
        "builtins.dict" => Some(Value::Object(Map::new())),
        _ => None,
    }
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
