//! The header block of a tool file (PEP 723 inline script metadata): bytes in, metadata out. No I/O.
//!
//! Whether a text is a header is decided by the PEP's reference regular expression and nothing else. A text that opens a
//! header and has none is an error, so that a typo never turns a tool file into another kind of file.

mod block;
mod decode;
mod metadata;
mod requirement;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use block::blocks;
pub use decode::decode;
pub use metadata::{Metadata, is_identifier, nearest_identifier};
pub use requirement::{
    OLDEST_PYTHON, UnsupportedPython, brings, is_listed, is_well_known, modules_of, normalised, oldest_minor,
    package_of, package_of_part, requirement_for, some_patch_fits,
};

use crate::config::origin::Diagnosis;

/// The type of block that holds a script's metadata.
const SCRIPT: &str = "script";
/// The line that opens it.
const OPENING: &str = "# /// script";
/// The line that closes any block.
const CLOSING: &str = "# ///";

/// What is wrong with a header, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct HeaderError {
    /// The 1-based line of the file.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
    /// What to write instead.
    pub fix: String,
    /// Further errors, in the order of their lines.
    pub others: Vec<HeaderError>,
}

impl HeaderError {
    fn new(line: usize, reason: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { line, reason: reason.into(), fix: fix.into(), others: Vec::new() }
    }

    /// The whole message except the first line number.
    pub fn diagnosis(&self) -> Diagnosis {
        let others = self.others.iter().map(|other| format!("; {other}"));
        Diagnosis::new(self.reason.clone(), format!("{}{}", self.fix, others.collect::<String>()))
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.diagnosis())
    }
}

/// Reads the header of a tool file whose bytes went through [`decode()`]. `Ok(None)` is a file without one.
pub fn read(source: &str, file: &Arc<PathBuf>) -> Result<Option<Metadata>, HeaderError> {
    let blocks = blocks(source);
    let script = block::script_block(source, &blocks)?;
    script.map(|block| Metadata::from_toml(&block.text(), block.opening_line + 1, file)).transpose()
}

#[cfg(test)]
mod tests;
