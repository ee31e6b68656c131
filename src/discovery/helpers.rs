//! Which files are tool files, and which only help those: a file without a header that a tool file imports is its helper.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::beside::Folders;
use super::imports::Neighbours;
use super::packages::{is_neighbour, is_of_package};
use super::python::Scopes;
use super::reached::KnownCalls;
use super::several::{INNER_TOOLS, NO_TOOLS, Servers};
use super::{Kind, ToolFile, read_file};

/// Removes helpers from the list and adds them to the files that they belong to. `link` has a file completed by its helpers.
pub(super) fn set_apart_helpers(
    files: Vec<ToolFile>,
    read: impl FnMut(&Path) -> ToolFile,
    mut link: impl FnMut(&mut ToolFile, &dyn Fn(&mut ToolFile)),
) -> Vec<ToolFile> {
    let mut neighbours = Neighbours::of(&files, read);
    let Roles { helping, hosts } = neighbours.roles(&files);
    let (apart, mut listed): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| helping.contains(&file.path));
    // One that only waits for what its functions need may be given it by another tool file.
    let waiting: Vec<ToolFile> = listed.iter().filter(|file| file.only_waits()).cloned().collect();
    neighbours.serving.extend(apart.into_iter().chain(waiting).map(|file| (file.path.clone(), file)));
    neighbours.join(&mut listed, &hosts);
    let with_helpers = listed.iter().filter(|file| !file.helpers.is_empty());
    let scopes = Scopes::of(with_helpers.flat_map(|file| file.helpers.iter().chain([&file.path])));
    for file in &mut listed {
        file.link(&scopes, &neighbours.serving, |file, read| link(file, read));
    }
    drop_answered_warnings(&mut listed);
    listed
}

/// A file that others import need not have tools itself, and what it does not serve may be given to a server by another one.
fn drop_answered_warnings(listed: &mut [ToolFile]) {
    let helpful: HashSet<PathBuf> = listed.iter().flat_map(|file| &file.helpers).cloned().collect();
    let of_helpers = listed.iter().flat_map(|file| &file.functions).filter_map(|function| function.defined_in.clone());
    let given: HashSet<Arc<Path>> = of_helpers.collect();
    for file in listed.iter_mut().filter(|file| helpful.contains(&file.path)) {
        let is_given = given.contains(&*file.path);
        file.warnings.retain(|warning| warning.rule != NO_TOOLS && (!is_given || warning.rule != INNER_TOOLS));
    }
}

/// Reads what the folder of a single file has for it: what it needs, and tools in further files.
pub fn look_beside(file: &mut ToolFile) {
    let mut neighbours = Neighbours::of(std::slice::from_ref(file), read_file);
    file.helpers = neighbours.reachable(&file.path, |_| true);
    file.helpers.sort();
    file.join(&neighbours.serving, &HashSet::new(), &mut KnownCalls::default());
    let scopes = Scopes::of(file.helpers.iter().chain([&file.path]));
    file.link(&scopes, &neighbours.serving, |file, read| read(file));
    file.adds_modules = neighbours.adds_modules(file);
    neighbours.look_for_needs(file, &mut Folders::default());
}

/// Which files help others.
struct Roles {
    /// They are no tool files.
    helping: HashSet<PathBuf>,
    /// Tool files that have the tools of these helpers although others import them.
    hosts: HashMap<PathBuf, Vec<PathBuf>>,
}

