//! Reads tool files, or takes from the cache what an earlier run read of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::cache::{Cache, Known, Stamp, Unsaved, line};
use super::executable::{self, Answer};
use super::{DeclaredSettings, Function, Kind, OpenNames, RULES, Status, ToolFile, Warning, read_file};
use crate::pep723::Metadata;

/// Answers, each with what the file looked like when it was asked.
#[derive(Debug, Default)]
pub struct Asked {
    answers: HashMap<PathBuf, (Stamp, Answer)>,
    /// Whether what earlier runs were told counts for nothing.
    anew: bool,
}

impl Asked {
    /// Notes an answer.
    pub fn note(&mut self, path: PathBuf, stamp: Stamp, answer: Answer) {
        self.answers.insert(path, (stamp, answer));
    }

    /// Forgets all answers, of earlier runs too.
    pub fn forget(&mut self) {
        self.answers.clear();
        self.anew = true;
    }

    pub(super) fn is_anew(&self) -> bool {
        self.anew
    }

    /// The file with its answer, as long as it looks as it did.
    pub(super) fn told(&self, path: &Path, stamp: Stamp) -> Option<ToolFile> {
        let (seen, answer) = self.answers.get(path)?;
        (*seen == stamp).then(|| executable::told(path, answer))
    }
}

/// Reads tool files, those that have changed since an earlier run and those that no earlier run knew.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    /// What executables answered; none are looked at where nobody asks them.
    asked: Option<&'a Asked>,
    cache: Option<(Cache, Vec<PathBuf>)>,
    known: Known,
    began: SystemTime,
}

/// A file, and the line to keep of it.
#[derive(Debug)]
pub(super) struct Found {
    pub file: ToolFile,
    line: Line,
}

#[derive(Debug)]
enum Line {
    /// Of the earlier run, by its place in the text.
    Kept(Range<usize>),
    New(String),
    /// Not to be kept.
    None,
}

impl<'a> Reader<'a> {
    pub fn new(cache: Option<&Cache>, asked: Option<&'a Asked>, folders: &[PathBuf], now: SystemTime) -> Self {
        let known = cache.map(|cache| cache.load(folders)).unwrap_or_default();
        Self { asked, cache: cache.map(|cache| (cache.clone(), folders.to_vec())), known, began: now }
    }

    /// Whether executables are wanted.
    pub fn asks(&self) -> bool {
        self.asked.is_some()
    }

    pub fn read(&self, path: &Path) -> Found {
        if path.extension().is_none_or(|end| end != "py") {
            return self.read_executable(path);
        }
        if self.cache.is_none() {
            return Found { file: read_file(path), line: Line::None };
        }
        // Looked at before it is read: a change in between is then seen the next time.
        let stamp = Stamp::of(path);
        if let Some((file, place)) = stamp.and_then(|stamp| self.known.file(path, stamp)) {
            return Found { file, line: Line::Kept(place) };
        }
        self.found(read_file(path), stamp)
    }

    fn read_executable(&self, path: &Path) -> Found {
        let stamp = Stamp::of(path);
        if let Some(file) = stamp.and_then(|stamp| self.asked?.told(path, stamp)) {
            return self.found(file, stamp);
        }
        let is_believed = self.asked.is_none_or(|asked| !asked.is_anew());
        let known = stamp.filter(|_| is_believed).and_then(|stamp| self.known.file(path, stamp));
        match known {
            Some((file, place)) => Found { file, line: Line::Kept(place) },
            None => Found { file: executable::unasked(path), line: Line::None },
        }
    }

    fn found(&self, file: ToolFile, stamp: Option<Stamp>) -> Found {
        let settled = stamp.filter(|stamp| stamp.is_settled_at(self.began));
        let line = settled.and_then(|stamp| line(&file, stamp)).map_or(Line::None, Line::New);
        Found { file, line }
    }
}

/// The lines of all files that were read, to be kept if one of them is new.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<Line>);

impl Lines {
    /// Takes the line from what was found.
    pub fn take(&mut self, found: Found) -> ToolFile {
        self.0.push(found.line);
        found.file
    }

    pub fn unsaved(&self, reader: &Reader<'_>) -> Option<Unsaved> {
        let (cache, folders) = reader.cache.as_ref()?;
        let is_news = self.0.iter().any(|line| matches!(line, Line::New(_)));
        let text = |line: &'_ Line| match line {
            Line::Kept(place) => reader.known.text(place.clone()).to_owned(),
            Line::New(text) => text.clone(),
            Line::None => String::new(),
        };
        is_news.then(|| cache.unsaved(folders, self.0.iter().map(text)))
    }
}

/// Counts up with every change to what is stored or to what it means.
pub(super) const FORMAT: u32 = 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<'a> {
    pack: Cow<'a, str>,
    kind: Kind,
    /// As its text: reading it again is quicker than storing what it says with the place of every word.
    header: Option<Header<'a>>,
    description: Cow<'a, Option<String>>,
    functions: Cow<'a, [Function]>,
    status: Cow<'a, Status>,
    fingerprint: [u8; 32],
    warnings: Vec<Remark<'a>>,
    imports: Cow<'a, [String]>,
    open: Cow<'a, OpenNames>,
    declared: Cow<'a, DeclaredSettings>,
}

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    toml: Cow<'a, str>,
    first_line: usize,
}

/// A warning.
#[derive(Serialize, Deserialize)]
struct Remark<'a> {
    line: usize,
    rule: Cow<'a, str>,
    text: Cow<'a, str>,
}

/// A file as JSON on one line. Nothing for one that could not be read: why not may be over at any time, unseen.
pub(super) fn to_json(file: &ToolFile) -> Option<String> {
    // Named one by one, so that a new field must be thought of here. The path is the key; helpers are told by neighbours.
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
        warnings: warnings.iter().map(Remark::of).collect(),
        imports: Cow::Borrowed(imports),
        open: Cow::Borrowed(open),
        declared: Cow::Borrowed(declared),
    };
    serde_json::to_string(&stored).ok()
}

/// The file at that path, as it was stored.
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
        warnings: stored.warnings.into_iter().map(Remark::warning).collect::<Option<_>>()?,
        imports: stored.imports.into_owned(),
        open: stored.open.into_owned(),
        helpers: Vec::new(),
        rank: 0,
        overrides: Vec::new(),
        declared: stored.declared.into_owned(),
    })
}

impl<'a> Remark<'a> {
    fn of(warning: &'a Warning) -> Self {
        Self { line: warning.line, rule: Cow::Borrowed(warning.rule), text: Cow::Borrowed(&warning.text) }
    }

    fn warning(self) -> Option<Warning> {
        let rule = RULES.into_iter().find(|rule| *rule == self.rule)?;
        Some(Warning { line: self.line, rule, text: self.text.into_owned() })
    }
}
