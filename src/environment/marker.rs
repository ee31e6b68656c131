//! The file in an environment that says that it is whole, and on which interpreter it was built.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// The file that says that an environment is whole. Its lock says that it is in use, its time when it last was.
pub(super) const MARKER: &str = "hostler-environment.json";

/// What is known of a finished environment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    header: String,
    interpreter: PathBuf,
    interpreter_modified_ms: u64,
}

impl Marker {
    pub(super) fn read(home: &Path) -> Option<Self> {
        let marker: Self = serde_json::from_slice(&std::fs::read(home.join(MARKER)).ok()?).ok()?;
        (marker.format == 1).then_some(marker)
    }

    /// Whether the interpreter beneath the environment is still the one it was built on.
    pub(super) fn interpreter_unchanged(&self) -> bool {
        modified_ms(&self.interpreter) == Some(self.interpreter_modified_ms)
    }

    /// What is to be written into an environment that uv has just built.
    pub(super) fn of(home: &Path, header: &str) -> Option<Self> {
        let interpreter = home.join("bin/python").canonicalize().ok()?;
        let interpreter_modified_ms = modified_ms(&interpreter)?;
        Some(Self { format: 1, header: header.to_owned(), interpreter, interpreter_modified_ms })
    }
}

fn modified_ms(path: &Path) -> Option<u64> {
    let modified = path.metadata().ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
