//! What the imports of a file mean: modules of the standard library, or neighbouring files. A file without a header that a
//! tool file imports is its helper.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::beside::Folders;
use super::packages::{DEEPEST_PACKAGE, above_own_package, is_neighbour, is_of_package};
use super::python::Scopes;
use super::reached::KnownCalls;
use super::several::{INNER_TOOLS, NO_TOOLS, Servers};
use super::standard::is_standard;
use super::{Kind, ToolFile, read_file};
use crate::pep723::package_of;

/// Removes helpers from the list and adds them to the files that they belong to. `link` has a file completed by its helpers.
pub(super) fn set_apart_helpers(
    files: Vec<ToolFile>,
    read: impl FnMut(&Path) -> ToolFile,
    mut link: impl FnMut(&mut ToolFile, &dyn Fn(&mut ToolFile)),
) -> Vec<ToolFile> {
    let (mut neighbours, mut folders) = (Neighbours::of(&files, read), Folders::default());
    let mut stand_alone = neighbours.that_stand_alone(&files);
    let hosts = neighbours.that_host(&files, &stand_alone);
    stand_alone.extend(hosts.keys().cloned());
    for path in neighbours.attached_by(&files) {
        stand_alone.remove(&path);
    }
    let may_help: HashSet<&Path> = files
        .iter()
        .filter(|file| file.kind == Kind::Internal && !stand_alone.contains(&file.path))
        .map(|file| file.path.as_path())
        .collect();

    let scanned: HashSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();

    let mut imported = HashSet::new();
    for file in &files {
        imported.extend(neighbours.of_file(&file.path).iter().filter(|path| **path != file.path).cloned());
    }
    let mut helping: HashSet<PathBuf> = HashSet::new();
    let is_certain = |file: &&ToolFile| !may_help.contains(file.path.as_path()) || !imported.contains(&file.path);
    // Of a circle of imports that no other file imports, the one that makes a server is the tool file, or the first by path.
    let (certain, mut circular): (Vec<_>, Vec<_>) = files.iter().partition(is_certain);
    circular.sort_by_key(|file| !file.servers.makes);
    for file in certain.into_iter().chain(circular) {
        if !helping.contains(&file.path) {
            // Also through files of packages below, which are not listed themselves.
            let reached = neighbours.reachable(&file.path, |path| may_help.contains(path) || !scanned.contains(path));
            helping.extend(reached);
        }
    }

    let (apart, mut listed): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| helping.contains(&file.path));
    // One that only waits for what its functions need may be given it by another tool file.
    let waiting: HashMap<PathBuf, ToolFile> =
        listed.iter().filter(|file| file.only_waits()).map(|file| (file.path.clone(), file.clone())).collect();
    neighbours.serving.extend(apart.into_iter().map(|file| (file.path.clone(), file)));
    neighbours.serving.extend(waiting);
    let offering: HashSet<PathBuf> =
        listed.iter().filter(|file| file.servers.marks && has_servers(file)).map(|file| file.path.clone()).collect();
    let making: HashSet<PathBuf> =
        listed.iter().filter(|file| file.servers.makes).map(|file| file.path.clone()).collect();
    let (mut helpful, mut calls) = (HashSet::new(), KnownCalls::default());
    for file in &mut listed {
        file.helpers = neighbours.reachable(&file.path, |_| true);
        file.helpers.sort();
        let is_host = file.servers.makes || hosts.contains_key(&file.path);
        let beyond = hosts.iter().filter(|(host, _)| !is_host && file.helpers.contains(host));
        let beyond: HashSet<&Path> = beyond.flat_map(|(_, helpers)| helpers).map(PathBuf::as_path).collect();
        file.join(&neighbours.serving, &beyond, &mut calls);
        if file.servers.runs && neighbours.of_file(&file.path).iter().any(|helper| making.contains(helper)) {
            file.run_a_server();
        }
        if file.helpers.iter().any(|helper| offering.contains(helper) || hosts.contains_key(helper)) {
            file.warnings.retain(|warning| warning.rule != NO_TOOLS); // it runs or uses that one
        }
        helpful.extend(file.helpers.iter().cloned());
        let may_need = file.kind == Kind::Internal;
        if may_need && std::iter::once(&file.path).chain(&file.helpers).any(|path| neighbours.elsewhere.contains(path))
        {
            file.beside = Some(folders.of(&file.path));
            file.is_for_first_sdk = neighbours.is_for_first_sdk(file);
        }
    }
    let with_helpers = listed.iter().filter(|file| !file.helpers.is_empty());
    let scopes = Scopes::of(with_helpers.flat_map(|file| file.helpers.iter().chain([&file.path])));
    for file in &mut listed {
        file.link(&scopes, &neighbours.serving, |file, read| link(file, read));
    }
    let of_helpers = listed.iter().flat_map(|file| &file.functions).filter_map(|function| function.defined_in.clone());
    let given: HashSet<Arc<Path>> = of_helpers.collect();
    for file in listed.iter_mut().filter(|file| helpful.contains(&file.path)) {
        let is_given = given.contains(&*file.path);
        file.warnings.retain(|warning| warning.rule != NO_TOOLS && (!is_given || warning.rule != INNER_TOOLS));
    }
    listed
}

