//! Results of reading tool files, kept between runs: one file for each set of tool folders.
//!
//! The first line says which build wrote the file; each further line is a checksum, what the tool file looked like, its path,
//! and JSON ([`super::reader`]). Anything unexpected counts as absent: the tool file is then read, and the cache written anew.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::hash::Hasher;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::reader::{self, FORMAT};
use super::{Function, Status, ToolFile};

/// File systems store times in ticks of up to two seconds: a file that changed less than that ago can change again and look
/// the same.
const COARSEST_TICK: Duration = Duration::from_secs(2);

/// Times in seconds and nanoseconds, size in bytes, and which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    modified: (i64, i64),
    /// The time of change of the inode, which programs cannot set.
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

impl Stamp {
    /// The stamp of a path now. `None` without a file.
    pub fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|metadata| Self::from(&metadata))
    }

    /// Whether the file had not changed for so long at that moment that every later change has another stamp.
    pub(super) fn is_settled_at(&self, moment: SystemTime) -> bool {
        let Some(latest) = moment.checked_sub(COARSEST_TICK).and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        else {
            return false;
        };
        let is_before = |(seconds, _): (i64, i64)| u64::try_from(seconds).map_or(true, |at| at < latest.as_secs());
        is_before(self.modified) && is_before(self.changed)
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            size: metadata.size(),
            inode: metadata.ino(),
        }
    }
}

/// The folder of caches.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// The build of hostler. Only the same build reads what it wrote.
    writer: String,
}

impl Cache {
    /// Below this cache folder. `None` when the build is unknown.
    pub fn below(cache: &Path) -> Option<Self> {
        let program = std::env::current_exe().ok().and_then(|path| Stamp::of(&path))?;
        let writer = format!("{} {program:?}", env!("CARGO_PKG_VERSION"));
        Some(Self::written_by(&cache.join("catalogue"), &writer))
    }

    pub(super) fn written_by(folder: &Path, writer: &str) -> Self {
        Self { folder: folder.to_owned(), writer: writer.to_owned() }
    }

    pub(super) fn first_line(&self) -> String {
        format!("hostler catalogue {FORMAT} by {}\n", self.writer)
    }

    /// The cache file for these tools folders.
    pub(super) fn place(&self, folders: &[PathBuf]) -> PathBuf {
        let mut hash = Sha256::new();
        for folder in folders {
            let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            hash.update(whole.as_os_str().as_encoded_bytes());
            hash.update([0]);
        }
        self.folder.join(HEXLOWER.encode(&hash.finalize()[..12]))
    }

    /// The cached tool files of these folders.
    pub(super) fn load(&self, folders: &[PathBuf]) -> CachedFiles {
        let place = self.place(folders);
        let known = read_regular(&place).and_then(|text| {
            CachedFiles::of(text, &self.first_line()).ok_or_else(|| io::Error::other("written by another build"))
        });
        known.unwrap_or_else(|error| {
            tracing::debug!(place = %place.display(), %error, "no cache of an earlier run");
            CachedFiles::default()
        })
    }

    pub(super) fn unsaved<'l>(&self, folders: &[PathBuf], lines: impl Iterator<Item = &'l str>) -> PendingWrite {
        let mut text = self.first_line();
        text.extend(lines);
        PendingWrite { place: self.place(folders), text }
    }
}

/// Opening a pipe would block, so only regular files are opened.
pub(super) fn read_regular(place: &Path) -> io::Result<String> {
    if !fs::metadata(place)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    fs::read_to_string(place)
}

/// The text of an earlier run, and where in it the line of each tool file is.
#[derive(Debug, Default)]
pub(super) struct CachedFiles {
    text: String,
    lines: HashMap<PathBuf, Range<usize>>,
}

impl CachedFiles {
    fn of(text: String, first_line: &str) -> Option<Self> {
        let mut end = first_line.len();
        let place = |line: &str| {
            let start = end;
            end += line.len();
            Some((line.split('\t').nth(2)?.into(), start..end))
        };
        let lines = text.strip_prefix(first_line)?.split_inclusive('\n').filter_map(place).collect();
        Some(Self { text, lines })
    }

    /// A line of the text.
    pub(super) fn line(&self, place: &Range<usize>) -> &str {
        &self.text[place.clone()]
    }

    /// Whether any version of an executable has printed a schema.
    pub(super) fn has_answered(&self, path: &Path) -> bool {
        let json = self.lines.get(path).and_then(|place| self.line(place).trim_end().splitn(4, '\t').nth(3));
        json.and_then(|json| reader::from_json(path, json)).is_some_and(|file| file.status == Status::Ready)
    }

