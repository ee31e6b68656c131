//! Which functions and methods of a module are tools.

use std::collections::HashSet;

use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};

use super::entries::Entries;
use super::frameworks::{
    Agent, Arguments, CLASS_RULE, CommandKind, LowLevel, Made, Maker, Methods, Offer, TOOL_SPEC, arguments_in,
    arguments_of, given_methods, groups_of, methods, takes_from_agno, text,
};
use super::literals::keyword;
use super::module::{Binding, Module, name_of};
use super::names::join;
use super::roles::is_marked;
use super::schema::Schema;
use super::syntax::Lines;
use crate::config::origin::Diagnosis;
use crate::discovery::exported::{EXPORTS, names as names_in_all};
use crate::discovery::function::BY_AGNO;
use crate::discovery::several::Waiting;
use crate::discovery::{Exported, is_standard};
use crate::pep723::is_identifier;

/// The public names of a module.
#[derive(Default)]
pub(super) struct Exports<'a> {
    names: Option<Vec<(&'a str, usize)>>,
    /// The line of a part that is computed, and therefore unknown.
    computed: Option<usize>,
}

impl<'a> Exports<'a> {
    /// The names, where there is an `__all__`.
    pub(super) fn named(&self) -> Option<Vec<String>> {
        self.names.as_ref().map(|names| names.iter().map(|(name, _)| (*name).to_owned()).collect())
    }

    /// `__all__ = …`
    pub(super) fn set(&mut self, value: &'a Expr, lines: &Lines) {
        *self = Self::default();
        if literal_names(value).is_some() {
            self.names = Some(Vec::new());
        }
        self.add(value, lines);
    }

    /// `__all__ += …`
    pub(super) fn add(&mut self, value: &'a Expr, lines: &Lines) {
        match literal_names(value) {
            Some(added) => {
                let added = added.into_iter().map(|(node, name)| (name, lines.of_node(node)));
                self.names.get_or_insert_default().extend(added);
            }
            None => self.computed = Some(lines.of_node(value)),
        }
    }

    /// `__all__.append("x")`, `__all__.extend(["x"])`
    pub(super) fn call(&mut self, expression: &'a Expr, lines: &Lines) {
        let Some(call) = expression.as_call_expr() else { return };
        let Some(method) = call.func.as_attribute_expr().filter(|it| name_of(&it.value) == Some("__all__")) else {
            return;
        };
        match (method.attr.as_str(), &*call.arguments.args) {
            ("extend", [value]) => self.add(value, lines),
            ("append", [Expr::StringLiteral(name)]) => {
                self.names.get_or_insert_default().push((name.value.to_str(), lines.of_node(name)));
            }
            _ => self.computed = Some(lines.of_node(call)),
        }
    }
}

fn literal_names(value: &Expr) -> Option<Vec<(&Expr, &str)>> {
    let items = match value {
        Expr::List(list) => &list.elts,
        Expr::Tuple(tuple) => &tuple.elts,
        _ => return None,
    };
    items.iter().map(|item| Some((item, item.as_string_literal_expr()?.value.to_str()))).collect()
}

/// A function or method that is a tool, and what says so.
#[derive(Debug)]
pub(super) struct Served<'a> {
    pub function: &'a StmtFunctionDef,
    /// What the worker knows it by, where that is not the function's name.
    pub symbol: Option<String>,
    pub offer: Offer<'a>,
    /// Whether its first parameter is the instance or the class.
    pub is_bound: bool,
    /// Whether a framework says that it is a tool.
    pub is_of_framework: bool,
    /// Whether it is of a toolkit of agno, which gives some parameters by name.
    pub is_of_agno: bool,
    /// Its arguments, where a class declares them apart from the function.
    pub arguments: Option<Schema>,
    /// Functions whose parameters are arguments, too: the callbacks above a command of typer.
    pub groups: Vec<&'a StmtFunctionDef>,
}

