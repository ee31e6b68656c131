//! Classes whose instances are tools or have tools as methods: Open WebUI's `Tools`, agno's `Toolkit`, `BaseTool` of LangChain and
//! CrewAI, `Tool` of smolagents, classes with decorated methods, and instances that `__all__` names. A worker makes one instance.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef, StmtFunctionDef};

use super::single::{attribute, is_tool_by_its_form, needed_field, one};
use super::toolkits::registered;
use super::{FRAMEWORKS, Offer, decorated_by, last_name, offer_of_decorator, package, text};
use crate::config::origin::Diagnosis;
use crate::discovery::is_standard;
use crate::discovery::python::classes::FORMLESS;
use crate::discovery::python::module::{Binding, Module};
use crate::discovery::python::names::Named;
use crate::discovery::python::public::Served;

/// Further methods of a file are no tools.
const MOST_METHODS: usize = 1_000;

/// The rule of `check` about classes.
pub(in crate::discovery::python) const RULE: &str = "class";

/// Begins what the worker knows the methods of an instance without a name by: `held:Shop.search`.
const HELD: &str = "held:";

/// How a class offers tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its public methods are tools.
    Methods,
    /// Those that its constructor names: `tools=[self.search]`, `self.register(self.search)`.
    Registered,
    /// Those that its attribute `spec_functions` lists.
    Listed,
    /// Those with a decorator that makes tools.
    Decorated,
    /// It is one tool, which runs this method.
    One(&'static [&'static str]),
}

/// A class that offers tools, and what a worker finds its instance by.
#[derive(Debug, Clone, Copy)]
struct Toolset<'a> {
    class: &'a StmtClassDef,
    kind: Kind,
    /// The name of an instance of the file, else of the class.
    holder: &'a str,
    /// Whether the file makes the instance without a name.
    is_unnamed: bool,
}

/// The methods that are tools, and what is wrong with classes that offer some and cannot be served: its line, and why.
#[derive(Debug, Default)]
pub(in crate::discovery::python) struct Methods<'a> {
    pub served: Vec<Served<'a>>,
    pub refused: Vec<(usize, Diagnosis)>,
    /// Base classes of other files, each with the instance or class that has its methods.
    pub inherited: Vec<(String, String)>,
    /// The names in `__all__` that are instances or classes with tools.
    pub exported: Vec<&'a str>,
}

