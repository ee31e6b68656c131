//! Tools by name and by filter, and the messages where nothing matches. Every interface uses these messages.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::catalogue::{Catalogue, Tool};
use super::file_entry::FileEntry;
use crate::config::builtin::{GROUPS, listed_as};
use crate::config::mode::Mode;
use crate::config::section::{is_typo_of, nearest};
use crate::discovery::{SourceId, server_below};
use crate::pep723::nearest_identifier;

/// Why a name is not a tool's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// There is no such tool.
    Unknown {
        /// Similar names.
        near: Vec<String>,
        /// What to do.
        advice: String,
    },
    /// The file of its pack is broken, for this reason.
    Broken(SourceId, String),
}

impl Catalogue {
    /// What to do when there are no tools.
    pub fn remedy(&self) -> Option<String> {
        // Broken files are reported as such, and an executable may not have answered yet.
        let silent = self.files.iter().filter(|entry| entry.serving().has_environment() && entry.broken().is_none());
        let silent: Vec<String> = silent.take(3).map(|entry| file_name(&entry.file.path)).collect();
        match (self.tools.is_empty(), silent.as_slice()) {
            (false, _) => None,
            (true, _) if let Some(below) = server_below(&self.below) => Some(below),
            (true, []) if !self.files.is_empty() => None,
            (true, []) => {
                Some("name a folder with --tools DIR, or put Python files or executables into ./tools".to_owned())
            }
            (true, [one]) if self.files.len() == 1 => {
                Some(format!("{one} has no public function; see `hostler check`"))
            }
            (true, some) => Some(format!("no file has a public function ({}); see `hostler check`", some.join(", "))),
        }
    }

    /// Why there is no tool of this name.
    pub(super) fn not_found(&self, name: &str) -> NotFound {
        let meant =
            by_path(name).or_else(|| self.files.iter().any(|entry| entry.file.pack == name).then(|| name.to_owned()));
        let name = meant.as_deref().unwrap_or(name);
        // `a_b.c` belongs to the pack `a_b` rather than to `a`.
        let rank = |entry: &&Arc<FileEntry>| (entry.file.pack.len(), entry.file.is_ready());
        let pack = self.files.iter().filter(|entry| is_of(name, entry.file.served_pack())).max_by_key(rank);
        if let Some(reason) = pack.and_then(|entry| entry.file.not_asked()) {
            return NotFound::Unknown { near: Vec::new(), advice: reason.to_string() };
        }
        if let Some((entry, reason)) = pack.and_then(|entry| Some((entry, entry.trouble()?))) {
            return NotFound::Broken(entry.file.source(), reason);
        }
        let mut left_out = self.files.iter().flat_map(|entry| &entry.file.left_out);
        if let Some(one) = left_out.find(|one| one.name == name || one.mcp_name == name) {
            return NotFound::Unknown { near: Vec::new(), advice: one.reason.to_string() };
        }
        let disabled = switched_off(name).filter(|_| meant.is_none());
        let remedy = || self.remedy().map(|remedy| format!("there are no tools: {remedy}"));
        if let Some(advice) = disabled.or_else(remedy).or_else(|| self.helper(name)) {
            return NotFound::Unknown { near: Vec::new(), advice };
        }
        let near = if meant.is_some() { self.of_pack(name) } else { self.near(name) };
        let advice = match near.split_first() {
            Some((first, [])) => format!("did you mean {first}?"),
            Some((first, more)) => format!("did you mean {first}? Similar names: {}", more.join(", ")),
            None => "`hostler list` shows every tool".to_owned(),
        };
        NotFound::Unknown { near, advice }
    }

    /// The message for a file that has no tools because another file imports it.
    fn helper(&self, name: &str) -> Option<String> {
        let helps = |entry: &&Arc<FileEntry>| entry.file.helpers.iter().find(|path| is_of(name, &stem(path))).cloned();
        let (entry, path) = self.files.iter().find_map(|entry| Some((entry, helps(&entry)?)))?;
        // A neighbour may be a tool file itself.
        if self.files.iter().any(|entry| entry.file.path == path) {
            return None;
        }
        let (helper, user) = (file_name(&path), file_name(&entry.file.path));
        Some(format!(
            "{helper} is a helper of {user}, which imports it, and has no tools; to make its functions tools, begin it with the \
             three lines `# /// script`, `# dependencies = []` and `# ///`"
        ))
    }

    fn of_pack(&self, pack: &str) -> Vec<String> {
        let own = self.ready().filter(|tool| tool.entry.file.pack == pack || stem(&tool.entry.file.path) == pack);
        own.map(|tool| tool.name.clone()).take(8).collect()
    }