/// Reads what the folder of a single file has for it: what it needs, and tools in further files.
pub fn look_beside(file: &mut ToolFile) {
    let mut neighbours = Neighbours::of(std::slice::from_ref(file), read_file);
    file.helpers = neighbours.reachable(&file.path, |_| true);
    file.helpers.sort();
    file.join(&neighbours.serving, &HashSet::new(), &mut KnownCalls::default());
    let scopes = Scopes::of(file.helpers.iter().chain([&file.path]));
    file.link(&scopes, &neighbours.serving, |file, read| read(file));
    let may_need = file.kind == Kind::Internal
        && std::iter::once(&file.path).chain(&file.helpers).any(|path| neighbours.elsewhere.contains(path));
    file.beside = may_need.then(|| Folders::default().of(&file.path));
    file.is_for_first_sdk = neighbours.is_for_first_sdk(file);
}

/// Whether it makes a server, or marks tools without the server of a neighbour or one that its functions are given.
fn is_by_itself(file: &ToolFile) -> bool {
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let Servers { makes, marks, of, .. } = &file.servers;
    let is_beside = |server: &String| {
        let module = server.split('.').next().unwrap_or_default();
        module.is_empty() || is_neighbour(None, &[folder], module)
    };
    *makes || *marks && !of.iter().any(is_beside)
}

/// What it imports, or the decorators of its low-level server, are not in the second version.
fn uses_first_sdk(file: &ToolFile) -> bool {
    let imports = |module: &str| file.imports.iter().any(|import| import == module);
    (imports("mcp.server.fastmcp") || imports("mcp.server.FastMCP") || file.servers.listing.has_handlers)
        && !imports("mcp.server.mcpserver")
}

fn has_servers(file: &ToolFile) -> bool {
    file.servers.makes || !file.servers.of.is_empty()
}

/// The neighbouring files that a file imports, directly or through one another.
pub fn neighbours_of(path: &Path) -> Vec<PathBuf> {
    let files = [read_file(path)];
    let mut found = Neighbours::of(&files, read_file).reachable(path, |_| true);
    found.sort();
    found
}

/// The neighbouring files that each file imports.
struct Neighbours<R> {
    known: HashMap<PathBuf, Vec<PathBuf>>,
    /// The files without a header that import packages.
    elsewhere: HashSet<PathBuf>,
    /// Files that are no tool files, and those that wait for what another one gives them.
    serving: HashMap<PathBuf, ToolFile>,
    /// The files that are written for the first version of the MCP SDK.
    of_first_sdk: HashSet<PathBuf>,
    /// The folders that tool files lie in, which are on their `sys.path`.
    roots: HashSet<PathBuf>,
    read: R,
}

impl<R: FnMut(&Path) -> ToolFile> Neighbours<R> {
    fn of(files: &[ToolFile], read: R) -> Self {
        let scanned: HashSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
        let roots = files.iter().filter_map(|file| Some(file.path.parent()?.to_owned())).collect();
        let known = files.iter().map(|file| (file.path.clone(), imported_files(file, &scanned, None))).collect();
        let needing = files.iter().filter(|file| file.kind == Kind::Internal && file.imports_packages());
        let elsewhere = needing.map(|file| file.path.clone()).collect();
        let of_first_sdk = files.iter().filter(|file| uses_first_sdk(file)).map(|file| file.path.clone()).collect();
        Self { known, elsewhere, serving: HashMap::new(), of_first_sdk, roots, read }
    }