/// Reads the classes of a module. `exported` is what `__all__` names, if it is there.
pub(in crate::discovery::python) fn methods<'a>(module: &Module<'a>, exported: Option<&[&'a str]>) -> Methods<'a> {
    let mut found = Methods::default();
    let toolsets = toolsets(module, exported);
    if exported.is_none() {
        let known = toolsets.iter().map(|toolset| place(toolset.class)).collect();
        found.refused.extend(unknown_tools(module, &known));
    }
    for toolset in toolsets {
        found.exported.push(toolset.holder);
        let is_of_class = toolset.holder == toolset.class.name.as_str();
        let is_pydantic_tool = matches!(toolset.kind, Kind::One(["_run", ..]));
        let needed = needed_by_constructor(module, toolset.class)
            .or_else(|| is_pydantic_tool.then(|| needed_field(module, toolset.class)).flatten());
        if let Some(parameter) = needed.filter(|_| is_of_class && !toolset.is_unnamed) {
            let mut decorated = Vec::new();
            if toolset.kind == Kind::Decorated {
                add(module, toolset, &mut decorated);
            }
            let (free, bound): (Vec<_>, Vec<_>) =
                decorated.into_iter().partition(|one: &Served<'a>| needs_no_instance(one.function));
            let is_served = !free.is_empty() && bound.is_empty();
            found.served.extend(free);
            if is_served {
                continue;
            }
            let class = &toolset.class.name;
            let what = format!("the tools of `{class}` are not served: its constructor needs `{parameter}`");
            let fix = format!("give the parameter a default, or make the instance in the file: `tools = {class}(…)`");
            found.refused.push((module.lines.of_node(class), Diagnosis::new(what, fix)));
            continue;
        }
        let before = found.served.len();
        add(module, toolset, &mut found.served);
        if toolset.kind == Kind::Methods {
            let ancestry = module.ancestry(toolset.class);
            let bases = ancestry.outside.iter().filter(|base| !is_standard(package(base))).cloned();
            found.inherited.extend(bases.map(|base| (toolset.symbol(), base)));
        }
        if found.served.len() == before && is_called_itself(module, &toolset) && !is_of_class {
            let what = format!("`{}` has no public methods to serve", toolset.holder);
            let fix = "give its `__call__` a name, `def run(self, …)`, or write a function that calls it";
            found.refused.push((module.lines.of_node(&toolset.class.name), Diagnosis::new(what, fix)));
        } else if found.served.len() == before && is_of_open_webui(module, toolset.class) {
            let class = &toolset.class.name;
            let what = format!("the tools of `{class}` are not served: it has no public methods");
            let fix = "give them names without a leading underscore";
            found.refused.push((module.lines.of_node(class), Diagnosis::new(what, fix)));
        }
    }
    found
}

/// Tools of frameworks whose classes of tools are not known.
fn unknown_tools(module: &Module<'_>, known: &HashSet<usize>) -> Vec<(usize, Diagnosis)> {
    let bases = bases(module);
    let is_open = |class: &&StmtClassDef| !known.contains(&place(class)) && !bases.contains(&place(class));
    let is_tool = |base: &&String| FRAMEWORKS.contains(&package(base)) && last_name(base).ends_with("BaseTool");
    let refusal = |class: &StmtClassDef, base: &str| {
        let name = &class.name;
        let what = format!("the tool `{name}` is not served: hostler does not call tools of the class `{base}`");
        (module.lines.of_node(name), Diagnosis::new(what, "write it as a function, and make the tool of that"))
    };
    let open = classes(module).filter(is_open);
    let unknown = open.filter_map(|class| {
        let ancestry = module.ancestry(class);
        ancestry.outside.iter().find(is_tool).map(|base| refusal(class, base))
    });
    let mut unknown: Vec<_> = unknown.collect();
    unknown.sort_by_key(|(line, _)| *line);
    unknown
}

/// Whether an instance is only callable itself.
fn is_called_itself<'a>(module: &Module<'a>, toolset: &Toolset<'a>) -> bool {
    let methods = all_methods(module, toolset.class);
    toolset.kind == Kind::Methods && methods.iter().any(|method| method.name.as_str() == "__call__")
}

/// What authors call the instance or the class. The worker knows the same names (`frameworks/methods.py`).
const INSTANCES: [&str; 5] = ["self", "cls", "this", "_self", "_cls"];

/// Whether a class extends Open WebUI in another way than by tools.
pub(in crate::discovery::python) fn extends_open_webui(class: &StmtClassDef) -> bool {
    let (name, method) =
        (class.name.as_str(), |words: &[&str]| own_methods(class).any(|it| words.contains(&it.name.as_str())));
    match name {
        "Filter" => method(&["inlet", "outlet", "stream"]),
        "Pipe" | "Pipeline" => method(&["pipe", "pipes"]),
        "Action" => method(&["action"]),
        _ => false,
    }
}

/// Classes that have public methods and offer none of them. Those that others derive from come last.
pub(in crate::discovery::python) fn idle_classes<'a>(module: &Module<'a>) -> Vec<&'a StmtClassDef> {
    let has_method = |class: &StmtClassDef| own_methods(class).any(|method| is_public(method) && !is_property(method));
    let is_plain = |class: &&'a StmtClassDef| {
        let ancestry = module.ancestry(class);
        let is_own = ancestry.outside.iter().all(|base| FORMLESS.contains(&base.as_str()));
        is_own && module.dataclass_of(class).is_none() && !class.name.starts_with('_')
    };
    let mut idle: Vec<_> = classes(module).filter(is_plain).filter(|class| has_method(class)).collect();
    let bases = bases(module);
    idle.sort_by_key(|class| (bases.contains(&place(class)), class.range.start()));
    idle
}

