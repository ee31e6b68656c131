//! `sandbox`: what a tool may read, write and reach. For all tools (`[sandbox]`), for a category, for one tool, or in its header.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::environment::{Environment, from_file};
use super::hosts::HostPattern;
pub use super::hosts::Network;
use super::inline::{table_of, taken};
use super::load::Config;
use super::origin::{Diagnosis, Origin, Setting};
use super::tool::ToolLayer;
use super::value::{ByteCount, FromToml, Word, count, mismatch};

/// A choice of `read`, `write` and `network` under one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// It reads its own folder, writes temporary files, and has no network.
    Pure,
    /// The same, and it reads every file.
    Reader,
    /// It reads its own folder, writes temporary files, and has the network.
    Network,
    /// No limits.
    Full,
}

impl Word for Preset {
    const WORDS: &'static [(&'static str, Self)] =
        &[("pure", Self::Pure), ("reader", Self::Reader), ("network", Self::Network), ("full", Self::Full)];
}

impl Preset {
    /// Whether everything may be read, everything be written, and the network be used.
    pub(super) fn implied(preset: Option<Self>) -> (bool, bool, bool) {
        match preset {
            Some(Self::Pure) => (false, false, false),
            Some(Self::Reader) => (true, false, false),
            Some(Self::Network) => (false, false, true),
            Some(Self::Full) | None => (true, true, true),
        }
    }
}

/// What one table sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxLayer {
    /// What counts for the three keys below where they are not set. It covers what weaker tables set for them.
    pub preset: Option<Preset>,
    /// The folders and files that it may read besides its own folder.
    pub read: Option<Vec<String>>,
    /// Those that it may change, too.
    pub write: Option<Vec<String>>,
    /// How far the network is open.
    pub network: Option<Network>,
    /// The folders and files that it does not see.
    pub hide: Option<Vec<String>>,
    /// How many processes and threads it may have together.
    pub processes: Option<usize>,
    /// How many files each process may have open.
    pub open_files: Option<usize>,
    /// How large files may become that it writes.
    pub file_size: Option<usize>,
    /// Whether it may not run where the system cannot enforce all of this.
    pub require: Option<bool>,
}

/// The keys of a table.
const KEYS: [&str; 9] =
    ["preset", "read", "write", "network", "hide", "processes", "open_files", "file_size", "require"];

impl SandboxLayer {
    /// A preset alone, or a table.
    pub(super) fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        if value.as_str().is_some() {
            return Ok(Self { preset: Some(Preset::from_toml(value)?), ..Self::default() });
        }
        let fix = "write a word like \"pure\", or a table with `preset`, `read`, `write`, `network`";
        let table = table_of(value, &KEYS, "a preset or a table", fix)?;
        Ok(Self {
            preset: taken(table, "preset", Preset::from_toml)?,
            read: taken(table, "read", folders)?,
            write: taken(table, "write", folders)?,
            network: taken(table, "network", Network::read)?,
            hide: taken(table, "hide", folders)?,
            processes: taken(table, "processes", count)?,
            open_files: taken(table, "open_files", count)?,
            file_size: taken(table, "file_size", size)?.map(|size| size.0),
            require: taken(table, "require", bool::from_toml)?,
        })
    }

    /// Whether it says what may be reached.
    fn sets_access(&self) -> bool {
        let sets_files = self.read.is_some() || self.write.is_some() || self.hide.is_some();
        self.preset.is_some() || sets_files || self.network.is_some()
    }
}

/// Folders as they were written. What they begin at is known later.
fn folders(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let written = Vec::<String>::from_toml(value)?;
    match written.iter().find(|path| !is_plain(path)) {
        None => Ok(written),
        Some(path) => {
            let what = format!("{path:?} is not a folder");
            Err(Diagnosis::new(
                what,
                "write one like \"$HOME/data\" or \"/srv/data\": all that is beneath it belongs to it",
            ))
        }
    }
}

