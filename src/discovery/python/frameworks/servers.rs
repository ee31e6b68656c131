//! What a file says about the servers of frameworks: whether it makes one, and whose its tools are.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

use super::{FRAMEWORKS, decorated_by, required_by};
use crate::discovery::python::module::Module;
use crate::discovery::python::names::Named;
use crate::discovery::python::syntax::Depth;
use crate::discovery::several::Listing;
use crate::discovery::{Servers, is_standard};

/// The servers of a file.
pub(in crate::discovery::python) fn servers_of(module: &Module<'_>, body: &[Stmt]) -> Servers {
    let offers = &module.offers;
    let given = |function| !required_by(function).is_empty();
    let mut of = BTreeSet::new();
    let marked = module.functions().into_iter().filter(|function| offers.get(function).is_some());
    let decorators = marked.flat_map(|function| &function.decorator_list).map(decorated_by);
    for called in decorators.chain(module.calls.iter().map(|call| &*call.func)) {
        let server = called.as_attribute_expr().filter(|_| super::is_maker(module, called));
        let name = server.and_then(|attribute| module.outside_name(&attribute.value));
        of.extend(name.filter(|full| !FRAMEWORKS.contains(&super::package(full))));
    }
    if offers.makers.iter().any(|maker| maker.waits || maker.class.is_none() && given(maker.function)) {
        of.insert(".".to_owned());
    }
    let found = Calls::of(module, body);
    if offers.gives && !found.makes {
        of.insert(".".to_owned());
    }
    Servers {
        makes: found.makes,
        runs: found.runs,
        marks: offers.are_marked,
        of: of.into_iter().collect(),
        names: module.exports.named(),
        given: offers.given.clone(),
        mounts: super::mounts::mounts_of(module, body),
        program: super::attached::program_of(module),
        waiting: Vec::new(),
        exported: Vec::new(),
        listing: Listing { has_handlers: super::low_level::marks_handlers(module), ..Listing::default() },
    }
}

/// The calls of a file that make a server, or run that of another module, anywhere in it.
struct Calls<'m, 'a> {
    module: &'m Module<'a>,
    makes: bool,
    runs: bool,
    depth: Depth,
}

impl<'m, 'a> Calls<'m, 'a> {
    fn of(module: &'m Module<'a>, body: &'m [Stmt]) -> Self {
        let mut calls = Self { module, makes: false, runs: false, depth: Depth::default() };
        let is_plain = module.imports.iter().all(|import| is_standard(import.split('.').next().unwrap_or_default()));
        if !is_plain {
            calls.visit_body(body);
        }
        calls
    }
}

impl<'a> Visitor<'a> for Calls<'_, '_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.makes |= match self.module.resolve(&call.func) {
                Named::Outside(full) => super::is_server_class(&full),
                Named::Class(class) => {
                    self.module.ancestry(class).outside.iter().any(|base| super::is_server_class(base))
                }
                Named::Value { .. } | Named::Nothing => false,
            };
            let run = call.func.as_attribute_expr().filter(|method| method.attr.starts_with("run"));
            self.runs |= run.is_some_and(|method| match self.module.resolve(&method.value) {
                // `app.mcp` of `app.mcp.run()`; not `asyncio` of `asyncio.run()`
                Named::Outside(full) => {
                    full.contains('.') && !is_standard(super::package(&full)) && !full.starts_with("builtins.")
                }
                // `mcp = make_server()`
                Named::Value { value, .. } => value.is_call_expr(),
                Named::Class(_) | Named::Nothing => false,
            });
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
