//! Functions that a framework makes tools: `@mcp.tool`, `@function_tool("search")`, `StructuredTool.from_function(f)`. The arguments of
//! the decorator or call take precedence over the function. Frameworks are recognised by the words that they share, not one by one:
//! most call their decorator `tool`, and its arguments `name` and `description`.

mod attached;
mod bound;
mod calls;
mod classes;
mod commands;
mod frontmatter;
mod groups;
mod dictionaries;
mod injected;
mod inner;
mod local;
mod loops;
mod low_level;
mod mounts;
mod obstacles;
mod of_instance;
mod offer;
mod passing;
mod registered;
mod runs;
mod servers;
mod single;
mod toolkits;

use std::collections::HashMap;

use ruff_python_ast::{Decorator, Expr, ExprCall, Stmt, StmtFunctionDef};

pub(super) use bound::given_methods;
pub use calls::{Called, Calls, PROGRAM};
pub(super) use classes::{
    Methods, RULE as CLASS_RULE, extends_open_webui, idle_classes, methods, methods_of_class, needed_by_constructor,
};
pub(super) use commands::{CommandKind, arguments_of};
pub(super) use dictionaries::{TOOL_SPEC, arguments_in};
pub(super) use frontmatter::frontmatter;
pub(super) use groups::{GroupIndex, groups_of, words_before};
pub(super) use injected::{is_given_by_framework, is_injected, is_type, takes_from_agno};
pub(super) use inner::{Made, Maker};
use inner::{decorated_by, makers_of_tools};
pub(super) use low_level::{LowLevel, low_level_tools, tools_for_others, written_schema};
pub(super) use mounts::server_of;
use obstacles::required_by;
pub(super) use offer::{Agent, Arguments, Offer, tool_name};
use offer::{NAME, annotations, is_false, read_offer};
use passing::Passing;
pub(super) use runs::runs_a_server;
pub(super) use servers::servers_of;

use super::literals::keyword;
use super::module::{Binding, Module};
use super::names::Named;
use crate::discovery::Given;

/// The last names of decorators and functions that make a tool of a function.
const MAKERS: [&str; 11] = [
    "tool",
    "function_tool",
    "tool_plain",
    "beta_tool",
    "beta_async_tool",
    "ai_function",
    "kernel_function",
    "llm_tool",
    "mcp_tool",
    "register_for_llm",
    "add_tool",
];
/// Classes whose instances are tools, and what makes them of a function.
const CLASSES: [&str; 5] = ["StructuredTool", "FunctionTool", "LongRunningFunctionTool", "Tool", "CrewStructuredTool"];
const CONSTRUCTORS: [&str; 4] = ["from_function", "from_defaults", "from_callable", "from_fn"];
/// What the argument is called that is the function.
const FUNCTION: [&str; 8] = ["func", "fn", "function", "coroutine", "async_fn", "callable", "entrypoint", "f"];
/// Classes whose instances serve MCP, and have decorators for resources and prompts beside that for tools.
const SERVERS: [&str; 2] = ["FastMCP", "MCPServer"];

/// Packages whose own objects make tools, or hold what functions are registered with.
const FRAMEWORKS: [&str; 15] = [
    "fastmcp",
    "mcp",
    "langchain",
    "langchain_core",
    "agents",
    "smolagents",
    "agno",
    "strands",
    "llama_index",
    "autogen_core",
    "crewai",
    "pydantic_ai",
    "anthropic",
    "semantic_kernel",
    "camel",
];

/// Classes of results, which the worker writes as hostler's own content (`frameworks/results.py` of the worker).
const TEXTS: [&str; 2] = ["TextContent", "ToolOutputText"];
const FILES: [&str; 7] =
    ["ImageContent", "AudioContent", "EmbeddedResource", "Image", "Audio", "File", "ToolOutputImage"];
const LINKS: [&str; 1] = ["ResourceLink"];
const WHOLE: [&str; 2] = ["CallToolResult", "ToolResult"];
const PACKAGES_OF_CONTENT: [&str; 5] = ["mcp", "mcp_types", "fastmcp", "agno", "agents"];

/// What a result of a framework's class becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Text,
    File,
    Link,
    /// Anything.
    Any,
}

