//! A file's text, and where in it something stands.

use std::ops::Range;

use ruff_text_size::{Ranged, TextRange};

use crate::discovery::Lines;

/// The text of one file.
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

    /// What stands on a 1-based line, without its indentation and end.
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
