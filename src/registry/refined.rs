//! Schemas that live types completed, by the version of their file, and the thread that keeps results for the next run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::file_entry::{FileEntry, version};
use crate::discovery::{Cache, Function, PendingWrite, ToolFile};

/// The completed functions by version; `None` for a version that was not completed. Locked only to look up or insert.
#[derive(Debug, Default)]
pub(super) struct Refined(Mutex<HashMap<[u8; 32], Option<Completed>>>);

/// The functions of a version.
#[derive(Debug)]
struct Completed {
    functions: Arc<[Function]>,
    /// Whether a worker of this run described the types.
    of_this_run: bool,
}

impl Refined {
    /// Completes a file that was read, if that version was completed before. Returns the functions as they were read if an earlier
    /// run did it: types may change without the file, for instance with what is installed.
    pub fn complete(&self, file: &mut ToolFile, version: &[u8; 32], cache: Option<&Cache>) -> Option<Vec<Function>> {
        if file.open.is_empty() {
            return None;
        }
        let mut known = self.0.lock();
        let completed = known.entry(*version).or_insert_with(|| {
            let functions = cache.and_then(|cache| cache.refined(version))?;
            Some(Completed { functions: Arc::from(functions), of_this_run: false })
        });
        let completed = completed.as_ref()?;
        file.refine(&completed.functions).filter(|_| !completed.of_this_run)
    }

    /// Reads a file again with the description of its live types. Returns whether its schemas changed.
    pub fn learn(&self, entry: &FileEntry, description: &str, cache: Option<&Cache>, saving: &Saving) -> bool {
        let Some(functions) = entry.file.described_by(description) else { return false };
        if version(&entry.file) != entry.version {
            return false; // a helper has changed meanwhile
        }
        entry.is_described.store(true, Ordering::Relaxed);
        let is_news = functions != entry.file.functions;
        let completed = Completed { functions: Arc::from(functions.as_slice()), of_this_run: true };
        self.0.lock().insert(entry.version, Some(completed));
        if !is_news {
            return false;
        }
        if let Some(unsaved) = cache.and_then(|cache| cache.unsaved_refined(&entry.version, &functions)) {
            saving.begin(unsaved);
        }
        true
    }
}

/// Writing takes some milliseconds. If it takes longer, the next run reads everything again.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// Writes the cache in the background. Dropping it waits a little, since a command may end before the cache is written.
#[derive(Debug, Default)]
pub(super) struct Saving {
    /// Closed when the last write is over.
    last: Mutex<Option<Receiver<()>>>,
}

impl Saving {
    pub fn begin(&self, unsaved: PendingWrite) {
        let (over, is_over) = channel::<()>();
        // One after the other: of two at once, one would not get the lock and not write.
        let mut last = self.last.lock();
        let earlier = last.take();
        let write = move || {
            if let Some(earlier) = earlier {
                let _ = earlier.recv();
            }
            unsaved.save();
            drop(over);
        };
        if thread::Builder::new().name("catalogue".to_owned()).spawn(write).is_ok() {
            *last = Some(is_over);
        }
    }

    /// Waits a little until everything is written.
    pub fn wait(&self) {
        let last = self.last.lock().take();
        if let Some(is_over) = last {
            let _ = is_over.recv_timeout(LONGEST_WAIT);
        }
    }
}

impl Drop for Saving {
    fn drop(&mut self) {
        self.wait();
    }
}