    /// Similar names: a similar spelling, the same function in another pack, functions of the same pack.
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

/// The message for a built-in tool, or a group of them, that is off.
fn switched_off(name: &str) -> Option<String> {
    let own = listed_as(name).unwrap_or(name);
    let what = match GROUPS.iter().find(|(group, tools)| *group == own || tools.contains(&own))? {
        (group, _) if *group == own => "it is a group of built-in tools",
        _ => "it is a built-in tool and disabled",
    };
    Some(format!(
        "{what}; to enable it, add \"{own}\" to `enable` under [builtin] in hostler.toml (`hostler builtin` lists them)"
    ))
}

/// The pack of a name that is a path: `tools/a.py`, `./a.py`, `a.py`.
fn by_path(name: &str) -> Option<String> {
    (name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "py"))
        .then(|| stem(Path::new(name)))
        .filter(|stem| !stem.is_empty())
}

/// Whether a name belongs to this pack, or to the valid name that its file would have.
fn is_of(name: &str, pack: &str) -> bool {
    let is_of =
        |pack: &str| name.strip_prefix(pack).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']));
    is_of(pack) || is_of(&nearest_identifier(pack))
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Selects tools. `None` selects all.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Tools that may be called in this mode, in any case.
    pub mode: Option<String>,
    /// Tools of this category.
    pub category: Option<String>,
    /// Tools with this tag.
    pub tag: Option<String>,
    /// Tools of this pack.
    pub pack: Option<String>,
    /// Tools of this kind, by its word.
    pub kind: Option<String>,
}

impl Filter {
    /// Whether it selects all.
    pub fn is_empty(&self) -> bool {
        let Self { mode, category, tag, pack, kind } = self;
        mode.is_none() && category.is_none() && tag.is_none() && pack.is_none() && kind.is_none()
    }

    /// Whether it selects a tool, with what its mode is.
    pub(super) fn admits(&self, tool: &Tool, mode: Option<Mode>) -> bool {
        let (policy, file) = (&tool.settings.policy, &tool.entry.file);
        let category = policy.category.as_ref().map(|category| &category.value);
        let tags = || policy.tags.iter().flat_map(|tags| &tags.value);
        (self.mode.is_none() || mode.is_some_and(|mode| policy.allows(mode)))
            && self.category.as_ref().is_none_or(|wanted| category == Some(wanted))
            && self.tag.as_ref().is_none_or(|wanted| tags().any(|tag| tag == wanted))
            && self.pack.as_ref().is_none_or(|wanted| *wanted == file.pack)
            && self.kind.as_deref().is_none_or(|wanted| wanted == tool.entry.kind_word())
    }
}

impl Filter {
    /// The message where it names a mode that does not exist.
    pub fn unknown_mode(&self, catalogue: &Catalogue) -> Option<String> {
        let name = self.mode.as_ref().filter(|name| catalogue.modes.named(name).is_none())?;
        let known = catalogue.modes.names().collect::<Vec<_>>().join(", ");
        Some(format!("no mode `{name}`; the modes are {known}"))
    }

    /// The message where no tool has what it selects.
    pub fn missed(&self, catalogue: &Catalogue) -> Option<String> {
        let policies = || catalogue.ready().map(|tool| &tool.settings.policy);
        let categories =
            policies().filter_map(|policy| policy.category.as_ref()).map(|category| category.value.as_str());
        let tags =
            policies().filter_map(|policy| policy.tags.as_ref()).flat_map(|tags| &tags.value).map(String::as_str);
        let packs = catalogue.ready().map(|tool| tool.entry.file.pack.as_str());
        missing("category", self.category.as_deref(), categories)
            .or_else(|| missing("tag", self.tag.as_deref(), tags))
            .or_else(|| missing("pack", self.pack.as_deref(), packs))
    }
}

fn missing<'c>(what: &str, wanted: Option<&str>, there: impl Iterator<Item = &'c str>) -> Option<String> {
    let there: BTreeSet<&str> = there.collect();
    let wanted = wanted.filter(|wanted| !there.contains(wanted))?;
    let instead = match there.len() {
        0 => "no tool has one".to_owned(),
        _ => format!("known: {}", there.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Some(format!("no tool has the {what} `{wanted}`; {instead}"))
}

impl Catalogue {
    /// The ready tools that a filter selects.
    pub fn list(&self, filter: &Filter) -> impl Iterator<Item = &Arc<Tool>> {
        let mode = filter.mode.as_ref().and_then(|name| self.modes.named(name));
        self.ready().filter(move |tool| filter.admits(tool, mode))
    }
}
