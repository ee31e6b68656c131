//! What to do about syntax that the Python beneath a file does not know, though a newer one does.

use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use crate::discovery::{ToolFile, enough_for, syntax_tree, unknown_to};
use crate::pep723::{self, Metadata, OLDEST_PYTHON, oldest_minor};

/// The advice after a `SyntaxError`, or nothing where the file is not the cause.
pub(super) fn newer_syntax(file: &ToolFile) -> Option<String> {
    let source = pep723::decode(&std::fs::read(&file.path).ok()?).ok()?;
    // What nests too deeply is not parsed again.
    syntax_tree(&source)?;
    told(&source, file.header.as_ref())
}

fn told(source: &str, header: Option<&Metadata>) -> Option<String> {
    let wanted = header.and_then(|header| VersionSpecifiers::from_str(header.requires_python.as_deref()?).ok());
    let oldest = wanted.as_ref().and_then(oldest_minor).unwrap_or(OLDEST_PYTHON).1;
    let error = unknown_to(source, oldest)?;
    let enough = enough_for(source, oldest)?;
    let line = format!("# requires-python = \">=3.{enough}\"");
    let how = match header {
        None => format!("begin the file with a header, the three lines `# /// script`, `{line}` and `# ///`"),
        Some(header) => match header.line_of("requires-python") {
            Some(number) => format!("write line {number} as `{line}`"),
            None => format!("write the line `{line}` after line {}", header.first_line - 1),
        },
    };
    // The parser's words end with the version that was assumed, which need not be the one that ran.
    let what = error.to_string();
    let what = what.split(" on Python ").next().unwrap_or_default();
    let (first, rest) = what.split_at(what.chars().next().map_or(0, char::len_utf8));
    let what = first.to_lowercase() + rest;
    Some(format!("The file needs Python 3.{enough} (before it, {what}): {how}, or write it otherwise"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_version_that_is_enough_is_named_with_the_line() {
        let header = |toml: &str| Metadata::from_toml(toml, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
        let except = "try:\n    pass\nexcept ValueError, KeyError:\n    pass\n";
        let told = |toml: &str| told(except, Some(&header(toml)));
        assert!(
            told("requires-python = \">=3.9\"\n").unwrap().contains("write line 2 as `# requires-python = \">=3.14\"`")
        );
        assert!(told("dependencies = []\n").unwrap().contains("`# requires-python = \">=3.14\"` after line 1"));
        assert_eq!(told("requires-python = \">=3.14\"\n"), None);
        let bare = super::told("type X = int\n", None).unwrap();
        assert!(bare.starts_with("The file needs Python 3.12 (") && bare.contains("three lines"), "{bare}");
        assert_eq!(super::told("x = 1\n", None), None);
    }
}
