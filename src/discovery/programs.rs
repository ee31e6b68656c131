//! Programs of several files: commands of click and typer that a file has from its helpers, by the words that lead to them.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

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

/// Programs that attach one another more deeply are not followed.
const DEEPEST: usize = 8;

impl Program {
    /// Whether it has none of both.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.attached.is_empty()
    }
}

impl Attached {
    /// Whether it is of the module that a file is, by the last names of both: `products` of `commands.products.cli`.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        self.target.rsplit('.').nth(1).is_some_and(|module| module == module_of(path))
    }

    fn target_name(&self) -> &str {
        self.target.rsplit('.').next().unwrap_or_default()
    }
}

/// The last name of a file's module: `tools` of `tools/__init__.py`.
pub(super) fn module_of(path: &Path) -> &str {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = || path.parent()?.file_name()?.to_str();
    if stem == "__init__" { folder().unwrap_or_default() } else { stem }
}

impl ToolFile {
    /// Adds the commands that it has from helpers. Returns whether there are any.
    pub(super) fn attach_commands(&mut self, helpers: &[&ToolFile]) -> bool {
        let mut found = Vec::new();
        for attached in &self.servers.program.attached {
            collect(attached, &[], helpers, DEEPEST, &mut found);
        }
        let mut taken: HashSet<String> = self.functions.iter().map(|function| function.name.clone()).collect();
        let before = self.functions.len();
        for (helper, function, name) in found {
            let Some(place) = place_within(&self.path, &helper.path) else { continue };
            if taken.insert(name.clone()) {
                let described = Function { name, output_schema: None, ..function.of_helper(&helper.path, &place) };
                self.functions.push(described);
            }
        }
        self.functions.len() > before
    }
}

/// The commands of what is attached, each with its name as a tool.
fn collect<'h>(
    attached: &Attached,
    above: &[String],
    helpers: &[&'h ToolFile],
    depth: usize,
    found: &mut Vec<(&'h ToolFile, &'h Function, String)>,
) {
    let name = attached.target_name();
    let words = || above.iter().chain(&attached.words).cloned().collect::<Vec<_>>();
    let has = |file: &ToolFile| {
        file.servers.program.groups.iter().any(|group| group.name == name)
            || file.functions.iter().any(|function| function.symbol() == name)
    };
    let by_name = || helpers.iter().filter(|file| has(file));
    // A package may have it from another module.
    let Some(file) = by_name().find(|file| attached.is_of(&file.path)).or_else(|| by_name().next()) else { return };
    let Some(group) = file.servers.program.groups.iter().find(|group| group.name == name) else {
        let function = file.functions.iter().find(|function| function.symbol() == name);
        found.extend(function.map(|function| {
            let last = attached.name.as_deref().unwrap_or(&function.name);
            (*file, function, tool_name(&words(), last))
        }));
        return;
    };
    let called = attached.name.clone().unwrap_or_else(|| group.called.clone());
    let inside: Vec<String> = words().into_iter().chain((!called.is_empty()).then_some(called)).collect();
    let commands = file.functions.iter().filter(|function| group.commands.contains(&function.line));
    found.extend(commands.map(|function| (*file, function, tool_name(&inside, &function.name))));
    if depth > 0 {
        let further = file.servers.program.attached.iter().filter(|further| further.below == group.name);
        further.for_each(|further| collect(further, &inside, helpers, depth - 1, found));
    }
}

fn tool_name(words: &[String], last: &str) -> String {
    let words = words.iter().map(String::as_str).chain([last]);
    words.map(nearest_identifier).collect::<Vec<_>>().join("_")
}
