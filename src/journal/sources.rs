//! The sources of called tools, by version, so that a call can be made again as it was: the tool file, its helpers and its lock.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::telemetry::unix_ms;

/// Larger versions are not kept: they are programs, and their builds are known by name.
const LARGEST: u64 = 8 << 20;
/// What is not needed stays as long: its first call may not be in the store yet.
const GRACE: Duration = Duration::from_hours(1);
/// The name of the file that says what a folder has.
const ABOUT: &str = "hostler-source.json";

/// What a tool is made of.
#[derive(Debug, Clone)]
pub struct Source {
    /// The hash of all but the lock.
    pub version: [u8; 32],
    /// What the tool file's part of it is, for its path and its text.
    pub fingerprint: fn(&Path, &[u8]) -> [u8; 32],
    /// The tool file.
    pub file: PathBuf,
    /// The files that it imports, in its folder or below.
    pub helpers: Vec<PathBuf>,
    /// Where the lock of its dependencies is, if there is one.
    pub lock: PathBuf,
}

/// What is kept of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSource {
    /// The folder, which has the files as their tool's folder had them.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The name of the tool file in it.
    pub name: String,
    /// The tool file as it was called.
    pub file: PathBuf,
    /// Whether a lock is among them.
    pub has_lock: bool,
    /// When it was kept, in milliseconds since 1970.
    pub kept_ms: u64,
}

/// The folder of kept sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSources(PathBuf);

impl KeptSources {
    /// Those in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Keeps a version with its present lock, unless it is kept already. False if the files have changed or are too large.
    pub fn keep(&self, source: &Source) -> io::Result<bool> {
        let lock = fs::read(&source.lock).ok();
        let name = folder_name(&source.version, lock.as_deref());
        let folder = self.0.join(&name);
        if folder.is_dir() {
            return Ok(true);
        }
        let Some(mut files) = source.files()? else { return Ok(false) };
        let (Some(tool), Some(parent)) = (source.file.file_name().and_then(OsStr::to_str), source.file.parent()) else {
            return Ok(false);
        };
        let has_lock = lock.is_some();
        if let Some(text) = lock {
            let Ok(path) = source.lock.strip_prefix(parent) else { return Ok(false) };
            files.push(Part { path: path.to_owned(), text, is_executable: false });
        }
        let about = KeptSource {
            folder: PathBuf::new(),
            name: tool.to_owned(),
            file: source.file.clone(),
            has_lock,
            kept_ms: unix_ms(),
        };
        let text = serde_json::to_vec(&about)?;
        files.push(Part { path: ABOUT.into(), text, is_executable: false });
        self.write(&name, &files).map(|()| true)
    }

    /// What is kept of a version that was called at that time.
    pub fn of(&self, version: &str, at_ms: u64) -> Option<KeptSource> {
        if version.is_empty() {
            return None;
        }
        let kept = fs::read_dir(&self.0).ok()?.flatten();
        let kept = kept.filter(|entry| entry.file_name().to_str().is_some_and(|name| version_of(name) == version));
        let mut kept: Vec<KeptSource> = kept.filter_map(|entry| read(&entry.path())).collect();
        kept.sort_by_key(|kept| kept.kept_ms);
        // A version is kept while its first call runs, and again once its lock is another one.
        let later = kept.iter().position(|kept| kept.kept_ms > at_ms.saturating_add(1000)).unwrap_or(kept.len());
        let place = later.saturating_sub(1);
        (place < kept.len()).then(|| kept.swap_remove(place))
    }

    /// Removes the versions that are not needed. Returns how many.
    pub fn prune(&self, is_needed: impl Fn(&str) -> bool) -> u64 {
        let kept = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let is_old = |path: &Path| {
            let changed = path.metadata().and_then(|metadata| metadata.modified());
            changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > GRACE))
        };
        let goes = |entry: &fs::DirEntry| {
            let is_needed = entry.file_name().to_str().is_some_and(|name| is_needed(version_of(name)));
            !is_needed && is_old(&entry.path())
        };
        let gone = kept.filter(goes).filter(|entry| fs::remove_dir_all(entry.path()).is_ok()).count();
        u64::try_from(gone).unwrap_or(u64::MAX)
    }

    /// Whole, or not at all. Tool files may be private, so what is kept of them is.
    fn write(&self, name: &str, files: &[Part]) -> io::Result<()> {
        let aside = self.0.join(format!(".{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&aside);
        let make = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder);
        make(&aside)?;
        for file in files {
            let path = aside.join(&file.path);
            path.parent().map_or(Ok(()), make)?;
            let mode = if file.is_executable { 0o700 } else { 0o600 };
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?.write_all(&file.text)?;
        }
        let done = fs::rename(&aside, self.0.join(name));
        if done.is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
        // Another process may have been faster.
        done.or_else(|error| if self.0.join(name).is_dir() { Ok(()) } else { Err(error) })
    }
}

/// A file of a version.
struct Part {
    path: PathBuf,
    text: Vec<u8>,
    is_executable: bool,
}

impl Source {
    /// The tool file and its helpers, if they still are this version and lie in one folder.
    fn files(&self) -> io::Result<Option<Vec<Part>>> {
        let Some(parent) = self.file.parent() else { return Ok(None) };
        let (mut files, mut size, mut version) = (Vec::new(), 0, Sha256::new());
        for path in std::iter::once(&self.file).chain(&self.helpers) {
            let metadata = path.metadata()?;
            size += metadata.len();
            let Ok(place) = path.strip_prefix(parent) else { return Ok(None) };
            let is_below = place.components().all(|part| matches!(part, Component::Normal(_)));
            if !metadata.is_file() || size > LARGEST || !is_below {
                return Ok(None);
            }
            let text = fs::read(path)?;
            if files.is_empty() {
                version.update((self.fingerprint)(path, &text));
            } else {
                version.update(&text);
            }
            let is_executable = metadata.permissions().mode() & 0o100 != 0;
            files.push(Part { path: place.to_owned(), text, is_executable });
        }
        Ok((<[u8; 32]>::from(version.finalize()) == self.version).then_some(files))
    }
}

