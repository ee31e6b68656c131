//! JSON Schemas: steps in building them, the budget for their size, and the definitions under `$defs`.
//!
//! The empty schema means "not known" and admits anything.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use ruff_python_ast::{Expr, StmtClassDef};
use serde_json::{Map, Value, json};

use super::known_types::Side;
use super::module::Module;
use super::types::Hints;

/// A JSON Schema that is an object.
pub(super) type Schema = Map<String, Value>;

/// The schema in a `json!` literal.
pub(super) fn schema(value: Value) -> Schema {
    if let Value::Object(schema) = value { schema } else { Schema::new() }
}

pub(super) fn of_type(name: &str) -> Schema {
    schema(json!({ "type": name }))
}

/// Whether a schema says nothing about the value itself.
pub(super) fn admits_anything(schema: &Schema) -> bool {
    schema.keys().all(|key| matches!(key.as_str(), "description" | "default" | "title"))
}

/// Whether `null` is certainly among the values of a schema.
fn admits_null(schema: &Schema) -> bool {
    let is_null = schema.get("type").is_some_and(|kind| kind == "null");
    let in_enum = schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.contains(&Value::Null));
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let in_branch = branches.is_some_and(|all| all.iter().filter_map(Value::as_object).any(admits_null));
    admits_anything(schema) || is_null || in_enum || in_branch
}

/// Any of several schemas; one unknown among them makes the whole unknown.
pub(super) fn any_of(branches: impl IntoIterator<Item = Schema>) -> Schema {
    let mut distinct: Vec<Value> = Vec::new();
    for mut branch in branches {
        if admits_anything(&branch) {
            return Schema::new();
        }
        let inner = if branch.len() == 1 { branch.remove("anyOf") } else { None };
        let parts = match inner {
            Some(Value::Array(parts)) => parts,
            _ => vec![Value::Object(branch)],
        };
        for part in parts {
            if !distinct.contains(&part) {
                distinct.push(part);
            }
        }
    }
    match (distinct.len(), distinct.pop()) {
        (1, Some(only)) => schema(only),
        (_, Some(last)) => {
            distinct.push(last);
            schema(json!({ "anyOf": distinct }))
        }
        _ => Schema::new(),
    }
}

/// The same schema, or `null`. What is said about the value (its description) stays on the outside.
pub(super) fn nullable(mut inner: Schema) -> Schema {
    if admits_null(&inner) {
        return inner;
    }
    let description = inner.remove("description");
    let mut outer = any_of([inner, of_type("null")]);
    outer.extend(description.map(|text| ("description".to_owned(), text)));
    outer
}

/// One of a few values; all of one type are given that type too, which some clients need.
pub(super) fn one_of(values: Vec<Value>) -> Schema {
    let mut distinct: Vec<Value> = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    let mut kinds = distinct.iter().map(kind_of);
    let kind = kinds.next().flatten().filter(|first| kinds.all(|other| other == Some(*first)));
    let mut built = kind.map(of_type).unwrap_or_default();
    built.insert("enum".to_owned(), Value::Array(distinct));
    built
}

fn kind_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) => Some("string"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::Bool(_) => Some("boolean"),
        _ => None,
    }
}

/// More than any person's types become, for one function or class; direct hints are counted elsewhere.
pub(super) const MOST_COPIED: usize = 20_000;

/// Enough for a hundred functions that each mention fifty classes of ten fields.
const MOST_IN_FILE: usize = 500_000;

/// Characters of text that weigh as much as one value.
const TEXT: usize = 64;

/// What is left for one file. Behind a cell: readers of hints share the module.
pub(super) struct Budget(Cell<usize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(MOST_IN_FILE))
    }
}

impl Budget {
    /// Takes a part of what is left; says whether there was so much.
    pub(super) fn spend(&self, size: usize) -> bool {
        let left = self.0.get().checked_sub(size);
        left.inspect(|left| self.0.set(*left)).is_some()
    }
}

/// How many values a schema is made of.
pub(super) fn size_of(schema: &Schema) -> usize {
    schema.values().map(size_of_value).sum::<usize>() + 1
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Object(members) => size_of(members),
        Value::Array(items) => items.iter().map(size_of_value).sum::<usize>() + 1,
        Value::String(text) => 1 + text.len() / TEXT,
        _ => 1,
    }
}

/// Something that is defined once and referred to by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Reference<'a> {
    pub(super) side: Side,
    pub(super) target: Target<'a>,
}