impl<R: FnMut(&Path) -> ToolFile> Neighbours<R> {
    fn roles(&mut self, files: &[ToolFile]) -> Roles {
        let mut stand_alone = self.that_stand_alone(files);
        let hosts = self.that_host(files, &stand_alone);
        stand_alone.extend(hosts.keys().cloned());
        for path in self.attached_by(files) {
            stand_alone.remove(&path);
        }
        let may_help = files.iter().filter(|file| file.kind == Kind::Internal && !stand_alone.contains(&file.path));
        let may_help: HashSet<&Path> = may_help.map(|file| file.path.as_path()).collect();
        let scanned: HashSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
        let mut imported = HashSet::new();
        for file in files {
            imported.extend(self.of_file(&file.path).iter().filter(|path| **path != file.path).cloned());
        }
        let is_certain = |file: &&ToolFile| !may_help.contains(file.path.as_path()) || !imported.contains(&file.path);
        // Of a circle of imports that no other file imports, the one that makes a server is the tool file, or the first by path.
        let (certain, mut circular): (Vec<_>, Vec<_>) = files.iter().partition(is_certain);
        circular.sort_by_key(|file| !file.servers.makes);
        let mut helping: HashSet<PathBuf> = HashSet::new();
        for file in certain.into_iter().chain(circular) {
            if !helping.contains(&file.path) {
                // Also through files of packages below, which are not listed themselves.
                let reached = self.reachable(&file.path, |path| may_help.contains(path) || !scanned.contains(path));
                helping.extend(reached);
            }
        }
        Roles { helping, hosts }
    }

    /// Adds their helpers to tool files, what these offer, and what is known of what they need.
    fn join(&mut self, listed: &mut [ToolFile], hosts: &HashMap<PathBuf, Vec<PathBuf>>) {
        let offering = listed.iter().filter(|file| file.servers.marks && has_servers(file));
        let offering: HashSet<PathBuf> = offering.map(|file| file.path.clone()).collect();
        let making = listed.iter().filter(|file| file.servers.makes);
        let making: HashSet<PathBuf> = making.map(|file| file.path.clone()).collect();
        let (mut folders, mut calls) = (Folders::default(), KnownCalls::default());
        for file in listed {
            file.helpers = self.reachable(&file.path, |_| true);
            file.helpers.sort();
            let is_host = file.servers.makes || hosts.contains_key(&file.path);
            let beyond = hosts.iter().filter(|(host, _)| !is_host && file.helpers.contains(host));
            let beyond: HashSet<&Path> = beyond.flat_map(|(_, helpers)| helpers).map(PathBuf::as_path).collect();
            file.join(&self.serving, &beyond, &mut calls);
            if file.servers.runs && self.of_file(&file.path).iter().any(|helper| making.contains(helper)) {
                file.run_a_server();
                file.tell_tools_apart();
            }
            if file.helpers.iter().any(|helper| offering.contains(helper) || hosts.contains_key(helper)) {
                file.warnings.retain(|warning| warning.rule != NO_TOOLS); // it runs or uses that one
            }
            file.adds_modules = self.adds_modules(file);
            self.look_for_needs(file, &mut folders);
        }
    }

    /// Looks for what is beside a file without a header that needs packages, itself or by its helpers.
    fn look_for_needs(&self, file: &mut ToolFile, folders: &mut Folders) {
        let needs = || std::iter::once(&file.path).chain(&file.helpers).any(|path| self.elsewhere.contains(path));
        if file.kind == Kind::Internal && needs() {
            file.beside = Some(folders.of(&file.path));
            file.is_for_first_sdk = self.is_for_first_sdk(file);
        }
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
            let served = |file: &ToolFile| file.functions.iter().filter(|function| function.wanted.is_none()).count();
            if served(&joined) > served(file) {
                hosts.insert(file.path.clone(), helpers);
            }
        }
        hosts
    }
}

/// Whether it makes a server, or marks tools without the server of a neighbour or one that its functions are given.
fn is_by_itself(file: &ToolFile) -> bool {
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let Servers { makes, marks, of, .. } = &file.servers;
    let is_beside = |server: &String| {
        let module = server.split('.').next().unwrap_or_default();
        module.is_empty() || is_neighbour(&file.path, None, &[folder], module)
    };
    *makes || *marks && !of.iter().any(is_beside)
}

fn has_servers(file: &ToolFile) -> bool {
    file.servers.makes || !file.servers.of.is_empty()
}
