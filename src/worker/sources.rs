//! Copies of tool files as they were when a version of them was first served, so that a worker of it can still be started
//! when the file has become something else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// A copy that nobody started from for this long is of a version that nobody needs.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// The folder of copies in the cache. Named by content, so that they are the same for everybody.
#[derive(Debug, Clone)]
pub struct Sources {
    folder: PathBuf,
}

impl Sources {
    /// Copies below a cache folder.
    pub fn in_cache(cache: &Path) -> Self {
        Self { folder: cache.join("sources") }
    }

    /// A file that holds what the tool file held when it had this fingerprint (SHA-256 of its bytes): a copy, made now if
    /// need be, or the tool file itself where none can be made. `None` when that text is nowhere any more.
    pub fn of(&self, file: &Path, fingerprint: [u8; 32]) -> Option<PathBuf> {
        static PRUNED: Once = Once::new();
        let copy = self.folder.join(name(fingerprint));
        if holds(&copy, fingerprint).is_some() {
            let _ = File::open(&copy).and_then(|copy| copy.set_modified(SystemTime::now()));
            return Some(copy);
        }
        let text = holds(file, fingerprint)?;
        PRUNED.call_once(|| self.prune());
        match self.write(&copy, &text) {
            Ok(()) => Some(copy),
            Err(error) => {
                tracing::debug!(copy = %copy.display(), %error, "no copy of the tool file is kept");
                Some(file.to_owned())
            }
        }
    }

    /// Whether the tool file still holds what it held when it had this fingerprint.
    #[expect(clippy::unused_self, reason = "asked of the copies, wherever they lie")]
    pub fn is_still(&self, file: &Path, fingerprint: [u8; 32]) -> bool {
        holds(file, fingerprint).is_some()
    }

    /// Makes sure of a copy ahead of need. A look is enough where there is one.
    pub fn keep(&self, file: &Path, fingerprint: [u8; 32]) {
        if !self.folder.join(name(fingerprint)).is_file() {
            let _ = self.of(file, fingerprint);
        }
    }

    /// Tool files may be their owner's alone, and so are their copies.
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

/// What a file holds, if it is what it should be.
fn holds(file: &Path, fingerprint: [u8; 32]) -> Option<Vec<u8>> {
    // Opening a pipe would wait for somebody to write.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let text = fs::read(file).ok()?;
    (<[u8; 32]>::from(Sha256::digest(&text)) == fingerprint).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(text: &str) -> [u8; 32] {
        Sha256::digest(text).into()
    }

    #[test]
    fn a_text_is_there_after_its_file_has_become_another_and_only_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (file, sources) = (folder.path().join("a.py"), Sources::in_cache(folder.path()));
        fs::write(&file, "old").unwrap();
        let copy = sources.of(&file, fingerprint("old")).unwrap();
        assert_ne!(copy, file);
        fs::write(&file, "new").unwrap();
        assert_eq!(sources.of(&file, fingerprint("old")), Some(copy.clone()));
        assert_eq!(fs::read_to_string(&copy).unwrap(), "old");
        fs::write(&copy, "damaged").unwrap();
        assert_eq!(sources.of(&file, fingerprint("old")), None, "another text is no version of it");
        fs::write(&file, "old").unwrap();
        assert_eq!(sources.of(&file, fingerprint("old")), Some(copy.clone()));
        assert_eq!(fs::read_to_string(&copy).unwrap(), "old", "mended");
    }

    #[test]
    fn where_no_copy_can_be_made_the_file_itself_is_used_while_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (file, cache) = (folder.path().join("a.py"), folder.path().join("cache"));
        fs::write(&file, "old").unwrap();
        fs::write(&cache, "no folder").unwrap();
        assert_eq!(Sources::in_cache(&cache).of(&file, fingerprint("old")), Some(file));
    }

    #[test]
    fn copies_that_nobody_used_for_a_month_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, sources) = (folder.path().join("a.py"), Sources::in_cache(folder.path()));
        let copy = |text: &str| {
            fs::write(&file, text).unwrap();
            sources.of(&file, fingerprint(text)).unwrap()
        };
        let (old, handshake) = (copy("old"), copy("handshake"));
        let past = SystemTime::now() - KEPT - Duration::from_hours(1);
        File::open(&old).unwrap().set_modified(past).unwrap();
        sources.prune();
        assert!(!old.exists() && handshake.exists());
    }
}
