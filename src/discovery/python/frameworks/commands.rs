//! Commands of click and typer: a function whose decorators say how a shell calls it. Its options and arguments become the tool's
//! arguments, and what it prints the result.

use ruff_python_ast::{Expr, ExprCall, StmtFunctionDef};
use serde_json::{Map, Value, json};

use super::groups::{groups_of, makes_group};
use super::{Offer, last_name, package};
use crate::discovery::python::known_types::Side;
use crate::discovery::python::literals::{keyword, literal};
use crate::discovery::python::module::Module;
use crate::discovery::python::names::Named;
use crate::discovery::python::schema::{Schema, of_type, one_of};
use crate::discovery::python::types::Hints;
use crate::pep723::is_identifier;

/// The arguments of a decorator that makes a function a command.
pub(super) fn offer_of<'a>(module: &Module<'a>, decorator: &'a Expr) -> Option<Offer<'a>> {
    if makes_group(module, decorator) {
        return None;
    }
    let call = decorator.as_call_expr();
    let command = kind_of_command(module, call.map_or(decorator, |call| &call.func))?;
    let name = call.and_then(|call| call.arguments.args.first().or_else(|| keyword(call, "name")));
    Some(Offer {
        name: name.and_then(super::text),
        description: call.and_then(|call| keyword(call, "help")).and_then(super::text),
        is_off: call.and_then(|call| keyword(call, "hidden")).is_some_and(|value| !super::is_false(value)),
        command: Some(command),
        ..Offer::default()
    })
}

/// What `typer.run(function)` and `app.command("name")(function)` make of a function.
pub(super) fn offer_of_call<'a>(module: &Module<'a>, call: &'a ExprCall) -> Option<(&'a StmtFunctionDef, Offer<'a>)> {
    if call.func.is_call_expr() {
        let offer = offer_of(module, &call.func)?;
        return Some((super::function_named(module, call.arguments.args.first()?)?, offer));
    }
    module.outside_name(&call.func).filter(|full| full == "typer.run")?;
    let function = super::function_named(module, call.arguments.args.first()?)?;
    Some((function, Offer { command: Some(CommandKind::Run), ..Offer::default() }))
}

/// A command of click or typer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::discovery::python) enum CommandKind {
    /// Decorators declare the arguments.
    Click,
    /// The function's parameters declare them.
    Typer,
    /// The same, and the file runs it with `typer.run`.
    Run,
}

/// `click.command`, `app.command` of a typer application, `cli.command` of a function that is a group.
pub(super) fn kind_of_command(module: &Module<'_>, called: &Expr) -> Option<CommandKind> {
    if let Named::Outside(full) = module.resolve(called) {
        return is_of_click(&full, "command").then_some(CommandKind::Click);
    }
    let attribute = called.as_attribute_expr().filter(|it| it.attr.as_str() == "command")?;
    if let Named::Value { value, .. } = module.resolve(&attribute.value) {
        let made = module.outside_name(&value.as_call_expr()?.func)?;
        return match made.as_str() {
            "typer.Typer" => Some(CommandKind::Typer),
            full => is_of_click(full, "Group").then_some(CommandKind::Click),
        };
    }
    let group = super::function_named(module, &attribute.value)?;
    is_group(module, group).then_some(CommandKind::Click)
}

pub(super) fn is_of_click(full: &str, word: &str) -> bool {
    matches!(package(full), "click" | "rich_click") && last_name(full) == word
}

pub(super) fn is_group(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    function.decorator_list.iter().any(|decorator| makes_group(module, &decorator.expression))
}

