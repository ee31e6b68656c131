//! What is said of names that are no tool's: why, and what to write instead. Every face says it in these words.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalogue::{Catalogue, FileEntry, Tool};
use crate::config::builtin::{GROUPS, listed_as};
use crate::config::section::{is_typo_of, nearest};
use crate::pep723::nearest_identifier;

/// A name that is no tool's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// Nothing has such a name.
    Unknown {
        /// Names that are near.
        near: Vec<String>,
        /// What to do.
        advice: String,
    },
    /// The pack is there and broken, so not all of its functions are known: the file and why.
    Broken(PathBuf, String),
}

impl Catalogue {
    /// Where there are no tools at all: what to do about it.
    pub fn remedy(&self) -> Option<String> {
        // What is broken is told as that, and an executable may just not have answered yet.
        let silent = self.files.iter().filter(|entry| entry.serving().has_environment() && entry.broken().is_none());
        let silent: Vec<String> = silent.take(3).map(|entry| file_name(&entry.file.path)).collect();
        match (self.tools.is_empty(), silent.as_slice()) {
            (false, _) => None,
            (true, []) if !self.files.is_empty() => None,
            (true, []) => Some("give a folder with --tools DIR, or put Python files, or programs with leave to be executed, into ./tools".to_owned()),
            (true, [one]) if self.files.len() == 1 => Some(silent_file(one)),
            (true, some) => Some(format!("no file has a public function ({}); see `hostler check`", some.join(", "))),
        }
    }

    /// Why nothing has this name.
    pub(super) fn not_found(&self, name: &str) -> NotFound {
        let meant =
            by_path(name).or_else(|| self.files.iter().any(|entry| entry.file.pack == name).then(|| name.to_owned()));
        let name = meant.as_deref().unwrap_or(name);
        // Of a broken file some functions may be known and others lost. `a_b.c` is rather of `a_b` than of `a`.
        let rank = |entry: &&Arc<FileEntry>| (entry.file.pack.len(), entry.file.is_ready());
        let pack = self.files.iter().filter(|entry| is_of(name, &entry.file.pack)).max_by_key(rank);
        if let Some((entry, reason)) = pack.and_then(|entry| Some((entry, entry.trouble()?))) {
            return NotFound::Broken(entry.file.path.clone(), reason);
        }
        if meant.is_none()
            && let Some(advice) = switched_off(name)
        {
            return NotFound::Unknown { near: Vec::new(), advice };
        }
        if let Some(remedy) = self.remedy() {
            return NotFound::Unknown { near: Vec::new(), advice: format!("there are no tools at all: {remedy}") };
        }
        if let Some(advice) = self.helper(name) {
            return NotFound::Unknown { near: Vec::new(), advice };
        }
        if let Some(entry) = pack.filter(|entry| entry.serving().has_environment() && is_in(name, &entry.file.pack))
            && self.of_pack(&entry.file.pack).is_empty()
        {
            return NotFound::Unknown { near: Vec::new(), advice: silent_file(&file_name(&entry.file.path)) };
        }
        let near = if meant.is_some() { self.of_pack(name) } else { self.near(name) };
        let advice = match near.split_first() {
            Some((first, _)) if meant.is_some() => {
                let more = if near.len() > 1 { format!(" (it has {})", near.join(", ")) } else { String::new() };
                // Of an executable each tool has a name of its own.
                let form = if first.contains('.') { ", FILE.FUNCTION" } else { "" };
                format!("a tool is called by its name{form}: {first}{more}")
            }
            Some((first, [])) => format!("did you mean {first}?"),
            Some((first, more)) => format!("did you mean {first}? Others near it: {}", more.join(", ")),
            None => "`hostler list` shows every tool".to_owned(),
        };
        NotFound::Unknown { near, advice }
    }

    /// A file that offers nothing since another imports it.
    fn helper(&self, name: &str) -> Option<String> {
        let helps = |entry: &&Arc<FileEntry>| entry.file.helpers.iter().find(|path| is_of(name, &stem(path))).cloned();
        let (entry, path) = self.files.iter().find_map(|entry| Some((entry, helps(&entry)?)))?;
        // A neighbour that is a tool file itself has functions of its own.
        if self.files.iter().any(|entry| entry.file.path == path) {
            return None;
        }
        let (helper, user) = (file_name(&path), file_name(&entry.file.path));
        Some(format!(
            "{helper} is a helper of {user}, which imports it, and offers nothing itself; to offer its functions too, begin it \
             with a header, the three lines `# /// script`, `# dependencies = []` and `# ///`"
        ))
    }

    fn of_pack(&self, pack: &str) -> Vec<String> {
        let own = self.ready().filter(|tool| tool.entry.file.pack == pack || stem(&tool.entry.file.path) == pack);
        own.map(|tool| tool.name.clone()).take(8).collect()
    }

    /// Names that may have been meant: a function of the same pack, the same function elsewhere, a near spelling.
    fn near(&self, name: &str) -> Vec<String> {
        let spelling = nearest(name, self.ready().map(|tool| tool.name.as_str()));
        let function = name.rsplit('.').next().unwrap_or(name);
        let same_function = self.ready().filter(|tool| tool.function().name == function);
        let same_function =
            same_function.chain(self.ready().filter(|tool| is_typo_of(function, &tool.function().name)));
        let is_of_pack = |tool: &&Arc<Tool>| name.split('.').next() == Some(tool.entry.file.pack.as_str());
        let same_pack = self.ready().filter(is_of_pack);
        let mut names: Vec<String> = spelling.map(str::to_owned).into_iter().collect();
        for tool in same_function.chain(same_pack).take(8) {
            if !names.contains(&tool.name) {
                names.push(tool.name.clone());
            }
        }
        names.truncate(5);
        names
    }
}

/// What is said of a tool that is part of hostler, or of a group of them: since it is not there, it is off.
fn switched_off(name: &str) -> Option<String> {
    let own = listed_as(name).unwrap_or(name);
    let what = match GROUPS.iter().find(|(group, tools)| *group == own || tools.contains(&own))? {
        (group, _) if *group == own => "it is a group of hostler's own tools",
        _ => "it is one of hostler's own and off",
    };
    Some(format!(
        "{what}: whoever operates hostler switches it on by adding \"{own}\" to `enable` under [builtin] in hostler.toml (`hostler \
         builtin` lists them)"
    ))
}

/// The pack of a name that is a path: `tools/a.py`, `./a.py`, `a.py`.
fn by_path(name: &str) -> Option<String> {
    (name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "py"))
        .then(|| stem(Path::new(name)))
        .filter(|stem| !stem.is_empty())
}

/// Whether a name is one of this pack's. A file that no pack can be called after is asked for by what it would be called.
fn is_of(name: &str, pack: &str) -> bool {
    let is_of =
        |pack: &str| name.strip_prefix(pack).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']));
    is_of(pack) || is_of(&nearest_identifier(pack))
}

/// Whether a name can be of no pack but this one: `a.b` is of `a`, and `a_b.c` may be misspelt.
fn is_in(name: &str, pack: &str) -> bool {
    name.split_once('.').is_none_or(|(own, _)| own == pack || own == nearest_identifier(pack))
}

fn silent_file(name: &str) -> String {
    format!("{name} has no public function; see `hostler check`")
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
