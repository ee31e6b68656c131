//! Type hints to JSON Schema.

use ruff_python_ast::{Expr, ExprSubscript, Operator};
use ruff_python_parser::parse_expression;
use serde_json::{Map, Value, json};

use super::defaults::literal;
use super::fields::Facts;
use super::known::Known;
use super::module::Module;
use super::names::Named;
use super::schema::{Schema, admits_anything, any_of, nullable, of_type, one_of};

/// Reads the hints of one function; the classes they meet gather in `definitions`.
pub(super) struct Hints<'m, 'a> {
    pub(super) module: &'m Module<'a>,
    /// What goes to `$defs`.
    pub(super) definitions: Map<String, Value>,
    depth: usize,
}

/// Deeper than any hint a person writes; ends circles of aliases.
const DEEPEST_HINT: usize = 48;

/// A longer text in quotes is no hint, and its tree could be too deep to touch.
const LONGEST_QUOTED_HINT: usize = 2000;

impl<'m, 'a> Hints<'m, 'a> {
    pub(super) fn new(module: &'m Module<'a>) -> Self {
        Self { module, definitions: Map::new(), depth: 0 }
    }

    /// The schema of a hint; the empty one for what cannot be known.
    pub(super) fn hint(&mut self, hint: &Expr) -> Schema {
        if self.depth >= DEEPEST_HINT {
            return Schema::new();
        }
        self.depth += 1;
        let schema = match hint {
            Expr::NoneLiteral(_) => Known::Null.bare(),
            Expr::StringLiteral(text) if text.value.len() <= LONGEST_QUOTED_HINT => {
                let parsed = parse_expression(text.value.to_str().trim());
                parsed.map(|parsed| self.hint(parsed.expr())).unwrap_or_default()
            }
            Expr::BinOp(operation) if operation.op == Operator::BitOr => self.union(hint),
            Expr::Name(_) | Expr::Attribute(_) => self.name(hint),
            Expr::Subscript(generic) => self.generic(generic),
            _ => Schema::new(),
        };
        self.depth -= 1;
        schema
    }

    fn name(&mut self, hint: &Expr) -> Schema {
        match self.module.resolve(hint) {
            Named::Outside(name) => Known::named(&name).map(Known::bare).unwrap_or_default(),
            Named::Class(class) => self.class(class),
            Named::Value(value) => self.alias(value),
            Named::Nothing => Schema::new(),
        }
    }

    /// A name given to a type: `Vector = list[float]`, `UserId = NewType("UserId", int)`.
    fn alias(&mut self, value: &Expr) -> Schema {
        match value {
            // A text may be anything; only in a hint is it certainly a hint.
            Expr::StringLiteral(_) => Schema::new(),
            Expr::Call(call) => match (self.known(&call.func), &*call.arguments.args) {
                (Some(Known::NewType), [_, inner]) => self.hint(inner),
                _ => Schema::new(),
            },
            _ => self.hint(value),
        }
    }

    fn known(&self, expression: &Expr) -> Option<Known> {
        Known::named(&self.module.outside_name(expression)?)
    }

    /// `A | B | C`, which the parser nests to the left.
    fn union(&mut self, hint: &Expr) -> Schema {
        let (mut branches, mut at) = (Vec::new(), hint);
        while let Expr::BinOp(operation) = at
            && operation.op == Operator::BitOr
        {
            branches.push(&*operation.right);
            at = &operation.left;
        }
        branches.push(at);
        let schemas: Vec<Schema> = branches.into_iter().rev().map(|branch| self.hint(branch)).collect();
        any_of(schemas)
    }

