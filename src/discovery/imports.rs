//! Which neighbouring files a file imports, directly or through one another.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use super::modules::steps;
use super::packages::{above_own_package, has_tool_named_after};
use super::standard::is_standard;
use super::{Kind, ToolFile, read_file};
use crate::pep723::package_of;

/// The neighbouring files that a file imports, directly or through one another.
pub fn neighbours_of(path: &Path) -> Vec<PathBuf> {
    let files = [read_file(path)];
    let mut found = Neighbours::of(&files, read_file).reachable(path, |_| true);
    found.sort();
    found
}

/// The neighbouring files that each file imports.
pub(super) struct Neighbours<R> {
    pub known: HashMap<PathBuf, Vec<PathBuf>>,
    /// The files without a header that import packages.
    pub elsewhere: HashSet<PathBuf>,
    /// Files that are no tool files, and those that wait for what another one gives them.
    pub serving: HashMap<PathBuf, ToolFile>,
    /// The files that are written for the first version of the MCP SDK.
    of_first_sdk: HashSet<PathBuf>,
    /// Those that add folders or modules to what can be imported.
    adding: HashSet<PathBuf>,
    /// The folders that tool files lie in, which are on their `sys.path`.
    roots: HashSet<PathBuf>,
    read: R,
}

impl<R: FnMut(&Path) -> ToolFile> Neighbours<R> {
    pub fn of(files: &[ToolFile], read: R) -> Self {
        let scanned: HashSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
        let roots = files.iter().filter_map(|file| Some(file.path.parent()?.to_owned())).collect();
        let known = files.iter().map(|file| (file.path.clone(), imported_files(file, &scanned, None))).collect();
        let needing = files.iter().filter(|file| file.kind == Kind::Internal && file.imports_packages());
        let elsewhere = needing.map(|file| file.path.clone()).collect();
        let of_first_sdk = files.iter().filter(|file| uses_first_sdk(file)).map(|file| file.path.clone()).collect();
        let adding = files.iter().filter(|file| file.adds_modules).map(|file| file.path.clone()).collect();
        Self { known, elsewhere, serving: HashMap::new(), of_first_sdk, adding, roots, read }
    }

    /// What a file imports. One that was not scanned (`_common.py`) is read now.
    pub fn of_file(&mut self, path: &Path) -> &[PathBuf] {
        let read = || {
            let file = (self.read)(path);
            if file.imports_packages() {
                self.elsewhere.insert(path.to_owned());
            }
            if file.adds_modules {
                self.adding.insert(path.to_owned());
            }
            if uses_first_sdk(&file) {
                self.of_first_sdk.insert(path.to_owned());
            }
            let imported = imported_files(
                &file,
                &HashSet::new(),
                path.ancestors().skip(2).find(|above| self.roots.contains(*above)),
            );
            self.serving.insert(path.to_owned(), file);
            imported
        };
        self.known.entry(path.to_owned()).or_insert_with(read)
    }

    /// The files that any of these imports, directly or through others.
    pub fn reached_from<'f>(&mut self, files: impl Iterator<Item = &'f ToolFile>) -> HashSet<PathBuf> {
        let mut waiting: Vec<PathBuf> = files.map(|file| file.path.clone()).collect();
        let mut reached = HashSet::new();
        while let Some(path) = waiting.pop() {
            for next in self.of_file(&path) {
                if !reached.contains(next) {
                    reached.insert(next.clone());
                    waiting.push(next.clone());
                }
            }
        }
        reached
    }

    /// The files that any of these imports, directly or through others, other than itself.
    pub fn imported_by(&mut self, files: &[ToolFile]) -> HashSet<PathBuf> {
        let mut imported = HashSet::new();
        for file in files {
            imported.extend(self.of_file(&file.path).iter().filter(|path| **path != file.path).cloned());
        }
        let mut waiting: Vec<PathBuf> = imported.iter().cloned().collect();
        while let Some(path) = waiting.pop() {
            let further = self.of_file(&path).to_vec().into_iter().filter(|next| *next != path);
            waiting.extend(further.filter(|next| imported.insert(next.clone())));
        }
        imported
    }

    /// The files that a file imports, directly or through others that are `followed`.
    pub fn reachable(&mut self, start: &Path, followed: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
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

    /// Whether a file or one of its helpers adds folders or modules to what it can import.
    pub fn adds_modules(&self, file: &ToolFile) -> bool {
        std::iter::once(&file.path).chain(&file.helpers).any(|path| self.adding.contains(path))
    }

    pub fn is_for_first_sdk(&self, file: &ToolFile) -> bool {
        std::iter::once(&file.path).chain(&file.helpers).any(|path| self.of_first_sdk.contains(path))
    }
}

/// What it imports, or the decorators of its low-level server, are not in the second version.
fn uses_first_sdk(file: &ToolFile) -> bool {
    let imports = |module: &str| file.imports.iter().any(|import| import == module);
    (imports("mcp.server.fastmcp") || imports("mcp.server.FastMCP") || file.servers.listing.has_handlers)
        && !imports("mcp.server.mcpserver")
}

/// The neighbouring files that a file imports. The standard library and dependencies come first on `sys.path`, so their
/// names never mean a neighbour.
fn imported_files(file: &ToolFile, scanned: &HashSet<&Path>, root: Option<&Path>) -> Vec<PathBuf> {
    let Some(folder) = file.path.parent() else { return Vec::new() };
    let dependencies: Vec<String> =
        file.header.iter().flat_map(|header| &header.dependencies).map(|dependency| module_of(dependency)).collect();
    let is_installed = |module: &str| is_standard(module) || dependencies.iter().any(|name| name == module);
    // A file of a package imports from the folder of the tool file, too.
    let folders: Vec<&Path> = std::iter::once(folder).chain(root).collect();
    let mut found: Vec<PathBuf> = Vec::new();
    for import in &file.imports {
        let name = import.trim_start_matches('.');
        let dots = import.len() - name.len();
        if dots > 0 {
            let base = file.path.ancestors().nth(dots).unwrap_or(folder);
            add(&mut found, base, name, scanned);
            continue;
        }
        let top = name.split('.').next().unwrap_or_default();
        let is_foreign = |first: &str| dependencies.iter().any(|name| *name == first.to_lowercase());
        if let Some(above) = above_own_package(&file.path, import)
            && !is_foreign(top)
        {
            add(&mut found, above, name, scanned);
        }
        if !is_installed(&top.to_lowercase()) {
            for folder in folders.iter().filter(|folder| !has_tool_named_after(folder, top)) {
                add(&mut found, folder, name, scanned);
            }
        }
    }
    found
}

/// Adds the files that the import of a dotted module from a folder runs: those of its packages, and its own.
fn add(found: &mut Vec<PathBuf>, folder: &Path, name: &str, scanned: &HashSet<&Path>) {
    for step in steps(folder, name) {
        for path in [step.module, step.package] {
            if !found.contains(&path) && (scanned.contains(path.as_path()) || path.is_file()) {
                found.push(path);
            }
        }
    }
}

/// The module that a requirement most likely installs.
fn module_of(requirement: &str) -> String {
    package_of(requirement).to_lowercase().replace(['-', '.'], "_")
}
