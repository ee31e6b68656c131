//! Servers that another server mounts with a prefix: `main.mount(weather, prefix="weather")`.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};

use super::{MAKERS, SERVERS, decorated_by, last_name, word_of};
use crate::discovery::given::OWN;
use crate::discovery::mounted::{LOCAL, Mount};
use crate::discovery::python::literals::{keyword, literal};
use crate::discovery::python::module::{Module, name_of};
use crate::discovery::python::names::Named;
use crate::discovery::python::syntax::Depth;

/// Methods of FastMCP that add the tools of another server.
const MOUNTING: [&str; 2] = ["mount", "import_server"];
/// What they call the prefix, by release.
const PREFIX: [&str; 2] = ["prefix", "namespace"];

/// The servers that a file mounts with a prefix.
pub(super) fn mounts_of(module: &Module<'_>, body: &[Stmt]) -> Vec<Mount> {
    let (depth, local) = (Depth::default(), local_names(body));
    let mut search = Search { module, local, depth, found: Vec::new() };
    if module.imports.iter().any(|import| import == "fastmcp" || import.starts_with("fastmcp.")) {
        search.visit_body(body);
    }
    search.found
}

/// The name of the server whose decorator makes a function a tool: `weather` of `@weather.tool`.
pub(in crate::discovery::python) fn server_of(function: &StmtFunctionDef) -> Option<&str> {
    let mut decorators = function.decorator_list.iter().filter_map(|one| decorated_by(one).as_attribute_expr());
    let of_server =
        decorators.find(|attribute| MAKERS.contains(&attribute.attr.as_str()) || attribute.attr.as_str() == "prompt");
    name_of(&of_server?.value)
}

/// The names that functions give to the results of calls: `server = FastMCP("x")`.
fn local_names(body: &[Stmt]) -> HashSet<&str> {
    let functions = body.iter().filter_map(Stmt::as_function_def_stmt).flat_map(|function| &function.body);
    let assigned = functions.filter_map(Stmt::as_assign_stmt).filter(|assign| assign.value.is_call_expr());
    assigned.flat_map(|assign| &assign.targets).filter_map(name_of).collect()
}

struct Search<'m, 'a> {
    module: &'m Module<'a>,
    /// The names that functions give to what they call.
    local: HashSet<&'m str>,
    depth: Depth,
    found: Vec<Mount>,
}

impl Search<'_, '_> {
    /// A server and its prefix. Releases of FastMCP take them in either order.
    fn mount(&self, call: &ExprCall) -> Option<Mount> {
        let method = call.func.as_attribute_expr()?;
        if !MOUNTING.contains(&method.attr.as_str()) {
            return None;
        }
        let given = &call.arguments.args;
        let by_place = || given.iter().take(2).find(|value| value.is_string_literal_expr());
        let prefix = PREFIX.iter().find_map(|name| keyword(call, name)).or_else(by_place)?;
        let prefix = literal(prefix, self.module).and_then(|value| Some(value.as_str()?.to_owned()))?;
        let server = keyword(call, "server").or_else(|| given.iter().find(|value| !value.is_string_literal_expr()))?;
        let is_prefix = !prefix.is_empty() && !prefix.contains('/');
        Some(Mount { server: self.server(server).filter(|_| is_prefix)?, prefix })
    }

    /// `=weather` for a server of the file, `=*weather` for a variable of a function in it, `=build()` for one that a function of it makes, `weather.mcp` for one of another file.
    fn server(&self, value: &Expr) -> Option<String> {
        if let Expr::Call(made) = value {
            let is_class = word_of(self.module, &made.func).is_some_and(|word| SERVERS.contains(&word.as_str()));
            return self.server(&made.func).filter(|_| !is_class).map(|name| name + "()");
        }
        let own = || name_of(value).map(|name| format!("{OWN}{name}"));
        match self.module.resolve(value) {
            // A variable of a function that makes it, or what a function imports.
            Named::Outside(full) if full.starts_with("builtins.") => {
                let name = name_of(value)?;
                if self.local.contains(name) {
                    return Some(format!("{OWN}{LOCAL}{name}"));
                }
                let is_it = |import: &&String| last_name(import) == name && import.len() > name.len();
                self.module.imports.iter().find(is_it).cloned()
            }
            Named::Outside(full) => Some(full),
            Named::Value { .. } | Named::Nothing => own(),
            Named::Class(_) => None,
        }
    }
}

impl<'a> Visitor<'a> for Search<'_, '_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.found.extend(self.mount(call));
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