/// Whether a text names a folder or a file, and nothing that a shell would expand.
pub(super) fn is_plain(path: &str) -> bool {
    let rest = ["$HOME", "${HOME}", "~"].iter().find_map(|home| path.strip_prefix(home));
    let begins_well = rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/'));
    begins_well && !path.is_empty() && !rest.unwrap_or(path).contains(['$', '*', '?', '\0'])
}

/// How large a file may become.
fn size(value: &DeValue<'_>) -> Result<ByteCount, Diagnosis> {
    let size = ByteCount::from_toml(value)?;
    if size.0 == 0 { Err(mismatch("a size above zero", value, "write one like \"10MB\"")) } else { Ok(size) }
}

/// What a tool may reach, of all tables together.
#[derive(Debug, Clone, PartialEq)]
pub struct Sandbox {
    /// The last preset, if one counts.
    pub preset: Option<Preset>,
    /// What it may read besides its own folder; `None` for everything.
    pub read: Option<Vec<PathBuf>>,
    /// What it may change besides temporary files; `None` for everything.
    pub write: Option<Vec<PathBuf>>,
    /// How far the network is open.
    pub network: Network,
    /// What it does not see, wherever that is.
    pub hide: Vec<PathBuf>,
    /// How many processes and threads it may have together.
    pub processes: Option<usize>,
    /// How many files each process may have open.
    pub open_files: Option<usize>,
    /// How large files may become, in bytes.
    pub file_size: Option<usize>,
    /// Whether it may not run where the system cannot enforce this.
    pub is_required: bool,
    /// What set it: the strongest table that says what may be reached, else the strongest.
    pub origin: Origin,
}

impl Sandbox {
    /// Whether it lets a tool reach everything.
    pub fn is_unlimited(&self) -> bool {
        self.read.is_none() && self.write.is_none() && self.network == Network::On && self.hide.is_empty()
    }

    /// What tables say together, the weakest first; `None` if there are none.
    pub(super) fn of(layers: &[&Setting<SandboxLayer>], environment: &Environment) -> Option<Self> {
        let strongest = layers.iter().rev().find(|layer| layer.value.sets_access()).or(layers.last())?;
        // What a preset covers does not count.
        let first = layers.iter().rposition(|layer| layer.value.preset.is_some()).unwrap_or(0);
        let counting = &layers[first..];
        let preset = layers[first].value.preset;
        let (reads_all, writes_all, reaches_all) = Preset::implied(preset);
        let paths = |key: fn(&SandboxLayer) -> &Option<Vec<String>>| {
            let layer = counting.iter().rev().find(|layer| key(&layer.value).is_some())?;
            let written = key(&layer.value).iter().flatten();
            Some(written.map(|path| whole(path, &layer.origin, environment)).collect::<Vec<_>>())
        };
        let read = paths(|layer| &layer.read).or_else(|| (!reads_all).then(Vec::new));
        // Who reads little does not change everything.
        let write = paths(|layer| &layer.write).or_else(|| (!writes_all || read.is_some()).then(Vec::new));
        let network = counting.iter().rev().find_map(|layer| layer.value.network.clone());
        // No preset shows what a table hides.
        let hiding = layers.iter().rev().find_map(|layer| layer.value.hide.as_ref().map(|hide| (hide, &layer.origin)));
        let hide = hiding.map(|(hide, origin)| hide.iter().map(|path| whole(path, origin, environment)).collect());
        let last = |key: fn(&SandboxLayer) -> Option<usize>| layers.iter().rev().find_map(|layer| key(&layer.value));
        Some(Self {
            preset,
            read,
            write,
            hide: hide.unwrap_or_default(),
            network: network.unwrap_or(if reaches_all { Network::On } else { Network::Off }),
            processes: last(|layer| layer.processes),
            open_files: last(|layer| layer.open_files),
            file_size: last(|layer| layer.file_size),
            is_required: layers.iter().rev().find_map(|layer| layer.value.require).unwrap_or(false),
            origin: strongest.origin.clone(),
        })
    }

