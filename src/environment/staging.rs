//! The folder beside the environments in which one is built.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How its name begins; the environment's name and the builder's number follow.
pub(super) const STAGING: &str = ".staging.";
/// How often its removal is tried, and how long between: a process dies within milliseconds of being killed.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(5);

/// A folder beside the environments that goes when the build is over, however it is over.
pub(super) struct Staging(PathBuf);

impl Staging {
    /// To be called with the lock of that environment: nobody else builds it, so what other builds of it left is nobody's.
    pub(super) fn new(folder: &Path, key: &str) -> std::io::Result<Self> {
        let left = std::fs::read_dir(folder)?.flatten();
        let is_left = |name: &str| name.strip_prefix(STAGING).is_some_and(|rest| rest.split('.').next() == Some(key));
        for entry in left.filter(|entry| entry.file_name().to_str().is_some_and(is_left)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
        let place = folder.join(format!("{STAGING}{key}.{}", std::process::id()));
        std::fs::create_dir_all(&place)?;
        Ok(Self(place))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn environment(&self) -> PathBuf {
        self.0.join("environment")
    }
}

impl Drop for Staging {
    /// A uv that was killed a moment ago may still be writing its last file.
    fn drop(&mut self) {
        for _ in 0..LOOKS {
            let removed = std::fs::remove_dir_all(&self.0);
            if removed.is_ok() || removed.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}
