//! The catalogue in force, and how it keeps up with the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::absent::NotFound;
use super::asking::{Asking, Bell};
use super::carried::{Absent, gone, keep_listed};
use super::catalogue::{Catalogue, FileEntry, Tool};
use super::last_good::LastGood;
use super::news;
use super::refined::Refined;
use super::saving::Saving;
use super::shown::look_alike;
use super::stamp::Stamps;
use crate::config::Config;
use crate::discovery::{Answer, Asked, Cache, Stamp, Status, ToolFile, scan_all};
use crate::process::Withheld;

/// Holds the snapshot in force. A reader takes the `Arc` and lets go at once.
#[derive(Debug)]
pub struct Registry {
    config: Arc<Config>,
    /// What earlier runs read.
    cache: Option<Cache>,
    /// The tools that are part of this program.
    built_in: Vec<ToolFile>,
    saving: Saving,
    /// A plain lock, held only to copy or replace the pointers; never across an await.
    current: RwLock<Snapshot>,
    /// Held while files are read anew: what was read earlier never replaces what was read later.
    reading: Mutex<()>,
    /// Held only to look or to note something.
    last_good: Mutex<LastGood>,
    refined: Refined,
    /// What executables answered in this run. Held only to look or to note something, and while files are read.
    asked: Mutex<Asked>,
    bell: Arc<Bell>,
    /// Counts the changes that a client sees in a list of the tools.
    announced: watch::Sender<u64>,
    /// What programs do not get of hostler's own environment: what is configured as a secret, and what tools declare as one.
    pub withheld: Withheld,
}

#[derive(Debug, Clone)]
struct Snapshot {
    catalogue: Arc<Catalogue>,
    /// The folders, in which files come and go.
    folders: Arc<Stamps>,
}

impl Registry {
    /// Reads the tool folders of a configuration.
    pub fn open(config: Arc<Config>) -> Self {
        Self::with(config, None, Vec::new())
    }

    /// The same, reading only what changed since an earlier run, and keeping for the next one what this one reads; with the
    /// tools that are part of this program.
    pub fn with(config: Arc<Config>, cache: Option<Cache>, built_in: Vec<ToolFile>) -> Self {
        let (saving, environment) = (Saving::default(), Arc::clone(&config.environment));
        let none = Snapshot { catalogue: Arc::default(), folders: Arc::default() };
        let registry = Self {
            config,
            cache,
            built_in,
            saving,
            current: RwLock::new(none),
            reading: Mutex::default(),
            last_good: Mutex::default(),
            refined: Refined::default(),
            asked: Mutex::default(),
            bell: Arc::default(),
            announced: watch::Sender::new(0),
            withheld: Withheld::of(environment),
        };
        registry.withheld.add(registry.config.secret_variables());
        let first = registry.read();
        registry.withhold(&first);
        *registry.current.write() = first;
        registry
    }

    /// Tells the log what is there, and why what is broken is.
    pub fn introduce(&self) {
        news::introduce(&self.catalogue());
    }

