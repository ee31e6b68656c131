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
use super::{DeclaredSettings, Function, Kind, OpenNames, RULES, Status, ToolFile, Warning, read_file};
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

/// A file and its line in the cache.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub file: ToolFile,
    line: CacheLine,
}

#[derive(Debug)]
enum CacheLine {
    /// A line of the earlier run, by its place in the text.
    Kept(Range<usize>),
    New(String),
    /// The file is not cached.
    None,
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
            return ReadFile { file: read_file(path), line: CacheLine::None };
        }
        // Taken before reading, so that a change in between is seen the next time.
        let stamp = Stamp::of(path);
        if let Some((file, place)) = stamp.and_then(|stamp| self.known.file(path, stamp)) {
            return ReadFile { file, line: CacheLine::Kept(place) };
        }
        self.found(read_file(path), stamp)
    }

    fn read_executable(&self, path: &Path) -> ReadFile {
        let stamp = Stamp::of(path);
        if let Some(file) = stamp.and_then(|stamp| self.answers?.file(path, stamp)) {
            return self.found(file, stamp);
        }
        let is_believed = self.answers.is_none_or(|answers| !answers.ignores_earlier());
        let known = stamp.filter(|_| is_believed).and_then(|stamp| self.known.file(path, stamp));
        match known {
            Some((file, place)) => ReadFile { file, line: CacheLine::Kept(place) },
            None => ReadFile { file: executable::unasked(path), line: CacheLine::None },
        }
    }

    fn found(&self, file: ToolFile, stamp: Option<Stamp>) -> ReadFile {
        let settled = stamp.filter(|stamp| stamp.is_settled_at(self.began));
        let line = settled.and_then(|stamp| line(&file, stamp)).map_or(CacheLine::None, CacheLine::New);
        ReadFile { file, line }
    }
}

/// The lines of all files that were read.
#[derive(Debug, Default)]
pub(super) struct CacheLines(Vec<CacheLine>);

impl CacheLines {
    /// Adds the line of a file.
    pub fn take(&mut self, found: ReadFile) -> ToolFile {
        self.0.push(found.line);
        found.file
    }

    pub fn unsaved(&self, reader: &Reader<'_>) -> Option<PendingWrite> {
        let (cache, folders) = reader.cache.as_ref()?;
        let is_new = self.0.iter().any(|line| matches!(line, CacheLine::New(_)));
        let text = |line: &'_ CacheLine| match line {
            CacheLine::Kept(place) => reader.known.text(place.clone()).to_owned(),
            CacheLine::New(text) => text.clone(),
            CacheLine::None => String::new(),
        };
        is_new.then(|| cache.unsaved(folders, self.0.iter().map(text)))
    }
}

/// Increased with every change to what is stored or to its meaning.
pub(super) const FORMAT: u32 = 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<'a> {
    pack: Cow<'a, str>,
    kind: Kind,
    /// Its text: parsing it again is faster than storing every value with its place.
    header: Option<Header<'a>>,
    description: Cow<'a, Option<String>>,
    functions: Cow<'a, [Function]>,
    status: Cow<'a, Status>,
    fingerprint: [u8; 32],
    warnings: Vec<StoredWarning<'a>>,
    imports: Cow<'a, [String]>,
    open: Cow<'a, OpenNames>,
    declared: Cow<'a, DeclaredSettings>,
}

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    toml: Cow<'a, str>,
    first_line: usize,
}

#[derive(Serialize, Deserialize)]
struct StoredWarning<'a> {
    line: usize,
    rule: Cow<'a, str>,
    text: Cow<'a, str>,
}

/// A file as JSON on one line. `None` for one that could not be read: it may become readable without a change.
pub(super) fn to_json(file: &ToolFile) -> Option<String> {
    // Named one by one, so that the compiler reports a new field here. What depends on other files is not stored.
    let ToolFile {
        path: _,
        pack,
        kind,
        header,
        description,
        functions,
        status,
        fingerprint,
        warnings,
        imports,
        open,
        helpers: _,
        rank: _,
        overrides: _,
        declared,
    } = file;
    if *fingerprint == [0; 32] {
        return None;
    }
    let header =
        header.as_ref().map(|header| Header { toml: Cow::Borrowed(&header.toml), first_line: header.first_line });
    let stored = Stored {
        pack: Cow::Borrowed(pack),
        kind: *kind,
        header,
        description: Cow::Borrowed(description),
        functions: Cow::Borrowed(functions),
        status: Cow::Borrowed(status),
        fingerprint: *fingerprint,
        warnings: warnings.iter().map(StoredWarning::of).collect(),
        imports: Cow::Borrowed(imports),
        open: Cow::Borrowed(open),
        declared: Cow::Borrowed(declared),
    };
    serde_json::to_string(&stored).ok()
}

/// The stored file.
pub(super) fn from_json(path: &Path, json: &str) -> Option<ToolFile> {
    let stored: Stored<'_> = serde_json::from_str(json).ok()?;
    let header = match stored.header {
        Some(header) => Some(Metadata::from_toml(&header.toml, header.first_line, &Arc::new(path.to_owned())).ok()?),
        None => None,
    };
    Some(ToolFile {
        path: path.to_owned(),
        pack: stored.pack.into_owned(),
        kind: stored.kind,
        header,
        description: stored.description.into_owned(),
        functions: stored.functions.into_owned(),
        status: stored.status.into_owned(),
        fingerprint: stored.fingerprint,
        warnings: stored.warnings.into_iter().map(StoredWarning::warning).collect::<Option<_>>()?,
        imports: stored.imports.into_owned(),
        open: stored.open.into_owned(),
        helpers: Vec::new(),
        rank: 0,
        overrides: Vec::new(),
        declared: stored.declared.into_owned(),
    })
}

impl<'a> StoredWarning<'a> {
    fn of(warning: &'a Warning) -> Self {
        Self { line: warning.line, rule: Cow::Borrowed(warning.rule), text: Cow::Borrowed(&warning.text) }
    }

    fn warning(self) -> Option<Warning> {
        let rule = RULES.into_iter().find(|rule| *rule == self.rule)?;
        Some(Warning { line: self.line, rule, text: self.text.into_owned() })
    }
}
