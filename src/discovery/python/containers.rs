//! Generic hints of Python's own: containers, literals, unions, annotated types.

use ruff_python_ast::{Expr, ExprSubscript};
use serde_json::{Value, json};

use super::generics::written_parameters;
use super::known_types::{KnownType, Side};
use super::literals::literal;
use super::names::Named;
use super::schema::{Schema, any_of, nullable, of_type, one_of, schema};
use super::types::Hints;

/// The deepest nesting of literals.
const DEEPEST_LITERALS: usize = 8;
/// The most values of literals.
const MOST_LITERALS: usize = 10_000;

impl Hints<'_, '_> {
    pub(super) fn generic(&mut self, generic: &ExprSubscript) -> Schema {
        match self.module.resolve(&generic.value) {
            Named::Class(class) => return self.bound(class, generic),
            Named::Value { name, value, is_alias, parameters } => {
                let parameters = match parameters {
                    Some(written) => written_parameters(written),
                    None => self.module.variables_of(value),
                };
                if parameters.is_empty() {
                    return self.alias(name, value, is_alias);
                }
                return self.alias_with(value, &parameters, elements(&generic.slice));
            }
            _ => {}
        }
        let Some(name) = self.module.outside_name(&generic.value) else { return Schema::new() };
        let arguments = elements(&generic.slice);
        let Some(known) = KnownType::named(&name) else {
            return match (name.as_str(), arguments) {
                ("pydantic.RootModel", [inner]) => self.in_model(inner),
                ("pydantic.Json", [_]) if self.side.is_input() => {
                    schema(json!({"type": "string", "contentMediaType": "application/json"}))
                }
                _ => Schema::new(),
            };
        };
        match (known, arguments) {
            (KnownType::List | KnownType::Set, [item]) => self.with_inner(known, "items", item),
            (KnownType::Sequence, [item]) => self.sequence(item),
            (KnownType::Tuple, _) => self.tuple(arguments),
            (KnownType::Mapping, [key, value]) => self.mapping(key, value),
            (KnownType::Optional, [inner]) => nullable(self.hint(inner)),
            (KnownType::Union, _) => {
                let schemas: Vec<Schema> = arguments.iter().map(|branch| self.hint(branch)).collect();
                any_of(schemas)
            }
            (KnownType::Literal, _) => self.values(arguments).map(one_of).unwrap_or_default(),
            (KnownType::Annotated, [inner, notes @ ..]) => self.annotated(inner, notes),
            (KnownType::Qualifier, [inner]) => self.hint(inner),
            (KnownType::Format("path" | "regex") | KnownType::Counter, _) => known.bare(self.side),
            _ => Schema::new(),
        }
    }

    /// A hint inside a pydantic model.
    pub(super) fn in_model(&mut self, hint: &Expr) -> Schema {
        let outside = self.side;
        self.side = outside.in_model();
        let schema = self.hint(hint);
        self.side = outside;
        schema
    }

    fn with_inner(&mut self, outer: KnownType, key: &str, inner: &Expr) -> Schema {
        let mut schema = outer.bare(self.side);
        let inner = self.inner(inner);
        // A type of unknown form, such as a set in a result, stays unknown.
        if !inner.is_empty() && !schema.is_empty() {
            schema.insert(key.to_owned(), Value::Object(inner));
        }
        schema
    }

    /// A string is a sequence of strings too, so such a result may be a string.
    fn sequence(&mut self, item: &Expr) -> Schema {
        let list = self.with_inner(KnownType::List, "items", item);
        let kind = list.get("items").and_then(|items| items.get("type")).and_then(Value::as_str);
        let may_be_text = self.side == Side::Returned && kind.is_none_or(|kind| kind == "string");
        if may_be_text { Schema::new() } else { list }
    }

