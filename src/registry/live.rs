//! The catalogue in force, and how it keeps up with the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::asking::{AskSignal, SchemaProgress, Unasked};
use super::catalogue::{Catalogue, RoleKind, Tool};
use super::changes::{MissingExecutables, add_missing, keep_listed, log_changes, log_contents, look_alike};
use super::file_entry::FileEntry;
use super::last_good::LastGood;
use super::lookup::NotFound;
use super::refined::{Refined, Saving};
use crate::config::Config;
use crate::config::tables::OnSchemaFailure;
use crate::discovery::{Answer, Answers, Cache, SourceId, Stamp, Status, ToolFile, scan_all};
use crate::process::EnvFilter;

/// Holds the snapshot in force.
#[derive(Debug)]
pub struct Registry {
    /// Locked only to copy or replace the pointers.
    basis: RwLock<Basis>,
    /// Results of earlier runs.
    cache: Option<Cache>,
    saving: Saving,
    /// Locked only to copy or replace the pointers, never across an await.
    current: RwLock<Snapshot>,
    /// Locked while files are read, so that an earlier reading never replaces a later one.
    reading: Mutex<()>,
    last_good: Mutex<LastGood>,
    refined: Refined,
    /// What executables answered in this run.
    asked: Mutex<Answers>,
    asking: Arc<AskSignal>,
    /// The revision of each list, once its snapshot is in force.
    announced: [watch::Sender<u64>; 3],
    /// The environment variables that programs do not inherit: configured secrets, and secrets that tools declare.
    pub env_filter: EnvFilter,
}

/// What a catalogue is made of beside the files.
#[derive(Debug, Clone)]
struct Basis {
    config: Arc<Config>,
    built_in: Arc<[ToolFile]>,
}

#[derive(Debug, Clone)]
struct Snapshot {
    catalogue: Arc<Catalogue>,
    /// The folders in which files are created and removed.
    folders: Arc<Stamps>,
    /// Counts the changes that clients see, for each list.
    revisions: [u64; 3],
}

impl Registry {
    /// Reads the tool folders of a configuration.
    pub fn open(config: Arc<Config>) -> Self {
        Self::with(config, None, Vec::new())
    }

    /// The same with a cache, from which unchanged files are taken and to which the others are written, and with built-in
    /// tools.
    pub fn with(config: Arc<Config>, cache: Option<Cache>, built_in: Vec<ToolFile>) -> Self {
        let (saving, environment) = (Saving::default(), Arc::clone(&config.environment));
        let none = Snapshot { catalogue: Arc::default(), folders: Arc::default(), revisions: [0; 3] };
        let registry = Self {
            basis: RwLock::new(Basis { config, built_in: built_in.into() }),
            cache,
            saving,
            current: RwLock::new(none),
            reading: Mutex::default(),
            last_good: Mutex::default(),
            refined: Refined::default(),
            asked: Mutex::default(),
            asking: Arc::default(),
            announced: [(); 3].map(|()| watch::Sender::new(0)),
            env_filter: EnvFilter::of(environment),
        };
        registry.env_filter.add(registry.config().secret_variables());
        let first = registry.read();
        registry.withhold(&first);
        *registry.current.write() = first;
        registry
    }

    /// Logs the tools, and what is wrong with broken files.
    pub fn introduce(&self) {
        log_contents(&self.catalogue());
    }

