//! Reads tool files, or takes from the cache what an earlier run read of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::cache::{Cache, CachedFiles, PendingWrite, Stamp, line};
use super::executable::{self, Answer};
use super::linked::LinkedSchemas;
use super::{Status, ToolFile, read_file};
use crate::pep723::Metadata;

/// What executables answered in this run, each with the stamp of the file.
#[derive(Debug, Default)]
pub struct Answers {
    answers: HashMap<PathBuf, (Stamp, Answer)>,
    /// Whether the answers of earlier runs are ignored.
    ignores_earlier: bool,
}

impl Answers {
    /// Adds an answer.
    pub fn note(&mut self, path: PathBuf, stamp: Stamp, answer: Answer) {
        self.answers.insert(path, (stamp, answer));
    }

    /// Forgets all answers, of earlier runs too.
    pub fn forget(&mut self) {
        self.answers.clear();
        self.ignores_earlier = true;
    }

    /// Whether an answer holds as long as the file does not change.
    fn is_lasting(&self, path: &Path) -> bool {
        !matches!(self.answers.get(path), Some((_, Answer::Refused(_) | Answer::Late(_))))
    }

    /// Whether a program did not end in time.
    pub fn is_late(&self, path: &Path) -> bool {
        matches!(self.answers.get(path), Some((_, Answer::Late(_))))
    }

    pub(super) fn ignores_earlier(&self) -> bool {
        self.ignores_earlier
    }

    /// The file with its answer, if it did not change since.
    pub(super) fn file(&self, path: &Path, stamp: Stamp) -> Option<ToolFile> {
        let (seen, answer) = self.answers.get(path)?;
        (*seen == stamp).then(|| executable::with_answer(path, answer))
    }
}

/// Reads tool files that the cache does not hold.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    /// What executables answered; `None` to leave executables out.
    answers: Option<&'a Answers>,
    cache: Option<(Cache, Vec<PathBuf>)>,
    known: CachedFiles,
    began: SystemTime,
}

/// A file and its line in the cache; none where it is not cached.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub file: ToolFile,
    line: Option<CacheLine>,
}

/// A line of the cache.
#[derive(Debug)]
enum CacheLine {
    /// At this place in the text of an earlier run.
    Known(Range<usize>),
    /// Not read by an earlier run.
    New(String),
}

impl<'a> Reader<'a> {
    pub fn new(cache: Option<&Cache>, answers: Option<&'a Answers>, folders: &[PathBuf], now: SystemTime) -> Self {
        let known = cache.map(|cache| cache.load(folders)).unwrap_or_default();
        Self { answers, cache: cache.map(|cache| (cache.clone(), folders.to_vec())), known, began: now }
    }

    /// Whether executables are read.
    pub fn reads_executables(&self) -> bool {
        self.answers.is_some()
    }

    pub fn read(&self, path: &Path) -> ReadFile {
        if path.extension().is_none_or(|end| end != "py") {
            return self.read_executable(path);
        }
        if self.cache.is_none() {
            return ReadFile { file: read_file(path), line: None };
        }
        // Taken before reading, so that a change in between is seen the next time.
        let stamp = Stamp::of(path);
        if let Some((file, line)) = stamp.and_then(|stamp| self.known.file(path, stamp)) {
            return ReadFile { file, line: Some(CacheLine::Known(line)) };
        }
        self.found(read_file(path), stamp)
    }

    fn read_executable(&self, path: &Path) -> ReadFile {
        let stamp = Stamp::of(path);
        if let Some(file) = stamp.and_then(|stamp| self.answers?.file(path, stamp)) {
            let is_lasting = self.answers.is_some_and(|answers| answers.is_lasting(path));
            return self.found(file, stamp.filter(|_| is_lasting));
        }
        let is_believed = self.answers.is_none_or(|answers| !answers.ignores_earlier());
        let known = stamp.filter(|_| is_believed).and_then(|stamp| self.known.file(path, stamp));
        let has_new_manifest =
            |file: &ToolFile| matches!(file.status, Status::NotAsked { .. }) && executable::has_manifest(path);
        if let Some((file, line)) = known.filter(|(file, _)| !has_new_manifest(file)) {
            return ReadFile { file, line: Some(CacheLine::Known(line)) };
        }
        // What answered before its present version is asked again.
        let file =
            if self.known.has_answered(path) { executable::unasked(path) } else { executable::unasked_or_not(path) };
        if matches!(file.status, Status::NotAsked { .. }) {
            return self.found(file, stamp);
        }
        ReadFile { file, line: None }
    }