    /// The file at a path with the place of its line, if it has the same stamp.
    pub(super) fn file(&self, path: &Path, stamp: Stamp) -> Option<(ToolFile, Range<usize>)> {
        let (json, place) = self.json(path, stamp)?;
        Some((reader::from_json(path, json)?, place))
    }

    /// What is kept under a path with the place of its line, if that has the same stamp.
    pub(super) fn json(&self, path: &Path, stamp: Stamp) -> Option<(&str, Range<usize>)> {
        let place = self.lines.get(path)?;
        let (sum, rest) = self.line(place).strip_suffix('\n')?.split_once('\t')?;
        let mut columns = rest.splitn(3, '\t');
        let (seen, _path, json) = (columns.next()?, columns.next()?, columns.next()?);
        if seen != columns_of(stamp) || sum != check(rest) {
            return None;
        }
        Some((json, place.clone()))
    }
}

/// The line of what is kept under a path.
pub(super) fn line(path: &Path, stamp: Stamp, json: &str) -> Option<String> {
    let path = path.to_str().filter(|path| !path.contains(['\t', '\n']))?;
    let rest = format!("{}\t{path}\t{json}", columns_of(stamp));
    Some(format!("{}\t{rest}\n", check(&rest)))
}

fn columns_of(stamp: Stamp) -> String {
    serde_json::to_string(&stamp).unwrap_or_default()
}

/// A checksum against damaged files, not against manipulation: every line is checked, so it has to be fast.
pub(super) fn check(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}

impl Cache {
    /// The functions of a version of a file as live types completed them in an earlier run.
    pub fn refined(&self, version: &[u8; 32]) -> Option<Vec<Function>> {
        let text = read_regular(&self.place_of_refined(version)).ok()?;
        let (sum, functions) = text.strip_prefix(&self.first_line())?.split_once('\n')?;
        (sum == check(functions)).then(|| serde_json::from_str(functions).ok()).flatten()
    }

    /// Keeps them for the next run.
    pub fn unsaved_refined(&self, version: &[u8; 32], functions: &[Function]) -> Option<PendingWrite> {
        let functions = serde_json::to_string(functions).ok()?;
        let text = format!("{}{}\n{functions}", self.first_line(), check(&functions));
        Some(PendingWrite { place: self.place_of_refined(version), text })
    }

    fn place_of_refined(&self, version: &[u8; 32]) -> PathBuf {
        self.folder.join(format!("refined-{}", HEXLOWER.encode(&version[..12])))
    }
}

impl ToolFile {
    /// Takes over functions that live types completed, and returns the earlier ones. `None` where more than schemas differs.
    pub fn refine(&mut self, functions: &[Function]) -> Option<Vec<Function>> {
        let is_same = |(own, other): (&Function, &Function)| own.name == other.name && own.line == other.line;
        let fits = functions.len() == self.functions.len() && self.functions.iter().zip(functions).all(is_same);
        let completed = |(own, completed): (&Function, &Function)| Function {
            symbol: own.symbol.clone(),
            defined_in: own.defined_in.clone(),
            ..completed.clone()
        };
        fits.then(|| {
            let completed = self.functions.iter().zip(functions).map(completed).collect();
            std::mem::replace(&mut self.functions, completed)
        })
    }
}

/// Cache files that were not written for this long are removed.
const KEPT: Duration = Duration::from_hours(30 * 24);

const LOCK: &str = "lock";

/// A cache file that has to be written.
#[derive(Debug, Clone)]
pub struct PendingWrite {
    place: PathBuf,
    text: String,
}

impl PendingWrite {
    /// Writes it atomically. A failure is only logged: the next run reads the tool files again.
    pub fn save(self) {
        if let Err(error) = self.write() {
            tracing::debug!(place = %self.place.display(), %error, "the cache cannot be written");
        }
    }

    fn write(&self) -> io::Result<()> {
        let Some(folder) = self.place.parent() else { return Ok(()) };
        // Tool files may be private.
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock = File::create(folder.join(LOCK))?;
        if lock.try_lock().is_err() {
            // Another hostler is writing, most likely the same.
            return Ok(());
        }
        let written = self.replace(folder);
        // A child that starts meanwhile has this descriptor until its `exec`, and closing ours would not end the lock.
        lock.unlock()?;
        written
    }

    fn replace(&self, folder: &Path) -> io::Result<()> {
        let aside = folder.join("new");
        let _ = fs::remove_file(&aside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(self.text.as_bytes())?;
        fs::rename(&aside, &self.place)?;
        prune(folder);
        Ok(())
    }
}

/// Removes old cache files.
fn prune(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > KEPT));
        if is_old && entry.file_name() != LOCK {
            let _ = fs::remove_file(entry.path());
        }
    }
}
