//! The fields of dataclasses, typed dictionaries, named tuples and pydantic models.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};
use serde_json::{Value, json};

use super::classes::{ClassKind, Lineage, class_keyword};
use super::defaults::literal;
use super::docstring::Docstring;
use super::known::Known;
use super::module::{Module, docstring_of, name_of};
use super::schema::Schema;

/// Everything a class says about its fields.
pub(super) struct Fields<'a> {
    pub(super) all: Vec<Field<'a>>,
    /// Whether other names are refused.
    pub(super) is_closed: bool,
    /// Whether the fields can be told at all.
    pub(super) is_known: bool,
}

pub(super) struct Field<'a> {
    pub(super) name: String,
    pub(super) annotation: &'a Expr,
    pub(super) facts: Facts,
}

/// What stands around a field's type: after the `=`, in `field(…)`, in `Field(…)`.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) is_required: bool,
    pub(super) default: Option<Value>,
    pub(super) description: Option<String>,
    alias: Option<String>,
    /// Whether it goes by a name that cannot be told.
    is_renamed: bool,
    /// The limits of pydantic's `Field`, by their names there.
    limits: Vec<(&'static str, Value)>,
}

/// The fields of a class, those of its ancestors first.
pub(super) fn of_class<'a>(module: &Module<'a>, lineage: &Lineage<'a>) -> Fields<'a> {
    let mut found = Fields { all: Vec::new(), is_closed: lineage.kind != ClassKind::TypedDict, is_known: true };
    if lineage.kind == ClassKind::Model {
        found.is_closed = false;
    }
    for class in &lineage.classes {
        let has_fields = lineage.kind != ClassKind::Dataclass || module.is_dataclass(class);
        if has_fields {
            add_fields(module, class, lineage.kind, &mut found);
        }
        // A hand-written constructor takes what it likes.
        let own_constructor = |it: &Stmt| it.as_function_def_stmt().is_some_and(|f| f.name.as_str() == "__init__");
        found.is_known &= !class.body.iter().any(own_constructor);
    }
    found
}

fn add_fields<'a>(module: &Module<'a>, class: &'a StmtClassDef, kind: ClassKind, found: &mut Fields<'a>) {
    let documented = docstring_of(&class.body).map(Docstring::parse).unwrap_or_default();
    for (index, statement) in class.body.iter().enumerate() {
        if let Stmt::Assign(assign) = statement {
            if assign.targets.iter().any(|target| name_of(target) == Some("model_config")) {
                read_config(&assign.value, found);
            }
            continue;
        }
        let Some(assign) = statement.as_ann_assign_stmt() else { continue };
        let Some(name) = name_of(&assign.target) else { continue };
        let is_private = kind == ClassKind::Model && name.starts_with('_');
        if is_private || is_no_field(module, &assign.annotation) {
            continue;
        }
        let Some(mut facts) = facts_of(module, class, kind, &assign.annotation, assign.value.as_deref()) else {
            continue;
        };
        let text_below =
            class.body.get(index + 1..).and_then(docstring_of).map(|text| Docstring::parse(text).description);
        let described = || documented.parameters.get(name).cloned();
        facts.description = facts.description.or_else(|| text_below.flatten()).or_else(described);
        let name = facts.alias.take().unwrap_or_else(|| name.to_owned());
        found.is_known &= !facts.is_renamed;
        let field = Field { name, annotation: &assign.annotation, facts };
        match found.all.iter_mut().find(|earlier| earlier.name == field.name) {
            Some(earlier) => *earlier = field,
            None => found.all.push(field),
        }
    }
}

/// `ClassVar[…]` belongs to the class, and `_: KW_ONLY` only marks what follows.
fn is_no_field(module: &Module<'_>, annotation: &Expr) -> bool {
    let outer = annotation.as_subscript_expr().map_or(annotation, |generic| &generic.value);
    if let Expr::StringLiteral(text) = outer {
        return text.value.to_str().contains("ClassVar");
    }
    let Some(name) = module.outside_name(outer) else { return false };
    name == "dataclasses.KW_ONLY" || Known::named(&name) == Some(Known::ClassVariable)
}

fn facts_of<'a>(
    module: &Module<'a>,
    class: &StmtClassDef,
    kind: ClassKind,
    annotation: &Expr,
    value: Option<&'a Expr>,
) -> Option<Facts> {
    if kind == ClassKind::TypedDict {
        return Some(Facts { is_required: must_be_there(module, class, annotation), ..Facts::default() });
    }
    let Some(value) = value else {
        let noted = if kind == ClassKind::Model { noted_field(module, annotation) } else { None };
        return Some(noted.unwrap_or(Facts { is_required: true, ..Facts::default() }));
    };
    let call = value.as_call_expr();
    match call.and_then(|call| Some((call, module.outside_name(&call.func)?))) {
        Some((call, name)) if name == "dataclasses.field" || name == "pydantic.Field" => {
            let is_parameter =
                keyword(call, "init").is_none_or(|init| literal(init, module) != Some(Value::Bool(false)));
            is_parameter.then(|| Facts::of_call(module, call))
        }
        _ => Some(Facts { default: literal(value, module), ..Facts::default() }),
    }
}

