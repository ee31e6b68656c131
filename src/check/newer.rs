//! Syntax that not every Python knows which a header's `requires-python` allows.

use pep440_rs::VersionSpecifiers;
use ruff_python_ast::PythonVersion;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};

use super::file::Subject;
use super::text::bytes_of;
use super::{Finding, rule};
use crate::pep723::oldest_minor;

/// What the oldest version that is allowed does not know yet.
pub(super) fn check(subject: &Subject<'_>, wanted: &VersionSpecifiers, findings: &mut Vec<Finding>) {
    let oldest = oldest_minor(wanted).map(|(_, minor)| minor);
    let unknown_to = |minor: u64| {
        let version = PythonVersion { major: 3, minor: u8::try_from(minor).unwrap_or(u8::MAX) };
        let options = ParseOptions::from(Mode::Module).with_target_version(version);
        parse_unchecked(&subject.text.source, options).unsupported_syntax_errors().first().cloned()
    };
    let Some((oldest, error)) = oldest.and_then(|oldest| Some((oldest, unknown_to(oldest)?))) else { return };
    let Some(enough) = (oldest + 1..=NEWEST).find(|minor| unknown_to(*minor).is_none()) else { return };
    let message = format!("not every version that `{wanted}` allows can read this: {error}");
    let fix = format!("let `requires-python` begin with \">=3.{enough}\", or write it otherwise");
    findings.push(Finding::new(&rule::NEWER_SYNTAX, bytes_of(&error), message, fix));
}

/// The newest version whose syntax the parser knows apart.
const NEWEST: u64 = 15;
