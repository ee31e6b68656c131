//! The walls of a tool's processes: what its settings say, and what its program needs to run at all.

use std::sync::Arc;

use crate::config::Environment;
use crate::discovery::Kind;
use crate::process::{Own, Walls};
use crate::registry::FileEntry;

/// The walls of a file's processes, if its settings ask for some; those that record, if they are recorded. What a Python worker's environment adds is known when it starts.
pub(super) fn walls_of(entry: &FileEntry, environment: &Environment) -> Option<Arc<Walls>> {
    let recorder = entry.config.recorder_of(&entry.file.pack);
    if entry.settings.sandbox.is_empty() && recorder.is_none() {
        return None;
    }
    let file = &entry.file.path;
    let own = match entry.file.kind {
        Kind::Builtin => {
            let roots = entry.config.builtin.roots.iter().flat_map(|roots| &roots.value);
            roots.cloned().map(Own::Path).collect()
        }
        Kind::Executable => vec![Own::Program(file.clone())],
        Kind::Python | Kind::Internal => vec![Own::FolderOf(file.clone())],
    };
    match recorder {
        Some(recorder) => Some(Walls::recording(recorder, own, environment)),
        None => Walls::of(&entry.settings.sandbox, own, environment),
    }
}
