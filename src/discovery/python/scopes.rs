//! The top levels of neighbouring files: constants, classes and aliases that a file's hints and defaults mention and another one defines.
//!
//! The parser gives each name its place in the text. Names of a neighbour get the number of its file instead, which lies beyond the end of
//! every text, so that each name is looked up in the file that it is written in.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ruff_python_ast::visitor::transformer::{Transformer, walk_expr};
use ruff_python_ast::{Expr, ExprStringLiteral, Stmt, Suite};
use ruff_python_parser::parse_expression;
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::live::Live;
use super::module::{Binding, Module, name_of};
use super::names::{Named, join};
use super::{bytes_of, syntax_tree};
use crate::discovery::is_standard;
use crate::discovery::modules::{Step, steps};
use crate::discovery::packages::DEEPEST_PACKAGE;
use crate::discovery::several::{BESIDE, place_within};
use crate::pep723;

/// Where the numbers of files begin. Texts are far shorter.
const FIRST: u32 = 1 << 31;
/// A name is not looked up in more files than this, however they import one another.
const MOST_LOOKUPS: usize = 64;

/// The files whose names others may import. Each is parsed when one of its names is looked up.
#[derive(Default)]
pub struct Scopes {
    files: Vec<(PathBuf, OnceCell<Suite>)>,
    numbers: HashMap<PathBuf, usize>,
    /// The names of the files and of the folders around them: no other name begins one of their modules.
    tops: HashSet<OsString>,
}

impl Scopes {
    pub(in crate::discovery) fn of<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Self {
        let mut scopes = Self::default();
        for path in paths {
            if !scopes.numbers.contains_key(path) {
                scopes.numbers.insert(path.clone(), scopes.files.len());
                scopes.tops.extend(path.file_stem().map(OsStr::to_owned));
                let around = path.ancestors().skip(1).take(DEEPEST_PACKAGE);
                scopes.tops.extend(around.filter_map(|folder| Some(folder.file_name()?.to_owned())));
                scopes.files.push((path.clone(), OnceCell::new()));
            }
        }
        scopes
    }

    fn body(&self, number: usize) -> &[Stmt] {
        let (path, body) = &self.files[number];
        body.get_or_init(|| {
            let source = bytes_of(path).ok().and_then(|bytes| pep723::decode(&bytes).ok());
            let parsed = source.and_then(|source| syntax_tree(&source));
            let mut body = parsed.map(|parsed| parsed.into_syntax().body).unwrap_or_default();
            body.iter_mut().for_each(|statement| Mark(number).visit_stmt(statement));
            body
        })
    }
}

/// The files whose names a tool file and its helpers may import.
pub struct NeighbourScopes<'s> {
    scopes: &'s Scopes,
    /// The tool file.
    host: &'s Path,
    own: HashSet<usize>,
}

impl<'s> NeighbourScopes<'s> {
    pub(in crate::discovery) fn of(scopes: &'s Scopes, host: &'s Path, helpers: &[PathBuf]) -> Self {
        let paths = helpers.iter().map(PathBuf::as_path).chain([host]);
        Self { scopes, host, own: paths.filter_map(|path| scopes.numbers.get(path).copied()).collect() }
    }

    /// Whether a name that this file imports, dotted, may be of one of the files.
    pub(in crate::discovery) fn may_define(&self, from: &Path, full: &str) -> bool {
        self.modules_of(from, full).last().is_some_and(|(_, inside)| !inside.is_empty())
    }

    fn path(&self, number: usize) -> &'s Path {
        &self.scopes.files[number].0
    }

    /// The files that an import leads through, each with what it names inside. The last one defines it, unless a package before does.
    fn modules_of<'n>(&self, from: &Path, full: &'n str) -> Vec<(usize, &'n str)> {
        let name = full.trim_start_matches('.');
        let top = name.split('.').next().unwrap_or_default();
        match full.len() - name.len() {
            0 if !self.scopes.tops.contains(OsStr::new(top)) || is_standard(top) => Vec::new(),
            0 => {
                // The tool file's folder, and those above a package that it is part of.
                let folders = self.host.ancestors().skip(1).take(DEEPEST_PACKAGE);
                let mut found = folders.map(|folder| self.modules_in(folder, name, None));
                found.find(|modules| !modules.is_empty()).unwrap_or_default()
            }
            dots => {
                let Some(folder) = from.ancestors().nth(dots) else { return Vec::new() };
                self.modules_in(folder, name, self.number_of(&folder.join("__init__.py")))
            }
        }
    }

    /// The files on the way of a dotted name from a folder, each with the rest of the name.
    fn modules_in<'n>(&self, folder: &Path, name: &'n str, package: Option<usize>) -> Vec<(usize, &'n str)> {
        let numbered = |step: Step<'n>| {
            let number = self.number_of(&step.package).or_else(|| self.number_of(&step.module));
            number.map(|number| (number, step.rest))
        };
        package.map(|number| (number, name)).into_iter().chain(steps(folder, name).filter_map(numbered)).collect()
    }

    fn number_of(&self, path: &Path) -> Option<usize> {
        self.scopes.numbers.get(path).copied().filter(|number| self.own.contains(number))
    }
}