    /// The least that `requires_sandbox` asks for.
    pub(super) fn reader(origin: Origin) -> Self {
        Self {
            preset: Some(Preset::Reader),
            read: None,
            write: Some(Vec::new()),
            network: Network::Off,
            hide: Vec::new(),
            processes: None,
            open_files: None,
            file_size: None,
            is_required: true,
            origin,
        }
    }

    /// The strictest one.
    pub fn pure() -> Self {
        Self { preset: Some(Preset::Pure), read: Some(Vec::new()), is_required: false, ..Self::reader(Origin::Default) }
    }

    /// Whether it limits what is written to less than everything.
    fn limits_writing(&self) -> bool {
        self.write.as_ref().is_some_and(|folders| !folders.iter().any(|folder| folder.parent().is_none()))
    }

    /// Whether it closes anything that could be reached.
    pub fn limits_access(&self) -> bool {
        self.read.is_some() || self.write.is_some() || self.network != Network::On || !self.hide.is_empty()
    }

    /// It as a line of hostler.toml, with another folder in `read` or `write`, or with the network. A preset there would end what the tool's
    /// header asks for, so that it can be left out.
    pub fn widened(&self, by: &Widening, has_preset: bool) -> String {
        let preset = self.preset.filter(|_| has_preset);
        let mut parts: Vec<String> = preset.iter().map(|preset| format!("preset = \"{}\"", preset.word())).collect();
        let (reads, writes, network) = Preset::implied(preset);
        let mut list = |key: &str, have: &Option<Vec<PathBuf>>, more: Option<&Path>, is_implied: bool| {
            let Some(have) = have else { return };
            let all: Vec<String> = have.iter().map(PathBuf::as_path).chain(more).map(quoted).collect();
            if !all.is_empty() || !is_implied {
                parts.push(format!("{key} = [{}]", all.join(", ")));
            }
        };
        list("read", &self.read, if let Widening::Read(folder) = by { Some(folder.as_path()) } else { None }, !reads);
        let no_writing = !writes || (preset.is_none() && self.read.is_some());
        list(
            "write",
            &self.write,
            if let Widening::Write(folder) = by { Some(folder.as_path()) } else { None },
            no_writing,
        );
        let wanted = match (by, &self.network) {
            (Widening::Network, _) => &Network::On,
            (Widening::Host(host), Network::Hosts(hosts)) => {
                &Network::Hosts(hosts.iter().chain([host]).cloned().collect())
            }
            (_, own) => own,
        };
        if *wanted != if network { Network::On } else { Network::Off } {
            parts.push(format!("network = {}", wanted.written()));
        }
        if !self.hide.is_empty() {
            let hidden: Vec<String> = self.hide.iter().map(|path| quoted(path)).collect();
            parts.push(format!("hide = [{}]", hidden.join(", ")));
        }
        parts.extend(self.processes.map(|most| format!("processes = {most}")));
        parts.extend(self.open_files.map(|most| format!("open_files = {most}")));
        parts.extend(self.file_size.map(|most| format!("file_size = {most}")));
        if self.is_required {
            parts.push("require = true".to_owned());
        }
        format!("sandbox = {{ {} }}", parts.join(", "))
    }

    /// What it says, for people: `pure`, `reads everything, writes /srv/out, no network`.
    pub fn shown(&self) -> String {
        let list =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let reads = match &self.read {
            None => "reads everything".to_owned(),
            Some(paths) if paths.is_empty() => "reads its own folder".to_owned(),
            Some(paths) => format!("reads its own folder, {}", list(paths)),
        };
        let writes = match &self.write {
            None => "writes everything".to_owned(),
            Some(paths) if paths.is_empty() => "writes temporary files".to_owned(),
            Some(paths) => format!("writes temporary files, {}", list(paths)),
        };
        let network = self.network.shown();
        let hides = if self.hide.is_empty() { String::new() } else { format!("; hides {}", list(&self.hide)) };
        let required = if self.is_required { "; required" } else { "" };
        let word = self.preset.map(|preset| format!("{}: ", preset.word())).unwrap_or_default();
        format!("{word}{reads}; {writes}; {network}{hides}{required}")
    }
}