    /// The snapshot in force.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.current.read().catalogue)
    }

    /// Waits a little for what is being kept for the next run. Dropping does so too, but others may hold this.
    pub fn saved(&self) {
        self.saving.wait();
    }

    /// The folders that are served.
    pub(super) fn tool_folders(&self) -> &[PathBuf] {
        &self.config.tools.value
    }

    /// Moves whenever a client that lists the tools would see something else than before.
    pub fn announcements(&self) -> watch::Receiver<u64> {
        self.announced.subscribe()
    }

    /// Finds a tool as its file is now. On the way of every call, so it looks at that tool's own files only; a name that
    /// is not known, or known to be broken, is worth a look at all of them.
    pub fn find(&self, name: &str) -> Result<Arc<Tool>, NotFound> {
        if let Ok(tool) = self.catalogue().resolve(name)
            && tool.entry.file.is_ready()
            && tool.entry.is_current()
        {
            return Ok(Arc::clone(tool));
        }
        self.refresh_if_changed();
        self.catalogue().resolve(name).cloned()
    }

    /// Looks whether any tool file or folder changed since it was read, and reads them anew if so. Says whether it did.
    pub fn refresh_if_changed(&self) -> bool {
        if self.is_current() {
            return false;
        }
        let _reading = self.reading.lock();
        // Somebody else may have read them while this one waited.
        if self.is_current() {
            return false;
        }
        self.install(self.read());
        true
    }

    /// Executables that have not been asked as they are now.
    pub(super) fn unasked(&self) -> Vec<(PathBuf, Stamp)> {
        let catalogue = self.catalogue();
        let unasked = catalogue.files.iter().filter(|entry| entry.file.status == Status::Unasked);
        unasked.filter_map(|entry| Some((entry.file.path.clone(), Stamp::of(&entry.file.path)?))).collect()
    }

    pub(super) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// Takes what executables answered.
    pub(super) fn heard(&self, answers: Vec<(PathBuf, Stamp, Answer)>) {
        let _reading = self.reading.lock();
        {
            let mut asked = self.asked.lock();
            for (path, stamp, answer) in answers {
                asked.note(path, stamp, answer);
            }
        }
        self.install(self.read());
    }

    /// How far the asking of executables is.
    pub fn asking(&self) -> Asking {
        *self.bell.state.borrow()
    }

    /// Waits until every executable has been asked, where somebody asks.
    pub async fn asked(&self) {
        let mut state = self.bell.state.subscribe();
        let is_over = |state: &watch::Receiver<Asking>| *state.borrow() == Asking::Failed;
        while !self.unasked().is_empty() && !is_over(&state) && state.changed().await.is_ok() {}
    }

    /// Reads all tool files anew and forgets what executables answered, of those that are gone too.
    pub fn forget_answers(&self) {
        let _reading = self.reading.lock();
        self.asked.lock().forget();
        self.install(self.read_as(Absent::Forgotten));
    }

    /// Notes that a call was answered by this version of a file, which then stands in for versions that cannot.
    pub fn answered(&self, entry: &Arc<FileEntry>) {
        if !entry.is_known_good.swap(true, Ordering::Relaxed) {
            self.last_good.lock().answered(entry);
        }
    }

    /// Whether this version of a file is known to answer.
    pub fn is_known_good(entry: &FileEntry) -> bool {
        entry.is_known_good.load(Ordering::Relaxed)
    }

    /// Notes that the worker of this version of a file did not start. Where an earlier version answered, that one is in
    /// force from now on.
    pub fn failed(&self, entry: &FileEntry, reason: &str) {
        let _reading = self.reading.lock();
        if self.last_good.lock().failed(entry, reason, Instant::now()) {
            self.install(self.read());
        }
    }

    /// Takes what a worker of this version of a file told of its types. Where that completes a schema, the list changes.
    pub fn described(&self, path: &Path, version: [u8; 32], told: &str) {
        let _reading = self.reading.lock();
        let catalogue = self.catalogue();
        let entry = catalogue.files.iter().find(|entry| entry.file.path == path && entry.version == version);
        let learned = entry.is_some_and(|entry| self.refined.learn(entry, told, self.cache.as_ref(), &self.saving));
        if learned {
            tracing::info!(file = %path.display(), "its running types completed what its tools take and return");
            self.install(self.read());
        }
    }

    fn is_current(&self) -> bool {
        let Snapshot { catalogue, folders } = self.current.read().clone();
        folders.still_true() && catalogue.files.iter().all(|entry| entry.is_current())
    }

    fn read(&self) -> Snapshot {
        self.read_as(Absent::Told)
    }

    fn read_as(&self, absent: Absent) -> Snapshot {
        // Stamps are taken before reading: a change in between is then seen the next time.
        let tools = &self.config.tools.value;
        let (folders, files) = look(tools);
        let mut scan = scan_all(tools, self.cache.as_ref(), &self.asked.lock());
        if let Some(unsaved) = scan.unsaved.take() {
            self.saving.begin(unsaved);
        }
        let before = self.catalogue();
        if absent == Absent::Told {
            gone(&mut scan.files, &before);
        }
        keep_listed(&mut scan.files, &before);
        scan.files.extend(self.built_in.iter().cloned());
        if self.config.layer.executables.skips() {
            scan.files.retain(|file| !matches!(file.status, Status::SchemaUnknown { .. }));
        }
        let stand_ins = self.last_good.lock().stand_in(&mut scan.files, &before, Instant::now());
        let complete =
            |file: &mut ToolFile, version: &[u8; 32]| self.refined.complete(file, version, self.cache.as_ref());
        let catalogue = Catalogue::build(scan, &files, stand_ins, &self.config, &complete);
        Snapshot { catalogue: Arc::new(catalogue), folders: Arc::new(folders) }
    }

    /// Puts a snapshot in force, and announces it where a list of its tools reads differently. For whoever holds
    /// `reading`, since the snapshot in force must be the one it was made after.
    fn install(&self, fresh: Snapshot) {
        self.withhold(&fresh);
        let after = Arc::clone(&fresh.catalogue);
        let before = std::mem::replace(&mut *self.current.write(), fresh);
        news::tell(&before.catalogue, &after);
        self.bell.rings.notify_one();
        if !look_alike(&before.catalogue, &after) {
            self.announced.send_modify(|count| *count += 1);
        }
    }

    /// Before a snapshot is in force: no program is started then that gets a secret which this one declares.
    fn withhold(&self, fresh: &Snapshot) {
        let declared = fresh.catalogue.files.iter().flat_map(|entry| &entry.settings.secrets.value);
        self.withheld.add(declared.map(String::as_str));
    }
}

/// Folders that change for their own reasons and hold no tool: `.git`, `__pycache__`.
pub(super) fn is_beside_the_point(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__" || name.as_encoded_bytes().starts_with(b"."))
}

/// The tool folders with those inside them, in which `NAME/NAME.py` may appear, and every Python file there.
fn look(tools: &[PathBuf]) -> (Stamps, Stamps) {
    let list = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let mut folders = tools.to_vec();
    let mut files = Vec::new();
    for path in tools.iter().flat_map(|folder| list(folder)) {
        if path.is_dir() {
            if is_beside_the_point(&path) {
                continue;
            }
            files.extend(list(&path));
            folders.push(path);
        } else {
            files.push(path);
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    let stamps = |paths: &[PathBuf]| Stamps::of(paths.iter().map(PathBuf::as_path));
    (stamps(&folders), stamps(&files))
}