/// What is known beyond the text of a file.
#[derive(Default)]
pub struct Known<'s> {
    /// What a worker says of its types.
    pub live: Live,
    /// The files whose names it may import.
    pub neighbours: Option<&'s NeighbourScopes<'s>>,
}

/// Gives names, and texts that may be hints, the number of their file for a place.
struct Mark(usize);

impl Transformer for Mark {
    fn visit_expr(&self, expression: &mut Expr) {
        match expression {
            Expr::Name(name) => name.range = self.place(),
            Expr::StringLiteral(text) => text.range = self.place(),
            other => walk_expr(self, other),
        }
    }
}

impl Mark {
    fn place(&self) -> TextRange {
        let number = u32::try_from(self.0).unwrap_or(u32::MAX);
        TextRange::empty(TextSize::from(FIRST.saturating_add(number)))
    }

    /// The number of the file that an expression is of; `None` for the file that is read.
    fn of(expression: &Expr) -> Option<usize> {
        let mut at = expression;
        loop {
            at = match at {
                Expr::Attribute(attribute) => &attribute.value,
                Expr::Subscript(generic) => &generic.value,
                _ => break,
            };
        }
        Self::number(at.range())
    }

    fn number(range: TextRange) -> Option<usize> {
        usize::try_from(u32::from(range.start()).checked_sub(FIRST)?).ok()
    }
}

/// The keys under `$defs` of what the top level of the file does not bind.
#[derive(Default)]
pub(super) struct DefinitionKeys {
    /// By the nodes.
    by_place: HashMap<usize, String>,
    /// How many of these have a name.
    named: HashMap<String, usize>,
}

/// What a module looks up in other files.
pub(super) struct Linked<'a> {
    neighbours: &'a NeighbourScopes<'a>,
    /// The file that is read.
    own: &'a Path,
    read: RefCell<HashMap<usize, Rc<Module<'a>>>>,
    /// What names mean, by the file that they are written in.
    known: RefCell<HashMap<(Option<usize>, String), Named<'a>>>,
}

impl<'a> Linked<'a> {
    pub(super) fn new(neighbours: &'a NeighbourScopes<'a>, own: &'a Path) -> Self {
        Self { neighbours, own, read: RefCell::default(), known: RefCell::default() }
    }

    fn module(&self, number: usize) -> Rc<Module<'a>> {
        let mut read = self.read.borrow_mut();
        Rc::clone(read.entry(number).or_insert_with(|| Rc::new(Module::bind("", self.neighbours.scopes.body(number)))))
    }
}

impl<'a> Module<'a> {
    /// Resolves a dotted name in the file that it is written in.
    pub(super) fn resolve(&self, expression: &Expr) -> Named<'a> {
        let Some(linked) = &self.linked else {
            let named = self.resolve_here(expression);
            if let Named::Outside(full) = &named {
                self.note_borrowed(full);
            }
            return named;
        };
        let number = Mark::of(expression);
        let within = number.map(|number| linked.module(number));
        let within = within.as_deref().unwrap_or(self);
        let named = within.resolve_here(expression);
        let lookup = Lookup { own: self, linked, left: Cell::new(MOST_LOOKUPS) };
        let from = number.map_or(linked.own, |number| linked.neighbours.path(number));
        let is_unsure = || first_name(expression).is_some_and(|first| lookup.is_unsure(within, from, first));
        match named {
            Named::Outside(full) => {
                let key = (number, full);
                if let Some(known) = linked.known.borrow().get(&key) {
                    return known.clone();
                }
                let found = if is_unsure() { None } else { lookup.imported(within, from, &key.1) };
                let found = found.unwrap_or_else(|| Named::Outside(key.1.clone()));
                linked.known.borrow_mut().insert(key, found.clone());
                found
            }
            Named::Nothing => Named::Nothing,
            _ if (number.is_some() || !self.star_imports.is_empty()) && is_unsure() => Named::Nothing,
            named => named,
        }
    }
}

fn first_name(expression: &Expr) -> Option<&str> {
    let mut at = expression;
    while let Expr::Attribute(attribute) = at {
        at = &attribute.value;
    }
    name_of(at)
}

/// A search for what one name means.
struct Lookup<'m, 'a> {
    /// The module of the file that is read.
    own: &'m Module<'a>,
    linked: &'m Linked<'a>,
    /// How many more files may be looked at.
    left: Cell<usize>,
}

