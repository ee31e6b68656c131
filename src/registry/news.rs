//! What changed between two catalogues, file by file, for hostler's own log.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::catalogue::{Catalogue, FileEntry};

/// Tells what was added, changed and removed.
pub(super) fn tell(before: &Catalogue, after: &Catalogue) {
    let mut known: HashMap<&Path, &Arc<FileEntry>> =
        before.files.iter().map(|entry| (entry.file.path.as_path(), entry)).collect();
    for entry in &after.files {
        let earlier = known.remove(entry.file.path.as_path());
        if earlier.is_none_or(|earlier| state(earlier) != state(entry)) {
            tell_of(entry, earlier.is_none());
        }
    }
    for gone in known.into_values() {
        tracing::info!(file = %gone.file.path.display(), "{} was removed", gone.file.pack);
    }
}

/// Tells what is there from the beginning, and what of it cannot be served.
pub(super) fn introduce(catalogue: &Catalogue) {
    let (files, tools) = (catalogue.files.len(), catalogue.ready().count());
    tracing::info!(files, tools, "serving");
    for entry in catalogue.files.iter().filter(|entry| entry.trouble().is_some()) {
        tell_of(entry, true);
    }
}

/// What makes one state of a file another.
fn state(entry: &FileEntry) -> ([u8; 32], Option<String>) {
    (entry.version, entry.trouble())
}

fn tell_of(entry: &FileEntry, is_new: bool) {
    let (file, pack) = (entry.file.path.display(), &entry.file.pack);
    let tools = match entry.file.functions.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    if let Some(stale) = &entry.stale {
        let reason = &stale.reason;
        return tracing::warn!(%file, "{pack} cannot be served as it is ({reason}); its last good version goes on answering");
    }
    match (entry.broken(), is_new) {
        (Some(reason), _) => tracing::warn!(%file, "{pack} is broken: {reason}"),
        (None, true) => tracing::info!(%file, "{pack} was added: {tools}"),
        (None, false) => tracing::info!(%file, "{pack} changed: {tools}, new calls go to the new version"),
    }
}
