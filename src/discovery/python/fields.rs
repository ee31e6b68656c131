//! The fields of dataclasses, typed dictionaries, named tuples and pydantic models, with their defaults.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};
use serde_json::{Value, json};

use super::annotations;
use super::classes::{Ancestry, ClassKind, class_keyword};
use super::constraints::{Constraints, field_call};
use super::docstring::Docstring;
use super::foreign_classes::is_class_field;
use super::known_types::{KnownType, Side};
use super::literals::{keyword, literal};
use super::model::{ModelConfig, Naming, overruled_fields};
use super::module::{Module, docstring_of, name_of};
use super::schema::Schema;

/// The fields of a class.
pub(super) struct Fields<'a> {
    pub(super) all: Vec<Field<'a>>,
    /// Whether other names are rejected.
    pub(super) is_closed: bool,
    /// Whether the fields are known.
    pub(super) is_known: bool,
}

pub(super) struct Field<'a> {
    /// Its name in JSON.
    pub(super) name: String,
    written: &'a str,
    pub(super) annotation: &'a Expr,
    /// The class that declares it.
    pub(super) owner: &'a StmtClassDef,
    pub(super) info: FieldInfo,
    /// Whether a validator or serializer replaces the form of its type.
    pub(super) is_overruled: bool,
    /// Whether a string is changed before it is checked.
    pub(super) is_changed: bool,
}

/// The fields of a class, those of its ancestors first.
pub(super) fn of_class<'a>(module: &Module<'a>, ancestry: &Ancestry<'a>, side: Side) -> Fields<'a> {
    let mut found = Fields { all: Vec::new(), is_closed: false, is_known: true };
    for class in &ancestry.classes {
        let has_fields = match ancestry.kind {
            ClassKind::Dataclass => module.is_dataclass(class),
            ClassKind::Attrs => module.is_of_attrs(class),
            _ => true,
        };
        if has_fields {
            add_fields(module, class, ancestry, side, &mut found);
        }
        // A constructor of its own may take other arguments.
        let own_constructor = |it: &Stmt| it.as_function_def_stmt().is_some_and(|f| f.name.as_str() == "__init__");
        found.is_known &= !side.is_input() || !class.body.iter().any(own_constructor);
    }
    if side.is_input() {
        found.is_closed = is_closed(module, ancestry, side);
        found.all.retain(|field| field.info.is_hidden_from != Hidden::Arguments);
    } else {
        found.all.retain(|field| field.info.is_hidden_from != Hidden::Results || !side.is_in_model());
    }
    if ancestry.is_pydantic {
        name_fields(module, ancestry, side, &mut found);
    }
    if ancestry.kind == ClassKind::Dataclass && !ancestry.is_pydantic && side.is_input() {
        // With pydantic's `Field(alias="…")` as defaults.
        found.all.iter_mut().for_each(|field| take_alias(field, &mut found.is_closed, &mut found.is_known));
    }
    if ancestry.kind == ClassKind::Attrs && side.is_input() {
        for field in &mut found.all {
            let alias = field.info.alias.take();
            field.name = alias.unwrap_or_else(|| field.written.trim_start_matches('_').to_owned());
            found.is_known &= !field.info.is_renamed;
        }
    }
    if ancestry.kind == ClassKind::Struct {
        // Results leave out defaults.
        let may_omit = |class: &&StmtClassDef| class_keyword(class, "omit_defaults").is_some();
        found.is_known &= side.is_input() || !ancestry.classes.iter().any(may_omit);
    }
    if !side.is_input() && ancestry.kind != ClassKind::TypedDict {
        // Results have every field.
        found.all.iter_mut().for_each(|field| field.info.is_required = true);
    }
    found
}

