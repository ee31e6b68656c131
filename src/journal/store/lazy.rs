//! One connection to the store for everything that a process does there: a second one would wait for the first by polling, and its
//! file would stay open as long as the first (locks of a process are lost with any close).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{SqliteStore, StoreError};

/// A store that is opened by the first who needs it: making one takes 20 ms, which no start pays.
pub struct LazyStore {
    path: PathBuf,
    /// Locked while it works, on threads.
    store: Mutex<Option<SqliteStore>>,
    /// How often a file was opened that was not the one before: it was set aside meanwhile.
    replaced: AtomicU64,
    /// The file that was open last.
    last: Mutex<Option<(u64, u64)>>,
}

impl LazyStore {
    /// That of a file, which need not be there.
    pub fn new(path: PathBuf) -> Self {
        Self { path, store: Mutex::default(), replaced: AtomicU64::new(0), last: Mutex::default() }
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
        let before = self.last.lock().replace(open.file());
        if before.is_some_and(|before| before != open.file()) {
            self.replaced.fetch_add(1, Ordering::Relaxed);
        }
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

    /// How often another file took its place: then it has nothing of what it had.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// Closes it until it is needed again.
    pub fn close(&self) {
        *self.store.lock() = None;
    }
}
