//! Which files are tool files and which only help one: a file without a header that a tool file imports is a helper.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use super::standard_library::is_standard;
use super::{Kind, ToolFile, read_file};
use crate::pep723::package_of;

/// Takes the helpers out of the list and notes them with the files they belong to.
pub(super) fn set_apart(files: Vec<ToolFile>, read: impl FnMut(&Path) -> ToolFile) -> Vec<ToolFile> {
    let mut neighbours = Neighbours::of(&files, read);
    let may_help: HashSet<&Path> =
        files.iter().filter(|file| file.kind == Kind::Internal).map(|file| file.path.as_path()).collect();

    let mut imported = HashSet::new();
    for file in &files {
        imported.extend(neighbours.of_file(&file.path).iter().filter(|path| **path != file.path).cloned());
    }
    let mut helping: HashSet<PathBuf> = HashSet::new();
    let is_certain = |file: &&ToolFile| !may_help.contains(file.path.as_path()) || !imported.contains(&file.path);
    // Those in a circle of imports that no tool file enters come last: its first file by path is the tool file.
    let (certain, circular): (Vec<_>, Vec<_>) = files.iter().partition(is_certain);
    for file in certain.into_iter().chain(circular) {
        if !helping.contains(&file.path) {
            let reached = neighbours.reachable(&file.path, |path| may_help.contains(path));
            helping.extend(reached);
        }
    }

    let mut listed: Vec<ToolFile> = files.into_iter().filter(|file| !helping.contains(&file.path)).collect();
    for file in &mut listed {
        file.helpers = neighbours.reachable(&file.path, |_| true);
        file.helpers.sort();
    }
    listed
}

/// The neighbouring files that a file imports, directly or through one another, whatever else lies in its folder.
pub fn neighbours_of(path: &Path) -> Vec<PathBuf> {
    let files = [read_file(path)];
    let mut found = Neighbours::of(&files, read_file).reachable(path, |_| true);
    found.sort();
    found
}

/// Which neighbouring files each file imports.
struct Neighbours<R> {
    known: HashMap<PathBuf, Vec<PathBuf>>,
    read: R,
}

impl<R: FnMut(&Path) -> ToolFile> Neighbours<R> {
    fn of(files: &[ToolFile], read: R) -> Self {
        let scanned: HashSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
        let known = files.iter().map(|file| (file.path.clone(), imported_files(file, &scanned)));
        Self { known: known.collect(), read }
    }

    /// What a file imports; one that was not scanned (`_common.py`) is read now.
    fn of_file(&mut self, path: &Path) -> &[PathBuf] {
        let read = || imported_files(&(self.read)(path), &HashSet::new());
        self.known.entry(path.to_owned()).or_insert_with(read)
    }

    /// The files that a file imports, directly or through others, going only through those that are `followed`.
    fn reachable(&mut self, start: &Path, followed: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let mut seen = HashSet::from([start.to_owned()]);
        let mut waiting = VecDeque::from([start.to_owned()]);
        let mut reached = Vec::new();
        while let Some(path) = waiting.pop_front() {
            for next in self.of_file(&path).to_vec() {
                if followed(&next) && seen.insert(next.clone()) {
                    reached.push(next.clone());
                    waiting.push_back(next);
                }
            }
        }
        reached
    }
}

/// The files beside a file that its imports mean. What is installed comes first on `sys.path`, so a name of the standard
/// library or of a dependency never means a neighbour.
fn imported_files(file: &ToolFile, scanned: &HashSet<&Path>) -> Vec<PathBuf> {
    let Some(folder) = file.path.parent() else { return Vec::new() };
    let dependencies: Vec<String> =
        file.header.iter().flat_map(|header| &header.dependencies).map(|dependency| import_name(dependency)).collect();
    let is_installed = |module: &str| is_standard(module) || dependencies.iter().any(|name| name == module);
    let mut found: Vec<PathBuf> = Vec::new();
    for import in &file.imports {
        let mut parts = import.split('.');
        let Some(first) = parts.next().filter(|first| !first.is_empty() && !is_installed(&first.to_lowercase())) else {
            continue;
        };
        let beside = folder.join(format!("{first}.py"));
        let within = parts.next().map(|second| folder.join(first).join(format!("{second}.py")));
        for path in std::iter::once(beside).chain(within) {
            if !found.contains(&path) && (scanned.contains(path.as_path()) || path.is_file()) {
                found.push(path);
            }
        }
    }
    found
}

/// The module a requirement most likely installs: its name as Python spells names.
fn import_name(dependency: &str) -> String {
    package_of(dependency).to_lowercase().replace(['-', '.'], "_")
}