/// The places of classes that other classes of the file derive from.
pub(super) fn bases(module: &Module<'_>) -> HashSet<usize> {
    let ancestries = classes(module).map(|class| (place(class), module.ancestry(class)));
    ancestries
        .flat_map(|(own, ancestry)| {
            let bases = ancestry.classes.iter().map(|base| place(base)).filter(move |base| *base != own);
            bases.collect::<Vec<_>>()
        })
        .collect()
}

fn classes<'m, 'a>(module: &'m Module<'a>) -> impl Iterator<Item = &'a StmtClassDef> + use<'m, 'a> {
    module.bindings.values().filter_map(|binding| match binding {
        Binding::Class(class) => Some(*class),
        _ => None,
    })
}

/// The instances that the file makes at its top level, by name, with their classes.
pub(super) fn instances<'a>(module: &Module<'a>) -> Vec<(&'a str, &'a StmtClassDef)> {
    let instance = |(name, binding): (&&'a str, &Binding<'a>)| {
        let Binding::Value(value) = binding else { return None };
        match module.resolve(&value.as_call_expr()?.func) {
            Named::Class(class) => Some((*name, class)),
            _ => None,
        }
    };
    let mut found: Vec<_> = module.bindings.iter().filter_map(instance).collect();
    found.sort_unstable_by_key(|(name, _)| *name);
    found
}

fn toolsets<'a>(module: &Module<'a>, exported: Option<&[&'a str]>) -> Vec<Toolset<'a>> {
    let instances = instances(module);
    let bases = bases(module);
    let has_functions = module.functions().iter().any(|function| !function.name.starts_with('_'));
    let is_exported = |name: &str| exported.is_none_or(|names| names.contains(&name));
    let mut found: Vec<Toolset<'a>> = Vec::new();
    for class in classes(module) {
        let is_named = exported.is_some_and(|names| names.contains(&class.name.as_str()));
        let Some(kind) = kind_of(module, class, has_functions && !is_named) else { continue };
        let made = instances.iter().find(|(_, of)| std::ptr::eq(*of, class)).map(|(name, _)| *name);
        let holder = made.unwrap_or(class.name.as_str());
        // A class that others derive from is served by them.
        let is_base = bases.contains(&place(class));
        if (is_exported(holder) || is_exported(class.name.as_str())) && (!is_base || made.is_some()) {
            let is_unnamed = made.is_none() && is_made(module, class);
            found.push(Toolset { class, kind, holder, is_unnamed });
        }
    }
    let others = instances.iter().filter(|(name, _)| exported.is_some_and(|names| names.contains(name)));
    for (name, class) in others {
        if !found.iter().any(|toolset| toolset.holder == *name) {
            found.push(Toolset { class, kind: Kind::Methods, holder: name, is_unnamed: false });
        }
    }
    found.sort_by_key(|toolset| toolset.class.range.start());
    found
}

/// Whether the file makes an instance of a class with arguments and without a name, alone or for a call: `Shop(mcp)`,
/// `register(Shop(mcp))`. The worker looks for it.
fn is_made(module: &Module<'_>, class: &StmtClassDef) -> bool {
    let makes = |call: &ExprCall| {
        !call.arguments.is_empty()
            && matches!(module.resolve(&call.func), Named::Class(made) if std::ptr::eq(made, class))
    };
    module.calls.iter().any(|call| {
        let given = call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|keyword| &keyword.value));
        makes(call) || given.filter_map(Expr::as_call_expr).any(makes)
    })
}

pub(super) fn place(class: &StmtClassDef) -> usize {
    class.range.start().to_usize()
}

