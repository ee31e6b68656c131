//! Schemas that live types completed: remembered by the version of the file they are of, in this run and for the next.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::catalogue::FileEntry;
use super::saving::Saving;
use crate::discovery::{Cache, Function, Live, ToolFile, read_bytes_with};

/// What is remembered, `None` for a version that nothing is known of. Held only to look up or insert.
#[derive(Debug, Default)]
pub(super) struct Refined(Mutex<HashMap<[u8; 32], Option<Completed>>>);

/// The functions of a version.
#[derive(Debug)]
struct Completed {
    functions: Arc<[Function]>,
    /// Whether a worker of this run has told of the types.
    of_this_run: bool,
}

impl Refined {
    /// Completes a file that was just read, where that version was completed before. Says whether only an earlier run knows
    /// of it: types change with what is installed, and with whatever else they are made of, and the file does not show it.
    pub fn complete(&self, file: &mut ToolFile, version: &[u8; 32], cache: Option<&Cache>) -> bool {
        if file.open.is_empty() {
            return false;
        }
        let mut known = self.0.lock();
        let completed = known.entry(*version).or_insert_with(|| {
            let functions = cache.and_then(|cache| cache.refined(version))?;
            Some(Completed { functions: Arc::from(functions), of_this_run: false })
        });
        let Some(completed) = completed else { return false };
        file.refine(&completed.functions) && !completed.of_this_run
    }

    /// Reads a file again with what its live types told, and remembers what came of it. Says whether its schemas are others
    /// now.
    pub fn learn(&self, entry: &FileEntry, told: &str, cache: Option<&Cache>, saving: &Saving) -> bool {
        let Ok(bytes) = std::fs::read(&entry.file.path) else { return false };
        let file = read_bytes_with(&entry.file.path, &bytes, Live::read(told));
        if file.fingerprint != entry.file.fingerprint || !entry.file.clone().refine(&file.functions) {
            return false;
        }
        entry.only_remembered.store(false, Ordering::Relaxed);
        let is_news = file.functions != entry.file.functions;
        let functions = Arc::from(file.functions.as_slice());
        self.0.lock().insert(entry.version, Some(Completed { functions, of_this_run: true }));
        if !is_news {
            return false;
        }
        if let Some(unsaved) = cache.and_then(|cache| cache.unsaved_refined(&entry.version, &file.functions)) {
            saving.begin(unsaved);
        }
        true
    }
}
