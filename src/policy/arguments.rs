//! Which arguments of a tool are paths, commands and hosts: what its schema says, and what the settings name.

use serde_json::{Map, Value};

use crate::config::declared_policy::DeclaredPolicy;
use crate::config::origin::Setting;

/// An argument that rules are about.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What the tool gets where it is not given, if that is known.
    default: Option<Value>,
}

/// The arguments of a tool that rules are about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments {
    /// Those that are paths, or have them.
    pub paths: Vec<Argument>,
    /// Those that are shell commands or lists of words.
    pub commands: Vec<Argument>,
    /// Those that are addresses or names of hosts.
    pub hosts: Vec<Argument>,
    /// Whether the settings say which are paths, commands and hosts; none may be.
    pub(super) is_said: [bool; 3],
    /// Whether there is another argument that may have text.
    pub(super) takes_text: bool,
}

/// The formats of JSON Schema that say it.
const PATHS: [&str; 1] = ["path"];
const HOSTS: [&str; 6] = ["uri", "url", "iri", "hostname", "ipv4", "ipv6"];

impl Arguments {
    /// Those of a tool with this schema.
    pub fn of(schema: &Map<String, Value>, policy: &DeclaredPolicy) -> Self {
        let pick = |formats: &[&str], named: Option<&Setting<Vec<String>>>| {
            let is_named = |name: &String| named.is_some_and(|named| named.value.contains(name));
            let known = properties_of(schema)
                .filter(|(name, property)| is_named(name) || has_format(property, schema, formats, DEEPEST));
            known
                .map(|(name, property)| Argument { name: name.clone(), default: property.get("default").cloned() })
                .collect::<Vec<_>>()
        };
        let mut found = Self {
            paths: pick(&PATHS, policy.path_arguments.as_ref()),
            commands: pick(&[], policy.command_arguments.as_ref()),
            hosts: pick(&HOSTS, policy.host_arguments.as_ref()),
            is_said: [&policy.path_arguments, &policy.command_arguments, &policy.host_arguments].map(Option::is_some),
            takes_text: takes_more(schema) || properties_of(schema).any(|(_, property)| may_have_text(property)),
        };
        // A name that the schema does not have may still be taken by the tool.
        let more = [
            (&mut found.paths, &policy.path_arguments),
            (&mut found.commands, &policy.command_arguments),
            (&mut found.hosts, &policy.host_arguments),
        ];
        for (known, named) in more {
            for name in named.iter().flat_map(|named| &named.value) {
                if known.iter().all(|argument| argument.name != *name) && takes_more(schema) {
                    known.push(Argument { name: name.clone(), default: None });
                }
            }
        }
        found
    }
}

/// Whether a tool takes arguments that its schema does not name.
fn takes_more(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties") != Some(&Value::Bool(false))
}

fn properties_of(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Whether a value of this schema may be text, or have some. What is not known may.
fn may_have_text(schema: &Value) -> bool {
    const PLAIN: [&str; 4] = ["integer", "number", "boolean", "null"];
    let is_plain = |kind: &Value| kind.as_str().is_some_and(|kind| PLAIN.contains(&kind));
    let are_plain = |kind: &Value| kind.as_array().map_or_else(|| is_plain(kind), |all| all.iter().all(is_plain));
    let of_union = |all: &Vec<Value>| !all.iter().any(may_have_text);
    let is_choice = schema.get("enum").is_some() || schema.get("const").is_some();
    let is_union = schema.get("anyOf").and_then(Value::as_array).is_some_and(of_union);
    !(is_choice || is_union || schema.get("type").is_some_and(are_plain))
}

/// Schemas within schemas are followed to here.
const DEEPEST: u8 = 8;

/// Whether a value of this schema may be, or have, a string of one of these formats.
fn has_format(schema: &Value, root: &Map<String, Value>, formats: &[&str], depth: u8) -> bool {
    let Some(schema) = schema.as_object().filter(|_| depth > 0 && !formats.is_empty()) else { return false };
    let below = |inner: &Value| has_format(inner, root, formats, depth - 1);
    let each = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let named = |key: &str| schema.get(key).and_then(Value::as_object).into_iter().flat_map(Map::values);
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/"));
    let referred = target.and_then(|name| root.get("$defs")?.get(name));
    schema.get("format").and_then(Value::as_str).is_some_and(|format| formats.contains(&format))
        || ["anyOf", "oneOf", "allOf", "prefixItems"].iter().any(|key| each(key).any(below))
        || ["items", "additionalProperties"].iter().any(|key| schema.get(*key).is_some_and(below))
        || named("properties").any(below)
        || referred.is_some_and(below)
}

impl Argument {
    /// What the call gives it: every string in it.
    pub fn texts<'v>(&'v self, given: &'v Map<String, Value>) -> Vec<&'v str> {
        let mut texts = Vec::new();
        if let Some(value) = given.get(&self.name).or(self.default.as_ref()) {
            gather(value, &mut texts);
        }
        texts
    }

    /// Its value, as it is given or as it is without.
    pub fn value<'v>(&'v self, given: &'v Map<String, Value>) -> Option<&'v Value> {
        given.get(&self.name).or(self.default.as_ref())
    }
}

fn gather<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(members) => members.values().for_each(|item| gather(item, texts)),
        _ => {}
    }
}
