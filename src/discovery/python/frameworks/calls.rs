//! What the functions of a file call, as far as its names tell: the way from a server's program to the functions that give it tools.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Expr, Stmt, StmtClassDef, StmtFunctionDef, StmtIf};

use super::local::{LocalImports, module_of};
use super::obstacles::is_callable;
use super::runs::{Own, is_loop};
use crate::discovery::is_standard;
use crate::discovery::modules::join;
use crate::discovery::python::module::{Binding, Module, name_of};
use crate::discovery::python::names::Named;
use crate::discovery::python::reach::is_main_guard;
use crate::discovery::python::syntax::Depth;

/// What the functions of a file call.
#[derive(Debug, Default)]
pub struct Calls {
    /// By `create_server`, `Server.register`; the top level is the empty name. Functions within functions count as the outermost.
    pub by: BTreeMap<String, BTreeSet<Called>>,
    /// The functions that the worker can call as they are, in the order of their lines, and the [`PROGRAM`] if it can be run.
    pub callable: Vec<String>,
    /// What it imports, dotted.
    pub imports: Vec<String>,
}

/// What calls where the file is the program, under `if __name__ == "__main__"`.
pub const PROGRAM: &str = "__main__";

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Called {
    /// A function or class of the file.
    Own(String),
    /// Something of another module, dotted.
    Outside(String),
    /// A method of something.
    Method(String),
    /// Another module, which runs when it is imported.
    Module(String),
}

impl Calls {
    pub(in crate::discovery::python) fn of<'a>(module: &Module<'a>, body: &'a [Stmt]) -> Self {
        let owner = String::new();
        let mut search = Search {
            module,
            class: None,
            owner,
            imports: LocalImports::default(),
            depth: Depth::default(),
            found: Self::default(),
        };
        search.visit_body(body);
        let functions = module.functions().into_iter().filter(|function| is_callable(module, function));
        let program = is_program_callable(module, body).then(|| PROGRAM.to_owned());
        search.found.callable = functions.map(|function| function.name.to_string()).chain(program).collect();
        search.found.imports = module.imports.iter().cloned().collect();
        search.found
    }
}

/// Whether the worker can run what the file does as a program: `if __name__ == "__main__":` at its top level, once. The worker finds it
/// by the same rule (`frameworks/inner.py`).
fn is_program_callable(module: &Module<'_>, body: &[Stmt]) -> bool {
    let guards = body.iter().filter_map(Stmt::as_if_stmt).filter(|branch| is_main_guard(&branch.test));
    match &guards.collect::<Vec<_>>()[..] {
        [guard] => is_plain_guard(&guard.test) && !Own::of_program(module, &guard.body).runs,
        _ => false,
    }
}

fn is_plain_guard(test: &Expr) -> bool {
    let Some(compare) = test.as_compare_expr() else { return false };
    let is_main = |it: &Expr| it.as_string_literal_expr().is_some_and(|text| text.value.to_str() == PROGRAM);
    name_of(&compare.left) == Some("__name__") && matches!(&*compare.comparators, [main] if is_main(main))
}

struct Search<'m, 'a> {
    module: &'m Module<'a>,
    /// The class around what is visited, within no function.
    class: Option<&'a str>,
    owner: String,
    /// What the function around imports.
    imports: LocalImports<'a>,
    depth: Depth,
    found: Calls,
}

impl<'a> Search<'_, 'a> {
    fn function(&mut self, function: &'a StmtFunctionDef) {
        if !self.owner.is_empty() {
            return visitor::walk_body(self, &function.body);
        }
        let class = self.class.map(|class| format!("{class}.")).unwrap_or_default();
        self.owner = class + &function.name;
        self.found.by.entry(self.owner.clone()).or_default();
        self.visit_body(&function.body);
        self.owner.clear();
        self.imports.clear();
    }

    fn class(&mut self, class: &'a StmtClassDef) {
        let around = self.class.replace(&class.name);
        self.visit_body(&class.body);
        self.class = around;
    }

    fn branch(&mut self, branch: &'a StmtIf) {
        self.visit_expr(&branch.test);
        if is_main_guard(&branch.test) && self.owner.is_empty() {
            PROGRAM.clone_into(&mut self.owner);
            self.visit_body(&branch.body);
            self.owner.clear();
        } else {
            self.visit_body(&branch.body);
        }
        for clause in &branch.elif_else_clauses {
            clause.test.iter().for_each(|test| self.visit_expr(test));
            self.visit_body(&clause.body);
        }
    }

    fn import(&mut self, from: Option<&str>, names: &'a [Alias]) {
        let modules = self.found.by.entry(self.owner.clone()).or_default();
        modules.extend(from.map(|from| Called::Module(from.to_owned())));
        for alias in names {
            modules.insert(Called::Module(from.map_or_else(|| alias.name.to_string(), |from| join(from, &alias.name))));
            if !self.owner.is_empty() {
                self.imports.add(from, alias);
            }
        }
    }

    /// What may be called: with several star imports, something of each of their modules.
    fn all_called(&self, called: &Expr) -> Vec<Called> {
        let stars = &self.module.star_imports;
        match name_of(called).filter(|name| !self.module.bindings.contains_key(name) && !self.imports.contains(name)) {
            Some(name) => stars.iter().map(|star| Called::Outside(join(star, name))).collect(),
            None => self.called(called).into_iter().collect(),
        }
    }

    fn called(&self, called: &Expr) -> Option<Called> {
        if let Some(full) = self.imports.full_name(called) {
            return Some(Called::Outside(full));
        }
        if let Some(name) = name_of(called)
            && let Some(Binding::Function(_) | Binding::Class(_)) = self.module.bindings.get(name)
        {
            return Some(Called::Own(name.to_owned()));
        }
        match self.module.resolve(called) {
            Named::Outside(full) if full.starts_with("builtins.") => method_of(called),
            Named::Outside(full) => {
                let is_foreign = is_standard(full.split('.').next().unwrap_or_default());
                (!is_foreign).then_some(Called::Outside(full))
            }
            Named::Class(_) | Named::Value { .. } | Named::Nothing => method_of(called),
        }
    }
}

/// Not `super().__init__`, which would mean any.
fn method_of(called: &Expr) -> Option<Called> {
    let name = called.as_attribute_expr()?.attr.as_str();
    (!name.starts_with("__")).then(|| Called::Method(name.to_owned()))
}

impl<'a> Visitor<'a> for Search<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) if self.owner.is_empty() => self.class(class),
            Stmt::If(branch) => self.branch(branch),
            Stmt::Import(import) => self.import(None, &import.names),
            Stmt::ImportFrom(import) => self.import(Some(&module_of(import)), &import.names),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            let mut called = self.all_called(&call.func);
            // `anyio.run(serve, path)`
            let run = call.arguments.args.first().filter(|run| run.is_name_expr() && is_loop(self.module, call));
            called.extend(run.into_iter().flat_map(|run| self.all_called(run)));
            self.found.by.entry(self.owner.clone()).or_default().extend(called);
        }
        if self.depth.enter() {
            visitor::walk_expr(self, expression);
            self.depth.leave();
        }
    }
}