/// Whether a file imports something that makes tools or agents.
pub(super) fn imports_a_framework(module: &Module<'_>) -> bool {
    module.imports.iter().any(|import| {
        let top = package(import);
        FRAMEWORKS.contains(&top) || registered::AGENTS.contains(&top) || import.starts_with("google.adk")
    })
}

/// Whether a file imports a framework of MCP's servers.
pub(super) fn imports_a_server(module: &Module<'_>) -> bool {
    module.imports.iter().any(|import| matches!(package(import), "mcp" | "mcp_types" | "fastmcp"))
}

/// The functions of a file that frameworks make tools, by the place of their `def`.
#[derive(Debug, Default)]
pub(super) struct Offers<'a> {
    tools: HashMap<usize, Offer<'a>>,
    /// The functions that make further ones when they are called.
    pub(super) makers: Vec<Maker<'a>>,
    /// The functions of other files that it makes tools.
    pub(super) given: Vec<Given>,
    /// Whether the file gives functions to a server, in a function or of other files.
    gives: bool,
    /// Calls that give a server something that cannot be resolved by reading the file, and what they give.
    pub(super) unread: Vec<(&'a ExprCall, &'a Expr)>,
    /// Calls that make a tool of something that is no function of the file, and what that is.
    pub(super) unmade: Vec<(&'a ExprCall, &'a Expr)>,
    /// The functions that a low-level server is given to list and to call tools.
    given_handlers: Option<(&'a StmtFunctionDef, &'a StmtFunctionDef)>,
    /// Whether the file marks what it offers: a function without a mark is then none of it.
    pub(super) are_marked: bool,
}

impl<'a> Offers<'a> {
    /// The offers of a module whose names are known.
    pub(super) fn of(module: &Module<'a>, body: &'a [Stmt]) -> Self {
        let makers = makers_of_tools(module, body);
        let mut found = Self { are_marked: !makers.is_empty(), makers, ..Self::default() };
        let functions = module.functions();
        let passing = Passing::of(module, &functions);
        for function in functions {
            let mut decorators = function.decorator_list.iter();
            let offer =
                |decorator| offer_of_decorator(module, decorator).or_else(|| passing.offer_of(module, decorator));
            if let Some(offer) = decorators.find_map(offer) {
                found.are_marked = true;
                let is_maker = found.makers.iter().any(|maker| std::ptr::eq(maker.function, function));
                let is_program = || offer.command.is_some() && runs_a_server(module, &found.makers, function);
                if !is_maker && !is_program() {
                    found.tools.insert(place(function), offer);
                }
            }
            found.are_marked |= has_server_decorator(module, function, &SERVERS, &["resource", "prompt"])
                || has_server_decorator(module, function, low_level::SERVER, &["list_tools", "call_tool"]);
        }
        found.given_handlers = low_level::given_handlers(module, body);
        found.are_marked |= found.given_handlers.is_some();
        for call in module.calls.iter().chain(&module.calls_of_program) {
            if let Some((function, offer)) = commands::offer_of_call(module, call) {
                found.tools.entry(place(function)).or_insert(offer);
            }
        }
        for call in &module.calls {
            let inside = listed_tools(module, call).iter();
            let listed =
                inside.clone().filter_map(|one| Some((function_named(module, one)?, listed_offer(module, call))));
            let made = inside.filter_map(Expr::as_call_expr).chain([*call]);
            found.unmade.extend(made.clone().filter_map(|call| Some((call, unmade(module, call)?))));
            for (function, offer) in made.filter_map(|call| offer_of_call(module, call)).chain(listed) {
                found.tools.entry(place(function)).or_insert(offer);
            }
        }
        if let Some((function, offer)) = dictionaries::described_by_spec(module) {
            found.tools.entry(place(function)).or_insert(offer);
        }
        let registered = registered::registered(module, body);
        (found.given, found.gives) = (registered.given, registered.gives);
        found.unread = registered.unread;
        found.unread.retain(|(call, _)| !passing.has(call));
        for (function, offer) in registered.found {
            found.tools.entry(place(function)).or_insert(offer);
        }
        // An agent is also given tools of packages.
        let is_given = found.gives && found.given.iter().any(|given| given.bound.is_none());
        found.are_marked |= !found.tools.is_empty() || is_given || !found.unmade.is_empty();
        found
    }

