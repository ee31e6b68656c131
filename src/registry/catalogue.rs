//! One snapshot: tool files with the settings in force, tools by both of their names.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::absent::NotFound;
use super::compiled::Compiled;
use super::last_good::{Stale, StandIns};
use super::serving::Serving;
use super::stamp::Stamps;
use crate::config::builtin::ALIASES;
use crate::config::{Config, EffectiveTool, FunctionSettings};
use crate::discovery::{
    FolderProblem, Function, JsonSchema, Kind, Scan, Status, ToolFile, resolve_collisions, resolve_overrides,
};

/// Completes the schemas of a version of a file with what is known besides its text. Says whether only an earlier run
/// knows it.
pub(super) type Complete<'a> = dyn Fn(&mut ToolFile, &[u8; 32]) -> bool + 'a;

/// A tool file and what is in force for it.
#[derive(Debug)]
pub struct FileEntry {
    /// The file, as it was read.
    pub file: ToolFile,
    /// Its settings.
    pub settings: EffectiveTool,
    /// What tells one version of it from another: its bytes, and those of the neighbours it imports.
    pub version: [u8; 32],
    /// Why this is its last good version and not the one on disk, if so.
    pub stale: Option<Stale>,
    /// What it and its neighbours looked like when they were read.
    pub(super) stamps: Stamps,
    /// Whether its schemas hold what types told in an earlier run and no worker has told in this one yet.
    pub(super) only_remembered: AtomicBool,
    /// Whether the registry knows that it has answered a call.
    pub(super) is_known_good: AtomicBool,
}

impl FileEntry {
    fn new(
        mut file: ToolFile,
        settings: EffectiveTool,
        looked: &Stamps,
        stand_ins: &mut StandIns,
        complete: &Complete<'_>,
    ) -> Self {
        let stand_in = stand_ins.remove(&file.path);
        let paths = std::iter::once(&file.path).chain(&file.helpers);
        let paths = paths.chain(stand_in.iter().flat_map(|stand_in| &stand_in.helpers));
        // What is part of this program lies nowhere.
        let paths = paths.filter(|_| file.kind != Kind::Builtin);
        let stamps = looked.as_seen_at(paths.map(PathBuf::as_path));
        let (version, stale) = match stand_in {
            Some(stand_in) => (stand_in.version, Some(stand_in.stale)),
            None => (version(&file), None),
        };
        let only_remembered = AtomicBool::new(complete(&mut file, &version));
        Self { file, settings, version, stale, stamps, only_remembered, is_known_good: AtomicBool::default() }
    }

    /// Whether what its schemas say beyond its text is from an earlier run and may be over: no reason to refuse anything.
    pub fn is_only_remembered(&self) -> bool {
        self.only_remembered.load(Ordering::Relaxed)
    }

    /// Why it cannot be called, if it cannot.
    pub fn broken(&self) -> Option<String> {
        self.file.broken()
    }

    /// `ready`, `stale` where its last good version answers, or `broken`.
    pub fn status(&self) -> &'static str {
        match (&self.file.status, &self.stale) {
            (Status::Broken { .. }, _) => "broken",
            (Status::Missing { .. }, _) => "missing-binary",
            (Status::Unasked, _) => "unasked",
            (Status::SchemaUnknown { .. }, _) => "schema-unknown",
            (Status::Ready, Some(_)) => "stale",
            (Status::Ready, None) => "ready",
        }
    }

    /// Why nobody knows what it takes, where that is so.
    pub fn is_unknown(&self) -> Option<&str> {
        match &self.file.status {
            Status::SchemaUnknown { reason } => Some(reason),
            _ => None,
        }
    }

    /// What is wrong with the file on disk, also where an earlier version of it answers.
    pub fn trouble(&self) -> Option<String> {
        self.broken().or_else(|| Some(self.stale.as_ref()?.reason.clone()))
    }

    /// Whether it still is what would be read now.
    pub(super) fn is_current(&self) -> bool {
        self.stamps.still_true() && !self.stale.as_ref().is_some_and(Stale::is_due)
    }
}

pub(super) fn version(file: &ToolFile) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(file.fingerprint);
    for helper in &file.helpers {
        hash.update(std::fs::read(helper).unwrap_or_default());
    }
    hash.finalize().into()
}

/// What is in force for a file.
fn settings_of(file: &ToolFile, config: &Config) -> EffectiveTool {
    let internal = matches!(file.kind, Kind::Internal | Kind::Builtin);
    let wishes = file.declared.layer();
    let layer = file.header.as_ref().map_or(&wishes, |header| &header.layer);
    config.tool(&file.pack, Some(layer), internal)
}

/// A worker that hostler does not bring serves what its operator says. One that has not been asked keeps its silence.
fn name_functions(file: &mut ToolFile, config: &Config) {
    let named = config.layer.packs.get(&file.pack).and_then(|pack| pack.functions.as_ref());
    let Some(named) = named.filter(|_| file.is_ready()) else { return };
    if matches!(Serving::of(file.kind, &settings_of(file, config)), Serving::Itself | Serving::Program(_)) {
        file.serve_only(&named.value);
    }
}

