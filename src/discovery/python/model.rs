//! What a pydantic model says about itself as a whole: its configuration, validators and serializers.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};
use serde_json::Value;

use super::annotations::sound;
use super::classes::{Ancestry, ClassKind, class_keyword};
use super::known_types::Side;
use super::literals::{keyword, literal};
use super::module::{Module, name_of};
use super::names::Named;
use super::schema::Schema;

/// The configuration of a model.
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(super) struct ModelConfig {
    /// Whether other names are rejected.
    pub(super) is_closed: bool,
    /// Whether it could be read.
    pub(super) is_known: bool,
    /// Whether results are written by aliases.
    pub(super) writes_aliases: bool,
    /// Whether strings are changed before they are checked.
    pub(super) changes_texts: bool,
    pub(super) naming: Naming,
    /// Its title, and what its `json_schema_extra` says to readers.
    pub(super) annotations: Schema,
}

/// The names of fields without an alias of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    AsWritten,
    /// Aliases do not count either.
    Own,
    Camel,
    Pascal,
    Unknown,
}

impl Naming {
    /// The name in JSON; `None` where it is unknown.
    pub(super) fn apply(self, name: &str) -> Option<String> {
        if matches!(self, Self::AsWritten | Self::Own) {
            return Some(name.to_owned());
        }
        // pydantic has special rules for digits and capitals.
        let is_plain = name.split('_').all(|word| !word.is_empty() && word.bytes().all(|it| it.is_ascii_lowercase()));
        if self == Self::Unknown || !is_plain {
            return None;
        }
        let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
        let words = name.split('_').enumerate();
        Some(
            words
                .map(|(at, word)| if at == 0 && self == Self::Camel { word.to_owned() } else { capital(word) })
                .collect(),
        )
    }
}

impl ModelConfig {
    pub(super) fn of<'a>(module: &Module<'a>, ancestry: &Ancestry<'a>) -> Self {
        let mut config = Self {
            is_closed: false,
            is_known: true,
            writes_aliases: false,
            changes_texts: false,
            naming: Naming::AsWritten,
            annotations: Schema::new(),
        };
        for class in &ancestry.classes {
            for statement in &class.body {
                match statement {
                    Stmt::Assign(assign) if assign.targets.iter().any(|it| name_of(it) == Some("model_config")) => {
                        config.read(module, &assign.value);
                    }
                    Stmt::AnnAssign(assign) if name_of(&assign.target) == Some("model_config") => {
                        assign.value.iter().for_each(|value| config.read(module, value));
                    }
                    Stmt::ClassDef(inner) if inner.name.as_str() == "Config" => config.read_class(module, inner),
                    _ => {}
                }
            }
            for name in KEYS {
                if let Some(value) = class_keyword(class, name) {
                    config.set(module, name, value);
                }
            }
        }
        config
    }

    /// `ConfigDict(extra="forbid")`, `{"extra": "forbid"}`, or a name for one of them.
    fn read(&mut self, module: &Module<'_>, value: &Expr) {
        match value {
            Expr::Call(call) => {
                for keyword in &call.arguments.keywords {
                    match &keyword.arg {
                        Some(name) => self.set(module, name, &keyword.value),
                        None => self.is_known = false,
                    }
                }
            }
            Expr::Dict(dict) => {
                for item in &dict.items {
                    match item.key.as_ref().and_then(|key| key.as_string_literal_expr()) {
                        Some(name) => self.set(module, name.value.to_str(), &item.value),
                        None => self.is_known = false,
                    }
                }
            }
            _ => match module.resolve(value) {
                Named::Value { value, .. } if !value.is_name_expr() => self.read(module, value),
                _ => self.is_known = false,
            },
        }
    }

    /// `class Config:`, as pydantic 1 had it.
    fn read_class(&mut self, module: &Module<'_>, class: &StmtClassDef) {
        for assign in class.body.iter().filter_map(Stmt::as_assign_stmt) {
            for name in assign.targets.iter().filter_map(name_of) {
                self.set(module, name, &assign.value);
            }
        }
    }

    fn set(&mut self, module: &Module<'_>, key: &str, value: &Expr) {
        let plain = literal(value, module);
        match key {
            "extra" => self.is_closed = plain.is_some_and(|extra| extra == "forbid"),
            "str_strip_whitespace" | "str_to_lower" | "str_to_upper" => {
                self.changes_texts |= plain != Some(false.into());
            }
            "json_schema_extra" => self.annotations.extend(plain.map(sound).unwrap_or_default()),
            "title" => self.annotations.extend(plain.filter(Value::is_string).map(|title| (key.to_owned(), title))),
            "serialize_by_alias" => self.writes_aliases = plain != Some(false.into()),
            "validate_by_alias" if plain == Some(false.into()) => self.naming = Naming::Own,
            "json_encoders" | "ser_json_temporal" | "ser_json_inf_nan" => self.writes_aliases = true,
            "alias_generator" if self.naming != Naming::Own => {
                self.naming = match module.outside_name(value).as_deref() {
                    Some("pydantic.alias_generators.to_camel") => Naming::Camel,
                    Some("pydantic.alias_generators.to_pascal") => Naming::Pascal,
                    _ => Naming::Unknown,
                };
            }
            _ => {}
        }
    }
}