fn is_closed<'a>(module: &Module<'a>, ancestry: &Ancestry<'a>, side: Side) -> bool {
    let says_closed = |class: &&'a StmtClassDef| {
        class_keyword(class, "closed").and_then(|value| literal(value, module)) == Some(Value::Bool(true))
    };
    match ancestry.kind {
        // pydantic drops other keys, unless its configuration says otherwise.
        ClassKind::TypedDict if side == Side::Given => !ancestry.classes.iter().any(|class| admits_further(class)),
        ClassKind::TypedDict => ancestry.classes.iter().any(says_closed),
        ClassKind::NamedTuple => true,
        ClassKind::Struct => side.is_input() && ancestry.classes.iter().any(|class| module.refuses_unknown(class)),
        // pydantic ignores unknown keys.
        _ => !ancestry.is_pydantic && side == Side::Given,
    }
}

/// `class Options(TypedDict, extra_items=int)`, and one with a configuration for pydantic.
fn admits_further(class: &StmtClassDef) -> bool {
    let is_configured = |statement: &Stmt| {
        let target = statement.as_assign_stmt().and_then(|assign| assign.targets.first());
        let target = target.or_else(|| statement.as_ann_assign_stmt().map(|assign| &*assign.target));
        target.and_then(name_of) == Some("__pydantic_config__")
    };
    class_keyword(class, "extra_items").is_some() || class.body.iter().any(is_configured)
}

fn take_alias(field: &mut Field<'_>, is_closed: &mut bool, is_known: &mut bool) {
    let has_choices = field.info.choice.is_some();
    // Whether any of the names is there, pydantic decides.
    field.info.is_required &= !has_choices;
    *is_closed &= !has_choices;
    *is_known &= !field.info.is_renamed;
    if let Some(name) = field.info.alias.take().or_else(|| field.info.choice.take()) {
        field.name = name;
    }
}

fn name_fields<'a>(module: &Module<'a>, ancestry: &Ancestry<'a>, side: Side, found: &mut Fields<'a>) {
    let config = ModelConfig::of(module, ancestry);
    found.is_known &= config.is_known;
    found.is_closed = config.is_closed && side.is_input();
    if !side.is_input() {
        found.is_known &= !config.writes_aliases;
    }
    let overruled = overruled_fields(ancestry, side);
    for field in &mut found.all {
        field.is_changed = config.changes_texts;
        field.is_overruled = overruled.iter().any(|name| *name == "*" || *name == field.written);
        if !side.is_input() {
            continue;
        }
        let has_choices = field.info.choice.is_some();
        // Whether any of the names is there, pydantic decides.
        field.info.is_required &= !has_choices;
        found.is_closed &= !has_choices;
        let own = field.info.alias.take().or_else(|| field.info.choice.take());
        let own = if config.naming == Naming::Own { Some(field.written.to_owned()) } else { own };
        match own.or_else(|| config.naming.apply(field.written)) {
            Some(name) => field.name = name,
            None => found.is_known = false,
        }
        found.is_known &= !field.info.is_renamed || config.naming == Naming::Own;
    }
}

fn add_fields<'a>(
    module: &Module<'a>,
    class: &'a StmtClassDef,
    ancestry: &Ancestry<'a>,
    side: Side,
    found: &mut Fields<'a>,
) {
    let documented = docstring_of(&class.body).map(Docstring::parse).unwrap_or_default();
    for (index, statement) in class.body.iter().enumerate() {
        let Some(assign) = statement.as_ann_assign_stmt() else { continue };
        let Some(name) = name_of(&assign.target) else { continue };
        let is_private = ancestry.is_pydantic && (name.starts_with('_') || name == "model_config");
        if is_private || is_no_field(module, &assign.annotation, side) {
            continue;
        }
        let mut info = field_info(module, class, ancestry, &assign.annotation, assign.value.as_deref());
        let text_below =
            class.body.get(index + 1..).and_then(docstring_of).map(|text| Docstring::parse(text).description);
        let described = || documented.parameters.get(name).cloned();
        info.description = info.description.or_else(|| text_below.flatten()).or_else(described);
        let is_overruled = side.is_input() && module.is_converted(assign.value.as_deref());
        let in_json =
            if ancestry.kind == ClassKind::Struct { module.name_in_json(assign.value.as_deref()) } else { None };
        let in_json = in_json.unwrap_or_else(|| name.to_owned());
        let field = Field {
            name: in_json,
            written: name,
            annotation: &assign.annotation,
            owner: class,
            info,
            is_overruled,
            is_changed: false,
        };
        match found.all.iter_mut().find(|earlier| earlier.written == name) {
            Some(earlier) => *earlier = field,
            None => found.all.push(field),
        }
    }
}