    /// The snapshot in force.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.current.read().catalogue)
    }

    /// Waits a little until the cache is written. Dropping does so too, but there may be other owners.
    pub fn saved(&self) {
        self.saving.wait();
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.basis.read().config)
    }

    /// Puts another configuration and these built-in tools in force. Calls that run keep theirs. `together` is called once the
    /// catalogue is read, and calls what puts it in force.
    pub fn reconfigure(&self, config: Arc<Config>, built_in: Vec<ToolFile>, together: impl FnOnce(&mut dyn FnMut())) {
        let _reading = self.reading.lock();
        self.env_filter.add(config.secret_variables());
        let before = self.config();
        let is_same_offer = config.mcp.resources == before.mcp.resources;
        // It wraps results, and schemas of them.
        let is_same_form = config.mcp.envelope == before.mcp.envelope;
        let is_asked_otherwise = config.executables.schema_timeout != before.executables.schema_timeout;
        if is_asked_otherwise || config.launchers() != before.launchers() {
            // Who did not answer may do so now. That is kept in the cache, too.
            self.asked.lock().forget();
        }
        *self.basis.write() = Basis { config, built_in: built_in.into() };
        let mut fresh = Some(self.read());
        together(&mut || {
            if let Some(fresh) = fresh.take() {
                self.put_in_force(fresh, |list| match list {
                    RoleKind::Tool => !is_same_form,
                    RoleKind::Resource => !is_same_offer,
                    RoleKind::Prompt => false,
                });
            }
        });
        self.announce();
    }

    /// Waits until a reading that is under way is in force. A new configuration is known before its catalogue is.
    pub fn settled(&self) {
        drop(self.reading.lock());
    }

    /// The revisions of a list: another one whenever clients would see another list.
    pub fn announcements(&self, list: RoleKind) -> watch::Receiver<u64> {
        self.announced[list as usize].subscribe()
    }

    /// The catalogue as the files are now, and its revision of a list.
    pub fn listed(&self, list: RoleKind) -> (Arc<Catalogue>, u64) {
        self.refresh_if_changed();
        let current = self.current.read();
        (Arc::clone(&current.catalogue), current.revisions[list as usize])
    }

    /// Finds a tool as its file is now. Every call comes here, so only that tool's own files are looked at; for a name that
    /// is unknown or broken, all files are.
    pub fn find(&self, name: &str) -> Result<Arc<Tool>, NotFound> {
        self.find_as(RoleKind::Tool, name)
    }

    /// The same for a function with any role.
    pub fn find_as(&self, role: RoleKind, name: &str) -> Result<Arc<Tool>, NotFound> {
        if let Ok(tool) = self.catalogue().resolve_as(role, name)
            && tool.entry.file.is_ready()
            && tool.entry.is_current()
        {
            return Ok(Arc::clone(tool));
        }
        self.refresh_if_changed();
        self.catalogue().resolve_as(role, name).cloned()
    }

    /// Picks a function that can be called, as its file is now. If its file changed or there is none, all files are looked at.
    pub fn pick<T>(&self, pick: impl Fn(&Catalogue) -> Option<(Arc<Tool>, T)>) -> Option<(Arc<Tool>, T)> {
        if let Some(found) = pick(&self.catalogue())
            && found.0.entry.is_current()
        {
            return Some(found);
        }
        self.refresh_if_changed();
        pick(&self.catalogue())
    }

    /// Reads all tool files again if one of them or a folder changed. Returns whether it did.
    pub fn refresh_if_changed(&self) -> bool {
        if self.is_current() {
            return false;
        }
        let _reading = self.reading.lock();
        // Another thread may have read them meanwhile.
        if self.is_current() {
            return false;
        }
        self.install(self.read());
        true
    }

    /// The executables whose present version has not been asked.
    pub(super) fn unasked(&self) -> Vec<Unasked> {
        self.to_ask(|entry| entry.file.status == Status::Unasked)
    }

    /// Those that did not answer in time.
    pub(super) fn late(&self) -> Vec<Unasked> {
        self.to_ask(|entry| self.asked.lock().is_late(&entry.file.path))
    }

    fn to_ask(&self, is_one: impl Fn(&FileEntry) -> bool) -> Vec<Unasked> {
        let catalogue = self.catalogue();
        let asked = catalogue.files.iter().filter(|entry| is_one(entry)).filter_map(|entry| {
            let (path, sandbox) = (entry.file.path.clone(), entry.settings.sandbox.clone());
            let launcher = entry.launcher(self.env_filter.environment());
            let new_privileges = entry.settings.new_privileges.value;
            Some(Unasked { stamp: Stamp::of(&path)?, path, sandbox, launcher, new_privileges })
        });
        asked.collect()
    }

    pub(super) fn ask_signal(&self) -> Arc<AskSignal> {
        Arc::clone(&self.asking)
    }

    /// Takes the answers of executables that were asked with this time limit, unless another one is in force by now: whoever
    /// did not answer in time is asked again then.
    pub(super) fn take_answers(&self, answers: Vec<(PathBuf, Stamp, Answer)>, limit: Duration) {
        let _reading = self.reading.lock();
        // Only read under this lock does it stay what it is until the answers are noted.
        if self.config().executables.schema_timeout != limit {
            return;
        }
        {
            let mut asked = self.asked.lock();
            for (path, stamp, answer) in answers {
                asked.note(path, stamp, answer);
            }
        }
        self.install(self.read());
    }

    /// The state of asking executables.
    pub fn asking(&self) -> SchemaProgress {
        *self.asking.state.borrow()
    }

    /// Waits until every executable has been asked.
    pub async fn asked(&self) {
        let mut state = self.asking.state.subscribe();
        let is_over = |state: &watch::Receiver<SchemaProgress>| *state.borrow() == SchemaProgress::Failed;
        while !self.unasked().is_empty() && !is_over(&state) && state.changed().await.is_ok() {}
    }

    /// Waits until every executable has been asked, if no tool of this name is known before.
    pub async fn asked_for(&self, name: &str) {
        if self.catalogue().resolve(name).is_err() {
            self.asked().await;
        }
    }

    /// Reads all tool files again and forgets the answers of executables, also of missing ones.
    pub fn forget_answers(&self) {
        let _reading = self.reading.lock();
        self.asked.lock().forget();
        self.install(self.read_as(MissingExecutables::Forgotten));
    }

    /// Notes that this version of a file answered a call. It replaces later versions that cannot.
    pub fn answered(&self, entry: &Arc<FileEntry>) {
        if !entry.is_known_good.swap(true, Ordering::Relaxed) {
            self.last_good.lock().answered(entry);
        }
    }

    /// Whether this version of a file is known to answer.
    pub fn is_known_good(entry: &FileEntry) -> bool {
        entry.is_known_good.load(Ordering::Relaxed)
    }

    /// Notes that the worker of this version of a file did not start. An earlier version that answered takes its place.
    pub fn failed(&self, entry: &FileEntry, reason: &str) {
        let _reading = self.reading.lock();
        if self.last_good.lock().failed(entry, reason, Instant::now()) {
            self.install(self.read());
        }
    }

    /// Takes the description of its types by a worker of this version of a file. Where it completes a schema, the list changes.
    pub fn described(&self, source: &SourceId, version: [u8; 32], description: &str) {
        let _reading = self.reading.lock();
        let catalogue = self.catalogue();
        let entry = catalogue.entry_of(source).filter(|entry| entry.version == version);
        let learned =
            entry.is_some_and(|entry| self.refined.learn(entry, description, self.cache.as_ref(), &self.saving));
        if learned {
            tracing::info!(%source, "live types completed the schemas");
            self.install(self.read());
        }
    }

    fn is_current(&self) -> bool {
        let Snapshot { catalogue, folders, .. } = self.current.read().clone();
        folders.still_true() && catalogue.files.iter().all(|entry| entry.is_current())
    }

    fn read(&self) -> Snapshot {
        self.read_as(MissingExecutables::Listed)
    }

    fn read_as(&self, missing: MissingExecutables) -> Snapshot {
        // Stamps are taken before reading, so that a change in between is seen the next time.
        let Basis { config, built_in } = self.basis.read().clone();
        let tools = &config.tools.value;
        let (folders, files) = look(tools);
        let mut scan = scan_all(tools, self.cache.as_ref(), &self.asked.lock());
        if let Some(unsaved) = scan.unsaved.take() {
            self.saving.begin(unsaved);
        }
        let before = self.catalogue();
        if missing == MissingExecutables::Listed {
            add_missing(&mut scan.files, &before);
        }
        scan.files.iter_mut().for_each(|file| file.decide_asking(&config));
        keep_listed(&mut scan.files, &before);
        scan.files.extend(built_in.iter().cloned());
        if config.executables.on_schema_failure == OnSchemaFailure::Skip {
            scan.files.retain(|file| !matches!(file.status, Status::SchemaUnknown { .. }));
        }
        let stand_ins = self.last_good.lock().stand_in(&mut scan.files, &before, Instant::now());
        let complete =
            |file: &mut ToolFile, version: &[u8; 32]| self.refined.complete(file, version, self.cache.as_ref());
        let catalogue = Catalogue::build(scan, &files, stand_ins, &config, &complete);
        Snapshot { catalogue: Arc::new(catalogue), folders: Arc::new(folders), revisions: [0; 3] }
    }

    /// Puts a snapshot in force, and announces it if clients see another list. The caller holds `reading`.
    fn install(&self, fresh: Snapshot) {
        self.put_in_force(fresh, |_| false);
        self.announce();
    }

    /// Puts a snapshot in force. Lists that clients see otherwise, also for another reason, get another revision.
    fn put_in_force(&self, mut fresh: Snapshot, is_otherwise: impl Fn(RoleKind) -> bool) {
        self.withhold(&fresh);
        let Snapshot { catalogue: before, mut revisions, .. } = self.current.read().clone();
        for list in RoleKind::ALL {
            if is_otherwise(list) || !look_alike(list, &before, &fresh.catalogue) {
                revisions[list as usize] += 1;
            }
        }
        fresh.revisions = revisions;
        let after = Arc::clone(&fresh.catalogue);
        *self.current.write() = fresh;
        log_changes(&before, &after);
        self.asking.wake.notify_one();
    }

    /// Announces the revisions in force.
    fn announce(&self) {
        let revisions = self.current.read().revisions;
        for (announced, revision) in self.announced.iter().zip(revisions) {
            announced.send_if_modified(|known| std::mem::replace(known, revision) != revision);
        }
    }

    /// Called before a snapshot is in force, so that no program inherits a secret that it declares.
    fn withhold(&self, fresh: &Snapshot) {
        let declared = fresh.catalogue.files.iter().flat_map(|entry| &entry.settings.secrets.value);
        self.env_filter.add(declared.map(String::as_str));
    }
}

