//! JSON Schemas: steps in building them, the budget for their size, and the definitions under `$defs`.
//!
//! The empty schema means "not known" and admits anything.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use ruff_python_ast::{Expr, StmtClassDef};
use serde_json::{Map, Value, json};

use super::annotations::is_annotation;
use super::generics::BoundClass;
use super::known_types::Side;
use super::module::Module;
use super::types::{DEEPEST_HINT, Hints};

/// A JSON Schema that is an object.
pub(super) type Schema = Map<String, Value>;

/// The schema in a `json!` literal.
pub(super) fn schema(value: Value) -> Schema {
    if let Value::Object(schema) = value { schema } else { Schema::new() }
}

pub(super) fn of_type(name: &str) -> Schema {
    schema(json!({ "type": name }))
}

/// Whether a schema does not restrict the value.
pub(super) fn admits_anything(schema: &Schema) -> bool {
    schema.keys().all(|key| is_annotation(key))
}

/// Whether `null` is certainly among the values of a schema.
fn admits_null(schema: &Schema) -> bool {
    let is_null = schema.get("type").is_some_and(|kind| kind == "null");
    let in_enum = schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.contains(&Value::Null));
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let in_branch = branches.is_some_and(|all| all.iter().filter_map(Value::as_object).any(admits_null));
    admits_anything(schema) || is_null || in_enum || in_branch
}

/// Any of several schemas. One unknown schema makes the whole unknown.
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

/// The same schema, or `null`. The description stays on the outside.
pub(super) fn nullable(mut inner: Schema) -> Schema {
    if admits_null(&inner) {
        return inner;
    }
    let description = inner.remove("description");
    let mut outer = any_of([inner, of_type("null")]);
    outer.extend(description.map(|text| ("description".to_owned(), text)));
    outer
}

/// One of a few values, with their type if it is the same, which some clients need.
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

/// Aliases of more values are left open. They are copied, and may double with every line.
pub(super) const LARGEST_ALIAS: usize = 10_000;

/// The most values for one file. Aliases are copied and definitions repeated for every function that mentions them, so a few
/// lines could become gigabytes. Beyond the budget, schemas are left open.
const MOST_IN_FILE: usize = 500_000;

/// Characters of text that count as one value.
const TEXT: usize = 64;

/// What is left of the budget of one file.
pub(super) struct Budget(Cell<usize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(MOST_IN_FILE))
    }
}

impl Budget {
    /// Takes a part of the budget. Returns false if less is left.
    pub(super) fn spend(&self, size: usize) -> bool {
        let left = self.0.get().checked_sub(size);
        left.inspect(|left| self.0.set(*left)).is_some()
    }
}

/// The number of values in a schema.
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

/// A reference to a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Reference<'a> {
    pub(super) side: Side,
    pub(super) target: Target<'a>,
}

/// A definition, identified by its node: several may have one name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    Class(&'a StmtClassDef),
    /// A generic class with arguments, by its number.
    Bound(usize),
    Alias(&'a str, &'a Expr),
    /// A live class, by its place among the live definitions.
    Live(usize),
}