/// `ClassVar[…]` and `_: KW_ONLY` are not fields, and results have no `InitVar[…]`.
fn is_no_field(module: &Module<'_>, annotation: &Expr, side: Side) -> bool {
    let outer = annotation.as_subscript_expr().map_or(annotation, |generic| &generic.value);
    if let Expr::StringLiteral(text) = outer {
        return text.value.to_str().contains("ClassVar");
    }
    let Some(name) = module.outside_name(outer) else { return false };
    match name.as_str() {
        "dataclasses.KW_ONLY" => true,
        "dataclasses.InitVar" => !side.is_input(),
        _ => KnownType::named(&name) == Some(KnownType::ClassVariable),
    }
}

fn field_info<'a>(
    module: &Module<'a>,
    class: &'a StmtClassDef,
    ancestry: &Ancestry<'a>,
    annotation: &Expr,
    value: Option<&'a Expr>,
) -> FieldInfo {
    if ancestry.kind == ClassKind::TypedDict {
        return FieldInfo { is_required: must_be_there(module, class, annotation), ..FieldInfo::default() };
    }
    let noted = match ancestry.kind {
        _ if ancestry.is_pydantic => noted_field(module, annotation),
        // Python itself makes these: whether they have a default, it decides.
        ClassKind::Dataclass => noted_field(module, annotation).map(FieldInfo::name_only),
        _ => None,
    };
    let Some(value) = value else { return noted.unwrap_or_else(FieldInfo::required) };
    let made =
        value.as_call_expr().filter(|call| module.outside_name(&call.func).is_some_and(|name| is_class_field(&name)));
    let call = made.or_else(|| field_call(module, value));
    let own = match call {
        Some(call) => FieldInfo::of_call(module, call),
        None if value.is_ellipsis_literal_expr() && ancestry.is_pydantic => FieldInfo::required(),
        None => {
            let default = module.member_within(class, value).or_else(|| literal(value, module));
            FieldInfo { default, ..FieldInfo::default() }
        }
    };
    own.or(noted.unwrap_or_default())
}

/// The `Field(…)` in `Annotated[X, Field(…)]`. Its constraints are read with the type.
pub(super) fn noted_field(module: &Module<'_>, annotation: &Expr) -> Option<FieldInfo> {
    let generic = annotation.as_subscript_expr()?;
    let is_annotated = KnownType::named(&module.outside_name(&generic.value)?) == Some(KnownType::Annotated);
    let notes = generic.slice.as_tuple_expr().filter(|_| is_annotated)?;
    let call = notes.elts.iter().find_map(|note| field_call(module, note))?;
    Some(FieldInfo::of_call(module, call))
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
    // A quoted hint is not parsed for this: a key that may be optional is optional.
    let may_be_absent = at.as_string_literal_expr().is_some_and(|text| text.value.to_str().contains("NotRequired"));
    let is_total = class_keyword(class, "total").is_none_or(|total| literal(total, module) != Some(Value::Bool(false)));
    is_total && !may_be_absent
}

/// The default and the `Field(…)` of a field or a parameter.
#[derive(Default)]
pub(super) struct FieldInfo {
    pub(super) is_required: bool,
    pub(super) default: Option<Value>,
    pub(super) description: Option<String>,
    /// What else it says for readers of its schema.
    pub(super) annotations: Schema,
    pub(super) alias: Option<String>,
    /// The first of several names that it may have in JSON.
    pub(super) choice: Option<String>,
    /// Whether its name in JSON is unknown.
    pub(super) is_renamed: bool,
    pub(super) is_hidden_from: Hidden,
    pub(super) constraints: Constraints,
}

/// Where a field is left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    #[default]
    Nowhere,
    /// `field(init=False)`: callers cannot set it.
    Arguments,
    /// `Field(exclude=True)`: results do not have it.
    Results,
}

impl FieldInfo {
    /// For a field without a default.
    pub(super) fn required() -> Self {
        Self { is_required: true, ..Self::default() }
    }

