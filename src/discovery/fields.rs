//! The fields of dataclasses, typed dictionaries, named tuples and pydantic models.

use ruff_python_ast::{Expr, Stmt, StmtClassDef};
use serde_json::Value;

use super::classes::{ClassKind, Lineage, class_keyword};
use super::defaults::literal;
use super::docstring::Docstring;
use super::facts::{Facts, Hidden};
use super::known::Known;
use super::limits::call_of;
use super::model::{Config, overruled_fields};
use super::module::{Module, docstring_of, name_of};
use super::side::Side;

/// Everything a class says about its fields.
pub(super) struct Fields<'a> {
    pub(super) all: Vec<Field<'a>>,
    /// Whether other names are refused.
    pub(super) is_closed: bool,
    /// Whether the fields can be told at all.
    pub(super) is_known: bool,
}

pub(super) struct Field<'a> {
    /// Its name in JSON.
    pub(super) name: String,
    written: &'a str,
    pub(super) annotation: &'a Expr,
    pub(super) facts: Facts,
    /// Whether some function makes its value of anything.
    pub(super) is_overruled: bool,
}

/// The fields of a class, those of its ancestors first.
pub(super) fn of_class<'a>(module: &Module<'a>, lineage: &Lineage<'a>, side: Side) -> Fields<'a> {
    let mut found = Fields { all: Vec::new(), is_closed: false, is_known: true };
    for class in &lineage.classes {
        let has_fields = lineage.kind != ClassKind::Dataclass || module.is_dataclass(class);
        if has_fields {
            add_fields(module, class, lineage, side, &mut found);
        }
        // A hand-written constructor takes what it likes.
        let own_constructor = |it: &Stmt| it.as_function_def_stmt().is_some_and(|f| f.name.as_str() == "__init__");
        found.is_known &= !side.is_input() || !class.body.iter().any(own_constructor);
    }
    if side.is_input() {
        found.is_closed = is_closed(module, lineage, side);
        found.all.retain(|field| field.facts.is_hidden_from != Hidden::Arguments);
    } else {
        found.all.retain(|field| field.facts.is_hidden_from != Hidden::Results || !side.is_in_model());
    }
    if lineage.is_pydantic {
        name_fields(module, lineage, side, &mut found);
    }
    if !side.is_input() && lineage.kind != ClassKind::TypedDict {
        // What is written is written whole.
        found.all.iter_mut().for_each(|field| field.facts.is_required = true);
    }
    found
}

fn is_closed<'a>(module: &Module<'a>, lineage: &Lineage<'a>, side: Side) -> bool {
    let says_closed = |class: &&'a StmtClassDef| {
        class_keyword(class, "closed").and_then(|value| literal(value, module)) == Some(Value::Bool(true))
    };
    match lineage.kind {
        ClassKind::TypedDict => lineage.classes.iter().any(says_closed),
        ClassKind::NamedTuple => true,
        // pydantic overlooks keys that the class does not know.
        _ => !lineage.is_pydantic && side == Side::Given,
    }
}

fn name_fields<'a>(module: &Module<'a>, lineage: &Lineage<'a>, side: Side, found: &mut Fields<'a>) {
    let config = Config::of(module, lineage);
    found.is_known &= config.is_known;
    found.is_closed = config.is_closed && side.is_input();
    if !side.is_input() {
        found.is_known &= !config.writes_aliases;
    }
    let overruled = overruled_fields(lineage, side);
    for field in &mut found.all {
        field.is_overruled = overruled.iter().any(|name| *name == "*" || *name == field.written);
        if !side.is_input() {
            continue;
        }
        match field.facts.alias.take().or_else(|| config.naming.apply(field.written)) {
            Some(name) => field.name = name,
            None => found.is_known = false,
        }
        found.is_known &= !field.facts.is_renamed;
    }
}