fn kind_of<'a>(module: &Module<'a>, class: &'a StmtClassDef, has_functions: bool) -> Option<Kind> {
    let ancestry = module.ancestry(class);
    for base in &ancestry.outside {
        match (package(base), last_name(base)) {
            ("langchain" | "langchain_core" | "langchain_community" | "crewai" | "crewai_tools", "BaseTool") => {
                return Some(Kind::One(&["_run", "_arun"]));
            }
            ("smolagents" | "transformers", "Tool") => return Some(Kind::One(&["forward"])),
            ("agno" | "phi", "Toolkit") => return Some(Kind::Registered),
            ("llama_index", "BaseToolSpec") => return Some(Kind::Listed),
            _ => {}
        }
    }
    if is_tool_by_its_form(class) && ancestry.outside.iter().any(|base| last_name(base).ends_with("Tool")) {
        return Some(Kind::One(&["_run", "_arun"]));
    }
    if own_methods(class).any(|method| method.decorator_list.iter().any(|it| offer_of_decorator(module, it).is_some()))
    {
        return Some(Kind::Decorated);
    }
    let is_whole = || ancestry.outside.is_empty() || is_of_open_webui(module, class);
    let is_named_so = class.name.as_str() == "Tools" && is_whole();
    // In other files, a class of this name helps the functions. One that gives tools to a server has no tools itself.
    let gives_tools = module.offers.makers.iter().filter_map(|maker| maker.class).any(|it| std::ptr::eq(it, class));
    (is_named_so && !gives_tools && (!has_functions || is_of_open_webui(module, class))).then_some(Kind::Methods)
}

/// Its tools have settings, or a frontmatter.
pub(super) fn is_of_open_webui(module: &Module<'_>, class: &StmtClassDef) -> bool {
    let inner = class.body.iter().filter_map(Stmt::as_class_def_stmt);
    let has_valves = inner.into_iter().any(|inner| matches!(inner.name.as_str(), "Valves" | "UserValves"));
    let keys = ["title:", "author:", "requirements:", "version:"];
    let lines = || module.docstring.into_iter().flat_map(str::lines).map(str::trim_start);
    has_valves || lines().any(|line| keys.iter().any(|key| line.starts_with(key)))
}

pub(super) fn own_methods(class: &StmtClassDef) -> impl Iterator<Item = &StmtFunctionDef> {
    class.body.iter().filter_map(Stmt::as_function_def_stmt)
}

/// The methods of a class and its ancestors in the file, each as it is inherited.
pub(super) fn all_methods<'a>(module: &Module<'a>, class: &'a StmtClassDef) -> Vec<&'a StmtFunctionDef> {
    let mut found: HashMap<&'a str, &'a StmtFunctionDef> = HashMap::new();
    for ancestor in &module.ancestry(class).classes {
        found.extend(own_methods(ancestor).map(|method| (method.name.as_str(), method)));
    }
    let mut methods: Vec<_> = found.into_values().collect();
    methods.sort_by_key(|method| method.range.start());
    methods
}

fn is_public(method: &StmtFunctionDef) -> bool {
    !method.name.starts_with('_')
}

fn is_property(method: &StmtFunctionDef) -> bool {
    has_decorator(method, &["property", "cached_property", "setter", "deleter", "abstractmethod", "overload"])
}

pub(super) fn has_decorator(method: &StmtFunctionDef, words: &[&str]) -> bool {
    method.decorator_list.iter().any(|decorator| match decorated_by(decorator) {
        Expr::Name(name) => words.contains(&name.id.as_str()),
        Expr::Attribute(attribute) => words.contains(&attribute.attr.as_str()),
        _ => false,
    })
}

/// The first parameter that the constructor of the file's class needs.
pub(in crate::discovery::python) fn needed_by_constructor<'a>(
    module: &Module<'a>,
    class: &'a StmtClassDef,
) -> Option<&'a str> {
    let constructor = all_methods(module, class).into_iter().find(|method| method.name.as_str() == "__init__")?;
    let mut parameters = constructor.parameters.iter_non_variadic_params().skip(1);
    parameters.find(|parameter| parameter.default().is_none()).map(|parameter| parameter.parameter.name.as_str())
}

impl Toolset<'_> {
    /// What the worker knows its instance by.
    fn symbol(&self) -> String {
        if self.is_unnamed { format!("{HELD}{}", self.holder) } else { self.holder.to_owned() }
    }
}