/// Nodes of one tree, told apart by where they are: a name may stand for several.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    Class(&'a StmtClassDef),
    Alias(&'a str, &'a Expr),
    /// A live class, by its place among the definitions.
    Live(usize),
}

impl Target<'_> {
    fn place(&self) -> usize {
        match self {
            Self::Class(class) => std::ptr::from_ref(*class).addr(),
            Self::Alias(_, value) => std::ptr::from_ref(*value).addr(),
            Self::Live(place) => *place, // far below every address
        }
    }
}

impl PartialEq for Target<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Target<'_> {}

impl std::hash::Hash for Target<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

impl Reference<'_> {
    /// Its name under `$defs`. In a model a class has another form, and a name that no class can have.
    fn key(&self, is_shared: bool) -> String {
        let name = match self.target {
            Target::Class(class) => class.name.as_str(),
            Target::Alias(name, _) => name,
            Target::Live(_) => "",
        };
        let name = in_ascii(name);
        if is_shared || !self.side.is_in_model() { name } else { format!("{name}-in-model") }
    }
}

/// A name as it may stand in an address, which a reference is: other letters by their numbers.
fn in_ascii(name: &str) -> String {
    let letter = |c: char| if c.is_ascii() { c.to_string() } else { format!("_u{:04x}", u32::from(c)) };
    name.chars().map(letter).collect()
}

/// A schema with what it refers to.
#[derive(Debug, Default)]
pub(super) struct Definition<'a> {
    pub(super) key: String,
    pub(super) schema: Schema,
    pub(super) references: Vec<Reference<'a>>,
    /// How many hints were read for it.
    pub(super) read: usize,
    /// How many values its schema is made of.
    pub(super) size: usize,
    /// Whether an alias mentions itself, so that it can only be referred to.
    pub(super) is_recursive: bool,
}

/// Every definition of a file that was needed so far. Behind a cell: readers of hints share the module.
pub(super) type Definitions<'a> = RefCell<HashMap<Reference<'a>, Rc<Definition<'a>>>>;

impl<'a> Module<'a> {
    /// The definition behind a reference, read at the first question.
    fn definition(&self, reference: Reference<'a>) -> Rc<Definition<'a>> {
        if let Some(known) = self.definitions.borrow().get(&reference) {
            return Rc::clone(known);
        }
        let mut hints = Hints::new(self, reference.side);
        let (key, schema) = match reference.target {
            Target::Class(class) => (self.key_of(reference), hints.definition_of(class)),
            // Aliases are filed when they are met.
            Target::Alias(..) => (reference.key(false), Schema::new()),
            Target::Live(place) => {
                let Some(live) = self.live.definition(place) else { return Rc::default() };
                hints.refer_to_live(&live.schema);
                (live.key.clone(), live.schema.clone())
            }
        };
        let Hints { references, .. } = hints;
        let size = size_of(&schema);
        let made = Rc::new(Definition { key, schema, references, read: 1, size, is_recursive: false });
        self.definitions.borrow_mut().insert(reference, Rc::clone(&made));
        made
    }

    /// A class whose form depends on the side only through itself keeps its name on both.
    pub(super) fn key_of(&self, reference: Reference<'a>) -> String {
        let is_shared = match reference.target {
            Target::Class(class) => self.lineage(class).is_same_everywhere(),
            Target::Alias(..) => false,
            Target::Live(place) => return self.live.definition(place).map(|live| live.key.clone()).unwrap_or_default(),
        };
        reference.key(is_shared)
    }

    /// `{"$ref": …}`
    pub(super) fn pointer(&self, reference: Reference<'a>) -> Schema {
        schema(json!({ "$ref": format!("#/$defs/{}", self.key_of(reference)) }))
    }

    /// Everything that is referred to from somewhere, directly or through one another.
    pub(super) fn gather(&self, from: Vec<Reference<'a>>) -> Map<String, Value> {
        let mut gathered = Map::new();
        let mut left = std::collections::VecDeque::from(from);
        while let Some(reference) = left.pop_front() {
            let definition = self.definition(reference);
            if gathered.contains_key(&definition.key) {
                continue;
            }
            if !self.budget.spend(definition.size) {
                gathered.insert(definition.key.clone(), Value::Object(Map::new()));
                continue;
            }
            gathered.insert(definition.key.clone(), Value::Object(definition.schema.clone()));
            left.extend(&definition.references);
        }
        gathered
    }
}
