//! Reading files that may have been read before.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::cache::{Cache, Known, line};
use super::stamp::Stamp;
use super::unsaved::Unsaved;
use super::{Asked, ToolFile, executable, read_file};

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
