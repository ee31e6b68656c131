//! The Python side of a worker, carried inside this binary and laid out in the cache when it is first needed.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Every file of the shim: its place below the shim's folder, and its text.
const FILES: &[(&str, &str)] = &[];

/// The folder of shims in the cache.
#[derive(Debug, Clone)]
pub struct Shims {
    folder: PathBuf,
}

impl Shims {
    /// Shims below a cache folder.
    pub fn in_cache(cache: &Path) -> Self {
        Self { folder: cache.join("shims") }
    }

    /// The folder of this binary's own shim, written if it is not there. Named by content: two versions of hostler do
    /// not disturb each other, and a half-written one is never used because the folder appears by one rename.
    pub fn lay_out(&self) -> io::Result<PathBuf> {
        let name = content_name();
        let home = self.folder.join(&name);
        if home.join("__main__.py").is_file() {
            return Ok(home);
        }
        let staging = self.folder.join(format!(".{name}.{}", std::process::id()));
        for (path, text) in FILES {
            let target = staging.join(path);
            std::fs::create_dir_all(target.parent().unwrap_or(&staging))?;
            std::fs::write(target, text)?;
        }
        match std::fs::rename(&staging, &home) {
            Ok(()) => Ok(home),
            // Somebody else was faster; theirs is the same to the byte.
            Err(_) if home.join("__main__.py").is_file() => {
                let _ = std::fs::remove_dir_all(&staging);
                Ok(home)
            }
            Err(error) => Err(error),
        }
    }
}

fn content_name() -> String {
    let mut hash = Sha256::new();
    for (path, text) in FILES {
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
