//! Why the worker cannot call a function that makes tools, or that calls such a one: it needs something, its name means something else,
//! or it would not return.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Decorator, Expr, ParameterWithDefault, Stmt, StmtClassDef, StmtFunctionDef};

use super::inner::{Maker, is_decorated_by};
use super::runs::Own;
use super::{FRAMEWORKS, decorated_by, last_name, package};
use crate::discovery::python::module::{Binding, Module, name_of};
use crate::discovery::python::syntax::Depth;

/// Decorators that keep the function.
const KEEPING: [&str; 4] = ["cache", "lru_cache", "functools.cache", "functools.lru_cache"];

/// Decorators of methods that no instance is needed for.
const WITHOUT_INSTANCE: [&str; 2] = ["builtins.staticmethod", "builtins.classmethod"];

/// Why, and what to do.
pub(in crate::discovery::python) type Obstacle = (&'static str, &'static str);

pub(super) const MOVE: &str = "move the functions of the tools to the top level of the file";
const CALL: &str =
    "call it at the top level of the file or in a function without arguments, or move the functions of the tools there";
pub(super) const ARGUMENTS: Obstacle = ("it needs arguments", CALL);
pub(super) const MORE: Obstacle = ("the file gives it more arguments than the server", CALL);
pub(super) const OF_CLASS: Obstacle = ("its class or the method needs arguments", MOVE);
const SPLIT: &str =
    "make them in a function that does nothing else, or move the functions of the tools to the top level of the file";

/// How a file uses its own functions and classes.
pub(super) struct Uses<'a> {
    /// Those that it calls at its top level: what they make is there when it has run.
    at_top: HashSet<&'a str>,
    /// The most arguments that its functions give each.
    arguments: HashMap<&'a str, usize>,
    /// The classes that can be made without arguments, as far as the file shows.
    plain_classes: HashSet<usize>,
    depth: Depth,
}

impl<'a> Uses<'a> {
    pub(super) fn of(module: &Module<'a>, body: &'a [Stmt]) -> Self {
        let at_top = module.calls.iter().filter_map(|call| name_of(&call.func)).collect();
        let mut uses =
            Self { at_top, arguments: HashMap::new(), plain_classes: HashSet::new(), depth: Depth::default() };
        for statement in body {
            match statement {
                Stmt::FunctionDef(_) => uses.visit_stmt(statement),
                Stmt::ClassDef(class) => {
                    if is_made_without_arguments(module, class) {
                        uses.plain_classes.insert(class.range.start().to_usize());
                    }
                    uses.visit_stmt(statement);
                }
                _ => {}
            }
        }
        uses
    }

    /// Whether the top level makes an instance of a class that derives from this one, and has what makes the tools from it.
    fn makes_a_kind_of<'m>(&self, module: &Module<'m>, class: &'m StmtClassDef, maker: &Maker<'_>) -> bool {
        let methods = maker.methods.iter().map(|method| method.function);
        let own: HashSet<&str> = methods.chain([maker.function]).map(|method| method.name.as_str()).collect();
        let before = module.ancestry(class);
        let mut kinds = self.at_top.iter().filter_map(|name| match module.bindings.get(name) {
            Some(Binding::Class(kind)) => Some(module.ancestry(kind)),
            _ => None,
        });
        kinds.any(|kind| {
            let is_before = |one: &StmtClassDef| before.classes.iter().any(|other| std::ptr::eq(*other, one));
            let others = kind.classes.iter().filter(|one| !is_before(one));
            let mut methods = others.flat_map(|one| &one.body).filter_map(Stmt::as_function_def_stmt);
            kind.classes.iter().any(|one| std::ptr::eq(*one, class))
                && !methods.any(|method| own.contains(method.name.as_str()))
        })
    }
}

impl<'a> Visitor<'a> for Uses<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && let Some(name) = name_of(&call.func)
        {
            let most = self.arguments.entry(name).or_default();
            *most = (*most).max(call.arguments.args.len() + call.arguments.keywords.len());
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}

