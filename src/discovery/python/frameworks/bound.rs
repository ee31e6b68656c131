//! Methods that are made tools as they are bound: by another method of their class, `mcp.tool(name="search")(self.search)`,
//! `FunctionTool(self.search)`, `Agent(tools=[self.search])`, or at the top level of the file, `mcp.tool(shop.search)`.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef, StmtFor, StmtFunctionDef};

use super::classes::{all_methods, has_decorator, instances};
use super::registered::{calls_with, given_to, is_by_server, registering, servers_given_to};
use super::{FRAMEWORKS, FUNCTION, NAME, Offer, is_class, keyword, listed_offer, listed_tools, package, read_offer};
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::names::Named;
use crate::discovery::python::public::Served;
use crate::discovery::python::syntax::Depth;

/// A method that is a tool as it is bound to an instance.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    pub function: &'a StmtFunctionDef,
    pub offer: Offer<'a>,
    pub has_computed_name: bool,
    /// Whether it is made one of a server or agent.
    pub is_of_server: bool,
}

/// With the class of each, and the method that makes it a tool, in the order of their lines.
pub(super) fn bound_methods<'a>(
    module: &Module<'a>,
    body: &'a [Stmt],
) -> Vec<(&'a StmtClassDef, &'a StmtFunctionDef, Bound<'a>)> {
    let mut found = Vec::new();
    for class in body.iter().filter_map(Stmt::as_class_def_stmt) {
        let methods = class.body.iter().filter_map(Stmt::as_function_def_stmt);
        let methods = methods.filter(|method| !has_decorator(method, &["staticmethod", "classmethod"]));
        let methods: HashMap<&str, &StmtFunctionDef> = methods.map(|method| (method.name.as_str(), method)).collect();
        for maker in class.body.iter().filter_map(Stmt::as_function_def_stmt) {
            let Some(instance) = maker.parameters.iter_non_variadic_params().next() else { continue };
            let instance = instance.parameter.name.as_str();
            let is_derived = !module.ancestry(class).outside.is_empty();
            let makes_toolkit = maker.name.as_str() == "get_tools";
            let (depth, bound) = (Depth::default(), Vec::new());
            let servers = servers_given_to(module, maker);
            let mut search =
                Search { module, methods: &methods, instance, servers, is_derived, makes_toolkit, depth, found: bound };
            search.visit_body(&maker.body);
            found.extend(search.found.into_iter().map(|bound| (class, maker, bound)));
        }
    }
    found
}

/// The methods that the top level of the file gives a server: of its instances, and those of classes that need none.
pub(in crate::discovery::python) fn given_methods<'a>(module: &Module<'a>) -> Vec<Served<'a>> {
    let instances = instances(module);
    let given = module.calls.iter().filter_map(|call| {
        let by = registering(call).filter(|by| is_by_server(module, by))?;
        let given = given_to(call)?;
        // `mcp.add_tool(Tool.from_function(shop.search, name="search"))`
        let made = given.as_call_expr().filter(|made| is_class(module, &made.func));
        let (given, by) = made.map_or(Some((given, by)), |made| Some((given_to(made)?, made)))?;
        let attribute = given.as_attribute_expr()?;
        let holder = name_of(&attribute.value)?;
        let made = instances.iter().find(|(name, _)| *name == holder).map(|(_, class)| *class);
        let class = made.or_else(|| match module.resolve(&attribute.value) {
            Named::Class(class) => Some(class),
            _ => None,
        })?;
        let methods = all_methods(module, class);
        let function = methods.into_iter().find(|method| method.name.as_str() == attribute.attr.as_str())?;
        let is_static = has_decorator(function, &["staticmethod"]);
        let is_of_class = || is_static || has_decorator(function, &["classmethod"]);
        let is_reached = made.is_some() || is_of_class();
        is_reached.then(|| Served {
            function,
            symbol: Some(format!("{holder}.{}", function.name)),
            offer: read_offer(module, by),
            is_bound: !is_static,
            is_of_framework: true,
            is_of_agno: false,
            arguments: None,
            groups: Vec::new(),
        })
    });
    given.collect()
}

