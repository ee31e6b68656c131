//! The classes of a file: their ancestors and kinds, the members of enumerations, and their schemas.

use std::rc::Rc;

use ruff_python_ast::{Expr, Stmt, StmtClassDef};
use serde_json::{Map, Value, json};

use super::constraints::drop_limits_of_texts;
use super::docstring::Docstring;
use super::fields::{self, Field, Fields};
use super::foreign_classes::is_plain_struct;
use super::literals::literal;
use super::model::{ModelConfig, overruled_fields};
use super::module::{Module, docstring_of, name_of};
use super::names::Named;
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
    /// A class of attrs.
    Attrs,
    /// A class of msgspec.
    Struct,
    Other,
}

/// The ancestors of a class.
#[derive(Debug)]
pub(super) struct Ancestry<'a> {
    pub(super) kind: ClassKind,
    /// The class and its ancestors in this file, furthest first.
    pub(super) classes: Vec<&'a StmtClassDef>,
    /// The full names of ancestors outside the file.
    pub(super) outside: Vec<String>,
    /// Whether the fields of every ancestor are known.
    pub(super) is_complete: bool,
    /// Whether it is a model or a dataclass of pydantic's.
    pub(super) is_pydantic: bool,
    /// The type that `RootModel[…]` stands for, and the class that says so.
    pub(super) root: Option<(&'a Expr, &'a StmtClassDef)>,
}

impl Ancestry<'_> {
    pub(super) fn inherits(&self, names: &[&str]) -> bool {
        self.outside.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Whether its JSON form is the same inside and outside of a model.
    pub(super) fn is_same_everywhere(&self) -> bool {
        self.is_pydantic || self.kind == ClassKind::Enumeration
    }
}

/// The longest chain of base classes, which ends a cycle.
pub(super) const LONGEST_ANCESTRY: usize = 16;

/// Bases that do not affect the JSON form.
pub(super) const FORMLESS: [&str; 6] = [
    "builtins.object",
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Generic",
    "typing_extensions.Protocol",
];

