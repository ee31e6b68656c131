//! A tool file in the catalogue: its settings, its version, and how its calls are executed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use super::catalogue::CompleteSchemas;
use super::last_good::{Stale, StandIns};
use super::live::Stamps;
use crate::config::sandbox::Sandbox;
use crate::config::tool::Protocol;
use crate::config::{Config, EffectiveTool};
use crate::discovery::{Function, Kind, Status, ToolFile, cannot_start};

/// The status of a file that is offered and whose calls fail until something is declared.
const CANNOT_START: &str = "cannot-start";

/// A tool file with its settings.
#[derive(Debug)]
pub struct FileEntry {
    /// The file, as it was read.
    pub file: ToolFile,
    /// Its settings.
    pub settings: EffectiveTool,
    /// The configuration that they are from, which its calls use to their end.
    pub config: Arc<Config>,
    /// A hash of its bytes and of its helpers' bytes.
    pub version: [u8; 32],
    /// Why this is its last good version and not the one on disk, if it is.
    pub stale: Option<Stale>,
    /// What it and its helpers looked like when they were read.
    pub(super) stamps: Stamps,
    /// Its functions as they were read, if an earlier run completed their schemas.
    as_read: Option<Vec<Function>>,
    /// Whether a worker of this run has described its types.
    pub(super) is_described: AtomicBool,
    /// Whether the registry knows that it has answered a call.
    pub(super) is_known_good: AtomicBool,
    /// Whether its source is kept, or cannot be.
    pub is_source_kept: AtomicBool,
}

impl FileEntry {
    pub(super) fn new(
        mut file: ToolFile,
        config: &Arc<Config>,
        looked: &Stamps,
        stand_ins: &mut StandIns,
        complete: &CompleteSchemas<'_>,
    ) -> Self {
        let stand_in = stand_ins.remove(&file.source());
        let paths = std::iter::once(&file.path).chain(&file.helpers);
        let paths = paths.chain(file.beside.iter().flat_map(|beside| &beside.files));
        let paths = paths.chain(stand_in.iter().flat_map(|stand_in| &stand_in.helpers));
        // Built-in tools have no file.
        let paths = paths.filter(|_| file.kind != Kind::Builtin);
        let stamps = looked.of_paths(paths.map(PathBuf::as_path));
        let (version, stale) = match stand_in {
            Some(stand_in) => (stand_in.version, Some(stand_in.stale)),
            None => (version(&file), None),
        };
        let as_read = complete(&mut file, &version);
        Self {
            settings: settings_of(&file, config),
            config: Arc::clone(config),
            file,
            version,
            stale,
            stamps,
            as_read,
            is_described: AtomicBool::default(),
            is_known_good: AtomicBool::default(),
            is_source_kept: AtomicBool::default(),
        }
    }

    /// Its functions as they were read, where their schemas are only completed by an earlier run: types may have changed without the
    /// file, so no call is refused because of what that run added.
    pub fn as_read(&self) -> Option<&[Function]> {
        self.as_read.as_deref().filter(|_| !self.is_described.load(Ordering::Relaxed))
    }

    /// Why it cannot be called, if it cannot.
    pub fn broken(&self) -> Option<String> {
        self.file.broken()
    }

    /// Its status in lists.
    pub fn status(&self) -> &'static str {
        match (&self.file.status, &self.stale) {
            (Status::Broken { .. }, _) => "broken",
            (Status::Missing { .. }, _) => "missing-binary",
            (Status::Unasked, _) => "unasked",
            (Status::NotAsked { .. }, _) => "not-asked",
            (Status::SchemaUnknown { .. }, _) => "schema-unknown",
            (Status::Ready, Some(_)) => "stale",
            (Status::Ready, None) => "ready",
        }
    }

    /// Why its workers end as soon as they start, where that is certain from reading it.
    pub fn cannot_start(&self) -> Option<String> {
        // The operator's own command may start it where there is more.
        let is_hostlers = matches!(self.file.kind, Kind::Python | Kind::Internal)
            && matches!((&self.file.status, &self.stale), (Status::Ready, None))
            && self.settings.launcher.value.command().is_none();
        let folders = || self.settings.import_folders(&self.config.environment);
        is_hostlers.then(|| cannot_start(&self.file, folders())).flatten().map(|reason| reason.to_string())
    }

    /// Its status as people see it, and what is wrong with it.
    pub fn shown(&self) -> (&'static str, Option<String>) {
        match self.trouble().or_else(|| self.is_unknown()) {
            None => match self.cannot_start() {
                None => (self.status(), None),
                stuck => (CANNOT_START, stuck),
            },
            trouble => (self.status(), trouble),
        }
    }

    /// Why its arguments are unknown, if they are.
    pub fn is_unknown(&self) -> Option<String> {
        match &self.file.status {
            Status::SchemaUnknown { reason } => Some(reason.to_string()),
            _ => None,
        }
    }

    /// Why it is not served, or what is wrong with the file on disk, also where an earlier version of it answers.
    pub fn trouble(&self) -> Option<String> {
        let not_asked = || self.file.not_asked().map(ToString::to_string);
        self.broken().or_else(not_asked).or_else(|| Some(self.stale.as_ref()?.reason.clone()))
    }

    /// Whether reading it again would give the same.
    pub(super) fn is_current(&self) -> bool {
        self.stamps.still_true() && !self.stale.as_ref().is_some_and(Stale::is_due)
    }
}

