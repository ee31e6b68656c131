//! Type hints to JSON Schema: names, aliases, unions, generic types.

use std::rc::Rc;

use ruff_python_ast::{Expr, ExprSubscript, Operator, Stmt, StmtClassDef};
use serde_json::{Value, json};

use super::classes::ClassKind;
use super::constraints::called_type;
use super::generics::is_parameter;
use super::known_types::{KnownType, Side, pydantic_type};
use super::literals::literal;
use super::live::means_anything;
use super::model::is_readable;
use super::module::Module;
use super::names::{Named, dotted};
use super::results::file_result;
use super::schema::{
    Definition, LARGEST_ALIAS, Reference, Schema, Target, admits_anything, any_of, nullable, of_type, one_of, size_of,
};

/// Reads the hints of one function or class.
pub(super) struct Hints<'m, 'a> {
    pub(super) module: &'m Module<'a>,
    pub(super) side: Side,
    /// What `$defs` has to contain.
    pub(super) references: Vec<Reference<'a>>,
    depth: usize,
    /// The greatest depth that was reached; `usize::MAX` where something was left out.
    deepest: usize,
    /// The number of containers around the hint. An alias that mentions itself inside one is recursive, not endless.
    pub(super) level: usize,
    /// The class whose definition is read.
    pub(super) described: Option<&'a StmtClassDef>,
    /// The class in which the hint is written: it may name classes within that.
    pub(super) owner: Option<&'a StmtClassDef>,
    pending: Vec<PendingAlias<'a>>,
}

/// An alias that is being read.
struct PendingAlias<'a> {
    reference: Reference<'a>,
    level: usize,
    is_recursive: bool,
}

/// Deeper hints are left open.
pub(super) const DEEPEST_HINT: usize = 48;

/// Longer quoted hints are left open.
pub(super) const LONGEST_QUOTED_HINT: usize = 2000;

impl<'m, 'a> Hints<'m, 'a> {
    pub(super) fn new(module: &'m Module<'a>, side: Side) -> Self {
        let (references, pending) = (Vec::new(), Vec::new());
        Self { module, side, references, depth: 0, deepest: 0, level: 0, described: None, owner: None, pending }
    }

    /// The schema of a hint; the empty one where it is unknown.
    pub(super) fn hint(&mut self, hint: &Expr) -> Schema {
        if self.depth >= DEEPEST_HINT || !self.module.budget.spend(1) {
            self.deepest = usize::MAX;
            return Schema::new();
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let schema = match hint {
            Expr::NoneLiteral(_) => KnownType::Null.bare(self.side),
            Expr::StringLiteral(text) if text.value.len() <= LONGEST_QUOTED_HINT => {
                Module::unquote(text).map(|hint| self.hint(&hint)).unwrap_or_default()
            }
            Expr::BinOp(operation) if operation.op == Operator::BitOr => self.union(hint),
            Expr::Name(_) | Expr::Attribute(_) => self.name(hint),
            Expr::Subscript(generic) => self.generic(generic),
            Expr::Call(call) => called_type(self, call),
            _ => Schema::new(),
        };
        self.depth -= 1;
        schema
    }

    /// A hint inside a container.
    pub(super) fn inner(&mut self, hint: &Expr) -> Schema {
        self.level += 1;
        let schema = self.hint(hint);
        self.level -= 1;
        schema
    }

    fn name(&mut self, hint: &Expr) -> Schema {
        if let Some(class) = self.class_within(hint) {
            return self.class(class);
        }
        match self.module.resolve(hint) {
            Named::Outside(name) if ["typing.Self", "typing_extensions.Self"].contains(&name.as_str()) => {
                self.described.map(|class| self.class(class)).unwrap_or_default()
            }
            Named::Outside(name) => KnownType::named(&name)
                .map(|known| known.bare(self.side))
                .or_else(|| pydantic_type(&name, self.side))
                .or_else(|| file_result(&name, self.side))
                .or_else(|| if means_anything(&name) { None } else { self.live(hint) })
                .unwrap_or_default(),
            // Ancestors in other files are known to the live class only.
            Named::Class(class) if !self.module.ancestry(class).is_complete => {
                self.live(hint).unwrap_or_else(|| self.class(class))
            }
            Named::Class(class) => self.class(class),
            Named::Value { value, .. } if is_parameter(self.module, value) => Schema::new(),
            Named::Value { name, value, is_alias } => {
                let schema = self.alias(name, value, is_alias);
                if schema.is_empty() { self.live(hint).unwrap_or_default() } else { schema }
            }
            Named::Nothing => self.live(hint).unwrap_or_default(),
        }
    }

    /// A class within a class: `Status` in the class `Order`, `Order.Status` elsewhere.
    fn class_within(&self, hint: &Expr) -> Option<&'a StmtClassDef> {
        let (around, name) = match hint {
            Expr::Name(name) => (self.owner?, name.id.as_str()),
            Expr::Attribute(attribute) => match self.module.resolve(&attribute.value) {
                Named::Class(class) => (class, attribute.attr.as_str()),
                _ => return None,
            },
            _ => return None,
        };
        let mut classes = around.body.iter().rev().filter_map(Stmt::as_class_def_stmt);
        let found = classes.find(|class| class.name.as_str() == name)?;
        // The worker finds `Order.Status` by that name, with its ancestors in other files.
        (hint.is_name_expr() || self.module.ancestry(found).is_complete).then_some(found)
    }

    /// The schema that a live type described for a name. A name without one is added to the open names.
    fn live(&mut self, hint: &Expr) -> Option<Schema> {
        self.live_named(self.module.name_for_worker(hint, dotted(hint)?)?)
    }