impl<'a> Module<'a> {
    /// The ancestors of a class, determined once.
    pub(super) fn ancestry(&self, class: &'a StmtClassDef) -> Rc<Ancestry<'a>> {
        let place = std::ptr::from_ref(class).addr();
        if let Some(known) = self.ancestries.borrow().get(&place) {
            return Rc::clone(known);
        }
        let mut ancestry = Ancestry {
            kind: ClassKind::Other,
            classes: Vec::new(),
            outside: Vec::new(),
            is_complete: true,
            is_pydantic: false,
            root: None,
        };
        self.climb(class, &mut ancestry, LONGEST_ANCESTRY);
        let ancestry = Rc::new(ancestry);
        self.ancestries.borrow_mut().insert(place, Rc::clone(&ancestry));
        ancestry
    }

    fn climb(&self, class: &'a StmtClassDef, ancestry: &mut Ancestry<'a>, left: usize) {
        let bases = class.arguments.as_ref().map(|arguments| &*arguments.args).unwrap_or_default();
        for written in bases {
            let base = written.as_subscript_expr().map_or(written, |generic| &generic.value);
            match self.resolve(base) {
                Named::Class(parent)
                    if left > 0 && !ancestry.classes.iter().any(|seen| std::ptr::eq(*seen, parent)) =>
                {
                    self.climb(parent, ancestry, left - 1);
                }
                Named::Outside(name) => {
                    match kind_of_base(&name) {
                        Some(kind) => {
                            ancestry.kind = kind;
                            ancestry.is_pydantic = kind == ClassKind::Model;
                        }
                        None => ancestry.is_complete &= FORMLESS.contains(&name.as_str()),
                    }
                    if name == "pydantic.RootModel" {
                        let own = || class.body.iter().find_map(root_of);
                        let root = written.as_subscript_expr().map(|generic| &*generic.slice).or_else(own);
                        ancestry.root = root.map(|root| (root, class));
                    }
                    ancestry.outside.push(name);
                }
                _ => ancestry.is_complete = false,
            }
        }
        if let Some(name) = self.dataclass_decorator(class)
            && matches!(ancestry.kind, ClassKind::Other | ClassKind::Dataclass)
        {
            ancestry.kind = ClassKind::Dataclass;
            ancestry.is_pydantic = name.starts_with("pydantic.");
        }
        if ancestry.kind == ClassKind::Other && self.is_of_attrs(class) {
            ancestry.kind = ClassKind::Attrs;
        }
        if ancestry.kind == ClassKind::Struct && !is_plain_struct(class) {
            ancestry.is_complete = false;
        }
        ancestry.classes.push(class);
    }

    /// Whether a class itself has the dataclass decorator, which makes its annotations fields.
    pub(super) fn is_dataclass(&self, class: &StmtClassDef) -> bool {
        self.dataclass_decorator(class).is_some()
    }

    /// The full name of its dataclass decorator.
    pub(super) fn dataclass_of(&self, class: &StmtClassDef) -> Option<String> {
        self.dataclass_decorator(class)
    }

    fn dataclass_decorator(&self, class: &StmtClassDef) -> Option<String> {
        class.decorator_list.iter().find_map(|decorator| {
            let called = decorator.expression.as_call_expr().map(|call| &*call.func);
            let name = self.outside_name(called.unwrap_or(&decorator.expression))?;
            (name == "dataclasses.dataclass" || name == "pydantic.dataclasses.dataclass").then_some(name)
        })
    }

    /// Whether a class is an enumeration of strings.
    pub(super) fn is_of_texts(&self, class: &'a StmtClassDef) -> bool {
        let ancestry = self.ancestry(class);
        ancestry.kind == ClassKind::Enumeration
            && self.members(&ancestry).is_some_and(|all| all.iter().all(|(_, value)| value.is_string()))
    }
}

/// The annotation of `root: list[str]`, the field of a root model.
fn root_of(statement: &Stmt) -> Option<&Expr> {
    let field = statement.as_ann_assign_stmt()?;
    (name_of(&field.target) == Some("root")).then_some(&*field.annotation)
}

fn kind_of_base(name: &str) -> Option<ClassKind> {
    Some(match name {
        "typing.TypedDict" | "typing_extensions.TypedDict" => ClassKind::TypedDict,
        "typing.NamedTuple" => ClassKind::NamedTuple,
        "pydantic.BaseModel" | "pydantic.main.BaseModel" | "pydantic.RootModel" => ClassKind::Model,
        "msgspec.Struct" => ClassKind::Struct,
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
    /// Every member with its value; `None` where one is unknown.
    pub(super) fn members(&self, ancestry: &Ancestry<'a>) -> Option<Vec<(&'a str, Value)>> {
        let inherits = |name: &str| ancestry.outside.iter().any(|outside| outside == name);
        // The members of a flag combine into further values.
        if inherits("enum.Flag") || inherits("enum.IntFlag") {
            return None;
        }
        let must_be_text = inherits("enum.StrEnum") || inherits("builtins.str");
        let must_be_whole = inherits("enum.IntEnum") || inherits("builtins.int");
        let mut members: Vec<(&str, Value)> = Vec::new();
        for statement in ancestry.classes.iter().flat_map(|class| &class.body) {
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
        self.member_of(class, &attribute.attr)
    }

    fn member_of(&self, class: &'a StmtClassDef, name: &str) -> Option<Value> {
        let ancestry = self.ancestry(class);
        (ancestry.kind == ClassKind::Enumeration).then_some(())?;
        self.members(&ancestry)?.into_iter().find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// The value of `Status.OPEN` within a class that has the enumeration `Status` within it.
    pub(super) fn member_within(&self, around: &'a StmtClassDef, expression: &Expr) -> Option<Value> {
        let attribute = expression.as_attribute_expr()?;
        let class = name_of(&attribute.value)?;
        let mut classes = around.body.iter().rev().filter_map(Stmt::as_class_def_stmt);
        self.member_of(classes.find(|inner| inner.name.as_str() == class)?, &attribute.attr)
    }

    fn is_auto(&self, value: &Expr) -> bool {
        value.as_call_expr().and_then(|call| self.outside_name(&call.func)).is_some_and(|name| name == "enum.auto")
    }
}

/// The member that a statement of the body defines: `Some(None)` for none, `None` where the values become unknown.
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
        // These change what the values are.
        Stmt::FunctionDef(function) => {
            let decides =
                matches!(function.name.as_str(), "__new__" | "__init__" | "_missing_" | "_generate_next_value_");
            (!decides).then_some(None)
        }
        Stmt::Expr(_) | Stmt::Pass(_) | Stmt::ClassDef(_) => Some(None),
        _ => None,
    }
}

/// The value of `auto()`: the name in lower case, or the last number plus one.
fn automatic(name: &str, before: &[(&str, Value)], names: bool, must_be_text: bool) -> Option<Value> {
    if names {
        return Some(Value::String(name.to_lowercase()));
    }
    if must_be_text {
        return None;
    }
    let numbers: Option<Vec<i64>> = before.iter().map(|(_, value)| value.as_i64()).collect();
    let numbers = numbers?;
    // Python 3.11 continues from the highest value, older versions from the last one.
    let last = numbers.last().copied().unwrap_or(0);
    (last == numbers.iter().copied().max().unwrap_or(0)).then(|| last.checked_add(1)).flatten().map(Value::from)
}

impl<'a> Hints<'_, 'a> {
    /// The definition of a class, for `$defs`.
    pub(super) fn definition_of(&mut self, class: &'a StmtClassDef) -> Schema {
        self.described = Some(class);
        let ancestry = self.module.ancestry(class);
        let own = std::mem::take(&mut self.parameters);
        self.parameters_by_class = self.parameters_of_bases(class, own);
        let mut built = match ancestry.kind {
            ClassKind::Other => Schema::new(),
            // It may be an array.
            ClassKind::Struct if !ancestry.is_complete => Schema::new(),
            ClassKind::Enumeration => self.enumeration(&ancestry),
            ClassKind::NamedTuple => self.named_tuple(&ancestry),
            ClassKind::Dataclass | ClassKind::TypedDict | ClassKind::Model | ClassKind::Attrs | ClassKind::Struct => {
                match ancestry.root {
                    // An early validator accepts anything, a serializer writes anything.
                    Some(_)
                        if overruled_fields(&ancestry, self.side).iter().any(|name| matches!(*name, "root" | "*")) =>
                    {
                        Schema::new()
                    }
                    Some((root, owner)) => {
                        self.within(owner);
                        let schema = self.root(root);
                        (self.owner, self.parameters) = (None, Rc::default());
                        schema
                    }
                    None => self.object(&ancestry),
                }
            }
        };
        if let Some(text) = docstring_of(&class.body).and_then(|text| Docstring::parse(text).description) {
            built.entry("description").or_insert(Value::String(text));
        }
        if ancestry.kind == ClassKind::Model {
            built.extend(ModelConfig::of(self.module, &ancestry).annotations);
        }
        built
    }

    /// The type of a root model. One of another root model or of an alias may be of itself, and is left open.
    fn root(&mut self, hint: &Expr) -> Schema {
        let schema = self.inner(hint);
        let is_pointer = |schema: &Value| schema.get("$ref").is_some();
        let branches = schema.get("anyOf").and_then(Value::as_array);
        let leads_on = schema.contains_key("$ref") || branches.is_some_and(|all| all.iter().any(is_pointer));
        let is_endless = |reference: &Reference<'a>| match reference.target {
            Target::Class(class) => self.module.ancestry(class).root.is_some(),
            Target::Bound(number) => {
                self.module.bound_class(number).is_none_or(|bound| self.module.ancestry(bound.class).root.is_some())
            }
            Target::Alias(..) | Target::Live(_) => true,
        };
        if leads_on && self.references.iter().any(is_endless) { Schema::new() } else { schema }
    }

    fn enumeration(&self, ancestry: &Ancestry<'a>) -> Schema {
        if let Some(members) = self.module.members(ancestry) {
            return one_of(members.into_iter().map(|(_, value)| value).collect());
        }
        if ancestry.inherits(&["enum.StrEnum", "builtins.str"]) {
            of_type("string")
        } else if ancestry.inherits(&["enum.IntEnum", "enum.Flag", "enum.IntFlag", "builtins.int"]) {
            of_type("integer")
        } else {
            Schema::new()
        }
    }

    fn object(&mut self, ancestry: &Ancestry<'a>) -> Schema {
        let found = fields::of_class(self.module, ancestry, self.side);
        if !found.is_known {
            return of_type("object");
        }
        self.object_of(found, ancestry.is_complete)
    }

    fn object_of(&mut self, found: Fields<'a>, is_complete: bool) -> Schema {
        let mut built = of_type("object");
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in found.all {
            if field.info.is_required {
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
        let info = &field.info;
        self.within(field.owner);
        let mut property = if field.is_overruled { Schema::new() } else { self.inner(field.annotation) };
        (self.owner, self.parameters) = (None, Rc::default());
        info.constraints.constrain(&mut property, self.side);
        if field.is_changed && self.side.is_input() {
            drop_limits_of_texts(&mut property);
        }
        if info.default == Some(Value::Null) && self.side.is_input() {
            property = nullable(property);
        }
        property.extend(info.annotations.clone());
        if let Some(text) = &info.description {
            property.insert("description".to_owned(), Value::String(text.clone()));
        }
        if self.side.is_input() {
            property.extend(info.default.clone().map(|value| ("default".to_owned(), value)));
        }
        property
    }

    /// An array; as an argument, an object too.
    fn named_tuple(&mut self, ancestry: &Ancestry<'a>) -> Schema {
        let found = fields::of_class(self.module, ancestry, self.side);
        let items: Vec<Value> = found.all.iter().map(|field| Value::Object(self.field(field))).collect();
        let least = found.all.iter().take_while(|field| field.info.is_required).count();
        let array = json!({"type": "array", "prefixItems": items, "minItems": least, "maxItems": items.len()});
        if !found.is_known || items.is_empty() {
            return if self.side.is_input() { Schema::new() } else { of_type("array") };
        }
        if !self.side.is_input() {
            return schema(array);
        }
        schema(json!({"anyOf": [self.object_of(found, ancestry.is_complete), array]}))
    }
}
