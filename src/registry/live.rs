//! The catalogue in force, and how it keeps up with the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::catalogue::{Catalogue, NotFound, Tool};
use super::news;
use super::saving::Saving;
use super::shown::look_alike;
use super::stamp::Stamps;
use crate::config::Config;
use crate::discovery::{Cache, scan, scan_with};

/// Holds the snapshot in force. A reader takes the `Arc` and lets go at once.
#[derive(Debug)]
pub struct Registry {
    config: Arc<Config>,
    /// What earlier runs read.
    cache: Option<Cache>,
    saving: Saving,
    /// A plain lock, held only to copy or replace the pointers; never across an await.
    current: RwLock<Snapshot>,
    /// Held while files are read anew: what was read earlier never replaces what was read later.
    reading: Mutex<()>,
    /// Counts the changes that a client sees in a list of the tools.
    announced: watch::Sender<u64>,
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
        Self::with(config, None)
    }

    /// The same, reading only what changed since an earlier run, and keeping for the next one what this one reads.
    pub fn with(config: Arc<Config>, cache: Option<Cache>) -> Self {
        let saving = Saving::default();
        let current = RwLock::new(read(&config, cache.as_ref(), &saving));
        let announced = watch::Sender::new(0);
        Self { config, cache, saving, current, reading: Mutex::default(), announced }
    }

    /// The snapshot in force.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.current.read().catalogue)
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
            && tool.entry.stamps.still_true()
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
        self.install(read(&self.config, self.cache.as_ref(), &self.saving));
        true
    }

    fn is_current(&self) -> bool {
        let Snapshot { catalogue, folders } = self.current.read().clone();
        folders.still_true() && catalogue.files.iter().all(|entry| entry.stamps.still_true())
    }

    /// Puts a snapshot in force, and announces it where a list of its tools reads differently. For whoever holds
    /// `reading`, since the snapshot in force must be the one it was made after.
    fn install(&self, fresh: Snapshot) {
        let after = Arc::clone(&fresh.catalogue);
        let before = std::mem::replace(&mut *self.current.write(), fresh);
        news::tell(&before.catalogue, &after);
        if !look_alike(&before.catalogue, &after) {
            self.announced.send_modify(|count| *count += 1);
        }
    }
}

/// Folders that change for their own reasons and hold no tool: `.git`, `__pycache__`.
pub(super) fn is_beside_the_point(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__" || name.as_encoded_bytes().starts_with(b"."))
}

fn read(config: &Config, cache: Option<&Cache>, saving: &Saving) -> Snapshot {
    // Stamps are taken before reading: a change in between is then seen the next time.
    let (folders, files) = look(&config.tools.value);
    let tools = &config.tools.value;
    let mut scan = cache.map_or_else(|| scan(tools), |cache| scan_with(tools, cache));
    if let Some(unsaved) = scan.unsaved.take() {
        saving.begin(unsaved);
    }
    let catalogue = Catalogue::build(scan, &files, config);
    Snapshot { catalogue: Arc::new(catalogue), folders: Arc::new(folders) }
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
