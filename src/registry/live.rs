//! The catalogue in force, and how it keeps up with the files.

use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;

use super::catalogue::Catalogue;
use super::stamp::Stamps;
use crate::config::Config;
use crate::discovery::scan;

/// Holds the snapshot in force. A reader takes the `Arc` and lets go at once.
#[derive(Debug)]
pub struct Registry {
    config: Arc<Config>,
    /// A plain lock, held only to copy or replace the pointer; never across an await.
    current: RwLock<(Arc<Catalogue>, Arc<Stamps>)>,
}

impl Registry {
    /// Reads the tool folders of a configuration.
    pub fn open(config: Arc<Config>) -> Self {
        let current = RwLock::new(read(&config));
        Self { config, current }
    }

    /// The snapshot in force.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.current.read().0)
    }

    /// Looks whether any tool file or folder changed since it was read, and reads them anew if so. Says whether it did.
    pub fn refresh_if_changed(&self) -> bool {
        let stamps = Arc::clone(&self.current.read().1);
        if stamps.still_true() {
            return false;
        }
        *self.current.write() = read(&self.config);
        true
    }

    /// Reads the folders anew, changed or not. Returns how many tools can be called.
    pub fn refresh(&self) -> usize {
        let fresh = read(&self.config);
        let count = fresh.0.ready().count();
        *self.current.write() = fresh;
        count
    }
}

fn read(config: &Config) -> (Arc<Catalogue>, Arc<Stamps>) {
    let folders = &config.tools.value;
    let before = Stamps::of(folders.iter().map(std::path::PathBuf::as_path));
    let catalogue = Catalogue::build(scan(folders), config);
    let files = catalogue.files.iter().map(|entry| entry.file.path.as_path());
    let parents = files.clone().filter_map(Path::parent);
    let stamps = before.and(Stamps::of(files.chain(parents)));
    (Arc::new(catalogue), Arc::new(stamps))
}