fn folder_name(version: &[u8; 32], lock: Option<&[u8]>) -> String {
    let lock = lock.map(|lock| format!("-{}", HEXLOWER.encode(&Sha256::digest(lock)[..8]))).unwrap_or_default();
    HEXLOWER.encode(version) + &lock
}

fn version_of(name: &str) -> &str {
    name.split_once('-').map_or(name, |(version, _)| version)
}

fn read(folder: &Path) -> Option<KeptSource> {
    let kept: KeptSource = serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()?;
    Some(KeptSource { folder: folder.to_owned(), ..kept })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    /// A tool with a helper, and where its versions are kept.
    fn tool() -> (tempfile::TempDir, Source, KeptSources) {
        let base = tempfile::tempdir().unwrap();
        let tools = base.path().join("tools");
        fs::create_dir_all(tools.join("words")).unwrap();
        let (file, helper) = (tools.join("greet.py"), tools.join("words/__init__.py"));
        fs::write(&file, "import words\n").unwrap();
        fs::write(&helper, "X = 1\n").unwrap();
        let source = now(&Source {
            version: [0; 32],
            fingerprint: |_, text| Sha256::digest(text).into(),
            lock: tools.join("greet.py.lock"),
            file,
            helpers: vec![helper],
        });
        let sources = KeptSources::new(base.path().join("state/sources"));
        (base, source, sources)
    }

    /// As its files are now.
    fn now(source: &Source) -> Source {
        let mut version = Sha256::new();
        version.update(Sha256::digest(fs::read(&source.file).unwrap()));
        source.helpers.iter().for_each(|helper| version.update(fs::read(helper).unwrap()));
        Source { version: version.finalize().into(), ..source.clone() }
    }

    #[test]
    fn a_version_is_kept_whole_and_private_whatever_becomes_of_its_files() {
        let (_base, source, sources) = tool();
        assert!(sources.keep(&source).unwrap() && sources.keep(&source).unwrap());
        fs::write(&source.helpers[0], "X = 2\n").unwrap();
        assert!(sources.keep(&source).unwrap(), "it is there");
        let changed = Source { version: now(&source).version, ..source.clone() };
        fs::write(&source.file, "other\n").unwrap();
        assert!(!sources.keep(&changed).unwrap(), "what is there now is another version");
        let kept = sources.of(&HEXLOWER.encode(&source.version), u64::MAX).unwrap();
        assert_eq!((kept.name.as_str(), &kept.file, kept.has_lock), ("greet.py", &source.file, false));
        assert_eq!(fs::read_to_string(kept.folder.join("greet.py")).unwrap(), "import words\n");
        assert_eq!(fs::read_to_string(kept.folder.join("words/__init__.py")).unwrap(), "X = 1\n");
        assert_eq!(kept.folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(kept.folder.join("greet.py").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(sources.of(&HEXLOWER.encode(&changed.version), u64::MAX), None);
        assert_eq!(sources.of("", u64::MAX), None);
    }

    #[test]
    fn a_call_has_the_lock_that_was_there_when_it_was_made() {
        let (_base, source, sources) = tool();
        let mut made = Vec::new();
        for lock in ["one", "two"] {
            fs::write(&source.lock, lock).unwrap();
            assert!(sources.keep(&source).unwrap());
            let name = folder_name(&source.version, Some(lock.as_bytes()));
            let about = sources.0.join(&name).join(ABOUT);
            let at = 1_000_000 * (made.len() as u64 + 1);
            let kept = KeptSource { kept_ms: at, ..read(&sources.0.join(&name)).unwrap() };
            fs::write(about, serde_json::to_vec(&kept).unwrap()).unwrap();
            made.push(at);
        }
        let lock = |at| {
            let kept = sources.of(&HEXLOWER.encode(&source.version), at).unwrap();
            assert!(kept.has_lock);
            fs::read_to_string(kept.folder.join("greet.py.lock")).unwrap()
        };
        assert_eq!([lock(999_900), lock(1_500_000), lock(2_000_000), lock(9_000_000)], ["one", "one", "two", "two"]);
    }

    #[test]
    fn versions_that_no_call_needs_go_after_a_while() {
        let (_base, source, sources) = tool();
        sources.keep(&source).unwrap();
        let folder = sources.0.join(folder_name(&source.version, None));
        fs::create_dir(sources.0.join(".left.1")).unwrap();
        assert_eq!(sources.prune(|_| false), 0, "they are new");
        let past = SystemTime::now() - 2 * GRACE;
        for path in [&folder, &sources.0.join(".left.1")] {
            File::open(path).unwrap().set_modified(past).unwrap();
        }
        let version = HEXLOWER.encode(&source.version);
        assert_eq!(sources.prune(|needed| needed == version), 1);
        assert!(folder.is_dir());
        assert_eq!(sources.prune(|_| false), 1);
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_too_large_or_elsewhere_is_not_kept() {
        let (base, source, sources) = tool();
        let outside = base.path().join("outside.py");
        fs::write(&outside, "").unwrap();
        assert!(!sources.keep(&now(&Source { helpers: vec![outside], ..source.clone() })).unwrap());
        File::options().write(true).open(&source.file).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(!sources.keep(&now(&source)).unwrap());
        assert!(!sources.0.exists());
    }
}