/// The schema of the arguments of a click command, and of the groups above it. What decorators of other files add is known when the
/// command has been called once.
pub(in crate::discovery::python) fn arguments_of(module: &Module<'_>, function: &StmtFunctionDef) -> Schema {
    let mut parameters = Vec::new();
    let mut is_complete = true;
    for function in std::iter::once(function).chain(groups_of(module, function)) {
        let mut own = Vec::new();
        for decorator in &function.decorator_list {
            let called = decorator.expression.as_call_expr();
            match called.and_then(|call| parameter(module, call)) {
                Some(parameter) => add(&mut own, parameter),
                None => is_complete &= adds_nothing(module, &decorator.expression),
            }
        }
        let is_taken = |name: &str| parameters.iter().any(|other: &Parameter| other.name == name);
        own.retain(|parameter| !is_taken(&parameter.name));
        parameters.append(&mut own);
    }
    if !is_complete && let Some(live) = Hints::new(module, Side::Given).live_named(format!("{}()", function.name)) {
        return live;
    }
    let required: Vec<Value> = parameters.iter().filter(|it| it.is_required).map(|it| it.name.clone().into()).collect();
    let properties: Map<String, Value> =
        parameters.into_iter().map(|parameter| (parameter.name, Value::Object(parameter.schema))).collect();
    let mut schema = of_type("object");
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    if is_complete {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    schema
}

/// Adds a parameter. Switches of one name choose among their values.
fn add(parameters: &mut Vec<Parameter>, new: Parameter) {
    let same = parameters.iter_mut().find(|other| other.name == new.name);
    let Some(known) = same else { return parameters.push(new) };
    if let (Some(Value::Array(values)), Some(Value::Array(more))) =
        (known.schema.get_mut("enum"), new.schema.get("enum"))
    {
        values.splice(0..0, more.iter().cloned());
    }
}

/// Whether a decorator adds no parameter: the command's own, and those that pass an object on.
fn adds_nothing(module: &Module<'_>, decorator: &Expr) -> bool {
    let called = decorator.as_call_expr().map_or(decorator, |call| &call.func);
    kind_of_command(module, called).is_some()
        || makes_group(module, decorator)
        || module.outside_name(called).is_some_and(|full| {
            let passes = |word| is_of_click(&full, word);
            full.starts_with("functools.")
                || ["pass_context", "pass_obj", "version_option", "help_option"].into_iter().any(passes)
        })
}

struct Parameter {
    name: String,
    schema: Schema,
    is_required: bool,
}

/// `@click.option("--count", "-c", type=int, default=1, help="How many.")`, `@click.argument("path")`
fn parameter(module: &Module<'_>, call: &ExprCall) -> Option<Parameter> {
    let full = module.outside_name(&call.func)?;
    let (is_argument, is_confirmation) = (is_of_click(&full, "argument"), is_of_click(&full, "confirmation_option"));
    let is_password = is_of_click(&full, "password_option");
    if !is_argument && !is_confirmation && !is_password && !is_of_click(&full, "option") {
        return None;
    }
    let usual = if is_confirmation { "yes" } else { "password" };
    let name =
        name_of_parameter(call, is_argument).or_else(|| (is_confirmation || is_password).then(|| usual.to_owned()))?;
    let says = |key: &str| keyword(call, key).and_then(|value| literal(value, module));
    let default = says("default").filter(|value| !value.is_null());
    let says_true = |key: &str| says(key) == Some(Value::Bool(true));
    let switch = says("flag_value").filter(|value| !value.is_boolean());
    let is_flag = is_confirmation || says_true("is_flag") || has_two_words(call) || says("flag_value").is_some();
    let mut schema = match keyword(call, "type") {
        _ if let Some(value) = switch => one_of(vec![value]),
        _ if is_flag => of_type("boolean"),
        _ if says_true("count") => of_type("integer"),
        Some(kind) => type_of(module, kind),
        None => default.as_ref().map_or_else(|| of_type("string"), type_of_value),
    };
    let several = says("nargs").and_then(|count| count.as_i64()).unwrap_or(1);
    if several != 1 && schema.get("type").is_none_or(|kind| kind != "array") {
        schema = list_of(schema, u64::try_from(several).ok());
    }
    if says_true("multiple") {
        schema = list_of(schema, None);
    }
    let default = default.filter(|value| fits(&schema, value));
    schema.extend(says("help").filter(Value::is_string).map(|text| ("description".to_owned(), text)));
    schema.extend(default.map(|value| ("default".to_owned(), value)));
    // Without a terminal, what would be asked for has to be given.
    let is_asked = is_password || is_confirmation || says("prompt").is_some_and(|prompt| prompt != Value::Bool(false));
    let has_other_source = ["default", "envvar"].into_iter().any(|key| keyword(call, key).is_some());
    let is_required = match says("required") {
        Some(Value::Bool(says)) => says,
        _ => (is_asked || is_argument && says("nargs") != Some(json!(-1))) && !has_other_source,
    };
    Some(Parameter { name, schema, is_required })
}

/// Whether a default has the type of its schema: click converts some.
fn fits(schema: &Schema, value: &Value) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("integer" | "number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    }
}

fn list_of(items: Schema, count: Option<u64>) -> Schema {
    let mut list = of_type("array");
    list.insert("items".to_owned(), Value::Object(items));
    for key in ["minItems", "maxItems"] {
        list.extend(count.map(|count| (key.to_owned(), count.into())));
    }
    list
}

/// As click finds it: a name without dashes, else the first of those with the most dashes.
fn name_of_parameter(call: &ExprCall, is_argument: bool) -> Option<String> {
    let texts: Vec<&str> = call.arguments.args.iter().filter_map(super::text).collect();
    let in_words = |text: &str| text.trim_start_matches('-').replace('-', "_").to_lowercase();
    if is_argument {
        return texts.first().map(|text| in_words(text));
    }
    if let Some(plain) = texts.iter().find(|text| is_identifier(text)) {
        return Some((*plain).to_owned());
    }
    let dashes = |text: &&&str| std::cmp::Reverse(text.len() - text.trim_start_matches('-').len());
    let name = in_words(texts.iter().min_by_key(dashes)?.split(['/', ';']).next()?.trim());
    (!name.is_empty()).then_some(name)
}

/// `--shout/--no-shout`
fn has_two_words(call: &ExprCall) -> bool {
    call.arguments.args.iter().filter_map(super::text).any(|text| text.starts_with('-') && text.contains("/-"))
}

fn type_of(module: &Module<'_>, kind: &Expr) -> Schema {
    if let Expr::Tuple(kinds) = kind {
        let items: Vec<Value> = kinds.elts.iter().map(|kind| Value::Object(type_of(module, kind))).collect();
        let (mut tuple, count) = (of_type("array"), items.len());
        tuple.insert("prefixItems".to_owned(), items.into());
        tuple.insert("minItems".to_owned(), count.into());
        tuple.insert("maxItems".to_owned(), count.into());
        return tuple;
    }
    let called = kind.as_call_expr();
    let full = module.outside_name(called.map_or(kind, |call| &call.func)).unwrap_or_default();
    let says = |key: &str| called.and_then(|call| literal(keyword(call, key)?, module));
    let with_format = |format: &str| {
        let mut schema = of_type("string");
        schema.insert("format".to_owned(), format.into());
        schema
    };
    match last_name(&full) {
        "int" | "INT" | "IntRange" => with_range(module, called, of_type("integer")),
        "float" | "FLOAT" | "FloatRange" => with_range(module, called, of_type("number")),
        "bool" | "BOOL" => of_type("boolean"),
        // Other cases of its letters may be among them.
        "Choice" if says("case_sensitive") != Some(Value::Bool(false)) => {
            let choices = called.and_then(|call| call.arguments.args.first().or_else(|| keyword(call, "choices")));
            match choices.and_then(|list| literal(list, module)) {
                Some(Value::Array(choices)) => one_of(choices),
                _ => Schema::new(),
            }
        }
        "UUID" => with_format("uuid"),
        "Path" | "File" => with_format("path"),
        _ => of_type("string"),
    }
}

fn with_range(module: &Module<'_>, call: Option<&ExprCall>, mut schema: Schema) -> Schema {
    let is_clamped = |call: &&ExprCall| keyword(call, "clamp").is_some();
    let Some(call) = call.filter(|call| !is_clamped(call)) else { return schema };
    let is_open = |key| call.arguments.find_keyword(key).is_some_and(|it| !super::is_false(&it.value));
    let least = if is_open("min_open") { "exclusiveMinimum" } else { "minimum" };
    let most = if is_open("max_open") { "exclusiveMaximum" } else { "maximum" };
    for (place, word, limit) in [(0, "min", least), (1, "max", most)] {
        let value = keyword(call, word).or_else(|| call.arguments.args.get(place));
        let value = value.and_then(|value| literal(value, module)).filter(Value::is_number);
        schema.extend(value.map(|value| (limit.to_owned(), value)));
    }
    schema
}

fn type_of_value(value: &Value) -> Schema {
    match value {
        Value::Bool(_) => of_type("boolean"),
        Value::Number(number) if number.is_f64() => of_type("number"),
        Value::Number(_) => of_type("integer"),
        _ => of_type("string"),
    }
}