fn add<'a>(module: &Module<'a>, toolset: Toolset<'a>, served: &mut Vec<Served<'a>>) {
    add_as(module, toolset, &toolset.symbol(), served);
}

/// The same where the worker knows the instance by another name.
fn add_as<'a>(module: &Module<'a>, toolset: Toolset<'a>, holder: &str, served: &mut Vec<Served<'a>>) {
    let Toolset { class, kind, .. } = toolset;
    let methods = all_methods(module, class);
    if let Kind::One(names) = kind {
        let run = names.iter().find_map(|name| methods.iter().find(|method| method.name.as_str() == *name));
        served.extend(run.map(|method| one(module, class, holder, method)));
        return;
    }
    let registered = match kind {
        Kind::Registered => registered(&module.ancestry(class).classes, &methods),
        Kind::Listed => listed(class).into_iter().map(|name| (name, None)).collect(),
        _ => Vec::new(),
    };
    let is_registered = |method: &StmtFunctionDef| registered.iter().any(|(name, _)| *name == method.name.as_str());
    for method in methods.iter().filter(|method| !is_property(method)) {
        if served.len() >= MOST_METHODS {
            return;
        }
        let offer = method.decorator_list.iter().find_map(|decorator| offer_of_decorator(module, decorator));
        let is_tool = match kind {
            Kind::Decorated => offer.is_some(),
            Kind::Listed => is_registered(method),
            Kind::Registered if !registered.is_empty() => is_public(method) && is_registered(method) || offer.is_some(),
            _ => is_public(method) || offer.is_some(),
        };
        if is_tool {
            let name = registered.iter().find_map(|(name, given)| given.filter(|_| *name == method.name.as_str()));
            served.push(Served {
                offer: offer.unwrap_or_else(|| Offer { name, ..Offer::default() }),
                is_bound: !has_decorator(method, &["staticmethod"]) && (offer.is_none() || takes_instance(method)),
                is_of_framework: kind != Kind::Methods,
                is_of_agno: kind == Kind::Registered,
                ..plain(method, holder)
            });
        }
    }
}

/// The tools of an instance of a class that a worker knows as `holder`: its public methods, unless the class says otherwise.
pub(in crate::discovery::python) fn methods_of_class<'a>(
    module: &Module<'a>,
    class: &'a StmtClassDef,
    holder: &str,
) -> Vec<Served<'a>> {
    let kind = kind_of(module, class, false).unwrap_or(Kind::Methods);
    let mut served = Vec::new();
    add_as(module, Toolset { class, kind, holder: class.name.as_str(), is_unnamed: false }, holder, &mut served);
    served
}

fn plain<'a>(method: &'a StmtFunctionDef, holder: &str) -> Served<'a> {
    Served {
        function: method,
        symbol: Some(format!("{holder}.{}", method.name)),
        offer: Offer::default(),
        is_bound: !has_decorator(method, &["staticmethod"]),
        is_of_framework: false,
        is_of_agno: false,
        groups: Vec::new(),
        arguments: None,
    }
}

/// What `spec_functions = ["search", ("load", "aload")]` names: of two, the first.
fn listed(class: &StmtClassDef) -> Vec<&str> {
    let items = attribute(class, "spec_functions").and_then(Expr::as_list_expr).map_or(&[][..], |list| &list.elts);
    items
        .iter()
        .filter_map(|item| text(item.as_tuple_expr().and_then(|tuple| tuple.elts.first()).unwrap_or(item)))
        .collect()
}

/// Whether the first parameter of a decorated method is the instance or the class. `CrewAI`'s authors write tools in classes without one.
fn takes_instance(method: &StmtFunctionDef) -> bool {
    let first = method.parameters.iter_non_variadic_params().next();
    first.is_some_and(|first| INSTANCES.contains(&first.parameter.name.as_str()))
}

/// A class or static method, or a decorated function without an instance.
fn needs_no_instance(method: &StmtFunctionDef) -> bool {
    has_decorator(method, &["staticmethod", "classmethod"]) || !takes_instance(method)
}