impl<'a> Lookup<'_, 'a> {
    /// Calls with the module of a file.
    fn within<T>(&self, number: usize, found: impl FnOnce(&Module<'a>, &'a Path) -> T) -> T {
        let path = self.linked.neighbours.path(number);
        if path == self.linked.own { found(self.own, path) } else { found(&self.linked.module(number), path) }
    }

    /// Whether a name of the top level may mean one of several things: it is bound in two places, or also by an import with `*`.
    fn is_unsure(&self, within: &Module<'a>, from: &Path, name: &str) -> bool {
        let is_bound = within.bindings.contains_key(name);
        is_bound && (within.rebound.contains(name) || self.by_star(within, from, name).is_some())
    }

    /// What a name means that one of the files defines. `None` if none does, or that is unsure.
    fn imported(&self, within: &Module<'a>, from: &Path, full: &str) -> Option<Named<'a>> {
        self.left.set(self.left.get().checked_sub(1)?);
        if let Some(unbound) = full.strip_prefix("builtins.") {
            return self.by_star(within, from, unbound);
        }
        let modules = self.linked.neighbours.modules_of(from, full);
        let (number, inside) = *modules.last()?;
        if modules.windows(2).any(|two| self.is_hidden(from, two[0], two[1].0)) {
            return None;
        }
        let mut parts = inside.split('.').filter(|part| !part.is_empty());
        let first = parts.next()?;
        let parts: Vec<&str> = parts.collect();
        self.within(number, |there, path| {
            if self.is_unsure(there, path, first) {
                return None;
            }
            match there.bound(first, &parts) {
                Named::Outside(full) => {
                    let further = self.imported(there, path, &full);
                    further.or_else(|| there.bindings.contains_key(first).then_some(Named::Outside(full)))
                }
                named => Some(named),
            }
        })
    }

    /// Whether a package binds the name of its module to something else: `from .settings import settings`.
    fn is_hidden(&self, from: &Path, (package, inside): (usize, &str), module: usize) -> bool {
        let part = inside.split('.').next().unwrap_or_default();
        self.within(package, |there, path| match there.bindings.get(part) {
            _ if path == from => false, // what it imports itself
            None => false,
            Some(Binding::Import(full)) => {
                self.linked.neighbours.modules_of(path, full).last().is_none_or(|found| *found != (module, ""))
            }
            Some(_) => true,
        })
    }

    /// What an import with `*` brings. The last one counts.
    fn by_star(&self, within: &Module<'a>, from: &Path, name: &str) -> Option<Named<'a>> {
        let first = name.split('.').next().unwrap_or_default();
        within.star_imports.iter().rev().find_map(|star| {
            let (number, inside) = *self.linked.neighbours.modules_of(from, star).last()?;
            let has_it = self.within(number, |there, _| match there.exports.named() {
                Some(all) => all.iter().any(|one| one == first),
                None => !first.starts_with('_'),
            });
            (inside.is_empty() && has_it).then(|| self.imported(within, from, &join(star, name)))?
        })
    }
}

impl Module<'_> {
    /// What the worker knows a name in a hint by. `None` if that cannot name its file.
    pub(super) fn name_for_worker(&self, hint: &Expr, name: String) -> Option<String> {
        let Some((linked, number)) = self.linked.as_ref().zip(Mark::of(hint)) else { return Some(name) };
        let path = linked.neighbours.path(number);
        if path == linked.own {
            return Some(name);
        }
        Some(format!("{BESIDE}{}:{name}", place_within(linked.neighbours.host, path)?))
    }

    /// A quoted hint is one of the file that it is written in.
    pub(super) fn unquote(quoted: &ExprStringLiteral) -> Option<Expr> {
        let mut hint = parse_expression(quoted.value.to_str().trim()).ok()?.into_expr();
        if let Some(number) = Mark::number(quoted.range) {
            Mark(number).visit_expr(&mut hint);
        }
        Some(hint)
    }

    /// The name of a class or an alias under `$defs`, which those of other files and classes within classes may share.
    pub(super) fn name_of_definition(&self, name: &str, place: usize) -> String {
        let is_own = match self.bindings.get(name) {
            Some(Binding::Class(class)) => std::ptr::from_ref(*class).addr() == place,
            Some(Binding::Value(value) | Binding::Alias(value, _)) => std::ptr::from_ref(*value).addr() == place,
            _ => false,
        };
        if is_own {
            return name.to_owned();
        }
        let DefinitionKeys { by_place: keys, named } = &mut *self.keys.borrow_mut();
        if let Some(known) = keys.get(&place) {
            return known.clone();
        }
        let is_taken = |key: &str| {
            let own = self.bindings.get(key);
            matches!(own, Some(Binding::Class(_) | Binding::Value(_) | Binding::Alias(..))) || self.live.defines(key)
        };
        let count = named.entry(name.to_owned()).or_default();
        let key = loop {
            *count += 1;
            let key = if *count == 1 { name.to_owned() } else { format!("{name}-{count}") };
            if !is_taken(&key) {
                break key;
            }
        };
        keys.insert(place, key.clone());
        key
    }
}