pub(super) fn version(file: &ToolFile) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(file.fingerprint);
    for helper in &file.helpers {
        // Reading a pipe would wait for what is written into it.
        let is_file = helper.is_file();
        hash.update(is_file.then(|| std::fs::read(helper).ok()).flatten().unwrap_or_default());
    }
    if let Some(needs) = file.beside.as_ref().and_then(|beside| beside.needs.as_ref()) {
        hash.update(format!("{needs:?}"));
    }
    hash.finalize().into()
}

/// The settings of a file.
fn settings_of(file: &ToolFile, config: &Config) -> EffectiveTool {
    let internal = matches!(file.kind, Kind::Internal | Kind::Builtin);
    let layer = file.header.as_ref().map_or(&file.declared, |header| &header.layer);
    config.tool(&file.pack, Some(layer), internal)
}

/// A worker that is not hostler's own serves the functions that the operator names.
pub(super) fn name_functions(file: &mut ToolFile, config: &Config) {
    let named = config.packs.get(&file.pack).and_then(|pack| pack.functions.as_ref());
    let Some(named) = named.filter(|_| file.is_ready()) else { return };
    if matches!(Serving::of(file.kind, &settings_of(file, config)), Serving::Itself | Serving::Program(_)) {
        file.serve_only(&named.value);
    }
}

impl FileEntry {
    /// How its calls are executed.
    pub fn serving(&self) -> Serving {
        Serving::of(self.file.kind, &self.settings)
    }

    /// Whether its processes reach all that their user reaches. Most built-in tools have none.
    pub fn is_unwalled(&self) -> bool {
        let has_processes = self.file.kind != Kind::Builtin || self.file.pack == "bash";
        has_processes && self.broken().is_none() && !self.settings.sandbox.iter().any(Sandbox::limits_access)
    }

    /// The word for its kind, one of [`KIND_WORDS`].
    pub fn kind_word(&self) -> &'static str {
        match (self.file.kind, self.serving()) {
            (_, Serving::Program(_)) => "worker",
            (Kind::Python, _) => "python",
            (Kind::Internal, _) => "internal",
            (Kind::Executable, _) => "executable",
            (Kind::Builtin, _) => "builtin",
        }
    }
}

/// How the calls of a tool file are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    /// By workers that run the shim, which loads the Python file.
    Shim,
    /// By workers that run the Python file itself, which serves the bare protocol.
    Itself,
    /// By workers that run the executable, in this protocol.
    Program(Protocol),
    /// By the executable, in a process for each call.
    EachCall,
    /// In this process.
    Inside,
}

impl Serving {
    /// For a file of this kind with these settings.
    pub fn of(kind: Kind, settings: &EffectiveTool) -> Self {
        let protocol = settings.protocol.as_ref().map(|protocol| protocol.value);
        match (kind, protocol) {
            (Kind::Python | Kind::Internal, Some(Protocol::Bare)) => Self::Itself,
            // The shim speaks v1.
            (Kind::Python | Kind::Internal, _) => Self::Shim,
            (Kind::Executable, None | Some(Protocol::Once)) => Self::EachCall,
            (Kind::Executable, Some(protocol)) => Self::Program(protocol),
            (Kind::Builtin, _) => Self::Inside,
        }
    }

    /// Whether workers execute them in the bare protocol.
    pub const fn is_bare(self) -> bool {
        matches!(self, Self::Itself | Self::Program(Protocol::Bare))
    }

    /// Whether workers execute them.
    pub const fn has_workers(self) -> bool {
        matches!(self, Self::Shim | Self::Itself | Self::Program(_))
    }

    /// Whether an interpreter in an environment of hostler's executes them.
    pub const fn has_environment(self) -> bool {
        matches!(self, Self::Shim | Self::Itself)
    }
}

/// The words for the kinds of tool files.
pub const KIND_WORDS: [&str; 5] = ["python", "internal", "executable", "worker", "builtin"];
