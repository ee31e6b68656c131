//! The source of a called tool is kept, so that its call can be made again as it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::journal::Bodies;
use crate::discovery::{Kind, fingerprint_of};
use crate::environment::lock_file;
use crate::journal::{Journal, Source};
use crate::registry::FileEntry;

/// Keeps the source of a file once, on a thread. Not that of built-in tools, which have none, and not where no call can be made again,
/// because no arguments are kept.
pub(super) fn keep(journal: &Arc<Journal>, entry: &Arc<FileEntry>) {
    if entry.is_source_kept.load(Ordering::Relaxed) || entry.is_source_kept.swap(true, Ordering::Relaxed) {
        return;
    }
    // The last good version is not in its file any more; it was kept while it was.
    let has_none = entry.file.kind == Kind::Builtin || entry.stale.is_some();
    if has_none || entry.config.journal.bodies.value == Bodies::None {
        return;
    }
    let file = &entry.file;
    journal.keep_source(Source {
        version: entry.version,
        fingerprint: fingerprint_of(file.kind),
        file: file.path.clone(),
        helpers: file.helpers.clone(),
        lock: lock_file(&file.path),
    });
}
