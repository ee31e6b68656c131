//! Schemas that live types describe: of names that a file mentions and that reading it cannot resolve. A worker that runs
//! the file describes them (`docs/protocol.md`), and the file is read again with them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::frameworks::content;
use super::known_types::Side;
use super::schema::Schema;

/// The unknown names in a file's hints, by side.
pub type OpenNames = BTreeMap<Side, BTreeSet<String>>;

/// Longer descriptions are ignored.
const LONGEST: usize = 1 << 20;
const POINTER: &str = "#/$defs/";

/// The description of a worker.
#[derive(Debug, Clone, Default)]
pub struct Live {
    names: HashMap<Side, HashMap<String, Schema>>,
    definitions: Vec<LiveDefinition>,
}

/// A definition of a live class, for `$defs`.
#[derive(Debug, Clone)]
pub(super) struct LiveDefinition {
    side: Side,
    pub(super) key: String,
    pub(super) schema: Schema,
}

/// One side of a description, as it is on the wire.
#[derive(Deserialize)]
struct SideDescription {
    #[serde(default)]
    names: HashMap<String, Schema>,
    #[serde(default)]
    defs: Map<String, Value>,
}

impl Live {
    /// Reads a description. Invalid schemas are left out: a worker is trusted no more than a tool file.
    pub fn read(text: &str) -> Self {
        let sides_read: HashMap<Side, SideDescription> =
            if text.len() > LONGEST { HashMap::new() } else { serde_json::from_str(text).unwrap_or_default() };
        let mut live = Self::default();
        let mut sides: Vec<(Side, SideDescription)> =
            sides_read.into_iter().filter(|(_, sides_read)| sides_read.is_sound()).collect();
        sides.sort_by_key(|(side, _)| *side);
        for (side, sides_read) in sides {
            live.names.insert(side, sides_read.names);
            live.definitions.extend(sides_read.defs.into_iter().filter_map(|(key, schema)| match schema {
                Value::Object(schema) => Some(LiveDefinition { side, key, schema }),
                _ => None,
            }));
        }
        live
    }

    /// What it says of a helper, whose names have this prefix, and of others, whose names have theirs.
    pub fn of_helper(&self, prefix: &str, of_others: &str) -> Self {
        let inside = |names: &HashMap<String, Schema>| {
            let known = names.iter().filter_map(|(name, schema)| {
                let own = name.strip_prefix(prefix);
                let known = own.or_else(|| name.starts_with(of_others).then_some(name.as_str()))?;
                Some((known.to_owned(), schema.clone()))
            });
            known.collect()
        };
        let names = self.names.iter().map(|(side, names)| (*side, inside(names))).collect();
        Self { names, definitions: self.definitions.clone() }
    }

    /// The same, with other keys for definitions that have the name of one of the file's own classes.
    pub(super) fn beside(mut self, is_taken: impl Fn(&str) -> bool) -> Self {
        let is_live = |key: &str| self.names.values().any(|names| names.contains_key(key));
        let keys = self.definitions.iter().map(|definition| definition.key.as_str());
        let taken: BTreeSet<String> = keys.filter(|key| is_taken(key) && !is_live(key)).map(str::to_owned).collect();
        let mut rename = |pointer: &mut String| {
            if pointer.strip_prefix(POINTER).is_some_and(|key| taken.contains(key)) {
                pointer.push_str("-imported");
            }
        };
        for definition in &mut self.definitions {
            if taken.contains(&definition.key) {
                definition.key.push_str("-imported");
            }
            each_pointer(&mut definition.schema, &mut rename);
        }
        self.names.values_mut().flat_map(HashMap::values_mut).for_each(|schema| each_pointer(schema, &mut rename));
        self
    }

    pub(super) fn named(&self, name: &str, side: Side) -> Option<&Schema> {
        self.names.get(&side)?.get(name)
    }

    pub(super) fn defines(&self, key: &str) -> bool {
        self.definitions.iter().any(|definition| definition.key == key)
    }

    pub(super) fn definition(&self, place: usize) -> Option<&LiveDefinition> {
        self.definitions.get(place)
    }

    /// The places of the definitions that a schema refers to.
    pub(super) fn needs(&self, schema: &Schema, side: Side) -> Vec<usize> {
        let keys = keys_in(schema);
        let is_meant = |definition: &LiveDefinition| definition.side == side && keys.contains(&definition.key);
        self.definitions.iter().enumerate().filter(|(_, each)| is_meant(each)).map(|(place, _)| place).collect()
    }
}

impl SideDescription {
    /// Whether it compiles and refers only to its own definitions. Otherwise the tool would not be validated.
    fn is_sound(&self) -> bool {
        let all: Vec<Value> = self.names.values().cloned().map(Value::Object).collect();
        let whole = serde_json::json!({ "$defs": self.defs, "anyOf": all });
        let keys = whole.as_object().map(keys_in).unwrap_or_default();
        keys.iter().all(|key| self.defs.contains_key(key))
            && jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&whole).is_ok()
    }
}

/// The keys of the definitions that a schema refers to.
fn keys_in(schema: &Schema) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    each_pointer(&mut schema.clone(), &mut |pointer| {
        keys.insert(pointer.strip_prefix(POINTER).unwrap_or(pointer).to_owned());
    });
    keys
}

/// Visits every `$ref` in a schema.
fn each_pointer(schema: &mut Schema, visit: &mut impl FnMut(&mut String)) {
    for (key, value) in schema {
        match value {
            Value::String(pointer) if key == "$ref" => visit(pointer),
            other => each_pointer_in(other, visit),
        }
    }
}

fn each_pointer_in(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::Object(schema) => each_pointer(schema, visit),
        Value::Array(items) => items.iter_mut().for_each(|item| each_pointer_in(item, visit)),
        _ => {}
    }
}

/// Names for any type, and for results that the worker writes in another form, which no live type can describe better.
pub(super) fn means_anything(full: &str) -> bool {
    matches!(full, "typing.Any" | "typing_extensions.Any" | "builtins.object") || content(full).is_some()
}
