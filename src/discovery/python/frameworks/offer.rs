//! What a decorator or a call says of the tool that it makes: its name, its description, its hints, what declares its arguments.

use ruff_python_ast::{Expr, ExprCall};
use serde_json::Map;

use super::dictionaries::member;
use super::{CommandKind, function_named, text};
use crate::config::origin::Setting;
use crate::config::tool::{Effects, ToolLayer};
use crate::discovery::python::literals::{keyword, literal};
use crate::discovery::python::module::Module;
use crate::discovery::python::names::Named;
use crate::discovery::{Function, Given, JsonSchema, Role, ToolHints};
use crate::pep723::nearest_identifier;
use crate::words::first_paragraph;

pub(super) const NAME: [&str; 2] = ["name", "name_override"];
const DESCRIPTION: [&str; 2] = ["description", "description_override"];
const APPROVAL: [&str; 3] = ["needs_approval", "requires_confirmation", "requires_approval"];
const ENABLED: [&str; 2] = ["enabled", "is_enabled"];

/// The arguments of a decorator or call that makes one tool.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::discovery::python) struct Offer<'a> {
    pub(in crate::discovery::python) name: Option<&'a str>,
    pub(super) description: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    pub(super) annotations: Option<&'a Expr>,
    /// Whether a person has to approve each call.
    pub(super) needs_approval: bool,
    /// Whether its author has switched it off.
    pub(in crate::discovery::python) is_off: bool,
    /// Parameters that callers do not see.
    pub(super) excluded: Option<&'a Expr>,
    /// Whether the framework makes something else of what the function returns.
    pub(in crate::discovery::python) remakes_result: bool,
    /// Which kind of command it is, if it is one.
    pub(in crate::discovery::python) command: Option<CommandKind>,
    pub(in crate::discovery::python) arguments: Arguments<'a>,
    /// Whether an agent of agno is given the function itself.
    pub(in crate::discovery::python) agent: Option<Agent>,
}

/// An agent that gives parameters by name to the functions that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::discovery::python) enum Agent {
    Agno,
}

