//! The top level of a module: its names and what they are bound to, its pack, its `__all__`, its imports.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use ruff_python_ast::{
    Alias, ExceptHandler, Expr, ExprCall, Stmt, StmtClassDef, StmtFunctionDef, StmtIf, StmtImportFrom, TypeParams,
};

use super::all_imports::all_imports;
use super::changed::changed_names;
use super::classes::Ancestry;
use super::frameworks::{GroupIndex, Offers, imports_a_framework, is_type, makes_tools, servers_of};
use super::generics::BoundClass;
use super::live::{Live, OpenNames};
use super::names::dotted;
use super::public::Exports;
use super::reach::{Reach, is_main_guard, runs_main};
use super::schema::{Budget, Definitions};
use super::scopes::{DefinitionKeys, Known, Linked};
use super::syntax::Lines;
use crate::config::origin::Diagnosis;
use crate::discovery::{Servers, Warning};

/// What a top-level name is bound to after the module has run.
#[derive(Debug, Clone)]
pub(super) enum Binding<'a> {
    /// Something imported, by its dotted name.
    Import(String),
    /// A function of this file.
    Function(&'a StmtFunctionDef),
    /// A class of this file.
    Class(&'a StmtClassDef),
    /// The value of its only assignment.
    Value(&'a Expr),
    /// An explicit type alias.
    Alias(&'a Expr, Option<&'a TypeParams>),
    /// Unknown.
    Unknown,
}

/// The top level of a module.
pub(super) struct Module<'a> {
    pub(super) bindings: HashMap<&'a str, Binding<'a>>,
    /// Names that are bound more than once: in both branches of an `if`, in a handler, or anew.
    pub(super) rebound: BTreeSet<&'a str>,
    /// Modules imported with `*`, dotted.
    pub(super) star_imports: Vec<String>,
    pub(super) exports: Exports<'a>,
    /// `pack = …` and its line; `None` inside when it is not a literal.
    pub(super) pack: Option<(usize, Option<&'a str>)>,
    pub(super) docstring: Option<&'a str>,
    pub(super) imports: BTreeSet<String>,
    pub(super) warnings: Vec<Warning>,
    pub(super) lines: Lines,
    /// Functions that an assignment replaces.
    pub(super) wrapped: BTreeSet<&'a str>,
    /// Whether the file runs its function `main` when it is run as a program.
    pub(super) runs_main: bool,
    /// Whether the file does something more when it is run as a program.
    pub(super) is_program: bool,
    /// The calls at the top level: statements, and values that are assigned, alone or in a list.
    pub(super) calls: Vec<&'a ExprCall>,
    /// The calls of the program: statements under `if __name__ == "__main__"`.
    pub(super) calls_of_program: Vec<&'a ExprCall>,
    /// The functions that frameworks make tools.
    pub(super) offers: Offers<'a>,
    pub(super) servers: Servers,
    pub(super) groups: OnceCell<GroupIndex<'a>>,
    pub(super) definitions: Definitions<'a>,
    pub(super) keys: RefCell<DefinitionKeys>,
    /// Generic classes with arguments.
    pub(super) bound_classes: RefCell<Vec<Rc<BoundClass<'a>>>>,
    /// How much more schema this file may have.
    pub(super) budget: Budget,
    pub(super) ancestries: RefCell<HashMap<usize, Rc<Ancestry<'a>>>>,
    /// The description of live types.
    pub(super) live: Live,
    /// The names that only live types can resolve.
    pub(super) open: RefCell<OpenNames>,
    /// The files whose names it imports, where they are looked up.
    pub(super) linked: Option<Linked<'a>>,
    /// The names whose lists and dictionaries may change, where the file imports a framework.
    pub(super) changed: Option<HashSet<&'a str>>,
    /// The names of other files that it has looked up.
    pub(super) borrowed: RefCell<BTreeSet<String>>,
}

impl<'a> Module<'a> {
    pub(super) fn read(source: &str, body: &'a [Stmt]) -> Self {
        let mut module = Self::bind(source, body);
        module.imports = all_imports(body);
        module.changed = imports_a_framework(&module).then(|| changed_names(body));
        module.offers = Offers::of(&module, body);
        module.servers = servers_of(&module, body);
        module.borrowed.take();
        module
    }

    /// Its names only.
    pub(super) fn bind(source: &str, body: &'a [Stmt]) -> Self {
        let mut module = Self {
            bindings: HashMap::new(),
            rebound: BTreeSet::new(),
            star_imports: Vec::new(),
            exports: Exports::default(),
            pack: None,
            docstring: docstring_of(body),
            imports: BTreeSet::new(),
            warnings: Vec::new(),
            lines: Lines::of(source),
            wrapped: BTreeSet::new(),
            runs_main: false,
            is_program: false,
            calls: Vec::new(),
            calls_of_program: Vec::new(),
            offers: Offers::default(),
            servers: Servers::default(),
            groups: OnceCell::new(),
            definitions: Definitions::default(),
            keys: RefCell::default(),
            bound_classes: RefCell::default(),
            budget: Budget::default(),
            ancestries: RefCell::default(),
            live: Live::default(),
            open: RefCell::default(),
            linked: None,
            changed: None,
            borrowed: RefCell::default(),
        };
        module.block(body, Reach::Runs);
        module
    }

    /// The same with what is known beyond the text of its file, which has this path.
    pub(super) fn knowing(mut self, known: Known<'a>, path: &'a Path) -> Self {
        self.live = known.live.beside(|key| matches!(self.bindings.get(key), Some(Binding::Class(_))));
        self.linked = known.neighbours.map(|neighbours| Linked::new(neighbours, path));
        self.ancestries.take(); // without the neighbours' classes
        self
    }

    /// The top-level functions after the module has run, in the order of their lines.
    pub(super) fn functions(&self) -> Vec<&'a StmtFunctionDef> {
        let mut functions: Vec<_> = self.bindings.values().filter_map(Binding::as_function).collect();
        functions.sort_by_key(|function| function.range.start());
        functions
    }

    pub(super) fn warn(&mut self, line: usize, rule: &'static str, what: impl Into<String>, fix: &str) {
        self.warnings.push(Warning { line, rule: rule.into(), reason: Diagnosis::new(what, fix) });
    }

    fn block(&mut self, body: &'a [Stmt], reach: Reach) {
        if reach == Reach::Never {
            return;
        }
        for statement in body {
            self.statement(statement, reach);
        }
    }

    fn statement(&mut self, statement: &'a Stmt, reach: Reach) {
        match statement {
            Stmt::FunctionDef(function) if reach == Reach::Runs && !is_overload(function) => {
                self.put(&function.name, Binding::Function(function));
            }
            Stmt::ClassDef(class) => {
                self.put(&class.name, Binding::Class(class));
            }
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.import(alias)),
            Stmt::ImportFrom(import) => self.import_from(import),
            Stmt::If(branch) => self.branch(branch, reach),
            Stmt::Try(attempt) => {
                self.block(&attempt.body, reach);
                let imports = self.imported_in(&attempt.body);
                for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
                    self.block(&handler.body, reach);
                }
                self.keep_imports(imports);
                self.block(&attempt.orelse, reach);
                self.block(&attempt.finalbody, reach);
            }
            Stmt::With(with) => self.block(&with.body, reach),
            Stmt::Delete(deletion) => {
                for name in deletion.targets.iter().filter_map(Expr::as_name_expr) {
                    self.bindings.remove(name.id.as_str());
                }
            }
            Stmt::Expr(expression) if reach == Reach::Runs => {
                self.exports.call(&expression.value, &self.lines);
                self.note_calls(&expression.value, reach);
            }
            _ => self.assignment(statement, reach),
        }
    }

    /// The names that the imports of a block bind, and what to.
    fn imported_in(&self, body: &'a [Stmt]) -> Vec<(&'a str, String)> {
        let aliases = body.iter().flat_map(|statement| match statement {
            Stmt::Import(import) => import.names.as_slice(),
            Stmt::ImportFrom(import) => import.names.as_slice(),
            _ => &[],
        });
        let import = |alias: &'a Alias| {
            let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
            match self.bindings.get(name)? {
                Binding::Import(full) => Some((name, full.clone())),
                _ => None,
            }
        };
        aliases.filter_map(import).collect()
    }

    /// What a handler defines in place of an import stands in for it where that fails: `except ImportError: tool = None`. A function
    /// may be a tool, unless the import is what makes tools; a class is one of the file, unless frameworks give its instances.
    fn keep_imports(&mut self, imports: Vec<(&'a str, String)>) {
        for (name, full) in imports {
            let is_kept = match self.bindings.get(name) {
                Some(Binding::Import(_)) => false,
                Some(Binding::Class(_)) if is_type(&full) => self.rebound.remove(name),
                Some(Binding::Function(_) | Binding::Class(_)) => makes_tools(&full),
                _ => true,
            };
            if is_kept {
                self.bindings.insert(name, Binding::Import(full));
            }
        }
    }

    fn assignment(&mut self, statement: &'a Stmt, reach: Reach) {
        match statement {
            Stmt::Assign(assign) => {
                self.note_calls(&assign.value, reach);
                for target in &assign.targets {
                    self.assign(target, &assign.value, reach);
                }
            }
            Stmt::AnnAssign(assign) => {
                let Some(value) = &assign.value else { return };
                self.note_calls(value, reach);
                match name_of(&assign.target) {
                    Some(name) if says_alias(&assign.annotation) => self.rebind(name, Binding::Alias(value, None)),
                    _ => self.assign(&assign.target, value, reach),
                }
            }
            Stmt::AugAssign(assign) => {
                let is_all = name_of(&assign.target) == Some("__all__");
                if is_all {
                    self.exports.add(&assign.value, &self.lines);
                } else if let Some(name) = name_of(&assign.target) {
                    self.bindings.insert(name, Binding::Unknown);
                }
            }
            Stmt::TypeAlias(alias) => {
                if let Some(name) = name_of(&alias.name) {
                    self.rebind(name, Binding::Alias(&alias.value, alias.type_params.as_deref()));
                }
            }
            Stmt::For(each) => {
                let targets = match &*each.target {
                    Expr::Tuple(targets) => targets.elts.as_slice(),
                    target => std::slice::from_ref(target),
                };
                targets.iter().filter_map(name_of).for_each(|name| self.rebind(name, Binding::Unknown));
            }
            _ => {}
        }
    }

    /// Keeps the calls of a value: itself, or the items of a list.
    fn note_calls(&mut self, value: &'a Expr, reach: Reach) {
        let items = match value {
            Expr::List(list) => list.elts.as_slice(),
            single => std::slice::from_ref(single),
        };
        if reach == Reach::Runs {
            self.calls.extend(items.iter().filter_map(Expr::as_call_expr));
        }
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr, reach: Reach) {
        if let Expr::Tuple(targets) = target {
            targets.elts.iter().filter_map(name_of).for_each(|name| self.rebind(name, Binding::Unknown));
            return;
        }
        let Some(name) = name_of(target) else { return };
        match name {
            "__all__" if reach == Reach::Runs => self.exports.set(value, &self.lines),
            "pack" if reach == Reach::Runs => {
                let text = value.as_string_literal_expr().map(|literal| literal.value.to_str());
                self.pack = Some((self.lines.of_node(target), text));
            }
            _ => self.rebind(name, Binding::Value(value)),
        }
    }

    /// An assignment to a function's name wraps it (`f = cached(f)`). A second assignment makes a value unknown.
    fn rebind(&mut self, name: &'a str, binding: Binding<'a>) {
        match self.bindings.get(name) {
            Some(Binding::Function(_)) => drop(self.wrapped.insert(name)),
            None => drop(self.bindings.insert(name, binding)),
            Some(Binding::Import(_) | Binding::Class(_)) => {
                self.rebound.insert(name);
                self.bindings.insert(name, Binding::Unknown);
            }
            Some(before) if is_same_server(before, &binding) => {}
            Some(_) => drop(self.bindings.insert(name, Binding::Unknown)),
        }
    }

    fn put(&mut self, name: &'a str, binding: Binding<'a>) {
        let is_again = |before: &Binding<'a>| match (before, &binding) {
            (Binding::Import(before), Binding::Import(now)) => before != now,
            _ => true,
        };
        if self.bindings.get(name).is_some_and(is_again) {
            self.rebound.insert(name);
        }
        self.bindings.insert(name, binding);
    }

    fn import(&mut self, alias: &'a Alias) {
        let dotted = alias.name.as_str();
        let (name, bound) = match &alias.asname {
            Some(name) => (name.as_str(), dotted),
            // `import collections.abc` binds `collections`.
            None => dotted.split_once('.').map_or((dotted, dotted), |(first, _)| (first, first)),
        };
        self.put(name, Binding::Import(bound.to_owned()));
    }

    fn import_from(&mut self, import: &'a StmtImportFrom) {
        let from = import.module.as_ref().map_or("", |module| module.as_str());
        let dots = ".".repeat(import.level as usize);
        let inside = if from.is_empty() { dots.clone() } else { format!("{dots}{from}.") };
        for alias in &import.names {
            let imported = alias.name.as_str();
            if imported == "*" {
                self.star_imports.push(format!("{dots}{from}"));
                continue;
            }
            let name = alias.asname.as_ref().unwrap_or(&alias.name);
            self.put(name.as_str(), Binding::Import(format!("{inside}{imported}")));
        }
    }

    fn branch(&mut self, branch: &'a StmtIf, reach: Reach) {
        self.runs_main |= runs_main(branch);
        if is_main_guard(&branch.test) {
            self.is_program = true;
            let statements = branch.body.iter().filter_map(Stmt::as_expr_stmt);
            self.calls_of_program.extend(statements.filter_map(|statement| statement.value.as_call_expr()));
        }
        self.block(&branch.body, reach.inside(&branch.test));
        for clause in &branch.elif_else_clauses {
            let reach = clause.test.as_ref().map_or(reach, |test| reach.inside(test));
            self.block(&clause.body, reach);
        }
    }
}

