//! Copies of tool files as of the first use of each version, so that its workers can still start after the file has
//! changed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::process::limit_behind;

/// Copies unused for this long are removed.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// The folder of copies in the cache, named by content and shared by all processes.
#[derive(Debug, Clone)]
pub struct Sources {
    folder: PathBuf,
}

impl Sources {
    /// Copies below a cache folder.
    pub fn in_cache(cache: &Path) -> Self {
        Self { folder: cache.join("sources") }
    }

    /// A file with this fingerprint (the SHA-256 of its bytes): a copy, made now if needed, or the tool file itself if
    /// no copy can be made. `None` if that content no longer exists, an error where the system has no file left to read it.
    pub fn of(&self, file: &Path, fingerprint: [u8; 32]) -> io::Result<Option<PathBuf>> {
        static PRUNED: Once = Once::new();
        let copy = self.folder.join(name(fingerprint));
        if holds(&copy, fingerprint)?.is_some() {
            let _ = File::open(&copy).and_then(|copy| copy.set_modified(SystemTime::now()));
            return Ok(Some(copy));
        }
        let Some(text) = holds(file, fingerprint)? else { return Ok(None) };
        PRUNED.call_once(|| self.prune());
        match self.write(&copy, &text) {
            Ok(()) => Ok(Some(copy)),
            Err(error) => {
                tracing::debug!(copy = %copy.display(), %error, "no copy of the tool file is kept");
                Ok(Some(file.to_owned()))
            }
        }
    }

    /// Whether the tool file still has this fingerprint.
    #[expect(clippy::unused_self, reason = "asked of the copies, wherever they lie")]
    pub fn is_still(&self, file: &Path, fingerprint: [u8; 32]) -> io::Result<bool> {
        Ok(holds(file, fingerprint)?.is_some())
    }

    /// Makes a copy ahead of need, if there is none.
    pub fn keep(&self, file: &Path, fingerprint: [u8; 32]) {
        if !self.folder.join(name(fingerprint)).is_file() {
            let _ = self.of(file, fingerprint);
        }
    }

    /// Tool files may be private, so their copies are.
    fn write(&self, copy: &Path, text: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let aside = copy.with_extension(std::process::id().to_string());
        let _ = fs::remove_file(&aside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(text)?;
        fs::rename(&aside, copy)
    }

    fn prune(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let used = entry.metadata().and_then(|metadata| metadata.modified());
            if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > KEPT)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn name(fingerprint: [u8; 32]) -> String {
    HEXLOWER.encode(&fingerprint) + ".py"
}

/// The content of a file, if it has the fingerprint. A limit of the system says nothing about the file.
fn holds(file: &Path, fingerprint: [u8; 32]) -> io::Result<Option<Vec<u8>>> {
    // Opening a pipe would block until a writer opens it.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if limit_behind(&error).is_some() => return Err(error),
        Err(_) => return Ok(None),
    };
    Ok((<[u8; 32]>::from(Sha256::digest(&text)) == fingerprint).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(text: &str) -> [u8; 32] {
        Sha256::digest(text).into()
    }

    #[test]
    fn a_source_survives_changes_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, sources) = (folder.path().join("a.py"), Sources::in_cache(folder.path()));
        fs::write(&file, "old").unwrap();
        let copy = sources.of(&file, fingerprint("old")).unwrap().unwrap();
        assert_ne!(copy, file);
        fs::write(&file, "new").unwrap();
        assert_eq!(sources.of(&file, fingerprint("old")).unwrap(), Some(copy.clone()));
        assert_eq!(fs::read_to_string(&copy).unwrap(), "old");
        fs::write(&copy, "damaged").unwrap();
        assert_eq!(sources.of(&file, fingerprint("old")).unwrap(), None, "other content is not a version");
        fs::write(&file, "old").unwrap();
        assert_eq!(sources.of(&file, fingerprint("old")).unwrap(), Some(copy.clone()));
        assert_eq!(fs::read_to_string(&copy).unwrap(), "old", "mended");
    }

    #[test]
    fn without_a_cache_the_unchanged_file_itself_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let (file, cache) = (folder.path().join("a.py"), folder.path().join("cache"));
        fs::write(&file, "old").unwrap();
        fs::write(&cache, "no folder").unwrap();
        assert_eq!(Sources::in_cache(&cache).of(&file, fingerprint("old")).unwrap(), Some(file));
    }

    #[test]
    fn copies_unused_for_a_month_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, sources) = (folder.path().join("a.py"), Sources::in_cache(folder.path()));
        let copy = |text: &str| {
            fs::write(&file, text).unwrap();
            sources.of(&file, fingerprint(text)).unwrap().unwrap()
        };
        let (old, handshake) = (copy("old"), copy("handshake"));
        let past = SystemTime::now() - KEPT - Duration::from_hours(1);
        File::open(&old).unwrap().set_modified(past).unwrap();
        sources.prune();
        assert!(!old.exists() && handshake.exists());
    }
}