/// What declares the arguments of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::discovery::python) enum Arguments<'a> {
    #[default]
    Parameters,
    /// The fields of a class, `args_schema=Search`, or a schema.
    Declared(&'a Expr),
    /// The function takes all of them as one dictionary, which is declared by types, a schema or a class.
    Dictionary(Option<&'a Expr>),
    /// The same, within a request.
    Request(Option<&'a Expr>),
}

impl Offer<'_> {
    /// Whether callers do not see a parameter.
    pub(in crate::discovery::python) fn hides(&self, name: &str) -> bool {
        let listed = self.excluded.and_then(Expr::as_list_expr);
        listed.is_some_and(|list| list.elts.iter().filter_map(text).any(|other| other == name))
    }

    /// What it says of a function of another file.
    pub(super) fn given(&self, module: &Module<'_>, target: String, bound: Option<&str>) -> Given {
        let mut said = Function {
            name: String::new(),
            symbol: None,
            input_schema: JsonSchema::of(&Map::new()),
            output_schema: None,
            is_async: false,
            line: 0,
            served_as: None,
            wanted: None,
            summary: None,
            description: None,
            role: Role::Tool,
            declared: None,
            hints: None,
            defined_in: None,
            server: None,
        };
        self.apply(module, &mut said);
        let description = said.description.is_some().then_some((said.summary, said.description));
        let name = Some(said.name).filter(|name| !name.is_empty());
        let bound = bound.map(str::to_owned);
        Given { target, bound, name, description, hints: said.hints, declared: said.declared }
    }

    /// Applies the arguments to a described function.
    pub(in crate::discovery::python) fn apply(&self, module: &Module<'_>, function: &mut Function) {
        if let Some(name) = self.name.map(tool_name)
            && name != function.name
        {
            function.symbol = Some(std::mem::replace(&mut function.name, name));
        }
        if let Some(text) = self.description {
            (function.summary, function.description) = (Some(first_paragraph(text)), Some(text.trim().to_owned()));
        }
        let (mut hints, effects) = self.annotations.map(|written| annotations(module, written)).unwrap_or_default();
        hints.title = self.title.map(str::to_owned).or(hints.title);
        function.hints = hints.if_any();
        if effects.is_some() || self.needs_approval {
            let mut declared = ToolLayer { effects: effects.map(Setting::declared), ..ToolLayer::default() };
            declared.policy.requires_approval = self.needs_approval.then(|| Setting::declared(true));
            function.declared = Some(Box::new(declared));
        }
    }
}

/// Reads the arguments of a decorator or a call. The first positional string is the tool's name, unless the function precedes it, as in
/// `FunctionTool(f, "…")`; the next one is its description. LangChain's `Tool.from_function(f, "name", "…")` has the name there.
pub(super) fn read_offer<'a>(module: &Module<'a>, call: &'a ExprCall) -> Offer<'a> {
    let named = |names: &[&str]| names.iter().find_map(|name| text(keyword(call, name)?));
    let mut offer = Offer {
        name: named(&NAME),
        description: named(&DESCRIPTION),
        title: named(&["title"]),
        annotations: keyword(call, "annotations"),
        needs_approval: APPROVAL.iter().any(|name| keyword(call, name).is_some_and(|value| !is_false(value))),
        is_off: ENABLED.iter().any(|name| keyword(call, name).is_some_and(is_false)),
        excluded: keyword(call, "exclude_args"),
        remakes_result: keyword(call, "response_format").is_some(),
        arguments: declared_arguments(call).map_or(Arguments::Parameters, Arguments::Declared),
        ..Offer::default()
    };
    let mut is_name = true;
    let is_of_langchain = module.outside_name(&call.func).is_some_and(|full| full.starts_with("langchain"));
    for argument in &call.arguments.args {
        match text(argument) {
            Some(text) if is_name => drop(offer.name.get_or_insert(text)),
            Some(text) => drop(offer.description.get_or_insert(text)),
            None if function_named(module, argument).is_some() => {}
            None => break,
        }
        is_name &= is_of_langchain && text(argument).is_none();
    }
    offer
}

/// LangChain's `args_schema=Search`, and `inputSchema={"json": {…}}` of Strands.
fn declared_arguments(call: &ExprCall) -> Option<&Expr> {
    keyword(call, "args_schema").or_else(|| {
        let schema = keyword(call, "inputSchema")?;
        Some(schema.as_dict_expr().and_then(|schema| member(schema, "json")).unwrap_or(schema))
    })
}

/// The name that is served for one that a framework was given, which may be any text.
pub(in crate::discovery::python) fn tool_name(given: &str) -> String {
    nearest_identifier(given.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
}

pub(super) fn is_false(value: &Expr) -> bool {
    value.as_boolean_literal_expr().is_some_and(|literal| !literal.value)
}

/// The hints of MCP, as a dictionary or as `ToolAnnotations(…)`, and the effects that they mean. Those that are computed are not read.
pub(super) fn annotations(module: &Module<'_>, written: &Expr) -> (ToolHints, Option<Effects>) {
    let written = match module.resolve(written) {
        Named::Value { value, is_alias: false, .. } => value,
        _ => written,
    };
    let mut said = Map::new();
    match written {
        Expr::Call(call) => {
            let keywords = call.arguments.keywords.iter();
            said.extend(keywords.filter_map(|one| Some((one.arg.as_ref()?.to_string(), literal(&one.value, module)?))));
        }
        Expr::Dict(dictionary) => said.extend(dictionary.items.iter().filter_map(|item| {
            let key = item.key.as_ref()?.as_string_literal_expr()?.value.to_str();
            Some((key.to_owned(), literal(&item.value, module)?))
        })),
        _ => {}
    }
    ToolHints::of_annotations(&said)
}
