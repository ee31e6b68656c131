//! What `check` reports: findings in files, each with a place in the text and what to do.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ruff_text_size::{Ranged, TextRange};

use super::rule::{Level, Rule};
use crate::config::origin::Place;
use crate::discovery::Lines;

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule it breaks.
    pub rule: &'static Rule,
    /// The rule's level, or a warning where the finding is not certain.
    pub level: Level,
    /// Its bytes in the text; none when it concerns the whole file.
    pub range: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl Finding {
    pub(super) fn new(
        rule: &'static Rule,
        range: impl Into<Option<Range<usize>>>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { rule, level: rule.level, range: range.into(), message: message.into(), fix: fix.into() }
    }
}

/// The findings of one file.
#[derive(Debug)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Its text, as far as it could be read.
    pub text: Text,
    /// What is wrong, in the order of the text.
    pub findings: Vec<Finding>,
}

impl FileReport {
    /// A report on a file whose text is not shown.
    pub(super) fn without_text(path: &Path, findings: Vec<Finding>) -> Self {
        Self { path: path.to_owned(), text: Text::new(String::new()), findings }
    }
}

/// What was checked, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Report {
    /// Every file that was checked, also those without findings.
    pub files: Vec<FileReport>,
    /// Where nothing is served: the folder below that has a server.
    pub server_below: Option<String>,
}

impl Report {
    /// All findings, with their files.
    pub fn findings(&self) -> impl Iterator<Item = (&FileReport, &Finding)> {
        self.files.iter().flat_map(|file| file.findings.iter().map(move |finding| (file, finding)))
    }

    /// Lists a configuration file as checked.
    pub fn looked_at(&mut self, path: &Path) {
        if !self.files.iter().any(|file| file.path == path) {
            let text = Text::new(std::fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n"));
            self.files.insert(0, FileReport { path: path.to_owned(), text, findings: Vec::new() });
        }
    }

    /// Adds a finding on a line of a configuration file.
    pub(super) fn add(
        &mut self,
        place: &Place,
        rule: &'static Rule,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.looked_at(&place.file);
        if let Some(file) = self.files.iter_mut().find(|file| file.path == *place.file) {
            let range = file.text.range_of_line(place.line);
            file.findings.push(Finding::new(rule, range, message, fix));
            file.findings.sort_by_key(|finding| finding.range.as_ref().map(|range| range.start));
        }
    }
}

/// The text of one file, with its lines.
#[derive(Debug, Clone)]
pub struct Text {
    /// The text, decoded, every line end a `\n`.
    pub source: String,
    lines: Lines,
}

impl Text {
    /// A text with its lines counted.
    pub fn new(source: String) -> Self {
        let lines = Lines::of(&source);
        Self { source, lines }
    }

    /// The 1-based line of a byte.
    pub fn line_of(&self, offset: usize) -> usize {
        self.lines.at(offset)
    }

    /// The 1-based line and column, in characters, of a byte.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line_of(offset);
        let start = self.lines.start_of(line).unwrap_or_default();
        let before = self.source.get(start..offset).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    /// The text of a 1-based line without its indentation and end, as bytes.
    pub fn range_of_line(&self, line: usize) -> Range<usize> {
        let start = self.lines.start_of(line).unwrap_or(self.source.len());
        let rest = &self.source[start..];
        let text = rest.split('\n').next().unwrap_or_default();
        let begin = start + (text.len() - text.trim_start().len());
        begin..(start + text.trim_end().len()).max(begin)
    }

    /// The text of a 1-based line.
    pub fn line(&self, line: usize) -> &str {
        &self.source[self.range_of_line(line)]
    }
}

/// The bytes of a node of the syntax tree.
pub(super) fn bytes_of(node: &impl Ranged) -> Range<usize> {
    let range: TextRange = node.range();
    range.start().to_usize()..range.end().to_usize()
}
