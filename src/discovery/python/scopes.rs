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
use super::module::{Binding, Module};
use super::names::{Named, join};
use super::{bytes_of, syntax_tree};
use crate::discovery::is_standard;
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
pub struct Neighbours<'s> {
    scopes: &'s Scopes,
    /// The tool file.
    host: &'s Path,
    own: HashSet<usize>,
}

impl<'s> Neighbours<'s> {
    pub(in crate::discovery) fn of(scopes: &'s Scopes, host: &'s Path, helpers: &[PathBuf]) -> Self {
        let paths = helpers.iter().map(PathBuf::as_path).chain([host]);
        Self { scopes, host, own: paths.filter_map(|path| scopes.numbers.get(path).copied()).collect() }
    }

    /// Whether a name that this file imports, dotted, may be of one of the files.
    pub(in crate::discovery) fn may_define(&self, from: &Path, full: &str) -> bool {
        self.module_of(from, full).is_some_and(|(_, inside)| !inside.is_empty())
    }

    fn path(&self, number: usize) -> &'s Path {
        &self.scopes.files[number].0
    }

    /// The file that an import leads to, and what it names inside.
    fn module_of<'n>(&self, from: &Path, full: &'n str) -> Option<(usize, &'n str)> {
        let name = full.trim_start_matches('.');
        match full.len() - name.len() {
            0 if !self.scopes.tops.contains(OsStr::new(name.split('.').next()?))
                || is_standard(name.split('.').next()?) =>
            {
                None
            }
            0 => {
                // The tool file's folder, and those above a package.
                let around = from.ancestors().skip(1).take(DEEPEST_PACKAGE);
                self.host.parent().into_iter().chain(around).find_map(|folder| self.module_in(folder, name, None))
            }
            dots => {
                let folder = from.ancestors().nth(dots)?;
                self.module_in(folder, name, self.number_of(&folder.join("__init__.py")))
            }
        }
    }

    /// The last file on the way of a dotted name from a folder, and the rest of the name.
    fn module_in<'n>(&self, folder: &Path, name: &'n str, package: Option<usize>) -> Option<(usize, &'n str)> {
        let (mut within, mut left) = (folder.to_owned(), name);
        let mut found = package.map(|number| (number, name));
        for _ in 0..DEEPEST_PACKAGE {
            let (part, rest) = left.split_once('.').unwrap_or((left, ""));
            let file = within.join(format!("{part}.py"));
            within.push(part);
            // A package comes before a module of its name.
            let number = self.number_of(&within.join("__init__.py")).or_else(|| self.number_of(&file));
            found = number.map(|number| (number, rest)).or(found);
            left = rest;
            if rest.is_empty() {
                break;
            }
        }
        found
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
    pub neighbours: Option<&'s Neighbours<'s>>,
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

/// What a module looks up in other files.
pub(super) struct Linked<'a> {
    neighbours: &'a Neighbours<'a>,
    /// The file that is read.
    own: &'a Path,
    read: RefCell<HashMap<usize, Rc<Module<'a>>>>,
    /// The keys of definitions of other files, by their nodes.
    keys: RefCell<HashMap<usize, String>>,
}

impl<'a> Linked<'a> {
    pub(super) fn new(neighbours: &'a Neighbours<'a>, own: &'a Path) -> Self {
        Self { neighbours, own, read: RefCell::default(), keys: RefCell::default() }
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
        match within.resolve_here(expression) {
            Named::Outside(full) => {
                let from = number.map_or(linked.own, |number| linked.neighbours.path(number));
                let left = Cell::new(MOST_LOOKUPS);
                self.imported(linked, within, from, &full, &left).unwrap_or(Named::Outside(full))
            }
            named => named,
        }
    }

    /// What a name means that one of the files defines.
    fn imported(
        &self,
        linked: &Linked<'a>,
        within: &Self,
        from: &Path,
        full: &str,
        left: &Cell<usize>,
    ) -> Option<Named<'a>> {
        left.set(left.get().checked_sub(1)?);
        if let Some(unbound) = full.strip_prefix("builtins.") {
            // The last one counts.
            let mut stars = within.star_imports.iter().rev().map(|module| join(module, unbound));
            return stars.find_map(|full| self.imported(linked, within, from, &full, left));
        }
        let (number, inside) = linked.neighbours.module_of(from, full)?;
        let path = linked.neighbours.path(number);
        let there = (path != linked.own).then(|| linked.module(number));
        let there = there.as_deref().unwrap_or(self);
        let mut parts = inside.split('.').filter(|part| !part.is_empty());
        let first = parts.next()?;
        match there.bound(first, &parts.collect::<Vec<_>>()) {
            Named::Outside(full) => {
                let further = self.imported(linked, there, path, &full, left);
                further.or_else(|| there.bindings.contains_key(first).then_some(Named::Outside(full)))
            }
            named => Some(named),
        }
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

    /// The name of a class or an alias under `$defs`, which those of other files may share.
    pub(super) fn name_of_definition(&self, name: &str, place: usize) -> String {
        let is_own = match self.bindings.get(name) {
            Some(Binding::Class(class)) => std::ptr::from_ref(*class).addr() == place,
            Some(Binding::Value(value) | Binding::Alias(value)) => std::ptr::from_ref(*value).addr() == place,
            _ => false,
        };
        let Some(linked) = self.linked.as_ref().filter(|_| !is_own) else { return name.to_owned() };
        let mut keys = linked.keys.borrow_mut();
        if let Some(known) = keys.get(&place) {
            return known.clone();
        }
        let is_taken = |key: &String| {
            let is_defined = matches!(
                self.bindings.get(key.as_str()),
                Some(Binding::Class(_) | Binding::Value(_) | Binding::Alias(_))
            );
            is_defined || self.live.defines(key) || keys.values().any(|other| other == key)
        };
        let further = (2..).map(|number: usize| format!("{name}-{number}"));
        let key = std::iter::once(name.to_owned()).chain(further).find(|key| !is_taken(key)).unwrap_or_default();
        keys.insert(place, key.clone());
        key
    }
}
