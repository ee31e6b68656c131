//! Schemas that live types completed: remembered by the version of the file they are of, in this run and for the next.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::catalogue::FileEntry;
use super::saving::Saving;
use crate::discovery::{Cache, Function, Live, ToolFile, read_bytes_with};

/// What is remembered. Held only to look up or insert.
#[derive(Debug, Default)]
pub(super) struct Refined(Mutex<HashMap<[u8; 32], Completed>>);

/// The functions of a version; `None` for one that no earlier run completed.
type Completed = Option<Arc<[Function]>>;

impl Refined {
    /// Completes a file that was just read, where that version was completed before.
    pub fn complete(&self, file: &mut ToolFile, version: &[u8; 32], cache: Option<&Cache>) {
        if file.open.is_empty() {
            return;
        }
        let mut known = self.0.lock();
        let functions =
            known.entry(*version).or_insert_with(|| cache.and_then(|cache| cache.refined(version)).map(Arc::from));
        if let Some(functions) = functions {
            file.refine(functions);
        }
    }

    /// Reads a file again with what its live types told, and remembers what came of it. Says whether its schemas are others
    /// now.
    pub fn learn(&self, entry: &FileEntry, told: &str, cache: Option<&Cache>, saving: &Saving) -> bool {
        let Ok(bytes) = std::fs::read(&entry.file.path) else { return false };
        let file = read_bytes_with(&entry.file.path, &bytes, Live::read(told));
        let is_same_file = file.fingerprint == entry.file.fingerprint;
        if !is_same_file || file.functions == entry.file.functions || !entry.file.clone().refine(&file.functions) {
            return false;
        }
        if let Some(unsaved) = cache.and_then(|cache| cache.unsaved_refined(&entry.version, &file.functions)) {
            saving.begin(unsaved);
        }
        self.0.lock().insert(entry.version, Some(Arc::from(file.functions)));
        true
    }
}