/// The functions and then the methods that are tools, with warnings about `__all__` and names.
pub(super) fn public_functions<'a>(module: &mut Module<'a>, body: &'a [Stmt]) -> Vec<Served<'a>> {
    let listed = module.exports.names.as_ref();
    let listed: Option<Vec<&'a str>> = listed.map(|names| names.iter().map(|(name, _)| *name).collect());
    let Methods { mut served, refused, inherited, exported } = methods(module, listed.as_deref());
    let inherited = inherited.into_iter().map(|(name, target)| Exported { name, target, target_is_class: true });
    module.servers.exported.extend(inherited);
    for given in given_methods(module) {
        if !served.iter().any(|one| one.symbol == given.symbol && one.offer.name == given.offer.name) {
            served.push(given);
        }
    }
    let has_classes = !served.is_empty() || !refused.is_empty();
    for (line, Diagnosis { what, fix }) in refused {
        module.warn(line, CLASS_RULE, what, &fix);
    }
    let functions = top_level(module, body, &exported, has_classes);
    let marked = functions
        .into_iter()
        .map(|function| (None, function, module.offers.get(function).copied().unwrap_or_default()));
    let made = module.offers.makers.iter().filter(|maker| !maker.waits).flat_map(|maker| maker.served(module));
    let made = made.map(|made| of_maker(module, made));
    let renamed = listed.iter().flatten().filter_map(|name| renamed(module, name));
    let made = made.chain(renamed);
    let functions = marked.map(|(symbol, function, offer)| a_function(module, symbol, function, offer)).chain(made);
    // Of two tools of one name, the function has it.
    functions.chain(served).filter(|one| !one.offer.is_off).collect()
}

/// A function of the file that `__all__` has by another name: `search = _impl`
fn renamed<'a>(module: &Module<'a>, name: &'a str) -> Option<Served<'a>> {
    let function = function_by_other_name(module, name)?;
    let mut offer = module.offers.get(function).copied().unwrap_or_default();
    offer.name = Some(name);
    Some(a_function(module, Some(name.to_owned()), function, offer))
}

fn function_by_other_name<'a>(module: &Module<'a>, name: &str) -> Option<&'a StmtFunctionDef> {
    let Some(Binding::Value(Expr::Name(other))) = module.bindings.get(name) else { return None };
    match module.bindings.get(other.id.as_str()) {
        Some(Binding::Function(function)) => Some(function),
        _ => None,
    }
}

/// The functions that are tools where something calls what makes them, still without them, and they.
pub(super) fn waiting_functions<'a>(module: &Module<'a>) -> Vec<(Waiting, Vec<Served<'a>>, Option<LowLevel<'a>>)> {
    let made = |maker: &Maker<'a>| {
        let made: Vec<_> = maker.served(module).into_iter().filter(|made| !made.offer.is_off).collect();
        let is_of_server = made.iter().any(|made| made.is_of_server);
        let served: Vec<_> = made.into_iter().map(|made| of_maker(module, made)).collect();
        let low_level = LowLevel::made_by(module, maker);
        let waiting = Waiting {
            maker: maker.name(),
            line: module.lines.of_node(&maker.function.name),
            is_of_server: low_level.is_some() || is_of_server,
            computes_names: maker.computes_names(),
            functions: Vec::new(),
        };
        (waiting, served, low_level)
    };
    module.offers.makers.iter().filter(|maker| maker.waits).map(made).collect()
}

fn of_maker<'a>(module: &Module<'a>, made: Made<'a>) -> Served<'a> {
    Served {
        is_bound: made.is_bound,
        is_of_framework: true,
        ..a_function(module, Some(made.symbol), made.function, made.offer)
    }
}

fn a_function<'a>(
    module: &Module<'a>,
    symbol: Option<String>,
    function: &'a StmtFunctionDef,
    mut offer: Offer<'a>,
) -> Served<'a> {
    if module.offers.get(function).is_none() {
        offer.name = offer.name.or_else(|| operation_id(function));
    }
    let arguments = match offer.command {
        Some(CommandKind::Click) => Some(arguments_of(module, function)),
        _ => match offer.arguments {
            Arguments::Dictionary(declared) | Arguments::Request(declared) => Some(arguments_in(module, declared)),
            Arguments::Parameters | Arguments::Declared(_) => None,
        },
    };
    let is_request = matches!(offer.arguments, Arguments::Request(_));
    let symbol = symbol.or_else(|| is_request.then(|| format!("{TOOL_SPEC}{}", function.name)));
    let is_run = offer.command == Some(CommandKind::Run);
    let symbol = symbol.or_else(|| is_run.then(|| format!("typer.run:{}", function.name)));
    let is_of_agno = offer.agent == Some(Agent::Agno) && takes_from_agno(function);
    let symbol = symbol.or_else(|| is_of_agno.then(|| format!("{BY_AGNO}{}", function.name)));
    let is_of_typer = offer.command == Some(CommandKind::Typer);
    let groups = if is_of_typer { groups_of(module, function) } else { Vec::new() };
    let is_of_framework = module.offers.get(function).is_some();
    Served { function, symbol, offer, is_bound: false, is_of_framework, is_of_agno, arguments, groups }
}

/// What a handler of web requests is called where it is a tool: `@app.get("/items", operation_id="list_items")`
fn operation_id(function: &StmtFunctionDef) -> Option<&str> {
    let calls = function.decorator_list.iter().filter_map(|decorator| decorator.expression.as_call_expr());
    calls.filter_map(|call| keyword(call, "operation_id")).find_map(text)
}