    pub(super) fn get(&self, function: &StmtFunctionDef) -> Option<&Offer<'a>> {
        self.tools.get(&place(function))
    }
}

/// Whether a class makes servers of MCP, by its full name. Others than the SDK have a decorator that is called `MCPServer`.
pub(super) fn is_server_class(full: &str) -> bool {
    let is_foreign = || FRAMEWORKS.contains(&package(full)) && !["fastmcp", "mcp"].contains(&package(full));
    SERVERS.contains(&last_name(full)) && !is_foreign()
}

/// Whether something of a framework makes tools, by its full name.
pub(super) fn makes_tools(full: &str) -> bool {
    let word = last_name(full);
    MAKERS.contains(&word) || CLASSES.contains(&word) || SERVERS.contains(&word)
}

/// Whether a decorator makes a tool of its function and leaves what the function returns.
pub(super) fn is_maker(module: &Module<'_>, decorator: &Expr) -> bool {
    maker(module, decorator.as_call_expr().map_or(decorator, |call| &call.func)).is_some()
}

/// The word `resource` or `prompt` of a decorator of an MCP server: `@mcp.resource("notes://{id}")`.
pub(super) fn server_word<'e>(module: &Module<'_>, called: &'e Expr) -> Option<&'e str> {
    word_of_server(module, called, &SERVERS)
}

/// `resource` of a decorator `mcp.resource`, where `mcp` is an instance of one of these classes.
fn word_of_server<'e>(module: &Module<'_>, called: &'e Expr, classes: &[&str]) -> Option<&'e str> {
    let attribute = called.as_attribute_expr()?;
    let Named::Value { value, .. } = module.resolve(&attribute.value) else { return None };
    let class = word_of(module, &value.as_call_expr()?.func)?;
    classes.contains(&class.as_str()).then_some(attribute.attr.as_str())
}

/// What the worker makes of results of a class, by its full name.
pub(super) fn content(full: &str) -> Option<Content> {
    if !PACKAGES_OF_CONTENT.contains(&package(full)) {
        return None;
    }
    let forms: [(&[&str], Content); 4] =
        [(&TEXTS, Content::Text), (&FILES, Content::File), (&LINKS, Content::Link), (&WHOLE, Content::Any)];
    forms.iter().find(|(words, _)| words.contains(&last_name(full))).map(|(_, content)| *content)
}

/// Whether a function has a decorator with one of these words, of an instance of one of these classes.
fn has_server_decorator(module: &Module<'_>, function: &StmtFunctionDef, classes: &[&str], words: &[&str]) -> bool {
    function.decorator_list.iter().any(|decorator| {
        let called = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &*call.func);
        word_of_server(module, called, classes).is_some_and(|word| words.contains(&word))
    })
}

/// What a server or an agent is given: `FastMCP(tools=[search, Tool.from_function(count)])`, `Agent("…", tools=[search])`,
/// `create_agent(model, TOOLS)`, `ToolNode([search])`, `model.bind_tools(TOOLS)`
fn listed_tools<'a>(module: &Module<'a>, call: &'a ExprCall) -> &'a [Expr] {
    let arguments = &call.arguments.args;
    let full = module.outside_name(&call.func);
    let word = full.as_deref().map(last_name).unwrap_or_default();
    let binds = || call.func.as_attribute_expr().is_some_and(|method| method.attr.as_str() == "bind_tools");
    let by_place = match word {
        "ToolNode" => arguments.first(),
        _ if word.starts_with("create_") => arguments.get(1),
        _ if binds() => arguments.first(),
        _ => None,
    };
    let takes_tools = || {
        SERVERS.contains(&word)
            || full.as_deref().is_some_and(is_agent)
            || ["ToolNode", "FunctionToolset"].contains(&word)
            || binds()
    };
    let Some(list) = keyword(call, "tools").or(by_place).filter(|_| takes_tools()) else { return &[] };
    let list = match list {
        Expr::Name(name) => fixed(module, &name.id).filter(|list| are_named(module, list)).unwrap_or(list),
        _ => list,
    };
    list.as_list_expr().map_or(&[], |list| &list.elts)
}

