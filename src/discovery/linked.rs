//! Hints and defaults whose names a neighbour defines: the file is read again together with its neighbours.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::python::{Known, Live, NeighbourScopes, Scopes, bytes_of, read_bytes_with};
use super::several::{BESIDE, place_within};
use super::{Function, JsonSchema, OpenNames, ToolFile};

/// What is completed by neighbours.
#[derive(Serialize, Deserialize)]
pub(super) struct LinkedSchemas {
    functions: Vec<LinkedFunction>,
    open: OpenNames,
}

/// One of its functions.
#[derive(Serialize, Deserialize)]
struct LinkedFunction {
    /// What the worker knows it by, and its line.
    symbol: String,
    line: usize,
    description: Option<String>,
    input_schema: JsonSchema,
    output_schema: Option<JsonSchema>,
}

/// The files of a tool file that were read again, by path.
type Again = HashMap<PathBuf, ToolFile>;

impl ToolFile {
    /// Its functions, read again with the description of live types. `None` if it has changed meanwhile.
    pub fn described_by(&self, description: &str) -> Option<Vec<Function>> {
        let scopes = Scopes::of(self.helpers.iter().chain([&self.path]));
        let neighbours = NeighbourScopes::of(&scopes, &self.path, &self.helpers);
        let paths = self.functions.iter().filter_map(|function| function.defined_in.as_deref());
        let again = self.read_again(paths.chain([&*self.path]), &Live::read(description), &neighbours)?;
        Some(self.functions.iter().map(|function| self.in_files(function, &again)).collect())
    }

    /// Completes the schemas in which it or a helper mentions names of other files. `once` may know the result from an earlier run.
    pub(super) fn link(
        &mut self,
        scopes: &Scopes,
        helpers: &HashMap<PathBuf, Self>,
        once: impl FnOnce(&mut Self, &dyn Fn(&mut Self)),
    ) {
        if self.helpers.is_empty() {
            return;
        }
        let (own_path, all) = (self.path.clone(), self.helpers.clone());
        let neighbours = NeighbourScopes::of(scopes, &own_path, &all);
        let borrows = |file: &&Self| file.borrowed.iter().any(|name| neighbours.may_define(&file.path, name));
        let has_own = self.functions.iter().any(|function| function.defined_in.is_none());
        let own = Some(&*self).filter(|_| has_own);
        let defining: HashSet<&Path> = self.functions.iter().filter_map(|it| it.defined_in.as_deref()).collect();
        let files = own.into_iter().chain(defining.into_iter().filter_map(|path| helpers.get(path)));
        let paths: Vec<PathBuf> = files.filter(borrows).map(|file| file.path.clone()).collect();
        if paths.is_empty() {
            return;
        }
        once(self, &|file: &mut Self| {
            let paths = paths.iter().map(PathBuf::as_path);
            let Some(again) = file.read_again(paths, &Live::default(), &neighbours) else { return };
            file.functions = file.functions.iter().map(|function| file.in_files(function, &again)).collect();
            file.reopen(&again);
        });
    }

    /// What that has completed.
    pub(super) fn linking(&self) -> LinkedSchemas {
        let linked = |function: &Function| LinkedFunction {
            symbol: function.symbol().to_owned(),
            line: function.line,
            description: function.description.clone(),
            input_schema: function.input_schema.clone(),
            output_schema: function.output_schema.clone(),
        };
        LinkedSchemas { functions: self.functions.iter().map(linked).collect(), open: self.open.clone() }
    }

    /// Takes over what was completed before. Returns false if it is of other functions.
    pub(super) fn take_linking(&mut self, linked: LinkedSchemas) -> bool {
        let is_same =
            |(own, other): (&Function, &LinkedFunction)| own.symbol() == other.symbol && own.line == other.line;
        if linked.functions.len() != self.functions.len() || !self.functions.iter().zip(&linked.functions).all(is_same)
        {
            return false;
        }
        for (function, other) in self.functions.iter_mut().zip(linked.functions) {
            let LinkedFunction { description, input_schema, output_schema, .. } = other;
            (function.description, function.input_schema, function.output_schema) =
                (description, input_schema, output_schema);
        }
        self.open = linked.open;
        true
    }

    /// Reads some of its files again. `None` if it has changed since it was read, or a helper is gone.
    fn read_again<'p>(
        &self,
        paths: impl Iterator<Item = &'p Path>,
        live: &Live,
        neighbours: &NeighbourScopes<'_>,
    ) -> Option<Again> {
        let mut again = Again::new();
        for path in paths {
            if again.contains_key(path) {
                continue;
            }
            let is_own = path == self.path;
            let prefix = (!is_own).then(|| place_within(&self.path, path).map(|place| format!("{BESIDE}{place}:")));
            let live = match prefix {
                Some(prefix) => live.of_helper(&prefix?, BESIDE),
                None => live.clone(),
            };
            let known = Known { live, neighbours: Some(neighbours) };
            let read = read_bytes_with(path, &bytes_of(path).ok()?, known);
            if is_own && read.fingerprint != self.fingerprint {
                return None;
            }
            again.insert(path.to_owned(), read);
        }
        Some(again)
    }

    /// A function with its schemas as they are in the files that were read again. What it is served as does not change by that.
    fn in_files(&self, function: &Function, again: &Again) -> Function {
        let path = function.defined_in.as_deref().unwrap_or(&self.path);
        // Those of a low-level server have no types.
        let has_types = function.defined_in.is_none() || function.symbol().starts_with(BESIDE);
        let Some(among) = again.get(path).filter(|_| has_types) else { return function.clone() };
        let symbol = function.symbol_in_file();
        let waiting = among.servers.waiting.iter().flat_map(|waiting| &waiting.functions);
        let mut all = among.functions.iter().chain(waiting);
        let Some(found) = all.find(|it| it.symbol() == symbol && it.line == function.line) else {
            return function.clone();
        };
        Function {
            description: found.description.clone(),
            input_schema: found.input_schema.clone(),
            output_schema: found.output_schema.clone(),
            ..function.clone()
        }
    }

    /// The names that only live types can resolve, where files were read again.
    fn reopen(&mut self, again: &Again) {
        let own = self.path.clone();
        let place_of = |path: &Path| if path == own { None } else { place_within(&own, path) };
        let places: HashSet<Option<String>> = again.keys().map(|path| place_of(path)).collect();
        for names in self.open.values_mut() {
            let place = |name: &str| Some(name.strip_prefix(BESIDE)?.split_once(':')?.0.to_owned());
            names.retain(|name| !places.contains(&place(name)));
        }
        for (path, file) in again {
            let place = place_of(path);
            self.add_open_names(file, place.as_deref());
        }
        self.open.retain(|_, names| !names.is_empty());
    }

    /// Adds what only live types of a file can resolve; of a helper, with its place.
    pub(super) fn add_open_names(&mut self, file: &Self, place: Option<&str>) {
        for (side, names) in &file.open {
            let named = names.iter().map(|name| match place {
                Some(place) if !name.starts_with(BESIDE) => format!("{BESIDE}{place}:{name}"),
                _ => name.clone(),
            });
            self.open.entry(*side).or_default().extend(named);
        }
    }
}
