//! The schemas of the file's classes: enumerations, objects with fields, named tuples.

use ruff_python_ast::{Expr, StmtClassDef};
use serde_json::{Map, Value, json};

use super::classes::{ClassKind, Lineage};
use super::definitions::{Reference, Target};
use super::docstring::Docstring;
use super::fields::{self, Field, Fields};
use super::hints::Hints;
use super::model::overruled_fields;
use super::module::docstring_of;
use super::schema::{Schema, nullable, of_type, one_of, schema};

impl<'a> Hints<'_, 'a> {
    /// What stands under `$defs` for a class.
    pub(super) fn definition_of(&mut self, class: &'a StmtClassDef) -> Schema {
        let lineage = self.module.lineage(class);
        let mut built = match lineage.kind {
            ClassKind::Other => Schema::new(),
            ClassKind::Enumeration => self.enumeration(&lineage),
            ClassKind::NamedTuple => self.named_tuple(&lineage),
            ClassKind::Dataclass | ClassKind::TypedDict | ClassKind::Model => match lineage.root {
                // A validator that comes first takes anything, a serializer writes anything.
                Some(_) if overruled_fields(&lineage, self.side).iter().any(|name| matches!(*name, "root" | "*")) => {
                    Schema::new()
                }
                Some(root) => self.root(root),
                None => self.object(&lineage),
            },
        };
        if let Some(text) = docstring_of(&class.body).and_then(|text| Docstring::parse(text).description) {
            built.entry("description").or_insert(Value::String(text));
        }
        built
    }

    /// What a root model stands for. One that stands for another, or for an alias, could stand for itself in the end.
    fn root(&mut self, hint: &Expr) -> Schema {
        let schema = self.inner(hint);
        let is_pointer = |schema: &Value| schema.get("$ref").is_some();
        let branches = schema.get("anyOf").and_then(Value::as_array);
        let leads_on = schema.contains_key("$ref") || branches.is_some_and(|all| all.iter().any(is_pointer));
        let is_endless = |reference: &Reference<'a>| match reference.target {
            Target::Class(class) => self.module.lineage(class).root.is_some(),
            Target::Alias(..) | Target::Live(_) => true,
        };
        if leads_on && self.references.iter().any(is_endless) { Schema::new() } else { schema }
    }

    fn enumeration(&self, lineage: &Lineage<'a>) -> Schema {
        if let Some(members) = self.module.members(lineage) {
            return one_of(members.into_iter().map(|(_, value)| value).collect());
        }
        if lineage.inherits(&["enum.StrEnum", "builtins.str"]) {
            of_type("string")
        } else if lineage.inherits(&["enum.IntEnum", "enum.Flag", "enum.IntFlag", "builtins.int"]) {
            of_type("integer")
        } else {
            Schema::new()
        }
    }

    fn object(&mut self, lineage: &Lineage<'a>) -> Schema {
        let found = fields::of_class(self.module, lineage, self.side);
        if !found.is_known {
            return of_type("object");
        }
        self.object_of(found, lineage.is_complete)
    }

    fn object_of(&mut self, found: Fields<'a>, is_complete: bool) -> Schema {
        let mut built = of_type("object");
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in found.all {
            if field.facts.is_required {
                required.push(Value::String(field.name.clone()));
            }
            let property = self.field(&field);
            properties.insert(field.name, Value::Object(property));
        }
        built.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            built.insert("required".to_owned(), Value::Array(required));
        }
        if found.is_closed && is_complete {
            built.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        built
    }

    fn field(&mut self, field: &Field<'a>) -> Schema {
        let facts = &field.facts;
        let mut property = if field.is_overruled { Schema::new() } else { self.inner(field.annotation) };
        facts.limits.constrain(&mut property, self.side);
        if facts.default == Some(Value::Null) && self.side.is_input() {
            property = nullable(property);
        }
        if let Some(text) = &facts.description {
            property.insert("description".to_owned(), Value::String(text.clone()));
        }
        if self.side.is_input() {
            property.extend(facts.default.clone().map(|value| ("default".to_owned(), value)));
        }
        property
    }

    /// An array, as it is written; as an argument also an object, which says what is what.
    fn named_tuple(&mut self, lineage: &Lineage<'a>) -> Schema {
        let found = fields::of_class(self.module, lineage, self.side);
        let items: Vec<Value> = found.all.iter().map(|field| Value::Object(self.field(field))).collect();
        let least = found.all.iter().take_while(|field| field.facts.is_required).count();
        let array = json!({"type": "array", "prefixItems": items, "minItems": least, "maxItems": items.len()});
        if !found.is_known || items.is_empty() {
            return if self.side.is_input() { Schema::new() } else { of_type("array") };
        }
        if !self.side.is_input() {
            return schema(array);
        }
        schema(json!({"anyOf": [self.object_of(found, lineage.is_complete), array]}))
    }
}