/// The tools that a file gives agents and that are of other files: the call, what the file calls each, and its full name or that of its
/// class.
pub(super) fn foreign_tools<'a>(module: &Module<'a>) -> Vec<(&'a ExprCall, String, String)> {
    let calls = module.calls.iter().chain(&module.calls_of_program);
    let given = calls.flat_map(|call| listed_tools(module, call).iter().map(move |tool| (*call, tool)));
    let foreign = |(call, tool): (&'a ExprCall, &'a Expr)| {
        let (value, name) = match module.resolve(tool) {
            Named::Value { value, name, .. } => (value, Some(name.to_owned())),
            _ => (tool, None),
        };
        let full = module.outside_name(value.as_call_expr().map_or(value, |made| &made.func))?;
        let name = name.unwrap_or_else(|| last_name(&full).to_owned());
        (!full.starts_with("builtins.")).then_some((call, name, full))
    };
    given.filter_map(foreign).collect()
}

/// What makes a server whose tools are those of a document or of another server: `FastMCP.from_openapi(…)`
pub(super) fn server_of_document<'a>(module: &Module<'a>) -> Option<(&'a ExprCall, String)> {
    const BY: [&str; 4] = ["from_openapi", "from_fastapi", "as_proxy", "create_proxy"];
    module.calls.iter().chain(&module.calls_of_program).find_map(|call| {
        let full = module.outside_name(&call.func).filter(|full| package(full) == "fastmcp")?;
        let by = last_name(&full);
        let class = full.rsplit('.').nth(1).filter(|class| SERVERS.contains(class)).map(|class| format!("{class}."));
        BY.contains(&by).then(|| (*call, class.unwrap_or_default() + by))
    })
}

/// What a name is bound to for good: a list or dictionary that nothing changes.
fn fixed<'a>(module: &Module<'a>, name: &str) -> Option<&'a Expr> {
    let is_changed = module.changed.as_ref().is_none_or(|changed| changed.contains(name));
    match module.bindings.get(name)? {
        Binding::Value(value) if !is_changed => Some(value),
        _ => None,
    }
}

/// Whether every item of a list is a function of the file or something from another one.
fn are_named(module: &Module<'_>, list: &Expr) -> bool {
    let is_named = |item: &Expr| function_named(module, item).is_some() || module.outside_name(item).is_some();
    list.as_list_expr().is_some_and(|list| list.elts.iter().all(is_named))
}

/// What is known of a function that an agent or a server is given in a list.
fn listed_offer<'a>(module: &Module<'a>, call: &ExprCall) -> Offer<'a> {
    let is_of_agno = module.outside_name(&call.func).is_some_and(|full| package(&full) == "agno");
    Offer { agent: is_of_agno.then_some(Agent::Agno), ..Offer::default() }
}

/// Whether a class or function makes agents, by its full name: `agno.agent.Agent`, `langgraph.prebuilt.create_react_agent`
pub(super) fn is_agent(full: &str) -> bool {
    let word = last_name(full);
    !full.starts_with("builtins.")
        && (word.ends_with("Agent") || word.starts_with("create_") && word.ends_with("_agent"))
}

fn place(function: &StmtFunctionDef) -> usize {
    function.range.start().to_usize()
}

fn offer_of_decorator<'a>(module: &Module<'a>, decorator: &'a Decorator) -> Option<Offer<'a>> {
    if let Some(offer) = commands::offer_of(module, &decorator.expression) {
        return Some(offer);
    }
    let call = decorator.expression.as_call_expr();
    maker(module, call.map_or(&decorator.expression, |call| &call.func))?;
    Some(call.map_or_else(Offer::default, |call| {
        let offer = read_offer(module, call);
        if dictionaries::is_of_claude(module, call) { dictionaries::offer_of(call, offer) } else { offer }
    }))
}

/// `mcp.add_tool(f)`, `mcp.tool(name="x")(f)`, `StructuredTool.from_function(f, name="x")`, `Tool("x", f, "…")`
fn offer_of_call<'a>(module: &Module<'a>, call: &'a ExprCall) -> Option<(&'a StmtFunctionDef, Offer<'a>)> {
    // `mcp.add_tool(Tool.from_function(f))`
    let inner = || call.arguments.args.first().and_then(Expr::as_call_expr);
    if maker(module, &call.func).is_some()
        && let Some(made) = inner().filter(|made| is_class(module, &made.func))
    {
        return Some((function_in(module, made)?, read_offer(module, made)));
    }
    let function = || function_in(module, call);
    if let Some(inner) = call.func.as_call_expr() {
        maker(module, &inner.func)?;
        return Some((function()?, read_offer(module, inner)));
    }
    let makes_one = maker(module, &call.func).is_some() || is_class(module, &call.func);
    makes_one.then(|| Some((function()?, read_offer(module, call))))?
}