    /// What it says about the name, of a field without a default.
    fn name_only(self) -> Self {
        let Self { alias, choice, is_renamed, .. } = self;
        Self { alias, choice, is_renamed, ..Self::required() }
    }

    /// Reads `field(…)` and `Field(…)`.
    pub(super) fn of_call(module: &Module<'_>, call: &ExprCall) -> Self {
        let value = call.arguments.args.first().or_else(|| keyword(call, "default"));
        // Of typer's, `"--name"` is no default.
        let value = value.filter(|value| !names_an_option(module, call, value));
        let text = |name: &str| {
            let text = keyword(call, name)?;
            literal(text, module)?.as_str().map(str::to_owned)
        };
        // `Field(**options)` may have a default.
        let is_open = call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none());
        let factory = keyword(call, "default_factory").or_else(|| keyword(call, "factory"));
        let says = |name: &str, wanted: bool| {
            keyword(call, name).and_then(|value| literal(value, module)) == Some(Value::Bool(wanted))
        };
        let names = ["validation_alias", "alias"];
        let given = names.iter().find(|name| keyword(call, name).is_some_and(|value| !value.is_none_literal_expr()));
        let alias = given.and_then(|name| text(name));
        let choice = given.and_then(|name| first_choice(module, keyword(call, name)?));
        let is_hidden_from = match () {
            () if says("init", false) => Hidden::Arguments,
            () if says("exclude", true) => Hidden::Results,
            () => Hidden::Nowhere,
        };
        Self {
            is_required: value.is_none_or(Expr::is_ellipsis_literal_expr) && factory.is_none() && !is_open,
            default: value
                .and_then(|value| literal(value, module))
                .or_else(|| factory.and_then(|factory| made(module, factory))),
            description: text("description").or_else(|| text("help")),
            annotations: annotations::of_field(module, call),
            is_renamed: alias.is_none() && choice.is_none() && given.is_some(),
            alias,
            choice,
            is_hidden_from,
            constraints: Constraints::of_keywords(module, call),
        }
    }

    /// Completed with the `Field(…)` in `Annotated`.
    pub(super) fn or(mut self, noted: Self) -> Self {
        self.is_renamed |= self.alias.is_none() && self.choice.is_none() && noted.is_renamed;
        self.choice = self.choice.or(noted.choice);
        self.alias = self.alias.or(noted.alias);
        self.description = self.description.or(noted.description);
        let own = std::mem::replace(&mut self.annotations, noted.annotations);
        self.annotations.extend(own);
        if self.is_hidden_from == Hidden::Nowhere {
            self.is_hidden_from = noted.is_hidden_from;
        }
        self
    }
}

/// `name` of `AliasChoices("name", AliasPath("person", "name"))`
fn first_choice(module: &Module<'_>, value: &Expr) -> Option<String> {
    let call = value
        .as_call_expr()
        .filter(|call| module.outside_name(&call.func).is_some_and(|full| full.ends_with(".AliasChoices")))?;
    let mut texts = call.arguments.args.iter().filter_map(Expr::as_string_literal_expr);
    texts.next().map(|text| text.value.to_str().to_owned())
}

fn names_an_option(module: &Module<'_>, call: &ExprCall, value: &Expr) -> bool {
    value.as_string_literal_expr().is_some_and(|text| text.value.to_str().starts_with('-'))
        && module.outside_name(&call.func).is_some_and(|full| full.starts_with("typer."))
}

/// What a default factory returns, where that is obvious.
fn made(module: &Module<'_>, factory: &Expr) -> Option<Value> {
    if let Expr::Lambda(lambda) = factory {
        return literal(&lambda.body, module);
    }
    Some(match module.outside_name(factory)?.as_str() {
        "builtins.list" | "builtins.tuple" | "builtins.set" | "builtins.frozenset" => json!([]),
        "builtins.dict" => json!({}),
        "builtins.str" => json!(""),
        "builtins.int" => json!(0),
        "builtins.float" => json!(0.0),
        "builtins.bool" => json!(false),
        _ => return None,
    })
}
