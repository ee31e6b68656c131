//! Schemas that live types describe: of names that a file mentions and that reading it cannot resolve. A worker that runs
//! the file describes them (`docs/protocol.md`), and the file is read again with them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::known_types::Side;
use super::schema::Schema;

/// The unknown names in a file's hints, by side.
pub type OpenNames = BTreeMap<Side, BTreeSet<String>>;

/// Longer descriptions are ignored.
const LONGEST: usize = 1 << 20;
const POINTER: &str = "#/$defs/";

/// The description of a worker.
#[derive(Debug, Default)]
pub struct Live {
    names: HashMap<Side, HashMap<String, Schema>>,
    definitions: Vec<LiveDefinition>,
}

/// A definition of a live class, for `$defs`.
#[derive(Debug)]
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

    /// The same, with other keys for definitions that have the name of one of the file's own classes.
    pub(super) fn beside(mut self, is_taken: impl Fn(&str) -> bool) -> Self {
        let is_live = |key: &str| self.names.values().any(|names| names.contains_key(key));
        let keys = self.definitions.iter().map(|definition| definition.key.as_str());
        let taken: BTreeSet<String> = keys.filter(|key| is_taken(key) && !is_live(key)).map(str::to_owned).collect();
        if taken.is_empty() {
            return self;
        }
        for definition in &mut self.definitions {
            if taken.contains(&definition.key) {
                definition.key.push_str("-imported");
            }
            definition.schema.values_mut().for_each(|value| rename(value, &taken));
        }
        for schema in self.names.values_mut().flat_map(HashMap::values_mut) {
            schema.iter_mut().for_each(|(key, value)| rename_at(key, value, &taken));
        }
        self
    }

    pub(super) fn named(&self, name: &str, side: Side) -> Option<&Schema> {
        self.names.get(&side)?.get(name)
    }

    pub(super) fn definition(&self, place: usize) -> Option<&LiveDefinition> {
        self.definitions.get(place)
    }

    /// The places of the definitions that a schema refers to.
    pub(super) fn needs(&self, schema: &Schema, side: Side) -> Vec<usize> {
        let mut keys = BTreeSet::new();
        schema.iter().for_each(|(key, value)| mentioned_at(key, value, &mut keys));
        let is_meant = |definition: &LiveDefinition| definition.side == side && keys.contains(definition.key.as_str());
        self.definitions.iter().enumerate().filter(|(_, each)| is_meant(each)).map(|(place, _)| place).collect()
    }
}

impl SideDescription {
    /// Whether it compiles and refers only to its own definitions. Otherwise the tool would not be validated.
    fn is_sound(&self) -> bool {
        let mut keys = BTreeSet::new();
        self.names.values().flatten().for_each(|(key, value)| mentioned_at(key, value, &mut keys));
        self.defs.values().for_each(|value| mentioned(value, &mut keys));
        let all: Vec<Value> = self.names.values().cloned().map(Value::Object).collect();
        let whole = serde_json::json!({ "$defs": self.defs, "anyOf": all });
        keys.iter().all(|key| self.defs.contains_key(*key))
            && jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&whole).is_ok()
    }
}

fn mentioned<'v>(value: &'v Value, keys: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| mentioned_at(key, value, keys)),
        Value::Array(items) => items.iter().for_each(|item| mentioned(item, keys)),
        _ => {}
    }
}

fn mentioned_at<'v>(key: &str, value: &'v Value, keys: &mut BTreeSet<&'v str>) {
    match value.as_str() {
        Some(text) if key == "$ref" => drop(keys.insert(text.strip_prefix(POINTER).unwrap_or(text))),
        _ => mentioned(value, keys),
    }
}

fn rename(value: &mut Value, taken: &BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(key, value)| rename_at(key, value, taken)),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, taken)),
        _ => {}
    }
}

fn rename_at(key: &str, value: &mut Value, taken: &BTreeSet<String>) {
    match value {
        Value::String(text) if key == "$ref" => {
            if text.strip_prefix(POINTER).is_some_and(|key| taken.contains(key)) {
                text.push_str("-imported");
            }
        }
        other => rename(other, taken),
    }
}

/// Names for any type, which no live type can describe better.
pub(super) fn means_anything(full: &str) -> bool {
    matches!(full, "typing.Any" | "typing_extensions.Any" | "builtins.object")
}