/// What a framework's class makes a tool of, if that is no function of this file or of another one: `Tool("up", str.upper, "…")`.
fn unmade<'a>(module: &Module<'a>, call: &'a ExprCall) -> Option<&'a Expr> {
    const OF_REQUESTS: &str = "on_invoke_tool"; // takes the arguments as text
    let top = module.outside_name(&call.func).map(|full| package(&full).to_owned())?;
    if !is_class(module, &call.func) || !top.starts_with("langchain") && top != "agents" {
        return None;
    }
    if let Some(value) = keyword(call, OF_REQUESTS) {
        return Some(value);
    }
    let is_constructor =
        call.func.as_attribute_expr().is_some_and(|method| CONSTRUCTORS.contains(&method.attr.as_str()));
    let by_place = call.arguments.args.get(usize::from(!is_constructor));
    let mut given = ["func", "coroutine"].iter().filter_map(|name| keyword(call, name)).chain(by_place);
    let given = given.find(|value| !value.is_none_literal_expr() && !value.is_string_literal_expr())?;
    let named = match module.resolve(given) {
        Named::Value { value, .. } if value.is_name_expr() || value.is_attribute_expr() => module.resolve(value),
        named => named,
    };
    let is_elsewhere = matches!(named, Named::Outside(full) if !full.starts_with("builtins."));
    (function_in(module, call).is_none() && !is_elsewhere).then_some(given)
}

/// `StructuredTool.from_function`, `FunctionTool`
fn is_class(module: &Module<'_>, called: &Expr) -> bool {
    let class = match called.as_attribute_expr() {
        Some(method) if CONSTRUCTORS.contains(&method.attr.as_str()) => &method.value,
        _ => called,
    };
    module.outside_name(class).is_some_and(|full| CLASSES.contains(&last_name(&full)))
}

/// The word by which a decorator or a function makes tools, unless this file defines it.
fn maker(module: &Module<'_>, called: &Expr) -> Option<String> {
    // A toolset of Pydantic AI, `tools.add_function(search)`: others have methods of this name, too.
    let is_of_toolset =
        |word: &str| word == "add_function" && module.imports.iter().any(|it| package(it) == "pydantic_ai");
    word_of(module, called).filter(|word| MAKERS.contains(&word.as_str()) || is_of_toolset(word))
}

/// The last name of something that is not of this file.
fn word_of(module: &Module<'_>, expression: &Expr) -> Option<String> {
    match module.resolve(expression) {
        Named::Outside(full) if full.starts_with("builtins.") && module.star_imports.is_empty() => None,
        Named::Outside(full) => Some(last_name(&full).to_owned()),
        Named::Class(_) => None,
        Named::Value { .. } | Named::Nothing => expression.as_attribute_expr().map(|it| it.attr.to_string()),
    }
}

/// `tool` of `langchain_core.tools.tool`
pub(super) fn last_name(full: &str) -> &str {
    full.rsplit('.').next().unwrap_or_default()
}

/// `langchain_core` of `langchain_core.tools.tool`
pub(super) fn package(full: &str) -> &str {
    full.split('.').next().unwrap_or_default()
}

/// The function of this file among the arguments of a call.
fn function_in<'a>(module: &Module<'a>, call: &'a ExprCall) -> Option<&'a StmtFunctionDef> {
    let named = FUNCTION.iter().filter_map(|name| keyword(call, name));
    call.arguments.args.iter().chain(named).find_map(|value| function_named(module, value))
}

fn function_named<'a>(module: &Module<'a>, value: &Expr) -> Option<&'a StmtFunctionDef> {
    match module.bindings.get(value.as_name_expr()?.id.as_str())? {
        Binding::Function(function) => Some(function),
        _ => None,
    }
}

pub(super) fn text(value: &Expr) -> Option<&str> {
    value.as_string_literal_expr().map(|literal| literal.value.to_str())
}