    fn mapping(&mut self, key: &Expr, value: &Expr) -> Schema {
        let mut schema = self.with_inner(KnownType::Mapping, "additionalProperties", value);
        // Keys are strings in JSON: constraints on strings apply to them, other types are converted.
        let names = match self.module.resolve(key) {
            Named::Class(class) if self.module.is_of_texts(class) => self.class(class),
            Named::Class(_) => Schema::new(),
            _ => self.inner(key),
        };
        let is_text = names.get("type").is_some_and(|kind| kind == "string");
        if is_text && names.len() > 1 || names.contains_key("$ref") && self.module.is_class(key) {
            schema.insert("propertyNames".to_owned(), Value::Object(names));
        }
        schema
    }

    fn tuple(&mut self, items: &[Expr]) -> Schema {
        if let [item, Expr::EllipsisLiteral(_)] = items {
            return self.with_inner(KnownType::List, "items", item);
        }
        let open = items.iter().position(|item| self.rest_of_tuple(item).is_some());
        let (fixed, rest, last) = match open {
            Some(at) => (&items[..at], self.rest_of_tuple(&items[at]), &items[at + 1..]),
            None => (items, None, &[][..]),
        };
        if fixed.iter().chain(last).any(Expr::is_starred_expr) {
            return of_type("array");
        }
        let schemas: Vec<Value> = fixed.iter().map(|item| Value::Object(self.inner(item))).collect();
        let length = schemas.len();
        let mut schema = of_type("array");
        if length > 0 {
            schema.insert("prefixItems".to_owned(), Value::Array(schemas));
        }
        schema.insert("minItems".to_owned(), json!(length + last.len()));
        match rest {
            Some(item) => {
                // How many items come before the last ones is not known: the worker checks these.
                let further: Vec<Schema> = std::iter::once(item).chain(last).map(|item| self.inner(item)).collect();
                let item = any_of(further);
                schema.extend((!item.is_empty()).then_some(("items".to_owned(), Value::Object(item))));
            }
            None => drop(schema.insert("maxItems".to_owned(), json!(length))),
        }
        schema
    }

    /// The `X` of `*tuple[X, ...]` or `Unpack[tuple[X, ...]]`.
    fn rest_of_tuple<'e>(&self, item: &'e Expr) -> Option<&'e Expr> {
        let inner = match item {
            Expr::Starred(starred) => &*starred.value,
            Expr::Subscript(generic) if self.known(&generic.value) == Some(KnownType::Unpack) => &*generic.slice,
            _ => return None,
        };
        let generic =
            inner.as_subscript_expr().filter(|generic| self.known(&generic.value) == Some(KnownType::Tuple))?;
        if let [item, Expr::EllipsisLiteral(_)] = elements(&generic.slice) { Some(item) } else { None }
    }

    /// The values of `Literal[…]`, including nested literals and aliases of literals.
    fn values(&self, arguments: &[Expr]) -> Option<Vec<Value>> {
        let (mut values, mut left) = (Vec::new(), MOST_LITERALS);
        self.literals(arguments, DEEPEST_LITERALS, &mut left, &mut values)?;
        Some(values)
    }

    fn literals(&self, arguments: &[Expr], depth: usize, left: &mut usize, values: &mut Vec<Value>) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        for argument in arguments {
            *left = left.checked_sub(1)?;
            let alias = match self.module.resolve(argument) {
                Named::Value { value, .. } => Some(value),
                _ => None,
            };
            match alias.unwrap_or(argument) {
                Expr::Subscript(inner) if self.known(&inner.value) == Some(KnownType::Literal) => {
                    self.literals(elements(&inner.slice), depth, left, values)?;
                }
                _ if alias.is_some() => return None,
                _ => values.push(literal(argument, self.module)?),
            }
        }
        Some(())
    }
}

/// The arguments in brackets.
pub(super) fn elements(slice: &Expr) -> &[Expr] {
    match slice {
        Expr::Tuple(tuple) => tuple.elts.as_slice(),
        single => std::slice::from_ref(single),
    }
}
