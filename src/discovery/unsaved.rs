//! Writing down what a scan found out, for the next run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that nobody wrote for this long belongs to folders that are gone, or is soon written again.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// Whoever writes holds it.
const LOCK: &str = "lock";

/// What a scan found out and no file holds yet.
#[derive(Debug, Clone)]
pub struct Unsaved {
    place: PathBuf,
    text: String,
}

impl Unsaved {
    pub(super) fn new(place: PathBuf, text: String) -> Self {
        Self { place, text }
    }

    /// Writes it, whole or not at all. Nobody needs to know when that fails: the next run reads the tool files again.
    pub fn save(self) {
        if let Err(error) = self.write() {
            tracing::debug!(place = %self.place.display(), %error, "the catalogue is not kept for the next run");
        }
    }

    fn write(&self) -> io::Result<()> {
        let Some(folder) = self.place.parent() else { return Ok(()) };
        // Tool files may be their owner's alone, and so is what was read of them.
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock = File::create(folder.join(LOCK))?;
        if lock.try_lock().is_err() {
            // Another hostler writes, most likely the same.
            return Ok(());
        }
        let aside = folder.join("new");
        let _ = fs::remove_file(&aside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(self.text.as_bytes())?;
        fs::rename(&aside, &self.place)?;
        prune(folder);
        Ok(())
    }
}

/// Removes what was written for folders that nobody serves any more.
fn prune(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > KEPT));
        if is_old && entry.file_name() != LOCK {
            let _ = fs::remove_file(entry.path());
        }
    }
}