/// The `Field(…)` in `Annotated[X, Field(…)]`.
fn noted_field(module: &Module<'_>, annotation: &Expr) -> Option<Facts> {
    let generic = annotation.as_subscript_expr()?;
    let is_annotated = Known::named(&module.outside_name(&generic.value)?) == Some(Known::Annotated);
    let notes = generic.slice.as_tuple_expr().filter(|_| is_annotated)?;
    let mut calls = notes.elts.iter().filter_map(Expr::as_call_expr);
    let call = calls.find(|call| module.outside_name(&call.func).is_some_and(|name| name == "pydantic.Field"))?;
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

/// pydantic's `model_config`: whether other names are refused, and whether the names are the ones in the class at all.
fn read_config(value: &Expr, found: &mut Fields<'_>) {
    let Some(call) = value.as_call_expr() else {
        found.is_known = false;
        return;
    };
    let extra = keyword(call, "extra").and_then(|extra| extra.as_string_literal_expr());
    found.is_closed = extra.is_some_and(|extra| extra.value.to_str() == "forbid");
    found.is_known &= keyword(call, "alias_generator").is_none();
}

/// Whether a model has a validator that sees the raw input before the fields do.
pub(super) fn has_early_validator(lineage: &Lineage<'_>) -> bool {
    let functions = lineage.classes.iter().flat_map(|class| &class.body).filter_map(Stmt::as_function_def_stmt);
    let mut decorators = functions.flat_map(|function| &function.decorator_list);
    decorators.any(|decorator| {
        let Some(call) = decorator.expression.as_call_expr() else { return false };
        let name = match &*call.func {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return false,
        };
        let mode = keyword(call, "mode").and_then(|mode| mode.as_string_literal_expr()).map(|mode| mode.value.to_str());
        let is_early = mode.is_some_and(|mode| mode != "after") || keyword(call, "pre").is_some();
        name.ends_with("validator") && is_early
    })
}

/// The keyword argument of a call.
pub(super) fn keyword<'e>(call: &'e ExprCall, name: &str) -> Option<&'e Expr> {
    let mut keywords = call.arguments.keywords.iter();
    keywords.find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|found| &found.value)
}

const LIMITS: [&str; 7] = ["ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length"];

impl Facts {
    /// Reads `field(…)` and `Field(…)`.
    pub(super) fn of_call(module: &Module<'_>, call: &ExprCall) -> Self {
        let value = call.arguments.args.first().or_else(|| keyword(call, "default"));
        let text = |name: &str| {
            let literal = keyword(call, name)?.as_string_literal_expr()?;
            Some(literal.value.to_str().to_owned())
        };
        let factory = keyword(call, "default_factory");
        let made = || match module.outside_name(factory?)?.as_str() {
            "builtins.list" => Some(json!([])),
            "builtins.dict" => Some(json!({})),
            _ => None,
        };
        let names = ["validation_alias", "alias"];
        let alias = names.iter().find(|name| keyword(call, name).is_some()).and_then(|name| text(name));
        let limits = LIMITS.iter().filter_map(|name| Some((*name, literal(keyword(call, name)?, module)?)));
        Self {
            is_required: value.is_none_or(Expr::is_ellipsis_literal_expr) && factory.is_none(),
            default: value.and_then(|value| literal(value, module)).or_else(made),
            description: text("description"),
            is_renamed: alias.is_none() && names.iter().any(|name| keyword(call, name).is_some()),
            alias,
            limits: limits.filter(|(_, limit)| limit.is_number()).collect(),
        }
    }

    /// Writes the limits that have a meaning for the type of a schema into it.
    pub(super) fn constrain(&self, schema: &mut Schema) {
        let kind = schema.get("type").and_then(Value::as_str).map(str::to_owned);
        for (limit, value) in &self.limits {
            let key = match (*limit, kind.as_deref()) {
                ("ge", Some("integer" | "number")) => "minimum",
                ("gt", Some("integer" | "number")) => "exclusiveMinimum",
                ("le", Some("integer" | "number")) => "maximum",
                ("lt", Some("integer" | "number")) => "exclusiveMaximum",
                ("multiple_of", Some("integer" | "number")) => "multipleOf",
                ("min_length", Some("string")) => "minLength",
                ("max_length", Some("string")) => "maxLength",
                ("min_length", Some("array")) => "minItems",
                ("max_length", Some("array")) => "maxItems",
                _ => continue,
            };
            schema.insert(key.to_owned(), value.clone());
        }
    }
}