    pub(super) fn live_named(&mut self, name: String) -> Option<Schema> {
        if let Some(schema) = self.module.live.named(&name, self.side) {
            self.refer_to_live(schema);
            return Some(schema.clone());
        }
        self.module.open.borrow_mut().entry(self.side).or_default().insert(name);
        None
    }

    /// Adds references to the live definitions that a live schema mentions.
    pub(super) fn refer_to_live(&mut self, schema: &Schema) {
        for place in self.module.live.needs(schema, self.side) {
            let reference = Reference { side: self.side, target: Target::Live(place) };
            if !self.references.contains(&reference) {
                self.references.push(reference);
            }
        }
    }

    /// A reference to a class of the file; the empty schema for one of unknown form.
    pub(super) fn class(&mut self, class: &'a StmtClassDef) -> Schema {
        let ancestry = self.module.ancestry(class);
        let side = match ancestry.kind {
            ClassKind::Other => return Schema::new(),
            ClassKind::Enumeration => Side::Given,
            ClassKind::Model => self.side.in_model(),
            _ if ancestry.is_pydantic && self.side.is_input() => self.side.in_model(),
            _ => self.side,
        };
        if !is_readable(&ancestry, side) {
            return Schema::new();
        }
        self.refer(Reference { side, target: Target::Class(class) })
    }

    fn refer(&mut self, reference: Reference<'a>) -> Schema {
        if !self.references.contains(&reference) {
            self.references.push(reference);
        }
        self.module.pointer(reference)
    }

    /// An alias: `Vector = list[float]`, `UserId = NewType("UserId", int)`, `type Tree = list[Tree]`.
    pub(super) fn alias(&mut self, name: &'a str, value: &'a Expr, is_alias: bool) -> Schema {
        // A string is a hint only in an explicit alias.
        if value.is_string_literal_expr() && !is_alias {
            return Schema::new();
        }
        let reference = Reference { side: self.side, target: Target::Alias(name, value) };
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.reference == reference) {
            if pending.level == self.level {
                return Schema::new(); // nothing but itself
            }
            pending.is_recursive = true;
            return self.refer(reference);
        }
        let filed = self.module.filed(reference, self.depth);
        let definition = filed.unwrap_or_else(|| self.read_alias(reference, value));
        self.deepest = self.deepest.max(self.depth.saturating_add(definition.height));
        if definition.is_recursive {
            return self.refer(reference);
        }
        if definition.size > LARGEST_ALIAS || !self.module.budget.spend(definition.size) {
            return Schema::new();
        }
        self.references.extend(&definition.references);
        definition.schema.clone()
    }

    pub(super) fn read_alias(&mut self, reference: Reference<'a>, value: &'a Expr) -> Rc<Definition<'a>> {
        let outer = std::mem::take(&mut self.references);
        let outer_deepest = std::mem::replace(&mut self.deepest, self.depth);
        self.pending.push(PendingAlias { reference, level: self.level, is_recursive: false });
        let owner = self.owner.take();
        let schema = self.hint(value);
        self.owner = owner;
        let is_recursive = self.pending.pop().is_some_and(|pending| pending.is_recursive);
        let references = std::mem::replace(&mut self.references, outer);
        let (key, size) = (self.module.key_of(reference), size_of(&schema));
        let (depth, height) = (self.depth, self.deepest - self.depth);
        self.deepest = outer_deepest;
        let made = Rc::new(Definition { key, schema, references, size, depth, height, is_recursive });
        self.module.definitions.borrow_mut().insert(reference, Rc::clone(&made));
        made
    }

    pub(super) fn known(&self, expression: &Expr) -> Option<KnownType> {
        KnownType::named(&self.module.outside_name(expression)?)
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

    /// The schema of further arguments by `**kwargs: X`.
    pub(super) fn further_arguments(&mut self, hint: Option<&Expr>) -> Value {
        let schema = hint.map(|hint| self.hint(hint)).unwrap_or_default();
        if admits_anything(&schema) { Value::Bool(true) } else { Value::Object(schema) }
    }
}

/// The deepest nesting of literals.
const DEEPEST_LITERALS: usize = 8;
/// The most values of literals.
const MOST_LITERALS: usize = 10_000;

impl Hints<'_, '_> {
    pub(super) fn generic(&mut self, generic: &ExprSubscript) -> Schema {
        match self.module.resolve(&generic.value) {
            Named::Class(class) => return self.bound(class, generic),
            Named::Value { name, value, is_alias } => return self.alias(name, value, is_alias),
            _ => {}
        }
        let Some(name) = self.module.outside_name(&generic.value) else { return Schema::new() };
        let arguments = elements(&generic.slice);
        let Some(known) = KnownType::named(&name) else {
            return match (name.as_str(), arguments) {
                ("pydantic.RootModel", [inner]) => self.in_model(inner),
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
        let (fixed, rest) = match items.iter().position(|item| self.rest_of_tuple(item).is_some()) {
            Some(at) if at + 1 == items.len() => (&items[..at], self.rest_of_tuple(&items[at])),
            Some(_) => return of_type("array"),
            None => (items, None),
        };
        if fixed.iter().any(Expr::is_starred_expr) {
            return of_type("array");
        }
        let schemas: Vec<Value> = fixed.iter().map(|item| Value::Object(self.inner(item))).collect();
        let length = schemas.len();
        let mut schema = of_type("array");
        if length > 0 {
            schema.insert("prefixItems".to_owned(), Value::Array(schemas));
        }
        schema.insert("minItems".to_owned(), json!(length));
        match rest {
            Some(item) => {
                let item = self.inner(item);
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