    /// What a file imports. One that was not scanned (`_common.py`) is read now.
    fn of_file(&mut self, path: &Path) -> &[PathBuf] {
        let read = || {
            let file = (self.read)(path);
            if file.imports_packages() {
                self.elsewhere.insert(path.to_owned());
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
    fn reached_from<'f>(&mut self, files: impl Iterator<Item = &'f ToolFile>) -> HashSet<PathBuf> {
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

    /// The files of which every tool is a command of another one's program.
    fn attached_by(&mut self, files: &[ToolFile]) -> HashSet<PathBuf> {
        let programs: Vec<&ToolFile> = files.iter().filter(|file| !file.servers.program.attached.is_empty()).collect();
        let reached: Vec<_> = programs.iter().map(|file| self.reachable(&file.path, |_| true)).collect();
        let known: HashMap<&Path, &ToolFile> =
            files.iter().chain(self.serving.values()).map(|file| (&*file.path, file)).collect();
        let mut taken: HashSet<(&Path, usize)> = HashSet::new();
        for (program, reached) in programs.iter().zip(&reached) {
            let helpers: Vec<&ToolFile> = reached.iter().filter_map(|path| known.get(&**path).copied()).collect();
            taken.extend(program.attached_commands(&helpers).iter().map(|it| (&*it.file.path, it.function.line)));
        }
        let is_taken =
            |file: &&ToolFile| file.functions.iter().all(|function| taken.contains(&(&*file.path, function.line)));
        let has_tools = files.iter().filter(|file| !file.functions.is_empty() && !file.servers.makes);
        has_tools.filter(is_taken).map(|file| file.path.clone()).collect()
    }

    fn is_for_first_sdk(&self, file: &ToolFile) -> bool {
        std::iter::once(&file.path).chain(&file.helpers).any(|path| self.of_first_sdk.contains(path))
    }

    /// The files without a header that are tool files although others import them: what they mark needs no server of another file, or
    /// no file that makes one imports them. Where a file with a header imports them, only that has what they need.
    fn that_stand_alone(&mut self, files: &[ToolFile]) -> HashSet<PathBuf> {
        let offering: Vec<&ToolFile> =
            files.iter().filter(|file| file.kind == Kind::Internal && file.servers.marks).collect();
        if offering.is_empty() {
            return HashSet::new();
        }
        let with_header = self.reached_from(files.iter().filter(|file| file.kind == Kind::Python));
        let with_server = self.reached_from(files.iter().filter(|file| is_by_itself(file)));
        let stands = |file: &&ToolFile| {
            !with_header.contains(&file.path) && (is_by_itself(file) || !with_server.contains(&file.path))
        };
        offering.into_iter().filter(stands).map(|file| file.path.clone()).collect()
    }

    /// The files that any of these imports, directly or through others, other than itself.
    fn imported_by(&mut self, files: &[ToolFile]) -> HashSet<PathBuf> {
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

    /// The files without a header that have the tools of their helpers although others import them, and those helpers: they make the
    /// server, or have no functions and import the file that does.
    fn that_host(&mut self, files: &[ToolFile], stand_alone: &HashSet<PathBuf>) -> HashMap<PathBuf, Vec<PathBuf>> {
        let imported = self.imported_by(files);
        // Those that no other file has tools for are the rule.
        let mut known = files.iter().chain(self.serving.values());
        if !known.any(|file| !stand_alone.contains(&file.path) && file.servers.offer_to_others()) {
            return HashMap::new();
        }
        let scanned: HashMap<&Path, &ToolFile> = files.iter().map(|file| (&*file.path, file)).collect();
        let (mut hosts, mut calls) = (HashMap::new(), KnownCalls::default());
        let might = |file: &&ToolFile| {
            file.kind == Kind::Internal && !file.servers.marks && (file.servers.makes || file.functions.is_empty())
        };
        for file in files.iter().filter(might).filter(|file| imported.contains(&file.path)) {
            let of_path = |path: &Path| scanned.get(path).copied().or_else(|| self.serving.get(path));
            let makes = |path: &&PathBuf| !is_of_package(path) && of_path(path).is_some_and(|it| it.servers.makes);
            let gives = !file.servers.given.is_empty();
            let of_helper = || self.known.get(&file.path).is_some_and(|own| own.iter().any(|path| makes(&path)));
            if !file.servers.makes && !gives && !of_helper() {
                continue;
            }
            let helpers = self.reachable(&file.path, |_| true);
            let of_path = |path: &Path| scanned.get(path).copied().or_else(|| self.serving.get(path));
            let offers = |path: &PathBuf| of_path(path).is_some_and(|it| it.servers.offer_to_others());
            if !gives && !helpers.iter().any(|path| !stand_alone.contains(path) && offers(path)) {
                continue;
            }
            let known = helpers.iter().filter(|path| !stand_alone.contains(*path));
            let known = known.filter_map(|path| Some((path.clone(), of_path(path)?.clone()))).collect();
            let mut joined = ToolFile { helpers: helpers.clone(), ..file.clone() };
            joined.join(&known, &HashSet::new(), &mut calls);
            if joined.functions.len() > file.functions.len() {
                hosts.insert(file.path.clone(), helpers);
            }
        }
        hosts
    }

    /// The files that a file imports, directly or through others that are `followed`.
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
            add(&mut found, base, name.split('.'), scanned);
            continue;
        }
        let parts = import.split('.');
        let is_foreign = |first: &str| dependencies.iter().any(|name| *name == first.to_lowercase());
        if let Some(above) = above_own_package(&file.path, import)
            && !parts.clone().next().is_some_and(is_foreign)
        {
            add(&mut found, above, parts.clone(), scanned);
        }
        if parts.clone().next().is_some_and(|first| !is_installed(&first.to_lowercase())) {
            for folder in &folders {
                add(&mut found, folder, parts.clone(), scanned);
            }
        }
    }
    found
}

/// Adds the files that the import of a dotted module from a folder runs: those of its packages, and its own.
fn add<'a>(found: &mut Vec<PathBuf>, folder: &Path, parts: impl Iterator<Item = &'a str>, scanned: &HashSet<&Path>) {
    let mut within = folder.to_owned();
    for part in parts.take(DEEPEST_PACKAGE).take_while(|part| !part.is_empty()) {
        let inside = within.join(part);
        for path in [within.join(format!("{part}.py")), inside.join("__init__.py")] {
            if !found.contains(&path) && (scanned.contains(path.as_path()) || path.is_file()) {
                found.push(path);
            }
        }
        within = inside;
    }
}

/// The module that a requirement most likely installs.
fn module_of(requirement: &str) -> String {
    package_of(requirement).to_lowercase().replace(['-', '.'], "_")
}