    fn generic(&mut self, generic: &ExprSubscript) -> Schema {
        if let Named::Class(class) = self.module.resolve(&generic.value) {
            return self.class(class);
        }
        let Some(known) = self.known(&generic.value) else { return Schema::new() };
        let arguments = match &*generic.slice {
            Expr::Tuple(tuple) => tuple.elts.as_slice(),
            single => std::slice::from_ref(single),
        };
        match (known, arguments) {
            (Known::List | Known::Set, [item]) => self.with_inner(known, "items", item),
            (Known::Tuple, _) => self.tuple(arguments),
            (Known::Mapping, [_, value]) => self.with_inner(known, "additionalProperties", value),
            (Known::Optional, [inner]) => nullable(self.hint(inner)),
            (Known::Union, _) => {
                let schemas: Vec<Schema> = arguments.iter().map(|branch| self.hint(branch)).collect();
                any_of(schemas)
            }
            (Known::Literal, _) => self.literals(arguments).map(one_of).unwrap_or_default(),
            (Known::Annotated, [inner, notes @ ..]) => self.annotated(inner, notes),
            (Known::Qualifier, [inner]) => self.hint(inner),
            (Known::Format("path") | Known::Counter, _) => known.bare(),
            _ => Schema::new(),
        }
    }

    fn with_inner(&mut self, outer: Known, key: &str, inner: &Expr) -> Schema {
        let mut schema = outer.bare();
        let inner = self.hint(inner);
        if !inner.is_empty() {
            schema.insert(key.to_owned(), Value::Object(inner));
        }
        schema
    }

    fn tuple(&mut self, items: &[Expr]) -> Schema {
        if let [item, Expr::EllipsisLiteral(_)] = items {
            return self.with_inner(Known::Tuple, "items", item);
        }
        if items.iter().any(Expr::is_starred_expr) {
            return of_type("array");
        }
        let schemas: Vec<Value> = items.iter().map(|item| Value::Object(self.hint(item))).collect();
        let length = schemas.len();
        let mut schema = of_type("array");
        if length > 0 {
            schema.insert("prefixItems".to_owned(), Value::Array(schemas));
        }
        schema.insert("minItems".to_owned(), json!(length));
        schema.insert("maxItems".to_owned(), json!(length));
        schema
    }

    /// The values of `Literal[…]`, those of literals inside it included.
    fn literals(&self, arguments: &[Expr]) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        for argument in arguments {
            match argument {
                Expr::Subscript(inner) if self.known(&inner.value) == Some(Known::Literal) => {
                    let nested = match &*inner.slice {
                        Expr::Tuple(tuple) => tuple.elts.as_slice(),
                        single => std::slice::from_ref(single),
                    };
                    // One level is what people write; deeper ones are left unknown.
                    values.extend(nested.iter().map(|value| literal(value, self.module)).collect::<Option<Vec<_>>>()?);
                }
                _ => values.push(literal(argument, self.module)?),
            }
        }
        Some(values)
    }

    /// `Annotated[X, …]`: a text describes; of the rest, pydantic's `Field` and `Doc` are understood.
    fn annotated(&mut self, inner: &Expr, notes: &[Expr]) -> Schema {
        let mut schema = self.hint(inner);
        for note in notes {
            let description = match note {
                Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
                Expr::Call(call) => match self.module.outside_name(&call.func).as_deref() {
                    Some("pydantic.Field") => {
                        let facts = Facts::of_call(self.module, call);
                        facts.constrain(&mut schema);
                        facts.description
                    }
                    Some("typing_extensions.Doc" | "annotated_doc.Doc") => {
                        let text = call.arguments.args.first().and_then(|text| text.as_string_literal_expr());
                        text.map(|text| text.value.to_str().to_owned())
                    }
                    _ => None,
                },
                _ => None,
            };
            schema.extend(description.map(|text| ("description".to_owned(), Value::String(text))));
        }
        schema
    }

    /// What `**kwargs: X` admits as further arguments.
    pub(super) fn further_arguments(&mut self, hint: Option<&Expr>) -> Value {
        let schema = hint.map(|hint| self.hint(hint)).unwrap_or_default();
        if admits_anything(&schema) { Value::Bool(true) } else { Value::Object(schema) }
    }
}