/// What a tool needs besides.
#[derive(Debug)]
pub enum Widening {
    /// To read a folder.
    Read(PathBuf),
    /// To change it.
    Write(PathBuf),
    /// The network.
    Network,
    /// A host.
    Host(HostPattern),
}

fn quoted(path: &Path) -> String {
    toml::Value::String(path.display().to_string()).to_string()
}

/// A folder with what it begins at: the home folder behind `$HOME` or `~`, that of the file that has it if it is relative.
fn whole(path: &str, origin: &Origin, environment: &Environment) -> PathBuf {
    let behind_home = ["$HOME", "${HOME}"].iter().find_map(|home| path.strip_prefix(home));
    let path = match (behind_home, environment.home()) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => from_file(origin, Path::new(path), environment),
    };
    path.components().collect()
}

impl Config {
    /// What a pack may reach: each of these has to allow it. `[tool.NAME]` over the categories of its functions over `[tool]` over
    /// `[sandbox]`; what its header asks for holds in addition, unless `[tool.NAME]` has a preset.
    pub(super) fn sandboxes(&self, pack: &str, header: Option<&ToolLayer>) -> Vec<Sandbox> {
        let own: &[_] = self.packs.get(pack).map_or(&[], |own| &own.sandbox);
        let (categories, requires) = self.governing(pack, header);
        let environment = &self.environment;
        let stacked = |of_category: &&[Setting<SandboxLayer>]| {
            let every = self.sandbox.iter().chain(&self.every.sandbox);
            let layers: Vec<_> = every.chain(*of_category).chain(own).collect();
            Sandbox::of(&layers, environment)
        };
        let mut found: Vec<Sandbox> = categories.iter().filter_map(stacked).collect();
        if let Some(origin) = requires {
            if !found.iter().any(Sandbox::limits_writing) {
                found.push(Sandbox::reader(origin));
            }
            for sandbox in &mut found {
                sandbox.is_required = true;
            }
        }
        if !own.iter().any(|layer| layer.value.preset.is_some()) {
            let layers: Vec<_> = header.iter().flat_map(|header| &header.sandbox).collect();
            found.extend(Sandbox::of(&layers, environment));
        }
        found.dedup();
        found
    }

    /// Whether a pack has a sandbox of its own, under its name.
    pub fn has_sandbox_of(&self, pack: &str) -> bool {
        self.packs.get(pack).is_some_and(|own| !own.sandbox.is_empty())
    }

    /// The tables of the categories that a pack and its functions are of, an empty one for none, and what says that it needs a sandbox. A
    /// category that the tool chose itself cannot widen what holds without one.
    fn governing(&self, pack: &str, header: Option<&ToolLayer>) -> (Vec<&[Setting<SandboxLayer>]>, Option<Origin>) {
        let begin = format!("{pack}.");
        let functions = self.functions.range(begin.clone()..).take_while(|(name, _)| name.starts_with(&begin));
        let policies = std::iter::once(None).chain(functions.map(|(_, own)| Some(own))).map(|own| {
            let declared = header.map(|header| header.policy.clone()).unwrap_or_default();
            self.policy_of(declared, self.packs.get(pack), own)
        });
        let (mut names, mut requires) = (BTreeSet::new(), None);
        for policy in policies {
            let with_table =
                |name: &String| self.categories.get(name).is_some_and(|category| !category.sandbox.is_empty());
            let category = policy.category.filter(|category| with_table(&category.value));
            if category.as_ref().is_none_or(|category| category.origin.is_of_tool()) {
                names.insert(None);
            }
            names.extend(category.map(|category| Some(category.value)));
            requires = requires.or(policy.requires_sandbox.filter(|set| set.value).map(|set| set.origin));
        }
        let table = |name: &Option<String>| {
            let category = name.as_ref().and_then(|name| self.categories.get(name));
            category.map_or(&[][..], |category| &category.sandbox)
        };
        (names.iter().map(table).collect(), requires)
    }
}