fn add_fields<'a>(
    module: &Module<'a>,
    class: &'a StmtClassDef,
    lineage: &Lineage<'a>,
    side: Side,
    found: &mut Fields<'a>,
) {
    let documented = docstring_of(&class.body).map(Docstring::parse).unwrap_or_default();
    for (index, statement) in class.body.iter().enumerate() {
        let Some(assign) = statement.as_ann_assign_stmt() else { continue };
        let Some(name) = name_of(&assign.target) else { continue };
        let is_private = lineage.is_pydantic && (name.starts_with('_') || name == "model_config");
        if is_private || is_no_field(module, &assign.annotation, side) {
            continue;
        }
        let mut facts = facts_of(module, class, lineage, &assign.annotation, assign.value.as_deref());
        let text_below =
            class.body.get(index + 1..).and_then(docstring_of).map(|text| Docstring::parse(text).description);
        let described = || documented.parameters.get(name).cloned();
        facts.description = facts.description.or_else(|| text_below.flatten()).or_else(described);
        let field =
            Field { name: name.to_owned(), written: name, annotation: &assign.annotation, facts, is_overruled: false };
        match found.all.iter_mut().find(|earlier| earlier.written == name) {
            Some(earlier) => *earlier = field,
            None => found.all.push(field),
        }
    }
}

/// `ClassVar[…]` belongs to the class, `_: KW_ONLY` only marks what follows, and `InitVar[…]` is not kept.
fn is_no_field(module: &Module<'_>, annotation: &Expr, side: Side) -> bool {
    let outer = annotation.as_subscript_expr().map_or(annotation, |generic| &generic.value);
    if let Expr::StringLiteral(text) = outer {
        return text.value.to_str().contains("ClassVar");
    }
    let Some(name) = module.outside_name(outer) else { return false };
    match name.as_str() {
        "dataclasses.KW_ONLY" => true,
        "dataclasses.InitVar" => !side.is_input(),
        _ => Known::named(&name) == Some(Known::ClassVariable),
    }
}

fn facts_of<'a>(
    module: &Module<'a>,
    class: &StmtClassDef,
    lineage: &Lineage<'a>,
    annotation: &Expr,
    value: Option<&'a Expr>,
) -> Facts {
    if lineage.kind == ClassKind::TypedDict {
        return Facts { is_required: must_be_there(module, class, annotation), ..Facts::default() };
    }
    let noted = if lineage.is_pydantic { noted_field(module, annotation) } else { None };
    let Some(value) = value else { return noted.unwrap_or_else(Facts::required) };
    let call = call_of(module, value, "dataclasses.field").or_else(|| call_of(module, value, "pydantic.Field"));
    let own = match call {
        Some(call) => Facts::of_call(module, call),
        None if value.is_ellipsis_literal_expr() && lineage.is_pydantic => Facts::required(),
        None => Facts { default: literal(value, module), ..Facts::default() },
    };
    own.or(noted.unwrap_or_default())
}

/// The `Field(…)` in `Annotated[X, Field(…)]`. Its limits are read with the type.
fn noted_field(module: &Module<'_>, annotation: &Expr) -> Option<Facts> {
    let generic = annotation.as_subscript_expr()?;
    let is_annotated = Known::named(&module.outside_name(&generic.value)?) == Some(Known::Annotated);
    let notes = generic.slice.as_tuple_expr().filter(|_| is_annotated)?;
    let call = notes.elts.iter().find_map(|note| call_of(module, note, "pydantic.Field"))?;
    Some(Facts::of_call(module, call))
}

/// Whether a key of a typed dictionary is required: by its own qualifier, else by the class's `total`.
fn must_be_there(module: &Module<'_>, class: &StmtClassDef, annotation: &Expr) -> bool {
    let mut at = annotation;
    while let Expr::Subscript(generic) = at {
        let name = module.outside_name(&generic.value).unwrap_or_default();
        match name.rsplit('.').next() {
            Some("Required") => return true,
            Some("NotRequired") => return false,
            Some("Annotated" | "ReadOnly") => {}
            _ => break,
        }
        at = generic.slice.as_tuple_expr().and_then(|tuple| tuple.elts.first()).unwrap_or(&generic.slice);
    }
    // In quotes it is not worth a second parse: where a key might be left out, it may be.
    let may_be_absent = at.as_string_literal_expr().is_some_and(|text| text.value.to_str().contains("NotRequired"));
    let is_total = class_keyword(class, "total").is_none_or(|total| literal(total, module) != Some(Value::Bool(false)));
    is_total && !may_be_absent
}
