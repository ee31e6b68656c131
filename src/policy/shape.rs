//! Where in a value the strings of a format are, as its schema says. What the schema says nothing of may be one.

use std::sync::Arc;

use serde_json::{Map, Value};

/// The schema of a value that may have strings of some formats.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    schema: Value,
    /// What its references lead into.
    root: Arc<Value>,
    formats: &'static [&'static str],
}

/// How far a value and references between schemas are followed. Beyond it, all strings count.
const DEEPEST: u8 = 64;

impl Shape {
    /// `None` if the schema has none of the formats anywhere.
    pub fn of(schema: &Value, root: &Arc<Value>, formats: &'static [&'static str]) -> Option<Self> {
        let shape = Self { schema: schema.clone(), root: Arc::clone(root), formats };
        shape.has_format(schema).then_some(shape)
    }

    /// Adds those in a value.
    pub fn texts<'v>(&self, value: &'v Value, texts: &mut Vec<&'v str>) {
        self.add(&self.schema, value, DEEPEST, texts);
    }

    fn is_one(&self, schema: &Map<String, Value>) -> bool {
        schema.get("format").and_then(Value::as_str).is_some_and(|format| self.formats.contains(&format))
    }

    fn definition<'s>(&'s self, schema: &'s Map<String, Value>) -> Option<(&'s str, &'s Value)> {
        let name = schema.get("$ref")?.as_str()?;
        let path = percent_encoding::percent_decode_str(name.strip_prefix('#')?).decode_utf8().ok()?;
        Some((name, self.root.pointer(&path)?))
    }

    /// Whether the schema, or one within it, has one of the formats. Each definition is looked into once.
    fn has_format(&self, schema: &Value) -> bool {
        let (mut open, mut seen) = (vec![schema], Vec::new());
        while let Some(schema) = open.pop() {
            open.extend(schema.as_array().into_iter().flatten());
            let Some(schema) = schema.as_object() else { continue };
            if self.is_one(schema) {
                return true;
            }
            open.extend(schema.values());
            if let Some((name, schema)) = self.definition(schema).filter(|(name, _)| !seen.contains(name)) {
                seen.push(name);
                open.push(schema);
            }
        }
        false
    }

    fn add<'v>(&self, schema: &Value, value: &'v Value, depth: u8, texts: &mut Vec<&'v str>) {
        let Some(schema) = schema.as_object().filter(|schema| depth > 0 && !schema.is_empty() && !self.is_one(schema))
        else {
            return all_texts(value, texts);
        };
        let choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)?.as_array());
        let cases = ["then", "else"].iter().filter_map(|key| schema.get(*key));
        let others = choices.flatten().chain(cases).chain(self.definition(schema).map(|(_, schema)| schema));
        let mut is_elsewhere = false;
        for other in others {
            is_elsewhere = true;
            self.add(other, value, depth - 1, texts);
        }
        match value {
            Value::Array(items) if is_of(schema, "array") => {
                let first = schema.get("prefixItems").and_then(Value::as_array);
                for (index, item) in items.iter().enumerate() {
                    let own = first.and_then(|first| first.get(index)).or(schema.get("items"));
                    self.add_part(own, item, is_elsewhere, depth, texts);
                }
            }
            Value::Object(members) if is_of(schema, "object") => {
                let names = schema.get("propertyNames").is_some_and(|names| self.has_format(names));
                let own = schema.get("properties");
                // Which of the patterns matches a name is not looked at.
                let rest = schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties"));
                for (name, member) in members {
                    texts.extend(names.then_some(name.as_str()));
                    let known = own.and_then(|own| own.get(name)).or(rest);
                    self.add_part(known, member, is_elsewhere, depth, texts);
                }
            }
            Value::String(text) => {
                let is_said = ["type", "enum", "const"].iter().any(|key| schema.contains_key(*key));
                texts.extend((!is_said && !is_elsewhere).then_some(text.as_str()));
            }
            _ => {}
        }
    }

    fn add_part<'v>(
        &self,
        schema: Option<&Value>,
        value: &'v Value,
        is_elsewhere: bool,
        depth: u8,
        texts: &mut Vec<&'v str>,
    ) {
        match schema {
            Some(schema) => self.add(schema, value, depth - 1, texts),
            None if is_elsewhere => {}
            None => all_texts(value, texts),
        }
    }
}

/// Whether a schema admits values of a type.
fn is_of(schema: &Map<String, Value>, wanted: &str) -> bool {
    schema.get("type").is_none_or(|kind| {
        kind.as_str() == Some(wanted) || kind.as_array().is_some_and(|all| all.iter().any(|one| one == wanted))
    })
}

/// Adds every string in a value, and every name.
pub(super) fn all_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| all_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|item| all_texts(item, texts)),
        _ => {}
    }
}
