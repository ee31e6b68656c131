//! Which arguments of a tool are paths, commands and hosts: what its schema says, and what the settings name.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::shape::{Shape, all_texts};
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::origin::Setting;

/// An argument that rules are about.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its name; `None` for all that the schema does not name.
    pub name: Option<String>,
    /// What the tool gets where it is not given, if that is known.
    default: Option<Value>,
    /// Where in it the texts are that rules are about; `None` for all of them.
    shape: Option<Shape>,
    /// The names that are not meant, if it has none.
    named: Vec<String>,
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
    /// Whether it is known which are paths, commands and hosts: by the schema, or because the operator says so. What the tool says of
    /// itself is judged, too, and does not make up for what is not known.
    pub(super) is_known: [bool; 3],
    /// Whether there is another argument that may have text.
    pub(super) takes_text: bool,
}

/// The formats of JSON Schema that say it.
const PATHS: &[&str] = &["path", "file-path", "directory-path"];
const HOSTS: &[&str] = &["uri", "url", "iri", "hostname", "ipv4", "ipv6"];

impl Arguments {
    /// Those of a tool with this schema. Some tools are trusted to say which they are.
    pub fn of(schema: &Map<String, Value>, policy: &DeclaredPolicy, is_trusted: bool) -> Self {
        let root = Arc::new(Value::Object(schema.clone()));
        let pick = |formats: &'static [&'static str], named: &[Setting<Vec<String>>]| {
            let is_named = |name: &String| named.iter().any(|named| named.value.contains(name));
            let shape = |schema: &Value| Shape::of(schema, &root, formats);
            let known = properties_of(schema).filter_map(|(name, property)| {
                let shape = if is_named(name) { None } else { Some(shape(property)?) };
                Some(Argument::named(name, property, shape))
            });
            let others = schema.get("additionalProperties").and_then(shape);
            known.chain(others.map(|shape| Argument::others(schema, shape))).collect::<Vec<_>>()
        };
        let is_known = |formats: &'static [&'static str], named: &[Setting<Vec<String>>]| {
            let mut by_word = named.iter().filter(|named| is_trusted || !named.origin.is_of_tool());
            // A name that the tool does not have says nothing; an empty list says that there are none.
            let is_one = |name: &String| takes_more(schema) || properties_of(schema).any(|(known, _)| known == name);
            by_word.any(|named| named.value.is_empty() || named.value.iter().any(is_one))
                || !pick(formats, &[]).is_empty()
        };
        let mut found = Self {
            paths: pick(PATHS, &policy.path_arguments),
            commands: pick(&[], &policy.command_arguments),
            hosts: pick(HOSTS, &policy.host_arguments),
            is_known: [
                is_known(PATHS, &policy.path_arguments),
                is_known(&[], &policy.command_arguments),
                is_known(HOSTS, &policy.host_arguments),
            ],
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
                if known.iter().all(|argument| argument.name.as_ref() != Some(name)) && takes_more(schema) {
                    known.push(Argument::named(name, &Value::Null, None));
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

impl Argument {
    fn named(name: &str, schema: &Value, shape: Option<Shape>) -> Self {
        Self { name: Some(name.to_owned()), default: schema.get("default").cloned(), shape, named: Vec::new() }
    }

    fn others(schema: &Map<String, Value>, shape: Shape) -> Self {
        let named = properties_of(schema).map(|(name, _)| name.clone()).collect();
        Self { name: None, default: None, shape: Some(shape), named }
    }

    /// What the call gives it that rules are about.
    pub fn texts<'v>(&'v self, given: &'v Map<String, Value>) -> Vec<&'v str> {
        let mut texts = Vec::new();
        for value in self.values(given) {
            match &self.shape {
                Some(shape) => shape.texts(value, &mut texts),
                None => all_texts(value, &mut texts),
            }
        }
        texts
    }

    /// Its values, as they are given or as they are without.
    pub fn values<'v>(&'v self, given: &'v Map<String, Value>) -> Vec<&'v Value> {
        match &self.name {
            Some(name) => given.get(name).or(self.default.as_ref()).into_iter().collect(),
            None => given.iter().filter(|(name, _)| !self.named.contains(name)).map(|(_, value)| value).collect(),
        }
    }
}
