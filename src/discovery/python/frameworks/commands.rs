//! Commands of click and typer: a function whose decorators say how a shell calls it. Its options and arguments become the tool's
//! arguments, and what it prints the result.

use ruff_python_ast::{Expr, ExprCall, StmtFunctionDef};
use serde_json::{Map, Value, json};

use super::{Offer, last_name, package};
use crate::discovery::python::fields::{keyword, literal};
use crate::discovery::python::module::{Module, Named};
use crate::discovery::python::schema::{Schema, of_type};

/// What a decorator is told that makes a function a command.
pub(super) fn offer_of<'a>(module: &Module<'a>, decorator: &'a Expr) -> Option<Offer<'a>> {
    let call = decorator.as_call_expr();
    let package = package_of_command(module, call.map_or(decorator, |call| &call.func))?;
    let name = call.and_then(|call| call.arguments.args.first().or_else(|| keyword(call, "name")));
    Some(Offer {
        name: name.and_then(super::text),
        description: call.and_then(|call| keyword(call, "help")).and_then(super::text),
        remakes_result: true,
        is_of_click: package == Package::Click,
        ..Offer::default()
    })
}

#[derive(PartialEq)]
enum Package {
    /// Decorators declare the arguments.
    Click,
    /// The function's parameters declare them.
    Typer,
}

/// `click.command`, `app.command` of a typer application, `cli.command` of a function that is a group.
fn package_of_command(module: &Module<'_>, called: &Expr) -> Option<Package> {
    if let Named::Outside(full) = module.resolve(called) {
        return is_of_click(&full, "command").then_some(Package::Click);
    }
    let attribute = called.as_attribute_expr().filter(|it| it.attr.as_str() == "command")?;
    if let Named::Value { value, .. } = module.resolve(&attribute.value) {
        let made = module.outside_name(&value.as_call_expr()?.func)?;
        return match made.as_str() {
            "typer.Typer" => Some(Package::Typer),
            full => is_of_click(full, "Group").then_some(Package::Click),
        };
    }
    let group = super::function_named(module, &attribute.value)?;
    is_group(module, group).then_some(Package::Click)
}

fn is_of_click(full: &str, word: &str) -> bool {
    matches!(package(full), "click" | "rich_click") && last_name(full) == word
}

fn is_group(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    function.decorator_list.iter().any(|decorator| {
        let called = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &*call.func);
        let is_nested = called.as_attribute_expr().is_some_and(|it| it.attr.as_str() == "group");
        module.outside_name(called).map_or(is_nested, |full| is_of_click(&full, "group"))
    })
}

/// The schema of a click command's arguments.
pub(in crate::discovery::python) fn arguments_of(module: &Module<'_>, function: &StmtFunctionDef) -> Schema {
    let mut parameters = Vec::new();
    let mut is_complete = true;
    for decorator in &function.decorator_list {
        let called = decorator.expression.as_call_expr();
        match called.and_then(|call| parameter(module, call)) {
            Some(parameter) => parameters.push(parameter),
            None => is_complete &= adds_nothing(module, &decorator.expression),
        }
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

/// Whether a decorator adds no parameter: the command's own, and those that pass an object on.
fn adds_nothing(module: &Module<'_>, decorator: &Expr) -> bool {
    let called = decorator.as_call_expr().map_or(decorator, |call| &call.func);
    package_of_command(module, called).is_some()
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
    let name = name_of_parameter(call).or_else(|| (is_confirmation || is_password).then(|| usual.to_owned()))?;
    let says = |key: &str| keyword(call, key).and_then(|value| literal(value, module));
    let default = says("default").filter(|value| !value.is_null());
    let mut schema = match keyword(call, "type") {
        _ if is_confirmation || says("is_flag") == Some(Value::Bool(true)) && says("flag_value").is_none() => {
            of_type("boolean")
        }
        _ if has_two_words(call) => of_type("boolean"),
        _ if says("count") == Some(Value::Bool(true)) => of_type("integer"),
        Some(kind) => type_of(module, kind),
        None => default.as_ref().map_or_else(|| of_type("string"), type_of_value),
    };
    let several = says("nargs").and_then(|count| count.as_i64()).is_some_and(|count| count != 1);
    if says("multiple") == Some(Value::Bool(true)) || several {
        let mut list = of_type("array");
        list.insert("items".to_owned(), Value::Object(schema));
        schema = list;
    }
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

/// A name without dashes, else the longest one of those with dashes.
fn name_of_parameter(call: &ExprCall) -> Option<String> {
    let texts: Vec<&str> = call.arguments.args.iter().filter_map(super::text).collect();
    let plain = texts.iter().find(|text| !text.starts_with('-') && !text.contains('/'));
    let longest = || texts.iter().filter(|text| text.starts_with("--")).max_by_key(|text| text.len()).or(texts.first());
    let name = plain.or_else(longest)?.split('/').next()?;
    let name = name.trim().trim_start_matches('-').replace('-', "_").to_lowercase();
    (!name.is_empty()).then_some(name)
}

/// `--shout/--no-shout`
fn has_two_words(call: &ExprCall) -> bool {
    call.arguments.args.iter().filter_map(super::text).any(|text| text.starts_with('-') && text.contains("/-"))
}

fn type_of(module: &Module<'_>, kind: &Expr) -> Schema {
    let called = kind.as_call_expr();
    let full = module.outside_name(called.map_or(kind, |call| &call.func)).unwrap_or_default();
    match full.rsplit('.').next().unwrap_or_default() {
        "int" | "INT" | "IntRange" => with_range(module, called, of_type("integer")),
        "float" | "FLOAT" | "FloatRange" => with_range(module, called, of_type("number")),
        "bool" | "BOOL" => of_type("boolean"),
        "Choice" => {
            let choices = called.and_then(|call| call.arguments.args.first()).and_then(|list| literal(list, module));
            let mut schema = of_type("string");
            schema.extend(choices.filter(Value::is_array).map(|choices| ("enum".to_owned(), choices)));
            schema
        }
        "UUID" => {
            let mut schema = of_type("string");
            schema.insert("format".to_owned(), "uuid".into());
            schema
        }
        _ => of_type("string"),
    }
}

fn with_range(module: &Module<'_>, call: Option<&ExprCall>, mut schema: Schema) -> Schema {
    let Some(call) = call else { return schema };
    for (place, word, limit) in [(0, "min", "minimum"), (1, "max", "maximum")] {
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