fn top_level<'a>(
    module: &mut Module<'a>,
    body: &'a [Stmt],
    served_otherwise: &[&str],
    has_classes: bool,
) -> Vec<&'a StmtFunctionDef> {
    let functions = module.functions();
    if let Some(line) = module.exports.computed {
        let rest = if module.exports.names.is_some() { "only its literal names count" } else { "it is ignored" };
        let what = format!("`__all__` is computed, so {rest}");
        module.warn(line, EXPORTS, what, "write the names as a list of strings");
    }
    let mut public: Vec<_> = match module.exports.names.clone() {
        // Marked functions are the only tools of their file, and a server has no others.
        None if module.offers.are_marked || module.servers.makes || has_classes => Vec::new(),
        None if !module.servers.program.groups.is_empty() => Vec::new(),
        None => {
            let entries = Entries::of(module, body);
            let is_private = |name: &str| name.starts_with('_') || name == "main" && module.runs_main;
            functions.into_iter().filter(|function| !is_private(&function.name) && !entries.has(function)).collect()
        }
        Some(mut names) => {
            names.retain(|(name, _)| !served_otherwise.contains(name));
            listed(module, &functions, &names)
        }
    };
    // What a decorator marks needs no other sign.
    let known: HashSet<usize> =
        public.iter().map(|function: &&StmtFunctionDef| function.range.start().to_usize()).collect();
    let unlisted = module.functions().into_iter().filter(|function| {
        !known.contains(&function.range.start().to_usize())
            && (is_marked(module, function) || module.offers.get(function).is_some())
    });
    public.extend(unlisted.collect::<Vec<_>>());
    public.sort_by_key(|function| function.range.start());
    let (callable, strange): (Vec<_>, Vec<_>) = public.into_iter().partition(|function| is_identifier(&function.name));
    for function in strange {
        let what = format!("`{}` is not a valid tool name", function.name);
        module.warn(module.lines.of_node(&function.name), "name", what, "use letters a-z, digits and _");
    }
    callable
}

fn listed<'a>(
    module: &mut Module<'a>,
    functions: &[&'a StmtFunctionDef],
    names: &[(&'a str, usize)],
) -> Vec<&'a StmtFunctionDef> {
    for (name, line) in names {
        let is_function = functions.iter().any(|function| function.name.as_str() == *name);
        // `__all__ = ["mcp", "search"]`
        let is_beside_tools = module.offers.are_marked && module.bindings.contains_key(name);
        if is_function || is_beside_tools || function_by_other_name(module, name).is_some() {
            continue;
        }
        let mut what = format!("{}, which is not a function of this file", names_in_all(name));
        let mut fix = "define it or remove it";
        let (targets, target_is_class): (Vec<String>, bool) = match module.bindings.get(name) {
            Some(Binding::Import(full)) => (vec![full.clone()], false),
            // `search = notes.search`
            Some(Binding::Value(value @ Expr::Attribute(_))) => {
                (module.outside_name(value).into_iter().collect(), false)
            }
            Some(Binding::Value(Expr::Call(made))) => {
                let class = module.outside_name(&made.func).inspect(|class| {
                    what = format!("{}, whose class `{class}` is of another package", names_in_all(name));
                    fix = "write functions that use the instance: which methods it has is not read";
                });
                (class.into_iter().collect(), true)
            }
            None => (module.star_imports.iter().rev().map(|star| join(star, name)).collect(), false),
            Some(Binding::Value(Expr::Lambda(_))) => {
                fix = "write it with `def`";
                (Vec::new(), false)
            }
            Some(Binding::Class(_)) => {
                fix = "name an instance of the class, `tools = Tools()`, to serve its methods, or remove it";
                (Vec::new(), false)
            }
            Some(_) => (Vec::new(), false),
        };
        let may_be_beside = |full: &String| !is_standard(full.split('.').next().unwrap_or_default());
        let name = (*name).to_owned();
        let exported = targets.into_iter().filter(may_be_beside);
        module.servers.exported.extend(exported.map(|target| Exported { name: name.clone(), target, target_is_class }));
        module.warn(*line, EXPORTS, what, fix);
    }
    let is_listed = |function: &&&StmtFunctionDef| names.iter().any(|(name, _)| function.name.as_str() == *name);
    // `register(mcp)` is for other files.
    let is_maker =
        |function: &StmtFunctionDef| module.offers.makers.iter().any(|maker| std::ptr::eq(maker.function, function));
    functions.iter().filter(is_listed).copied().filter(|function| !is_maker(function)).collect()
}
