//! What kind of class a class of the file is, and its schema.

use ruff_python_ast::{Expr, StmtClassDef};
use serde_json::{Map, Value, json};

use super::docstring::Docstring;
use super::fields::{self, Fields};
use super::hints::Hints;
use super::module::{Module, docstring_of};
use super::names::Named;
use super::schema::{Schema, nullable, of_type, one_of, schema};

/// The kinds of class whose JSON form is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassKind {
    Enumeration,
    Dataclass,
    TypedDict,
    NamedTuple,
    /// A pydantic model.
    Model,
    Other,
}

/// What a class inherits.
#[derive(Debug)]
pub(super) struct Lineage<'a> {
    pub(super) kind: ClassKind,
    /// The class and its ancestors in this file, furthest first.
    pub(super) classes: Vec<&'a StmtClassDef>,
    /// The full names of ancestors outside the file.
    pub(super) outside: Vec<String>,
    /// Whether every ancestor is one whose fields are known.
    pub(super) is_complete: bool,
}

/// Longer than any chain of base classes; ends a circle of them.
const LONGEST_LINEAGE: usize = 16;

/// Bases that say nothing about the form of a value.
const FORMLESS: [&str; 6] = [
    "builtins.object",
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Generic",
    "typing_extensions.Protocol",
];

impl<'a> Module<'a> {
    pub(super) fn lineage(&self, class: &'a StmtClassDef) -> Lineage<'a> {
        let mut lineage =
            Lineage { kind: ClassKind::Other, classes: Vec::new(), outside: Vec::new(), is_complete: true };
        self.climb(class, &mut lineage, LONGEST_LINEAGE);
        lineage
    }

    fn climb(&self, class: &'a StmtClassDef, lineage: &mut Lineage<'a>, left: usize) {
        let bases = class.arguments.as_ref().map(|arguments| &*arguments.args).unwrap_or_default();
        for base in bases {
            // `Generic[T]` and `Box[int]` inherit as `Generic` and `Box` do.
            let base = base.as_subscript_expr().map_or(base, |generic| &generic.value);
            match self.resolve(base) {
                Named::Class(parent) if left > 0 && !lineage.classes.iter().any(|seen| std::ptr::eq(*seen, parent)) => {
                    self.climb(parent, lineage, left - 1);
                }
                Named::Outside(name) => {
                    match kind_of_base(&name) {
                        Some(kind) => lineage.kind = kind,
                        None => lineage.is_complete &= FORMLESS.contains(&name.as_str()),
                    }
                    lineage.outside.push(name);
                }
                _ => lineage.is_complete = false,
            }
        }
        if lineage.kind == ClassKind::Other && self.is_dataclass(class) {
            lineage.kind = ClassKind::Dataclass;
        }
        lineage.classes.push(class);
    }

    /// Whether a class itself carries the dataclass decorator, which is what makes its annotations fields.
    pub(super) fn is_dataclass(&self, class: &StmtClassDef) -> bool {
        class.decorator_list.iter().any(|decorator| {
            let called = decorator.expression.as_call_expr().map(|call| &*call.func);
            let name = self.outside_name(called.unwrap_or(&decorator.expression));
            name.is_some_and(|name| name == "dataclasses.dataclass" || name == "pydantic.dataclasses.dataclass")
        })
    }
}

fn kind_of_base(name: &str) -> Option<ClassKind> {
    Some(match name {
        "typing.TypedDict" | "typing_extensions.TypedDict" => ClassKind::TypedDict,
        "typing.NamedTuple" => ClassKind::NamedTuple,
        "pydantic.BaseModel" | "pydantic.main.BaseModel" => ClassKind::Model,
        _ if name.starts_with("enum.") => ClassKind::Enumeration,
        _ => return None,
    })
}

impl<'a> Hints<'_, 'a> {
    /// A reference to a class of the file, which is defined once under `$defs`; the unknown schema for an opaque class.
    pub(super) fn class(&mut self, class: &'a StmtClassDef) -> Schema {
        let name = class.name.as_str();
        if !self.definitions.contains_key(name) {
            let lineage = self.module.lineage(class);
            let Some(reading) = how_to_read(&lineage) else { return Schema::new() };
            // Holds the place, so that a class that contains itself finds the reference.
            self.definitions.insert(name.to_owned(), Value::Null);
            let mut built = match reading {
                Reading::Enumeration => self.enumeration(&lineage),
                Reading::Fields => self.object(&lineage),
            };
            if let Some(text) = docstring_of(&class.body).and_then(|text| Docstring::parse(text).description) {
                built.entry("description").or_insert(Value::String(text));
            }
            self.definitions.insert(name.to_owned(), Value::Object(built));
        }
        schema(json!({ "$ref": format!("#/$defs/{name}") }))
    }

    fn enumeration(&self, lineage: &Lineage<'a>) -> Schema {
        if let Some(members) = self.module.members(lineage) {
            return one_of(members.into_iter().map(|(_, value)| value).collect());
        }
        let inherits = |names: &[&str]| lineage.outside.iter().any(|name| names.contains(&name.as_str()));
        if inherits(&["enum.StrEnum", "builtins.str"]) {
            of_type("string")
        } else if inherits(&["enum.IntEnum", "enum.Flag", "enum.IntFlag", "builtins.int"]) {
            of_type("integer")
        } else {
            Schema::new()
        }
    }

    fn object(&mut self, lineage: &Lineage<'a>) -> Schema {
        let Fields { all: fields, is_closed, is_known } = fields::of_class(self.module, lineage);
        let mut built = of_type("object");
        if !is_known {
            return built;
        }
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in fields {
            let mut property = self.hint(field.annotation);
            field.facts.constrain(&mut property);
            if field.facts.default == Some(Value::Null) {
                property = nullable(property);
            }
            if let Some(text) = field.facts.description {
                property.insert("description".to_owned(), Value::String(text));
            }
            property.extend(field.facts.default.map(|value| ("default".to_owned(), value)));
            if field.facts.is_required {
                required.push(Value::String(field.name.clone()));
            }
            properties.insert(field.name, Value::Object(property));
        }
        built.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            built.insert("required".to_owned(), Value::Array(required));
        }
        if is_closed && lineage.is_complete {
            built.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        built
    }
}

enum Reading {
    Enumeration,
    Fields,
}

fn how_to_read(lineage: &Lineage<'_>) -> Option<Reading> {
    match lineage.kind {
        ClassKind::Other => None,
        ClassKind::Enumeration => Some(Reading::Enumeration),
        // A validator that comes first may turn anything into the model.
        ClassKind::Model if fields::has_early_validator(lineage) => None,
        _ => Some(Reading::Fields),
    }
}

/// The keyword of a class statement: `class Options(TypedDict, total=False)`.
pub(super) fn class_keyword<'a>(class: &'a StmtClassDef, name: &str) -> Option<&'a Expr> {
    let keywords = class.arguments.as_ref().map(|arguments| &arguments.keywords)?;
    keywords.iter().find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|it| &it.value)
}