    fn found(&self, file: ToolFile, stamp: Option<Stamp>) -> ReadFile {
        let settled = stamp.filter(|stamp| stamp.is_settled_at(self.began));
        let line = settled.and_then(|stamp| line(&file.path, stamp, &to_json(&file)?));
        ReadFile { file, line: line.map(CacheLine::New) }
    }

    /// Completes a file whose schemas mention names of neighbours: from the cache, while none of them has changed, or by reading them.
    fn link(&self, file: &mut ToolFile, read: impl FnOnce(&mut ToolFile)) -> Option<CacheLine> {
        let stamps = || std::iter::once(&file.path).chain(&file.helpers).map(|path| Stamp::of(path)).collect();
        let stamps: Option<Vec<Stamp>> = self.cache.as_ref().and_then(|_| stamps());
        let Some(stamps) = stamps else {
            read(file);
            return None;
        };
        let (key, own) = (linked_key(&file.path), stamps[0]);
        if let Some((json, place)) = self.known.json(&key, own)
            && let Ok(linking) = serde_json::from_str::<Linking>(json)
            && linking.stamps == stamps
            && file.take_linking(linking.linked)
        {
            return Some(CacheLine::Known(place));
        }
        read(file);
        let is_settled = stamps.iter().all(|stamp| stamp.is_settled_at(self.began));
        let linking = Linking { stamps, linked: file.linking() };
        let json = serde_json::to_string(&linking).ok().filter(|_| is_settled)?;
        line(&key, own, &json).map(CacheLine::New)
    }
}

/// What is kept of a file that was read with its neighbours.
#[derive(Serialize, Deserialize)]
struct Linking {
    /// The stamps of the file and its helpers.
    stamps: Vec<Stamp>,
    linked: LinkedSchemas,
}

/// Where it is kept: no file has such a path.
fn linked_key(path: &Path) -> PathBuf {
    path.join("linked")
}

/// The lines of all files that were read.
#[derive(Debug, Default)]
pub(super) struct CacheLines(Vec<CacheLine>);

impl CacheLines {
    /// Adds the line of a file.
    pub fn take(&mut self, found: ReadFile) -> ToolFile {
        self.0.extend(found.line);
        found.file
    }

    /// Completes a file that mentions names of neighbours, and adds its line.
    pub fn link(&mut self, reader: &Reader<'_>, file: &mut ToolFile, read: impl FnOnce(&mut ToolFile)) {
        self.0.extend(reader.link(file, read));
    }

    /// The cache to be written, if a line is new.
    pub fn unsaved(self, reader: &Reader<'_>) -> Option<PendingWrite> {
        let has_new = self.0.iter().any(|line| matches!(line, CacheLine::New(_)));
        let (cache, folders) = reader.cache.as_ref().filter(|_| has_new)?;
        let lines = self.0.iter().map(|line| match line {
            CacheLine::Known(place) => reader.known.line(place),
            CacheLine::New(line) => line,
        });
        Some(cache.unsaved(folders, lines))
    }
}

/// Increased with every change to what is stored or to its meaning.
pub(super) const FORMAT: u32 = 30;

/// A tool file as it is stored: without what depends on other files.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    file: Cow<'a, ToolFile>,
    /// The header's TOML text and its first line: parsing it again is faster than storing every value with its place.
    header: Option<(Cow<'a, str>, usize)>,
}

/// A file as JSON on one line. `None` for one that could not be read: it may become readable without a change.
pub(super) fn to_json(file: &ToolFile) -> Option<String> {
    if file.fingerprint == [0; 32] {
        return None;
    }
    let header = file.header.as_ref().map(|header| (Cow::Borrowed(header.toml.as_str()), header.first_line));
    serde_json::to_string(&Stored { file: Cow::Borrowed(file), header }).ok()
}

/// The stored file.
pub(super) fn from_json(path: &Path, json: &str) -> Option<ToolFile> {
    let stored: Stored<'_> = serde_json::from_str(json).ok()?;
    let mut file = stored.file.into_owned();
    path.clone_into(&mut file.path);
    if let Some((toml, first_line)) = stored.header {
        file.header = Some(Metadata::from_toml(&toml, first_line, &Arc::new(path.to_owned())).ok()?);
    }
    Some(file)
}
