//! What stands under `$defs`: each class and each recursive alias of a file is read once for each side, whichever and
//! however many functions mention it. A definition names the others it needs; nothing here recurses through classes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use ruff_python_ast::{Expr, StmtClassDef};
use serde_json::{Map, Value, json};

use super::budget::size_of;
use super::hints::Hints;
use super::module::Module;
use super::schema::{Schema, schema};
use super::side::Side;

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
