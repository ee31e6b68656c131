//! One connection to the store for everything that a process does there: a second one would wait for the first by polling, and its
//! file would stay open as long as the first (locks of a process are lost with any close).

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::{SqliteStore, StoreError};

/// A store that is opened by the first who needs it: making one takes 20 ms, which no start pays.
pub struct LazyStore {
    path: PathBuf,
    /// Locked while it works, on threads.
    store: Mutex<Option<SqliteStore>>,
}

impl LazyStore {
    /// That of a file, which need not be there.
    pub fn new(path: PathBuf) -> Self {
        Self { path, store: Mutex::default() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Works on it. Blocks; others wait meanwhile. One that fails is opened anew.
    pub fn with<T>(&self, work: impl FnOnce(&mut SqliteStore) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut store = self.store.lock();
        // Another process may have set aside what is open here.
        let open = store.take().filter(SqliteStore::is_in_its_place);
        let mut open = open.map_or_else(|| SqliteStore::open(&self.path), Ok)?;
        match work(&mut open) {
            Ok(done) => {
                *store = Some(open);
                Ok(done)
            }
            Err(error) => {
                if error.is_damage() {
                    SqliteStore::set_aside_if_damaged(open)?;
                }
                Err(error)
            }
        }
    }

    /// Closes it until it is needed again.
    pub fn close(&self) {
        *self.store.lock() = None;
    }
}