/// Folders that hold no tools: `.git`, `__pycache__`.
pub(super) fn is_ignored(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__" || name.as_encoded_bytes().starts_with(b"."))
}

/// The stamps of the tools folders with their subfolders, and of every Python file there.
fn look(tools: &[PathBuf]) -> (Stamps, Stamps) {
    let list = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let mut folders = tools.to_vec();
    let mut files = Vec::new();
    for path in tools.iter().flat_map(|folder| list(folder)) {
        if path.is_dir() {
            if is_ignored(&path) {
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

/// What a set of paths looked like to the file system, sorted by path; `None` for a path without a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Looks at the paths now.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut stamps: Vec<_> = paths.into_iter().map(|path| (path.to_owned(), Stamp::of(path))).collect();
        stamps.sort_by(|left, right| left.0.cmp(&right.0));
        Self(stamps)
    }

    /// The stamps of these paths; a path that is not in `self` is looked at now.
    pub(super) fn of_paths<'p>(&self, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let earlier = |path: &Path| self.0.binary_search_by(|(known, _)| known.as_path().cmp(path)).ok();
        let stamp = |path: &Path| earlier(path).map_or_else(|| Stamp::of(path), |place| self.0[place].1);
        Self(paths.into_iter().map(|path| (path.to_owned(), stamp(path))).collect())
    }

    /// Whether every path still looks the same.
    pub(super) fn still_true(&self) -> bool {
        self.0.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
    }
}
