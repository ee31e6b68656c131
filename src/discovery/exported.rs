//! What `__all__` names that another file defines: functions that are imported, and instances of imported classes. Classes of the
//! file have the methods of base classes in other files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::modules::Modules;
use super::python::{defines, methods_of};
use super::several::{NO_TOOLS, place_within};
use super::{Function, ToolFile, Warning};

/// Something of another module that the file offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// What the file calls it, or the instance or class that has its methods.
    pub name: String,
    /// What it is, dotted: `tools.notes.search`; for an instance that the file makes, its class.
    pub target: String,
    /// Whether the target is the class, of which the file has the methods.
    pub is_class: bool,
}

/// The rule of `check` about `__all__`.
pub(super) const EXPORTS: &str = "exports";

/// How what is wrong with a name in `__all__` begins.
pub(super) fn names(name: &str) -> String {
    format!("`__all__` names `{name}`")
}

impl ToolFile {
    /// Adds what the file offers of its helpers. Those `beyond` belong to another file.
    pub(super) fn take_exported(&mut self, helpers: &HashMap<PathBuf, Self>, beyond: &HashSet<&Path>) {
        let exported = std::mem::take(&mut self.servers.exported);
        let own = self.helpers.iter().filter(|path| !beyond.contains(path.as_path()));
        let own: Vec<&Self> = own.filter_map(|path| helpers.get(path)).collect();
        for one in &exported {
            let found = one.of(self, &own);
            if found.is_empty() {
                continue;
            }
            let reported = format!("{}, ", names(&one.name));
            let is_answered =
                |it: &Warning| it.rule == NO_TOOLS || it.rule == EXPORTS && it.reason.what.starts_with(&reported);
            self.warnings.retain(|warning| !is_answered(warning));
            let is_there = |one: &Function, all: &[Function]| {
                all.iter().any(|it| it.symbol() == one.symbol() && it.own_name() == one.own_name())
            };
            let new = found.into_iter().filter(|function| !is_there(function, &self.functions));
            self.functions.extend(new.collect::<Vec<_>>());
        }
        self.servers.exported = exported;
    }
}

impl Exported {
    /// The tools that it is, of a file with these helpers.
    fn of(&self, file: &ToolFile, helpers: &[&ToolFile]) -> Vec<Function> {
        let files: Vec<(&Path, &[String])> = std::iter::once((&*file.path, file.imports.as_slice()))
            .chain(helpers.iter().map(|helper| (&*helper.path, helper.imports.as_slice())))
            .collect();
        let modules = Modules::of(files.into_iter());
        let helper = |place: usize| place.checked_sub(1).map(|place| helpers[place]);
        let function = |helper: &ToolFile, name: &str| {
            let is_it = |it: &&Function| it.symbol() == name && it.role.is_tool();
            helper.functions.iter().find(is_it).cloned()
        };
        let has = |place: usize, name: &str| {
            helper(place).is_some_and(|it| function(it, name).is_some() || defines(&it.path, name, self.is_class))
        };
        let Some((place, name)) = modules.find(&file.path, &self.target, &has) else { return Vec::new() };
        let Some(helper) = helper(place) else { return Vec::new() };
        if let Some(function) = function(helper, &name).filter(|_| !self.is_class) {
            let joined = place_within(&file.path, &helper.path).map(|place| function.of_helper(&helper.path, &place));
            let named = joined.map(|joined| Function { wanted: None, name: self.name.clone(), ..joined });
            return named.into_iter().collect();
        }
        let methods = methods_of(&helper.path, &name, self.is_class, &self.name).unwrap_or_default();
        methods.into_iter().map(|one| Function { defined_in: Some((*helper.path).into()), ..one }).collect()
    }
}
