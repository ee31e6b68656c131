//! Programs of several files: commands of click and typer that a file has from its helpers, by the words that lead to them.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::modules::Modules;
use super::several::place_within;
use super::{Function, ToolFile};
use crate::pep723::nearest_identifier;

/// The groups and applications of a file, and what it attaches to them of other modules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Those within no other of the file.
    pub groups: Vec<Group>,
    /// Commands and groups of other modules.
    pub attached: Vec<Attached>,
}

/// A function that click makes a group, or an application of typer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name in the file.
    pub name: String,
    /// Its name on a command line; empty for an application without one.
    pub called: String,
    /// The lines of its commands, also of those in groups within it.
    pub commands: Vec<usize>,
}

/// A command or group of another module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attached {
    /// The outermost group of the file that has it.
    pub below: String,
    /// The groups between that and it, as on a command line.
    pub words: Vec<String>,
    /// The name that it is given.
    pub name: Option<String>,
    /// What it is, dotted: `commands.products.cli`.
    pub target: String,
}

/// More commands and groups of other files are not looked for.
const MOST: usize = 1000;

impl Program {
    /// Whether it has no groups and attaches nothing.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.attached.is_empty()
    }
}

impl ToolFile {
    /// Adds the commands that it has from helpers. Returns whether there are any.
    pub(super) fn attach_commands(&mut self, helpers: &[&ToolFile]) -> bool {
        let mut taken: HashSet<String> = self.functions.iter().map(|function| function.own_name().to_owned()).collect();
        let before = self.functions.len();
        for Subcommand { file, function, name } in self.attached_commands(helpers) {
            let Some(place) = place_within(&self.path, &file.path) else {
                self.warn_of_place(&file.path);
                continue;
            };
            let joined = function.of_helper(&file.path, &place);
            if taken.insert(name.clone()) || !self.has(&joined) {
                self.functions.push(Function { name, wanted: None, output_schema: None, ..joined });
            }
        }
        self.functions.len() > before
    }

    /// The commands of other files that are part of its program.
    pub(super) fn attached_commands<'h>(&self, files: &[&'h ToolFile]) -> Vec<Subcommand<'h>> {
        if self.servers.program.attached.is_empty() {
            return Vec::new();
        }
        let own = std::iter::once((&*self.path, self.imports.as_slice()));
        let modules = Modules::of(own.chain(files.iter().map(|file| (&*file.path, file.imports.as_slice()))));
        let mut search = Search { files, modules, inside: Vec::new(), steps: 0, found: Vec::new() };
        for attached in &self.servers.program.attached {
            search.collect(&self.path, attached, &[]);
        }
        search.found
    }
}

/// A command of another file.
pub(super) struct Subcommand<'h> {
    pub file: &'h ToolFile,
    pub function: &'h Function,
    /// Its name as a tool: the words that lead to it.
    pub name: String,
}

struct Search<'s, 'h> {
    files: &'s [&'h ToolFile],
    modules: Modules<'s>,
    /// The groups around what is looked at, which may attach one another.
    inside: Vec<(&'h Path, &'h str)>,
    /// How many were looked at.
    steps: usize,
    found: Vec<Subcommand<'h>>,
}

impl<'h> Search<'_, 'h> {
    fn collect(&mut self, from: &Path, attached: &Attached, above: &[String]) {
        let group_of =
            |file: &'h ToolFile, name: &str| file.servers.program.groups.iter().find(|group| group.name == name);
        let function_of = |file: &'h ToolFile, name: &str| file.functions.iter().find(|it| it.symbol() == name);
        // The first is the tool file itself.
        let has = |file: usize, name: &str| {
            let file = file.checked_sub(1).map(|file| self.files[file]);
            file.is_some_and(|file| group_of(file, name).is_some() || function_of(file, name).is_some())
        };
        self.steps += 1;
        if self.steps > MOST {
            return;
        }
        let Some((file, name)) = self.modules.find(from, &attached.target, &has) else { return };
        let file = self.files[file - 1];
        let mut words: Vec<String> = above.iter().chain(&attached.words).cloned().collect();
        let Some(group) = group_of(file, &name) else {
            if let Some(function) = function_of(file, &name) {
                let last = attached.name.as_deref().unwrap_or(function.own_name());
                self.add(file, function, &words, last);
            }
            return;
        };
        let place = (&*file.path, group.name.as_str());
        if self.inside.contains(&place) {
            return;
        }
        let called = attached.name.clone().unwrap_or_else(|| group.called.clone());
        words.extend((!called.is_empty()).then_some(called));
        for function in file.functions.iter().filter(|function| group.commands.contains(&function.line)) {
            self.add(file, function, &words, function.own_name());
        }
        self.inside.push(place);
        for further in file.servers.program.attached.iter().filter(|further| further.below == group.name) {
            self.collect(&file.path, further, &words);
        }
        self.inside.pop();
    }

    fn add(&mut self, file: &'h ToolFile, function: &'h Function, words: &[String], last: &str) {
        if self.found.len() < MOST {
            let words = words.iter().map(String::as_str).chain([last]);
            let name = words.map(nearest_identifier).collect::<Vec<_>>().join("_");
            self.found.push(Subcommand { file, function, name });
        }
    }
}
