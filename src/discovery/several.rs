//! Servers of several files: what a helper offers by the server of another file is a tool of the file that imports it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::python::{Live, read_bytes_with};
use super::{Function, OpenNames, ToolFile, Warning};
use crate::config::origin::Diagnosis;

/// What a file says about the servers and toolkits of frameworks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Servers {
    /// Whether it makes a server.
    pub makes: bool,
    /// Whether frameworks make its functions tools.
    pub marks: bool,
    /// The servers of other modules that do, dotted: `app.mcp`; `.` for one that a function of it is given.
    pub of: Vec<String>,
    /// Whether it runs a server of another module.
    pub runs: bool,
    /// What its `__all__` names.
    pub names: Option<Vec<String>>,
}

/// Begins what the worker knows tools and types of helpers by: `beside:tools/notes.py:add_note`.
const BESIDE: &str = "beside:";
/// The rule of `check` about a file that offers nothing.
pub(super) const NO_TOOLS: &str = "no-tools";
/// Rules of `check` about what is served, which hold for helpers as well.
const OF_SERVING: [&str; 4] = ["inner-tools", "low-level", "class", "name"];

impl ToolFile {
    /// Adds the tools of helpers to a file that makes or runs a server, marks tools or has no functions. Any other only uses its helpers.
    pub(super) fn join(&mut self, helpers: &HashMap<PathBuf, ToolFile>) {
        let own: Vec<&ToolFile> = self.helpers.iter().filter_map(|path| helpers.get(path)).collect();
        let Servers { makes, marks, runs, .. } = self.servers;
        let is_host = makes || marks || self.functions.is_empty() || runs && own.iter().any(|it| it.servers.makes);
        // What needs no server, such as a tool of an agent, is the helper's own.
        let by_server = |helper: &&ToolFile| helper.servers.makes || !helper.servers.of.is_empty();
        let offering: Vec<&ToolFile> =
            own.into_iter().filter(|helper| helper.servers.marks).filter(by_server).collect();
        if !is_host || offering.is_empty() {
            return;
        }
        self.run_a_server();
        self.warnings.retain(|warning| warning.rule != NO_TOOLS);
        let mut taken = self.functions.iter().map(Function::identity).collect();
        for helper in offering {
            self.take(helper, &mut taken);
        }
    }

    /// Takes a file for one that runs the server of another: what it does not mark and does not name in `__all__` is no tool.
    pub(super) fn run_a_server(&mut self) {
        if !self.servers.marks && self.servers.names.is_none() {
            self.functions.retain(|function| !function.role.is_tool());
            self.open = OpenNames::default();
        }
    }

    /// What the worker knows a helper by: its path from the file's folder.
    fn place_of<'p>(&self, helper: &'p Path) -> Cow<'p, str> {
        let inside = self.path.parent().and_then(|folder| helper.strip_prefix(folder).ok());
        inside.unwrap_or(helper).to_string_lossy()
    }

    /// Its functions, read again with the description of live types. `None` if it has changed meanwhile.
    pub fn described_by(&self, description: &str) -> Option<Vec<Function>> {
        let live = Live::read(description);
        let mut read: HashMap<&Path, Vec<Function>> = HashMap::new();
        for path in self.functions.iter().filter_map(|function| function.defined_in.as_deref()) {
            if !read.contains_key(path) {
                let live = live.of_helper(&format!("{BESIDE}{}:", self.place_of(path)));
                read.insert(path, read_bytes_with(path, &std::fs::read(path).ok()?, live).functions);
            }
        }
        let own = read_bytes_with(&self.path, &std::fs::read(&self.path).ok()?, live);
        if own.fingerprint != self.fingerprint {
            return None;
        }
        let again = |function: &Function| {
            let (path, symbol) = (function.defined_in.as_deref(), function.symbol_in_file());
            let among = path.map_or(&own.functions, |path| &read[path]);
            let found = among.iter().find(|it| it.symbol() == symbol && it.line == function.line)?;
            Some(path.map_or_else(|| found.clone(), |path| found.of_helper(path, &self.place_of(path))))
        };
        self.functions.iter().map(again).collect()
    }

    fn take(&mut self, helper: &ToolFile, taken: &mut HashSet<(String, bool)>) {
        let place = self.place_of(&helper.path);
        // In a symbol, a colon ends the place.
        if Path::new(&*place).is_absolute() || place.starts_with("..") || place.contains(':') {
            let what = format!("the tools of {place} are not served: it is not below the file's folder");
            let reason = Diagnosis::new(what, "move it there, into a folder without a colon in its name");
            self.warnings.push(Warning { line: 0, rule: "inner-tools".into(), reason });
            return;
        }
        let mut warnings: Vec<Warning> =
            helper.warnings.iter().filter(|one| OF_SERVING.contains(&&*one.rule)).cloned().collect();
        let is_named =
            |function: &&Function| self.servers.names.as_ref().is_none_or(|names| names.contains(&function.name));
        let offered: Vec<&Function> = helper.functions.iter().filter(is_named).collect();
        for function in offered {
            if taken.insert(function.identity()) {
                self.functions.push(function.of_helper(&helper.path, &place));
            } else {
                let what = format!("the name `{}` is already taken by another tool", function.name);
                let reason = Diagnosis::new(what, "give it another name");
                warnings.push(Warning { line: function.line, rule: "name".into(), reason });
            }
        }
        for (side, names) in &helper.open {
            let names = names.iter().map(|name| format!("{BESIDE}{place}:{name}"));
            self.open.entry(*side).or_default().extend(names);
        }
        self.warnings.extend(warnings.into_iter().map(|Warning { line, rule, reason }| {
            let reason = Diagnosis::new(format!("{place}, line {line}: {}", reason.what), reason.fix);
            Warning { line: 0, rule, reason }
        }));
    }
}

impl Function {
    fn of_helper(&self, path: &Path, place: &str) -> Self {
        let symbol = Some(format!("{BESIDE}{place}:{}", self.symbol()));
        Self { symbol, defined_in: Some(path.into()), ..self.clone() }
    }

    /// What no other function of its file has. A tool and a prompt may have one name.
    fn identity(&self) -> (String, bool) {
        (self.name.clone(), self.role.is_tool())
    }

    /// What it is known by in the file that defines it.
    fn symbol_in_file(&self) -> &str {
        let inside = self.symbol().strip_prefix(BESIDE).and_then(|rest| Some(rest.split_once(':')?.1));
        inside.unwrap_or_else(|| self.symbol())
    }
}