impl<'a> Target<'a> {
    fn bound(&self, module: &Module<'a>) -> Option<Rc<BoundClass<'a>>> {
        if let Self::Bound(number) = self { module.bound_class(*number) } else { None }
    }

    fn place(&self) -> usize {
        match self {
            Self::Class(class) => std::ptr::from_ref(*class).addr(),
            Self::Alias(_, value) => std::ptr::from_ref(*value).addr(),
            Self::Live(place) => *place,                 // far below every address
            Self::Bound(number) => usize::MAX - *number, // and above
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
    /// Its name under `$defs`. The form inside a model has a name that no class can have.
    fn key(&self, name: &str, is_shared: bool) -> String {
        let name = in_ascii(name);
        if is_shared || !self.side.is_in_model() { name } else { format!("{name}-in-model") }
    }
}

/// A name as a URI reference may contain it.
fn in_ascii(name: &str) -> String {
    let letter = |c: char| if c.is_ascii() { c.to_string() } else { format!("_u{:04x}", u32::from(c)) };
    name.chars().map(letter).collect()
}

/// A schema with its references.
#[derive(Debug, Default)]
pub(super) struct Definition<'a> {
    pub(super) key: String,
    pub(super) schema: Schema,
    pub(super) references: Vec<Reference<'a>>,
    /// The number of values in its schema.
    pub(super) size: usize,
    /// The depth of hints at which an alias was read.
    pub(super) depth: usize,
    /// How much deeper its hints go. One that was cut short has no known height.
    pub(super) height: usize,
    /// Whether it is an alias that mentions itself, which has to be a reference.
    pub(super) is_recursive: bool,
}

/// The definitions of a file, each read once for each side.
pub(super) type Definitions<'a> = RefCell<HashMap<Reference<'a>, Rc<Definition<'a>>>>;

impl<'a> Module<'a> {
    /// The definition as a reader of hints at this depth would read it, if it is filed. Otherwise schemas would depend on the
    /// order of functions, of which the first may reach an alias near the limit of depth.
    pub(super) fn filed(&self, reference: Reference<'a>, depth: usize) -> Option<Rc<Definition<'a>>> {
        let definitions = self.definitions.borrow();
        let is_same =
            |filed: &&Rc<Definition<'_>>| depth == filed.depth || depth.saturating_add(filed.height) <= DEEPEST_HINT;
        definitions.get(&reference).filter(is_same).map(Rc::clone)
    }

    /// The definition of a reference, read at its first use.
    fn definition(&self, reference: Reference<'a>) -> Rc<Definition<'a>> {
        if let Some(known) = self.filed(reference, 0) {
            return known;
        }
        let mut hints = Hints::new(self, reference.side);
        let (key, schema) = match reference.target {
            Target::Class(class) => (self.key_of(reference), hints.definition_of(class)),
            Target::Bound(number) => {
                let Some(bound) = self.bound_class(number) else { return Rc::default() };
                hints.parameters = Rc::clone(&bound.parameters);
                hints.described_bound = Some(number);
                (self.key_of(reference), hints.definition_of(bound.class))
            }
            Target::Alias(_, value) => return hints.read_alias(reference, value),
            Target::Live(place) => {
                let Some(live) = self.live.definition(place) else { return Rc::default() };
                hints.refer_to_live(&live.schema);
                (live.key.clone(), live.schema.clone())
            }
        };
        let Hints { references, .. } = hints;
        let size = size_of(&schema);
        let made = Rc::new(Definition { key, schema, references, size, ..Definition::default() });
        self.definitions.borrow_mut().insert(reference, Rc::clone(&made));
        made
    }

    /// The key of a definition. A class with the same form inside and outside of models has one key.
    pub(super) fn key_of(&self, reference: Reference<'a>) -> String {
        let (bound, mut place) = (reference.target.bound(self), reference.target.place());
        let (name, is_shared) = match reference.target {
            Target::Class(class) => (class.name.as_str(), self.ancestry(class).is_same_everywhere()),
            Target::Bound(_) => {
                let Some(bound) = &bound else { return String::new() };
                place = Target::Bound(bound.first).place();
                (bound.name.as_str(), self.ancestry(bound.class).is_same_everywhere())
            }
            Target::Alias(name, _) => (name, false),
            Target::Live(place) => return self.live.definition(place).map(|live| live.key.clone()).unwrap_or_default(),
        };
        reference.key(&self.name_of_definition(name, place), is_shared)
    }

    /// `{"$ref": …}`
    pub(super) fn pointer(&self, reference: Reference<'a>) -> Schema {
        schema(json!({ "$ref": format!("#/$defs/{}", self.key_of(reference)) }))
    }

    /// All definitions that are referred to, directly or through one another.
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
