//! The classes of a file: their ancestors and kinds, the members of enumerations, and their schemas.

use std::rc::Rc;

use ruff_python_ast::{Expr, Stmt, StmtClassDef};
use serde_json::{Map, Value, json};

use super::docstring::Docstring;
use super::fields::{self, Field, Fields, literal};
use super::model::overruled_fields;
use super::module::{Module, Named, docstring_of, name_of};
use super::schema::{Reference, Schema, Target, nullable, of_type, one_of, schema};
use super::types::Hints;

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
    /// Whether pydantic makes it, also when it is a dataclass.
    pub(super) is_pydantic: bool,
    /// The type that `RootModel[…]` stands for.
    pub(super) root: Option<&'a Expr>,
}

impl Lineage<'_> {
    pub(super) fn inherits(&self, names: &[&str]) -> bool {
        self.outside.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Whether it has one form for each direction, wherever it stands.
    pub(super) fn is_same_everywhere(&self) -> bool {
        self.is_pydantic || self.kind == ClassKind::Enumeration
    }
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
    /// What a class inherits, found out once.
    pub(super) fn lineage(&self, class: &'a StmtClassDef) -> Rc<Lineage<'a>> {
        let place = std::ptr::from_ref(class).addr();
        if let Some(known) = self.lineages.borrow().get(&place) {
            return Rc::clone(known);
        }
        let mut lineage = Lineage {
            kind: ClassKind::Other,
            classes: Vec::new(),
            outside: Vec::new(),
            is_complete: true,
            is_pydantic: false,
            root: None,
        };
        self.climb(class, &mut lineage, LONGEST_LINEAGE);
        let lineage = Rc::new(lineage);
        self.lineages.borrow_mut().insert(place, Rc::clone(&lineage));
        lineage
    }

    fn climb(&self, class: &'a StmtClassDef, lineage: &mut Lineage<'a>, left: usize) {
        let bases = class.arguments.as_ref().map(|arguments| &*arguments.args).unwrap_or_default();
        for written in bases {
            // `Generic[T]` and `Box[int]` inherit as `Generic` and `Box` do.
            let base = written.as_subscript_expr().map_or(written, |generic| &generic.value);
            match self.resolve(base) {
                Named::Class(parent) if left > 0 && !lineage.classes.iter().any(|seen| std::ptr::eq(*seen, parent)) => {
                    self.climb(parent, lineage, left - 1);
                }
                Named::Outside(name) => {
                    match kind_of_base(&name) {
                        Some(kind) => {
                            lineage.kind = kind;
                            lineage.is_pydantic = kind == ClassKind::Model;
                        }
                        None => lineage.is_complete &= FORMLESS.contains(&name.as_str()),
                    }
                    if name == "pydantic.RootModel" {
                        lineage.root = written.as_subscript_expr().map(|generic| &*generic.slice);
                    }
                    lineage.outside.push(name);
                }
                _ => lineage.is_complete = false,
            }
        }
        if let Some(name) = self.dataclass_decorator(class)
            && matches!(lineage.kind, ClassKind::Other | ClassKind::Dataclass)
        {
            lineage.kind = ClassKind::Dataclass;
            lineage.is_pydantic = name.starts_with("pydantic.");
        }
        lineage.classes.push(class);
    }

    /// Whether a class itself carries the dataclass decorator, which is what makes its annotations fields.
    pub(super) fn is_dataclass(&self, class: &StmtClassDef) -> bool {
        self.dataclass_decorator(class).is_some()
    }

    fn dataclass_decorator(&self, class: &StmtClassDef) -> Option<String> {
        class.decorator_list.iter().find_map(|decorator| {
            let called = decorator.expression.as_call_expr().map(|call| &*call.func);
            let name = self.outside_name(called.unwrap_or(&decorator.expression))?;
            (name == "dataclasses.dataclass" || name == "pydantic.dataclasses.dataclass").then_some(name)
        })
    }

    /// Whether a class is an enumeration of texts, which can be keys of an object.
    pub(super) fn is_of_texts(&self, class: &'a StmtClassDef) -> bool {
        let lineage = self.lineage(class);
        lineage.kind == ClassKind::Enumeration
            && self.members(&lineage).is_some_and(|all| all.iter().all(|(_, value)| value.is_string()))
    }
}

fn kind_of_base(name: &str) -> Option<ClassKind> {
    Some(match name {
        "typing.TypedDict" | "typing_extensions.TypedDict" => ClassKind::TypedDict,
        "typing.NamedTuple" => ClassKind::NamedTuple,
        "pydantic.BaseModel" | "pydantic.main.BaseModel" | "pydantic.RootModel" => ClassKind::Model,
        _ if name.starts_with("enum.") => ClassKind::Enumeration,
        _ => return None,
    })
}

/// The keyword of a class statement: `class Options(TypedDict, total=False)`.
pub(super) fn class_keyword<'a>(class: &'a StmtClassDef, name: &str) -> Option<&'a Expr> {
    let keywords = class.arguments.as_ref().map(|arguments| &arguments.keywords)?;
    keywords.iter().find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|it| &it.value)
}

