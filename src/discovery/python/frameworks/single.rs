//! Classes that are one tool, which their attributes describe: `BaseTool` of LangChain and CrewAI, `Tool` of smolagents.

use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};
use serde_json::{Map, Value, json};

use super::classes::{all_methods, has_decorator, own_methods};
use super::{Arguments, Offer, text};
use crate::discovery::python::literals::literal;
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::public::Served;
use crate::discovery::python::schema::{Schema, of_type};

/// Whether a class has what a tool of LangChain or CrewAI has, whose base may be that of another file.
pub(super) fn is_tool_by_its_form(class: &StmtClassDef) -> bool {
    own_methods(class).any(|method| ["_run", "_arun"].contains(&method.name.as_str()))
        && ["name", "description"].into_iter().all(|name| attribute(class, name).is_some())
}

/// The first field without a default of a class that is one tool, as LangChain's and CrewAI's are.
pub(super) fn needed_field<'a>(module: &Module<'a>, class: &'a StmtClassDef) -> Option<&'a str> {
    if all_methods(module, class).iter().any(|method| method.name.as_str() == "__init__") {
        return None;
    }
    let ancestry = module.ancestry(class);
    let fields = ancestry.classes.iter().flat_map(|class| &class.body).filter_map(Stmt::as_ann_assign_stmt);
    let is_field = |annotation: &Expr| {
        let name = annotation.as_subscript_expr().map_or(annotation, |of| &of.value);
        let name = name.as_attribute_expr().map(|it| it.attr.as_str()).or(name_of(name));
        name != Some("ClassVar")
    };
    let fills = |method: &&StmtFunctionDef| has_decorator(method, &["root_validator", "model_validator"]);
    if all_methods(module, class).iter().any(fills) {
        return None;
    }
    let given = |name: &str| ancestry.classes.iter().any(|class| attribute(class, name).is_some());
    let mut needed = fields
        .filter(|field| field.value.is_none() && is_field(&field.annotation))
        .filter_map(|field| name_of(&field.target));
    needed.find(|name| !name.starts_with('_') && !given(name) && !["name", "description"].contains(name))
}

/// A class that is one tool. Its attributes give its name and its arguments.
pub(super) fn one<'a>(
    module: &Module<'a>,
    class: &'a StmtClassDef,
    holder: &str,
    run: &'a StmtFunctionDef,
) -> Served<'a> {
    let ancestry = module.ancestry(class);
    let attribute = |name: &str| ancestry.classes.iter().rev().find_map(|class| attribute(class, name));
    let offer = Offer {
        name: attribute("name").and_then(text).filter(|name| !name.is_empty()).or(Some(class.name.as_str())),
        description: attribute("description").and_then(text),
        remakes_result: attribute("response_format").is_some(),
        arguments: attribute("args_schema").map_or(Arguments::Parameters, Arguments::Declared),
        ..Offer::default()
    };
    let arguments =
        attribute("inputs").and_then(|inputs| literal(inputs, module)).and_then(|inputs| inputs_of(&inputs));
    Served {
        function: run,
        symbol: Some(holder.to_owned()),
        offer,
        is_bound: true,
        is_of_framework: true,
        is_of_agno: false,
        arguments,
        groups: Vec::new(),
    }
}

/// `name = "x"`, `name: str = "x"`
pub(super) fn attribute<'a>(class: &'a StmtClassDef, wanted: &str) -> Option<&'a Expr> {
    class.body.iter().find_map(|statement| match statement {
        Stmt::Assign(assign) if assign.targets.iter().any(|target| name_of(target) == Some(wanted)) => {
            Some(&*assign.value)
        }
        Stmt::AnnAssign(assign) if name_of(&assign.target) == Some(wanted) => assign.value.as_deref(),
        _ => None,
    })
}

/// smolagents' `inputs`: by name a type, a description, and perhaps `nullable`.
fn inputs_of(inputs: &Value) -> Option<Schema> {
    const TYPES: [&str; 7] = ["string", "boolean", "integer", "number", "array", "object", "null"];
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, about) in inputs.as_object()? {
        let kind = about.get("type").and_then(Value::as_str).filter(|kind| TYPES.contains(kind));
        let mut property = kind.map(of_type).unwrap_or_default();
        if about.get("nullable") == Some(&Value::Bool(true)) {
            property.extend(kind.map(|kind| ("type".to_owned(), json!([kind, "null"]))));
        } else {
            required.push(Value::String(name.clone()));
        }
        property.extend(
            ["description", "enum", "items"]
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), about.get(*key)?.clone()))),
        );
        properties.insert(name.clone(), Value::Object(property));
    }
    let mut schema = of_type("object");
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    Some(schema)
}