/// Why the worker cannot have these tools made.
pub(super) fn obstacle<'a>(module: &Module<'a>, uses: &Uses<'_>, maker: &Maker<'a>) -> Option<Obstacle> {
    let (function, name) = (maker.function, maker.class.map_or(&maker.function.name, |class| &class.name));
    if let Some(obstacle) = obstacle_to_name(module, maker.class, function) {
        return Some(obstacle);
    }
    if uses.at_top.contains(name.as_str())
        || maker.class.is_some_and(|class| uses.makes_a_kind_of(module, class, maker))
    {
        return None;
    }
    if let Some(obstacle) = obstacle_to_call(module, function) {
        return Some(obstacle);
    }
    if is_click_program(module, function) && maker.class.is_none() {
        return None;
    }
    if function.parameters.kwonlyargs.iter().any(|parameter| parameter.default().is_none()) {
        return Some(ARGUMENTS);
    }
    let mut required = required_by(function);
    if maker.class.is_some() && !function.decorator_list.is_empty() {
        return Some(OF_CLASS);
    }
    if let Some(class) = maker.class {
        let is_made = required.len() == 1 && uses.plain_classes.contains(&class.range.start().to_usize());
        return (!is_made).then_some(OF_CLASS);
    }
    // The worker passes `None` by the same rule (`frameworks/inner.py`).
    let is_of_server = |name: &str| maker.marked().any(|tool| is_decorated_by(tool, name));
    required.retain(|it| is_of_server(&it.parameter.name) || !it.annotation().is_some_and(accepts_none));
    match &required[..] {
        [] => None,
        [server] if maker.marked().all(|tool| is_decorated_by(tool, &server.parameter.name)) => {
            let is_given_more = uses.arguments.get(name.as_str()).is_some_and(|most| *most > 1);
            is_given_more.then_some(MORE)
        }
        _ => Some(ARGUMENTS),
    }
}

/// Why a name may not mean this function or method.
fn obstacle_to_name(module: &Module<'_>, class: Option<&StmtClassDef>, function: &StmtFunctionDef) -> Option<Obstacle> {
    let name = class.map_or(&function.name, |class| &class.name);
    let is_there = match (class, module.bindings.get(name.as_str())) {
        (None, Some(Binding::Function(other))) => std::ptr::eq(*other, function),
        (Some(class), Some(Binding::Class(other))) => std::ptr::eq(*other, class),
        _ => false,
    };
    if !is_there {
        return Some(("its name means something else when the file has run", MOVE));
    }
    let keeps = |decorator: &Decorator| {
        let full = module.outside_name(decorated_by(decorator));
        let known: &[&str] = if class.is_some() { &WITHOUT_INSTANCE } else { &KEEPING };
        full.is_some_and(|full| known.contains(&full.as_str()))
    };
    let is_kept = function.decorator_list.iter().all(keeps) || class.is_none() && is_click_program(module, function);
    (!is_kept).then_some(("its decorator may make something else of it", MOVE))
}

/// Why the worker does not call a function, whatever it needs.
fn obstacle_to_call(module: &Module<'_>, function: &StmtFunctionDef) -> Option<Obstacle> {
    let own = Own::of(module, function);
    if own.yields {
        return Some(("it is a generator", MOVE));
    }
    own.runs.then_some(("it also runs or starts something", SPLIT))
}

/// Whether the worker can call a function of the top level as it is.
pub(super) fn is_callable(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    (required_by(function).is_empty() || is_click_program(module, function))
        && obstacle_to_name(module, None, function).is_none()
        && obstacle_to_call(module, function).is_none()
}

pub(super) fn required_by(function: &StmtFunctionDef) -> Vec<&ParameterWithDefault> {
    function.parameters.iter_non_variadic_params().filter(|parameter| parameter.default().is_none()).collect()
}

/// Whether an instance can be made by `Class()`, as far as the file shows.
fn is_made_without_arguments(module: &Module<'_>, class: &StmtClassDef) -> bool {
    let mut methods = class.body.iter().filter_map(Stmt::as_function_def_stmt);
    // Toolkits of frameworks are made so, unless they say otherwise.
    let is_of_framework =
        |base: &Expr| module.outside_name(base).is_some_and(|full| FRAMEWORKS.contains(&package(&full)));
    let bases = class.arguments.as_ref().is_some_and(|it| !it.args.iter().all(is_of_framework));
    match methods.find(|method| method.name.as_str() == "__init__") {
        Some(init) => required_by(init).len() == 1 && !Own::of(module, init).runs,
        None => !bases && class.decorator_list.iter().all(|it| is_of_framework(decorated_by(it))),
    }
}

/// `Path | None`, `Optional[Path]`
fn accepts_none(annotation: &Expr) -> bool {
    match annotation {
        Expr::NoneLiteral(_) => true,
        Expr::BinOp(either) => accepts_none(&either.left) || accepts_none(&either.right),
        Expr::Subscript(of) => {
            let name = of.value.as_attribute_expr().map(|it| it.attr.as_str()).or(name_of(&of.value));
            let among = || of.slice.as_tuple_expr().is_some_and(|tuple| tuple.elts.iter().any(accepts_none));
            name == Some("Optional") || name == Some("Union") && among()
        }
        Expr::StringLiteral(text) => text.value.to_str().contains("None") || text.value.to_str().contains("Optional"),
        _ => false,
    }
}

/// A command of click, which is run with the command line that the operator sets.
fn is_click_program(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    let full =
        |decorator: &Decorator| module.outside_name(decorated_by(decorator)).filter(|full| package(full) == "click");
    let is_command = |decorator: &Decorator| full(decorator).is_some_and(|full| last_name(&full) == "command");
    function.decorator_list.iter().any(is_command) && function.decorator_list.iter().all(|it| full(it).is_some())
}