const KEYS: [&str; 7] = [
    "extra",
    "alias_generator",
    "serialize_by_alias",
    "validate_by_alias",
    "str_strip_whitespace",
    "str_to_lower",
    "str_to_upper",
];

/// Whether a function of a model replaces the form that its fields define.
fn is_overruled(ancestry: &Ancestry<'_>, side: Side) -> bool {
    let mut functions = ancestry.classes.iter().flat_map(|class| &class.body).filter_map(Stmt::as_function_def_stmt);
    functions.any(|function| {
        let is_own_way = match function.name.as_str() {
            "__get_pydantic_core_schema__" => true,
            "model_validate" => side.is_input(),
            "model_dump" => !side.is_input(),
            _ => false,
        };
        is_own_way
            || function.decorator_list.iter().any(|decorator| match decorator_name(&decorator.expression) {
                "model_validator" | "root_validator" => side.is_input() && comes_first(&decorator.expression),
                "model_serializer" => !side.is_input(),
                _ => false,
            })
    })
}

/// Whether the fields of a class define its form on a side.
pub(super) fn is_readable(ancestry: &Ancestry<'_>, side: Side) -> bool {
    // A class that also inherits from another type, such as `dict`, is written as that.
    let is_as_written = side.is_input() || ancestry.is_complete || ancestry.kind == ClassKind::Enumeration;
    is_as_written && !(ancestry.is_pydantic && is_overruled(ancestry, side))
}

/// The fields whose form a function of the model replaces; `*` for all.
pub(super) fn overruled_fields<'a>(ancestry: &Ancestry<'a>, side: Side) -> Vec<&'a str> {
    let functions = ancestry.classes.iter().flat_map(|class| &class.body).filter_map(Stmt::as_function_def_stmt);
    let decorators = functions.flat_map(|function| &function.decorator_list);
    let decorators = decorators.map(|decorator| &decorator.expression);
    // `_size = field_validator("size", mode="before")(to_size)`
    let assigned = ancestry.classes.iter().flat_map(|class| &class.body).filter_map(Stmt::as_assign_stmt);
    let applied = assigned.filter_map(|assign| assign.value.as_call_expr()).map(|call| &*call.func);
    let overruling = decorators.chain(applied).filter_map(|decorator| {
        let call = decorator.as_call_expr()?;
        let is_it = match decorator_name(decorator) {
            "field_validator" | "validator" => side.is_input() && comes_first(decorator),
            "field_serializer" => !side.is_input(),
            _ => false,
        };
        is_it.then_some(call)
    });
    let names = |call: &'a ExprCall| call.arguments.args.iter().map(|name| name.as_string_literal_expr());
    // A computed name may be any.
    overruling.flat_map(|call| names(call).map(|name| name.map_or("*", |text| text.value.to_str()))).collect()
}

fn decorator_name(expression: &Expr) -> &str {
    let called = expression.as_call_expr().map_or(expression, |call| &call.func);
    match called {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    }
}

/// Whether a validator sees the raw input before the fields do.
fn comes_first(decorator: &Expr) -> bool {
    let Some(call) = decorator.as_call_expr() else { return false };
    let mode = keyword(call, "mode").and_then(|mode| mode.as_string_literal_expr()).map(|mode| mode.value.to_str());
    mode.is_some_and(|mode| mode != "after") || keyword(call, "pre").is_some()
}
