//! Tool folders: which files in them are tool files.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::io::ErrorKind;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, thread};

use super::below::servers_below;
use super::cache::{Cache, PendingWrite};
use super::packages::is_of_package;
use super::reader::{CacheLines, ReadFile, Reader};
use super::{Answers, Kind, Status, ToolFile, executable, helpers};
use crate::config::origin::{Diagnosis, Origin};

/// Fewer files are read faster on one thread.
const WORTH_A_THREAD: usize = 16;

/// What the tools folders hold.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The tool files, sorted by path.
    pub files: Vec<ToolFile>,
    /// The folders that could not be read, in the order they were given.
    pub problems: Vec<FolderProblem>,
    /// Where nothing is served: files below the folders that make a server.
    pub below: Vec<PathBuf>,
    /// What was read, to be cached for the next run.
    pub unsaved: Option<PendingWrite>,
}

/// A folder that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", folder.display())]
pub struct FolderProblem {
    /// The folder.
    pub folder: PathBuf,
    /// What is wrong and what to do.
    pub reason: Diagnosis,
}

impl FolderProblem {
    /// Whether it is reported. A default folder may be missing, and another file may have its name.
    pub fn matters(&self, named_by: &Origin) -> bool {
        *named_by != Origin::Default || self.folder.is_dir()
    }

    /// What is wrong and what to do, with the line that names the folder.
    pub fn describe(&self, origin: &Origin) -> Diagnosis {
        let Diagnosis { what, fix } = self.reason.clone();
        match origin {
            Origin::File(place) => Diagnosis::new(format!("{what} ({place} names it)"), fix),
            _ => Diagnosis { what, fix },
        }
    }
}

#[cfg(test)]
/// Reads every Python tool file of the folders: `*.py` directly in a folder, and `NAME/NAME.py`. A package's own files count if they make a server with tools. Conflicting names are left
/// to [`super::resolve_collisions`].
pub fn scan(folders: &[PathBuf]) -> Scan {
    scan_at(folders, None, None, SystemTime::now())
}

/// The same with executables and their answers, and with a cache.
pub fn scan_all(folders: &[PathBuf], cache: Option<&Cache>, answers: &Answers) -> Scan {
    scan_at(folders, cache, Some(answers), SystemTime::now())
}

pub(super) fn scan_at(folders: &[PathBuf], cache: Option<&Cache>, answers: Option<&Answers>, now: SystemTime) -> Scan {
    let reader = &Reader::new(cache, answers, folders, now);
    let mut problems = Vec::new();
    let mut paths = BTreeSet::new();
    for folder in folders {
        match candidates(folder, reader.reads_executables()) {
            Ok(found) => paths.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    let paths: Vec<PathBuf> = paths.into_iter().collect();
    let mut lines = CacheLines::default();
    let files = read_all(reader, &paths).into_iter().map(|found| lines.take(found)).collect();
    let files = without_idle_packages(files);
    let lines = RefCell::new(lines);
    let read = |path: &Path| lines.borrow_mut().take(reader.read(path));
    let link = |file: &mut ToolFile, read: &dyn Fn(&mut ToolFile)| lines.borrow_mut().link(reader, file, read);
    let mut files = helpers::set_apart_helpers(files, read, link);
    let lines = lines.into_inner();
    files.retain(|file| !is_of_package(&file.path) || !file.functions.is_empty());
    for file in &mut files {
        file.rank = folders.iter().rposition(|folder| file.path.starts_with(folder)).map_or(0, |place| place + 1);
    }
    let may_have_tools =
        |file: &ToolFile| file.kind == Kind::Executable && !matches!(file.status, Status::NotAsked { .. });
    let is_silent = |file: &ToolFile| file.functions.is_empty() && !may_have_tools(file);
    let mut below = if files.iter().all(is_silent) { servers_below(folders) } else { Vec::new() };
    // What is wrong with those is said of the file that imports them.
    below.retain(|path| !files.iter().any(|file| file.helpers.contains(path)));
    Scan { files, problems, below, unsaved: lines.unsaved(reader) }
}

/// Removes the own files of packages, unless they make a server with tools, or may call what makes those of a folder that has no
/// others: `def main(): server.run(Config())`. Takes from these their own functions, which are no tools.
fn without_idle_packages(mut files: Vec<ToolFile>) -> Vec<ToolFile> {
    let makes_server = |file: &ToolFile| file.servers.makes || file.servers.listing.has_handlers;
    let has_tools = |file: &ToolFile| file.servers.marks && makes_server(file) && !file.functions.is_empty();
    let folders_of = |is_it: &dyn Fn(&ToolFile) -> bool| -> HashSet<PathBuf> {
        let found = files.iter().filter(|file| !is_of_package(&file.path) && is_it(file));
        found.filter_map(|file| Some(file.path.parent()?.to_owned())).collect()
    };
    let (waiting, serving) = (folders_of(&ToolFile::only_waits), folders_of(&|file| !file.functions.is_empty()));
    files.retain_mut(|file| {
        if !is_of_package(&file.path) || has_tools(file) {
            return true;
        }
        file.functions.clear();
        file.servers.names = None;
        file.path.parent().is_some_and(|folder| waiting.contains(folder) && !serving.contains(folder))
    });
    files
}

/// Reads files in the order of the paths, many of them on several threads.
fn read_all(reader: &Reader<'_>, paths: &[PathBuf]) -> Vec<ReadFile> {
    let read = |share: &[PathBuf]| share.iter().map(|path| reader.read(path)).collect::<Vec<_>>();
    if paths.len() <= WORTH_A_THREAD {
        return read(paths);
    }
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let share = paths.len().div_ceil(processors).max(WORTH_A_THREAD);
    // This thread reads too, which saves a memory arena.
    let (own, others) = paths.split_at(share.min(paths.len()));
    thread::scope(|scope| {
        let readers: Vec<_> = others.chunks(share).map(|share| scope.spawn(move || read(share))).collect();
        let mut files = read(own);
        for reader in readers {
            files.extend(reader.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        files
    })
}

fn candidates(folder: &Path, with_executables: bool) -> Result<Vec<PathBuf>, FolderProblem> {
    let cannot = |error: std::io::Error| FolderProblem {
        folder: folder.to_owned(),
        reason: match error.kind() {
            ErrorKind::NotFound => Diagnosis::new("this tools folder does not exist", "create it or correct the path"),
            ErrorKind::NotADirectory => Diagnosis::new("this is a file", "name the folder that holds it"),
            _ => Diagnosis::new(format!("this tools folder cannot be read: {error}"), "check its permissions"),
        },
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        if name.starts_with(['_', '.']) && !is_of_package(&path) {
            continue;
        }
        if path.is_dir() {
            let inner = path.join(format!("{name}.py"));
            // An unreadable folder is listed as the file that it may hold.
            let is_there =
                fs::symlink_metadata(&inner).map_or_else(|error| error.kind() != ErrorKind::NotFound, |_| true);
            found.extend((is_there && is_tool_name(&name) && !inner.is_dir()).then_some(inner));
        } else if name.strip_suffix(".py").is_some_and(is_tool_name)
            || with_executables && executable::is_meant(&path, &name)
        {
            found.push(path);
        }
    }
    Ok(found)
}

/// Tests are not tools.
fn is_tool_name(stem: &str) -> bool {
    !(stem.is_empty() || stem.starts_with("test_") || stem == "conftest")
}
