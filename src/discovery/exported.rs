//! Tools that `__all__` exports from other files: functions, and methods of instances. Classes of the file have the methods of base
//! classes in other files.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::modules::Modules;
use super::python::{Classes, classes_of, methods_of, read_file};
use super::several::{NO_TOOLS, place_within};
use super::{Function, ToolFile, Warning};

/// Something of another module that the file offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// What the file calls it, or the instance or class that has its methods.
    pub name: String,
    /// What it is, dotted: `tools.notes.search`; for an instance that the file makes, its class.
    pub target: String,
    /// Whether the target is a class, of which the file makes or extends an instance.
    pub target_is_class: bool,
}

/// The rule of `check` about `__all__`.
pub(super) const EXPORTS: &str = "exports";

/// How what is wrong with a name in `__all__` begins.
pub(super) fn names(name: &str) -> String {
    format!("`__all__` names `{name}`")
}

/// A file that may define what is exported.
struct Neighbour<'h> {
    file: Cow<'h, ToolFile>,
    /// Read when they are asked for: few files export anything of others.
    classes: OnceCell<Classes>,
}

impl ToolFile {
    /// Adds what the file offers of its helpers. Those `beyond` belong to another file.
    pub(super) fn take_exported(&mut self, helpers: &HashMap<PathBuf, Self>, beyond: &HashSet<&Path>) {
        if self.servers.exported.is_empty() {
            return;
        }
        let exported = std::mem::take(&mut self.servers.exported);
        // One that is a tool file itself is not among the helpers.
        let file = |path: &PathBuf| helpers.get(path).map_or_else(|| Cow::Owned(read_file(path)), Cow::Borrowed);
        let own = self.helpers.iter().filter(|path| !beyond.contains(path.as_path()));
        let own: Vec<Neighbour<'_>> =
            own.map(|path| Neighbour { file: file(path), classes: OnceCell::new() }).collect();
        let path = self.path.clone();
        let imports = self.imports.clone();
        let all = std::iter::once((&*path, imports.as_slice()));
        let modules = Modules::of(all.chain(own.iter().map(|one| (&*one.file.path, one.file.imports.as_slice()))));
        let mut known = HashSet::new();
        for one in &exported {
            // Of several modules that are imported with `*`, the last has it.
            if (one.target_is_class || !known.contains(&one.name)) && self.take_one(one, &own, &modules) {
                known.insert(&one.name);
            }
        }
        self.servers.exported = exported;
    }

    /// Returns whether it is found.
    fn take_one(&mut self, one: &Exported, neighbours: &[Neighbour<'_>], modules: &Modules<'_>) -> bool {
        let has = |place: usize, name: &str| {
            place.checked_sub(1).is_some_and(|place| neighbours[place].has(name, one.target_is_class))
        };
        let Some((place, name)) = modules.find(&self.path, &one.target, &has) else { return false };
        let Some(neighbour) = place.checked_sub(1).map(|place| &neighbours[place]) else { return false };
        let helper = &*neighbour.file;
        let found = match neighbour.function(&name).filter(|_| !one.target_is_class) {
            None => methods_of(&helper.path, &name, one.target_is_class, &one.name).unwrap_or_default(),
            Some(function) => {
                let Some(place) = place_within(&self.path, &helper.path) else {
                    self.warn_of_place(&helper.path);
                    return false;
                };
                self.add_open_names(helper, Some(&place));
                let joined = function.of_helper(&helper.path, &place);
                vec![Function { wanted: None, name: one.name.clone(), ..joined }]
            }
        };
        if found.is_empty() {
            return false;
        }
        let reported = format!("{}, ", names(&one.name));
        let is_answered =
            |it: &Warning| it.rule == NO_TOOLS || it.rule == EXPORTS && it.reason.what.starts_with(&reported);
        self.warnings.retain(|warning| !is_answered(warning));
        for function in found {
            // The file's own method is there in place of that of its base.
            let is_there = |it: &Function| {
                it.symbol() == function.symbol() && (one.target_is_class || it.own_name() == function.own_name())
            };
            if !self.functions.iter().any(is_there) {
                let defined_in = Some((*helper.path).into());
                self.functions.push(Function { defined_in, ..function });
            }
        }
        true
    }
}

impl Neighbour<'_> {
    fn function(&self, name: &str) -> Option<&Function> {
        self.file.functions.iter().find(|it| it.is_called(name) && it.role.is_tool())
    }

    /// Whether it defines the class, or else a function or an instance of one of its classes.
    fn has(&self, name: &str, class: bool) -> bool {
        let classes = || self.classes.get_or_init(|| classes_of(&self.file.path));
        if class {
            classes().names.contains(name)
        } else {
            self.function(name).is_some() || classes().instances.contains(name)
        }
    }
}