impl<'a> Binding<'a> {
    fn as_function(&self) -> Option<&'a StmtFunctionDef> {
        if let Self::Function(function) = self { Some(function) } else { None }
    }
}

/// The docstring a body begins with.
pub fn docstring_of(body: &[Stmt]) -> Option<&str> {
    let first = body.first()?.as_expr_stmt()?;
    first.value.as_string_literal_expr().map(|literal| literal.value.to_str())
}

pub(super) fn name_of(expression: &Expr) -> Option<&str> {
    expression.as_name_expr().map(|name| name.id.as_str())
}

/// Both branches of an `if` may make the server: `mcp = FastMCP("x", auth=auth)`, `mcp = FastMCP("x")`.
fn is_same_server(before: &Binding<'_>, after: &Binding<'_>) -> bool {
    let class = |binding: &Binding<'_>| match binding {
        Binding::Value(Expr::Call(call)) => dotted(&call.func),
        _ => None,
    };
    class(before).is_some_and(|name| makes_tools(&name) && class(after) == Some(name))
}

/// `X: TypeAlias = …`
fn says_alias(annotation: &Expr) -> bool {
    match annotation {
        Expr::Name(name) => name.id.as_str() == "TypeAlias",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "TypeAlias",
        _ => false,
    }
}

/// `@overload` stubs are for type checkers; the function is the definition after them.
fn is_overload(function: &StmtFunctionDef) -> bool {
    function.decorator_list.iter().any(|decorator| match &decorator.expression {
        Expr::Name(name) => name.id.as_str() == "overload",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "overload",
        _ => false,
    })
}