impl<'a> Module<'a> {
    /// Every member with its value, or `None` when they cannot all be told.
    pub(super) fn members(&self, lineage: &Lineage<'a>) -> Option<Vec<(&'a str, Value)>> {
        let inherits = |name: &str| lineage.outside.iter().any(|outside| outside == name);
        // The members of a flag combine into values that no list holds.
        if inherits("enum.Flag") || inherits("enum.IntFlag") {
            return None;
        }
        let must_be_text = inherits("enum.StrEnum") || inherits("builtins.str");
        let must_be_whole = inherits("enum.IntEnum") || inherits("builtins.int");
        let mut members: Vec<(&str, Value)> = Vec::new();
        for statement in lineage.classes.iter().flat_map(|class| &class.body) {
            let Some((name, value)) = member(statement)? else { continue };
            let value = if self.is_auto(value) {
                automatic(name, &members, inherits("enum.StrEnum"), must_be_text)?
            } else {
                literal(value, self)?
            };
            let fits = (!must_be_text || value.is_string()) && (!must_be_whole || value.is_i64() || value.is_u64());
            if !fits || value.is_object() {
                return None;
            }
            members.push((name, value));
        }
        (!members.is_empty()).then_some(members)
    }

    /// The value of `Colour.RED` or `Colour.RED.value`.
    pub(super) fn enum_member(&self, expression: &Expr) -> Option<Value> {
        let attribute = expression.as_attribute_expr()?;
        let inner = attribute.value.as_attribute_expr().filter(|_| attribute.attr.as_str() == "value");
        let attribute = inner.unwrap_or(attribute);
        let Named::Class(class) = self.resolve(&attribute.value) else { return None };
        let lineage = self.lineage(class);
        // Only an enumeration's attributes are values a caller can send.
        (lineage.kind == ClassKind::Enumeration).then_some(())?;
        let members = self.members(&lineage)?;
        members.into_iter().find(|(name, _)| *name == attribute.attr.as_str()).map(|(_, value)| value)
    }

    fn is_auto(&self, value: &Expr) -> bool {
        value.as_call_expr().and_then(|call| self.outside_name(&call.func)).is_some_and(|name| name == "enum.auto")
    }
}

/// The member a statement of the body makes: `Some(None)` for none, `None` when the values are no longer certain.
#[expect(clippy::option_option, reason = "the outer one ends the reading, the inner one goes on")]
fn member(statement: &Stmt) -> Option<Option<(&str, &Expr)>> {
    match statement {
        Stmt::Assign(assign) => match &*assign.targets {
            [target] => Some(name_of(target).filter(|name| !name.starts_with('_')).map(|name| (name, &*assign.value))),
            _ => None,
        },
        Stmt::AnnAssign(assign) => {
            let name = name_of(&assign.target).filter(|name| !name.starts_with('_'));
            Some(name.zip(assign.value.as_deref()))
        }
        // These decide what a value is, or which others are taken for one.
        Stmt::FunctionDef(function) => {
            let decides =
                matches!(function.name.as_str(), "__new__" | "__init__" | "_missing_" | "_generate_next_value_");
            (!decides).then_some(None)
        }
        Stmt::Expr(_) | Stmt::Pass(_) | Stmt::ClassDef(_) => Some(None),
        _ => None,
    }
}

/// The value of `auto()`: the name in lower case, or one more than the last number.
fn automatic(name: &str, before: &[(&str, Value)], names: bool, must_be_text: bool) -> Option<Value> {
    if names {
        return Some(Value::String(name.to_lowercase()));
    }
    if must_be_text {
        return None;
    }
    let numbers: Option<Vec<i64>> = before.iter().map(|(_, value)| value.as_i64()).collect();
    let numbers = numbers?;
    // Python 3.11 goes on from the highest, older ones from the last; where the two differ nothing is certain.
    let last = numbers.last().copied().unwrap_or(0);
    (last == numbers.iter().copied().max().unwrap_or(0)).then(|| last.checked_add(1)).flatten().map(Value::from)
}

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
