//! What a file says about the servers of frameworks: whether it makes one, and whose its tools are.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

use super::{SERVERS, decorated_by, last_name, required_by};
use crate::discovery::Servers;
use crate::discovery::python::module::{Binding, Module};
use crate::discovery::python::syntax::Depth;

/// The servers of a file.
pub(in crate::discovery::python) fn servers_of(module: &Module<'_>, body: &[Stmt]) -> Servers {
    let offers = &module.offers;
    let given = |function| !required_by(function).is_empty();
    let mut of = BTreeSet::new();
    let marked = module.functions().into_iter().filter(|function| offers.get(function).is_some());
    let decorators = marked.flat_map(|function| &function.decorator_list).map(decorated_by);
    for called in decorators.chain(module.calls.iter().map(|call| &*call.func)) {
        let server = called.as_attribute_expr().filter(|_| super::is_maker(module, called));
        of.extend(server.and_then(|attribute| module.outside_name(&attribute.value)));
    }
    if offers.makers.iter().any(|maker| maker.class.is_none() && given(maker.function)) {
        of.insert(".".to_owned());
    }
    Servers {
        makes: makes_a_server(module, body),
        marks: offers.are_marked,
        of: of.into_iter().collect(),
        names: module.exports.are_named(),
    }
}

/// Whether a file makes a server anywhere.
fn makes_a_server(module: &Module<'_>, body: &[Stmt]) -> bool {
    let is_server = |binding: &Binding<'_>| match binding {
        Binding::Import(full) => {
            SERVERS.contains(&last_name(full)) || ["fastmcp", "mcp"].contains(&super::package(full))
        }
        _ => false,
    };
    if !module.bindings.values().any(is_server) {
        return false;
    }
    let mut search = Makes { module, found: false, depth: Depth::default() };
    search.visit_body(body);
    search.found
}

struct Makes<'m, 'a> {
    module: &'m Module<'a>,
    found: bool,
    depth: Depth,
}

impl<'a> Visitor<'a> for Makes<'_, '_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && self.module.outside_name(&call.func).is_some_and(|full| SERVERS.contains(&last_name(&full)))
        {
            self.found = true;
        }
        if !self.found && self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