/// One callable function.
#[derive(Debug)]
pub struct Tool {
    /// `pack.function`.
    pub name: String,
    /// `pack_function`: model providers accept no dot.
    pub mcp_name: String,
    /// The file it is in.
    pub entry: Arc<FileEntry>,
    /// What is in force for it.
    pub settings: FunctionSettings,
    place: usize,
    input: Compiled,
    output: Compiled,
}

impl Tool {
    /// The function as it was read.
    pub fn function(&self) -> &Function {
        &self.entry.file.functions[self.place]
    }

    /// The text a model reads.
    pub fn description(&self) -> Option<&str> {
        let function = self.function();
        function.description.as_deref().or(function.summary.as_deref())
    }

    /// The output schema, as far as clients are told: what is not checked is not promised.
    pub fn promised(&self) -> Option<&JsonSchema> {
        self.function().output_schema.as_ref().filter(|_| self.settings.validate.value)
    }

    /// What it takes, as values.
    pub fn input_schema(&self) -> &Map<String, Value> {
        self.input.schema(&self.function().input_schema)
    }

    /// What is promised of results, as values.
    pub fn promised_schema(&self) -> Option<&Map<String, Value>> {
        self.promised().map(|text| self.output.schema(text))
    }

    /// The schema's validator. `None` when the schema cannot be compiled, which is ours to mend and no reason to refuse a
    /// call.
    pub fn validator(&self) -> Option<&jsonschema::Validator> {
        self.input.validator(&self.function().input_schema, &self.name)
    }

    /// The validator of what is promised of results.
    pub fn result_validator(&self) -> Option<&jsonschema::Validator> {
        self.output.validator(self.promised()?, &self.name)
    }
}

/// Every tool there is at one moment.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The files, in path order, broken ones too.
    pub files: Vec<Arc<FileEntry>>,
    /// The tools, sorted by name, those of broken files too.
    pub tools: Vec<Arc<Tool>>,
    /// Folders that could not be read.
    pub problems: Vec<FolderProblem>,
    by_name: HashMap<String, usize>,
}

impl Catalogue {
    /// Makes a snapshot from what a scan found. `looked` is what the files looked like before they were read.
    /// `complete` knows what their text does not tell.
    pub(super) fn build(
        mut scan: Scan,
        looked: &Stamps,
        mut stand_ins: StandIns,
        config: &Config,
        complete: &Complete<'_>,
    ) -> Self {
        resolve_overrides(&mut scan.files);
        scan.files.iter_mut().for_each(|file| name_functions(file, config));
        resolve_collisions(&mut scan.files);
        scan.problems.retain(|problem| problem.matters(&config.tools.origin));
        let mut catalogue = Self { problems: scan.problems, ..Self::default() };
        for file in scan.files {
            let settings = settings_of(&file, config);
            catalogue.add(Arc::new(FileEntry::new(file, settings, looked, &mut stand_ins, complete)), config);
        }
        catalogue.tools.sort_by(|left, right| left.name.cmp(&right.name));
        for (place, tool) in catalogue.tools.iter().enumerate() {
            // A broken file may claim names that a good one has; the good one answers.
            for name in [&tool.name, &tool.mcp_name] {
                let taken = catalogue.by_name.get(name);
                if taken.is_none_or(|other| catalogue.tools[*other].entry.broken().is_some()) {
                    catalogue.by_name.insert(name.clone(), place);
                }
            }
        }
        catalogue.enter_aliases();
        catalogue
    }

    /// Built-in tools answer to the names that other hosts have for them, where those are free.
    fn enter_aliases(&mut self) {
        for (alias, name) in ALIASES {
            let built_in = |place: &&usize| self.tools[**place].entry.file.kind == Kind::Builtin;
            if let Some(place) = self.by_name.get(name).filter(built_in).copied() {
                self.by_name.entry(alias.to_owned()).or_insert(place);
            }
        }
    }

    fn add(&mut self, entry: Arc<FileEntry>, config: &Config) {
        let pack = &entry.file.pack;
        for (place, function) in entry.file.functions.iter().enumerate() {
            let (name, mcp_name) = entry.file.names_of(&function.name);
            self.tools.push(Arc::new(Tool {
                name,
                mcp_name,
                settings: config.function(pack, &function.name, &entry.settings, function.declared.as_deref()),
                entry: Arc::clone(&entry),
                place,
                input: Compiled::default(),
                output: Compiled::default(),
            }));
        }
        self.files.push(entry);
    }

    /// Tools that can be called.
    pub fn ready(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.iter().filter(|tool| tool.entry.file.is_ready())
    }

    /// Finds a tool by either of its names.
    pub fn resolve(&self, name: &str) -> Result<&Arc<Tool>, NotFound> {
        if let Some(place) = self.by_name.get(name) {
            return Ok(&self.tools[*place]);
        }
        Err(self.not_found(name))
    }
}
