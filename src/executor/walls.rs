//! The walls of a tool's processes: what its settings say, and what its program needs to run at all.

use std::sync::Arc;

use crate::config::Environment;
use crate::process::{Own, Walls};
use crate::registry::FileEntry;

/// The walls of a file's processes, if its settings ask for some; those that record, if they are recorded. What a Python worker's environment adds is known when it starts.
pub(super) fn walls_of(entry: &FileEntry, environment: &Environment) -> Option<Arc<Walls>> {
    walls_with(entry, environment, None)
}

/// The same, for a program that the file does not name.
pub(super) fn walls_with(entry: &FileEntry, environment: &Environment, program: Option<Own>) -> Option<Arc<Walls>> {
    let recorder = entry.config.recorder_of(&entry.file.pack);
    if entry.settings.sandbox.is_empty() && recorder.is_none() {
        return None;
    }
    let modules = entry.settings.needs.folders(environment).into_iter().map(Own::Path);
    let own = entry.own().into_iter().chain(program).chain(modules).collect();
    match recorder {
        Some(recorder) => Some(Walls::recording(recorder, own, environment)),
        None => Walls::of(&entry.settings.sandbox, own, environment),
    }
}