struct Search<'m, 'a> {
    module: &'m Module<'a>,
    methods: &'m HashMap<&'a str, &'a StmtFunctionDef>,
    /// What the method calls its instance.
    instance: &'a str,
    /// Its parameters that are servers.
    servers: HashSet<&'a str>,
    /// Whether its class extends one of another file, which may be a server.
    is_derived: bool,
    /// Whether the method is where toolkits say what their tools are.
    makes_toolkit: bool,
    depth: Depth,
    found: Vec<Bound<'a>>,
}

impl<'a> Search<'_, 'a> {
    /// The method of `self.search`.
    fn method(&self, value: &Expr) -> Option<&'a StmtFunctionDef> {
        let attribute = value.as_attribute_expr().filter(|it| name_of(&it.value) == Some(self.instance))?;
        self.methods.get(attribute.attr.as_str()).copied()
    }

    fn is_of_framework(&self, call: &ExprCall) -> bool {
        is_class(self.module, &call.func)
            && self.module.outside_name(&call.func).is_some_and(|full| FRAMEWORKS.contains(&package(&full)))
    }

    /// `mcp.tool()`, `self.server.add_tool`, and `self.add_tool` of a server. Others have methods of these names, too.
    fn registers(&self, call: &'a ExprCall) -> Option<&'a ExprCall> {
        let by = registering(call)?;
        let holder = by.func.as_attribute_expr().and_then(|method| name_of(&method.value));
        let is_own = self.is_derived && holder == Some(self.instance);
        let is_given = holder.is_some_and(|name| self.servers.contains(name));
        (is_own || is_given || is_by_server(self.module, by)).then_some(by)
    }

    /// The methods that an agent is given: `Agent(tools=[self.search])`
    fn of_agent(&mut self, call: &'a ExprCall) {
        let listed = listed_tools(self.module, call).iter().filter_map(|item| self.method(item));
        let offer = listed_offer(self.module, call);
        let bound = listed.map(|function| Bound { function, offer, has_computed_name: false, is_of_server: false });
        self.found.extend(bound.collect::<Vec<_>>());
    }

    fn call(&mut self, call: &'a ExprCall) {
        self.of_agent(call);
        let registering = self.registers(call);
        let made = || (self.makes_toolkit && self.is_of_framework(call)).then_some(call);
        let Some(by) = registering.or_else(made) else { return };
        let named = FUNCTION.iter().filter_map(|name| keyword(call, name));
        let method = call.arguments.args.iter().chain(named).find_map(|value| self.method(value));
        self.found.extend(method.map(|method| self.bound(method, by, registering.is_some())));
    }

    fn bound(&self, function: &'a StmtFunctionDef, by: &'a ExprCall, is_of_server: bool) -> Bound<'a> {
        let offer = read_offer(self.module, by);
        let named = NAME.iter().find_map(|name| keyword(by, name));
        let has_computed_name = named.is_some_and(|name| !name.is_string_literal_expr());
        Bound { function, offer, has_computed_name, is_of_server }
    }

    /// `for tool in (self.search, self.count): mcp.tool()(tool)`
    fn in_loop(&mut self, each: &'a StmtFor) {
        let items = match &*each.iter {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            _ => return,
        };
        let by = name_of(&each.target).and_then(|name| calls_with(name, &each.body));
        let Some(by) = by.filter(|by| is_by_server(self.module, by)) else { return };
        let methods: Vec<_> = items.iter().filter_map(|item| self.method(item)).collect();
        self.found.extend(methods.into_iter().map(|method| self.bound(method, by, true)).collect::<Vec<_>>());
    }
}

impl<'a> Visitor<'a> for Search<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::For(each) = statement {
            self.in_loop(each);
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.call(call);
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
