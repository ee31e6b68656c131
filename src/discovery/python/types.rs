//! Type hints to JSON Schema: names, aliases, unions.

use std::collections::HashMap;
use std::rc::Rc;

use ruff_python_ast::{Expr, Operator, Stmt, StmtClassDef};
use serde_json::Value;

use super::classes::ClassKind;
use super::constraints::called_type;
use super::generics::{Parameters, is_parameter, written_parameters};
use super::known_types::{KnownType, Side, pydantic_type};
use super::live::means_anything;
use super::model::is_readable;
use super::module::{Module, name_of};
use super::names::{Named, dotted};
use super::results::file_result;
use super::schema::{Definition, LARGEST_ALIAS, Reference, Schema, Target, admits_anything, any_of, size_of};

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
    /// Its number, if it is one with arguments.
    pub(super) described_bound: Option<usize>,
    /// The class in which the hint is written: it may name classes within that.
    pub(super) owner: Option<&'a StmtClassDef>,
    /// What the type parameters of the class stand for in which the hint is written.
    pub(super) parameters: Rc<Parameters<'a>>,
    /// The same of each class whose fields are read, by its place.
    pub(super) parameters_by_class: HashMap<usize, Rc<Parameters<'a>>>,
    pending: Vec<PendingAlias<'a>>,
    /// The values of the aliases with arguments that are being read.
    pub(super) reading: Vec<&'a Expr>,
    /// The classes whose defaults are being read.
    pub(super) defaulted: Vec<&'a StmtClassDef>,
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
        Self {
            module,
            side,
            references: Vec::new(),
            depth: 0,
            deepest: 0,
            level: 0,
            described: None,
            described_bound: None,
            owner: None,
            parameters: Rc::default(),
            parameters_by_class: HashMap::new(),
            pending: Vec::new(),
            reading: Vec::new(),
            defaulted: Vec::new(),
        }
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
        if let Some(schema) = name_of(hint).and_then(|name| self.parameter(name)) {
            return schema;
        }
        match self.module.resolve(hint) {
            Named::Outside(name) if ["typing.Self", "typing_extensions.Self"].contains(&name.as_str()) => self.itself(),
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
            Named::Class(class) => self.with_defaults(class),
            Named::Value { value, .. } if is_parameter(self.module, value) => Schema::new(),
            Named::Value { name, value, is_alias, parameters } => {
                let schema = match parameters {
                    Some(written) => self.alias_with(value, &written_parameters(written), &[]),
                    None => self.alias(name, value, is_alias),
                };
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
        let side = self.side_of(class);
        side.map(|side| self.refer(Reference { side, target: Target::Class(class) })).unwrap_or_default()
    }

    /// The side on which a class is read here; `None` for one of unknown form.
    pub(super) fn side_of(&self, class: &'a StmtClassDef) -> Option<Side> {
        let ancestry = self.module.ancestry(class);
        let side = match ancestry.kind {
            ClassKind::Other => return None,
            ClassKind::Enumeration => Side::Given,
            ClassKind::Model => self.side.in_model(),
            _ if ancestry.is_pydantic && self.side.is_input() => self.side.in_model(),
            _ => self.side,
        };
        is_readable(&ancestry, side).then_some(side)
    }

    pub(super) fn refer(&mut self, reference: Reference<'a>) -> Schema {
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
        let (owner, parameters) = (self.owner.take(), std::mem::take(&mut self.parameters));
        let schema = self.hint(value);
        (self.owner, self.parameters) = (owner, parameters);
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
