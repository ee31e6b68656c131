//! Syntax that not every Python knows.

use ruff_python_ast::PythonVersion;
use ruff_python_parser::{Mode, ParseOptions, UnsupportedSyntaxError, parse_unchecked};

/// The newest version whose syntax the parser knows apart.
const NEWEST: u64 = 15;

/// What Python 3 of this minor version does not know of a text.
pub fn unknown_to(source: &str, minor: u64) -> Option<UnsupportedSyntaxError> {
    let version = PythonVersion { major: 3, minor: u8::try_from(minor).unwrap_or(u8::MAX) };
    let options = ParseOptions::from(Mode::Module).with_target_version(version);
    parse_unchecked(source, options).unsupported_syntax_errors().first().cloned()
}

/// The first minor version after this one that knows all of a text.
pub fn enough_for(source: &str, after: u64) -> Option<u64> {
    (after + 1..=NEWEST).find(|minor| unknown_to(source, *minor).is_none())
}
