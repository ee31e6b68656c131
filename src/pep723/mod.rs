//! The header block of a tool file (PEP 723 inline script metadata): bytes in, metadata out. No I/O.
//!
//! Whether a text is a header is decided by the PEP's reference regular expression and nothing else; a text that was
//! meant to be one and is not is an error, so that a slip of the pen never turns a tool file into another kind of file.
//! A comment that only speaks of headers is none of these: uv runs such files.

mod amend;
mod block;
mod decode;
mod distributions;
mod likeness;
mod metadata;
mod mistake;
mod opening;
mod pythons;
mod requirement;
mod slip;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use block::{Block, blocks};
pub use decode::decode;
pub use distributions::{brings, comes_along, distribution_of, is_well_known, modules_of, normalised};
pub use metadata::{Metadata, is_identifier, nearest_identifier};
pub use pythons::{Hindrance, OLDEST_PYTHON, oldest_minor, some_patch_fits};
pub use requirement::package_of;

/// What is wrong with a header, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct HeaderError {
    /// The 1-based line of the file.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub fix: String,
    /// What else is wrong, further down.
    pub others: Vec<HeaderError>,
}

impl HeaderError {
    fn new(line: usize, reason: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { line, reason: reason.into(), fix: fix.into(), others: Vec::new() }
    }

    /// All that is wrong but for the first line: one sentence.
    pub fn sentence(&self) -> String {
        let others = self.others.iter().map(|other| format!("; {other}"));
        format!("{}; {}{}", self.reason, self.fix, others.collect::<String>())
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.sentence())
    }
}

/// Reads the header of a tool file whose bytes went through [`decode()`]. `Ok(None)` is a file without one.
pub fn read(source: &str, file: &Arc<PathBuf>) -> Result<Option<Metadata>, HeaderError> {
    let blocks = blocks(source);
    mistake::find(source, &blocks).map_or(Ok(()), Err)?;
    let script = blocks.iter().find(|block| block.kind == SCRIPT);
    if script.is_none() {
        likeness::slip(source).map_or(Ok(()), Err)?;
    }
    script.map(|block| Metadata::from_toml(&block.text(), block.opening_line + 1, file)).transpose()
}

/// What may have been meant as a header in a text that [`read`] finds none in.
pub fn doubtful(source: &str) -> Option<HeaderError> {
    let blocks = blocks(source);
    let has_header = blocks.iter().any(|block| block.kind == SCRIPT);
    if has_header { None } else { likeness::doubt(source, &blocks) }
}

/// The type of block that holds a script's metadata.
const SCRIPT: &str = "script";
/// The one line that opens it.
const OPENING: &str = "# /// script";
/// The one line that closes any block.
const CLOSING: &str = "# ///";
/// What is said of the markers that a merge leaves, and what to do about them.
pub(crate) const MERGE: (&str, &str) = (
    "here begins a conflict of a merge",
    "keep one of the two sides, and delete the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`",
);

#[cfg(test)]
mod tests;
