//! Functions that are no tools, because a decorator says so: `@hostler.resource("notes://{id}")`, `@hostler.prompt`.

use ruff_python_ast::{Arguments, Decorator, Expr, StmtFunctionDef};
use serde_json::Value;

use super::frameworks::server_word;
use super::module::Module;
use crate::config::icon::checked;
use crate::config::origin::{Diagnosis, Setting};
use crate::config::tool::ToolLayer;
use crate::discovery::{Function, Presented, Role, UriTemplate};

/// The rule of `check` about them.
pub(super) const RULE: &str = "role";

/// Whether a decorator makes a function a resource or a prompt.
pub(super) fn is_marked(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    function.decorator_list.iter().any(|decorator| kind_of(module, decorator).is_some())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Resource,
    Prompt,
}

fn kind_of(module: &Module<'_>, decorator: &Decorator) -> Option<Kind> {
    let called = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &call.func);
    let name =
        module.outside_name(called).or_else(|| server_word(module, called).map(|word| format!("hostler.{word}")))?;
    match name.as_str() {
        "hostler.resource" => Some(Kind::Resource),
        "hostler.prompt" => Some(Kind::Prompt),
        _ => None,
    }
}

/// Gives a described function the role of its decorator. Returns whether it can be served; otherwise a warning says why not.
pub(super) fn assign(module: &mut Module<'_>, node: &StmtFunctionDef, function: &mut Function) -> bool {
    let mut found = node.decorator_list.iter().filter_map(|decorator| Some((decorator, kind_of(module, decorator)?)));
    let Some((decorator, kind)) = found.next() else { return true };
    let line = module.lines.of_node(decorator);
    let arguments = decorator.expression.as_call_expr().map(|call| &call.arguments);
    let role = match kind {
        _ if found.next().is_some() => Err(Diagnosis::new("it has two role decorators", "write one function for each")),
        Kind::Resource => resource(arguments, function),
        Kind::Prompt => prompt(arguments).map(Role::Prompt),
    };
    let said = |name| arguments.map_or(Ok(None), |arguments| keyword(arguments, name));
    match role.and_then(|role| Ok((role, said("description")?, said("icon")?.map(checked).transpose()?))) {
        Ok((role, description, icon)) => {
            function.role = role;
            function.declared =
                icon.map(|icon| Box::new(ToolLayer { icon: Some(Setting::declared(icon)), ..ToolLayer::default() }));
            // Clients get contents and messages, which have no schema.
            function.output_schema = None;
            if let Some(text) = description {
                (function.summary, function.description) = (Some(text.clone()), Some(text));
            }
            true
        }
        Err(Diagnosis { what, fix }) => {
            module.warn(line, RULE, format!("`{}` is not served: {what}", function.name), &fix);
            false
        }
    }
}

fn resource(arguments: Option<&Arguments>, function: &Function) -> Result<Role, Diagnosis> {
    let usage = || Diagnosis::new("the decorator needs a URI", "write `@hostler.resource(\"notes://{id}\")`");
    let arguments = arguments.ok_or_else(usage)?;
    let uri = first(arguments, "uri").ok_or_else(usage)?;
    let uri = literal(uri, "URI")?;
    let template = UriTemplate::parse(&uri)?;
    let (parameters, required) = parameters_of(function);
    if let Some(unknown) = template.names().find(|name| !parameters.iter().any(|known| known == name)) {
        let fix = format!("add the parameter `{unknown}`, or correct the URI");
        return Err(Diagnosis::new(format!("`{{{unknown}}}` in its URI is not a parameter"), fix));
    }
    if let Some(missing) = required.iter().find(|name| !template.names().any(|known| known == name.as_str())) {
        let fix = format!("write `{{{missing}}}` in the URI, or give the parameter a default");
        return Err(Diagnosis::new(format!("the parameter `{missing}` is not in its URI"), fix));
    }
    let presented = Presented { name: keyword(arguments, "name")?, title: keyword(arguments, "title")? };
    Ok(Role::Resource { uri, mime_type: keyword(arguments, "mime_type")?, presented })
}

fn prompt(arguments: Option<&Arguments>) -> Result<Presented, Diagnosis> {
    let Some(arguments) = arguments else { return Ok(Presented::default()) };
    let name = first(arguments, "name").map(|name| literal(name, "name")).transpose()?;
    Ok(Presented { name, title: keyword(arguments, "title")? })
}

/// The names of a function's parameters, and of those that must be given.
fn parameters_of(function: &Function) -> (Vec<String>, Vec<String>) {
    let schema = function.input_schema.read();
    let names = |value: Option<&Value>| match value {
        Some(Value::Object(all)) => all.keys().cloned().collect(),
        Some(Value::Array(all)) => all.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    (names(schema.get("properties")), names(schema.get("required")))
}

/// The first argument of a call, by place or by name.
fn first<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a Expr> {
    arguments.args.first().or_else(|| arguments.find_keyword(name).map(|keyword| &keyword.value))
}

fn keyword(arguments: &Arguments, name: &str) -> Result<Option<String>, Diagnosis> {
    arguments.find_keyword(name).map(|keyword| literal(&keyword.value, name)).transpose()
}

/// A string that is known without running the file.
fn literal(value: &Expr, name: &str) -> Result<String, Diagnosis> {
    let what = || format!("its {name} is computed, so it is not known before the file runs");
    let text = value.as_string_literal_expr().ok_or_else(|| Diagnosis::new(what(), "write it as a string"))?;
    Ok(text.value.to_str().to_owned())
}
