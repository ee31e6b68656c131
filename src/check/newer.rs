//! Syntax that not every Python knows which a header's `requires-python` allows.

use pep440_rs::VersionSpecifiers;

use super::file::Subject;
use super::text::bytes_of;
use super::{Finding, rule};
use crate::discovery::{enough_for, unknown_to};
use crate::pep723::oldest_minor;

/// What the oldest version that is allowed does not know yet.
pub(super) fn check(subject: &Subject<'_>, wanted: &VersionSpecifiers, findings: &mut Vec<Finding>) {
    let source = &subject.text.source;
    let oldest = oldest_minor(wanted).map(|(_, minor)| minor);
    let Some((oldest, error)) = oldest.and_then(|oldest| Some((oldest, unknown_to(source, oldest)?))) else { return };
    let Some(enough) = enough_for(source, oldest) else { return };
    let message = format!("not every version that `{wanted}` allows can read this: {error}");
    let fix = format!("let `requires-python` begin with \">=3.{enough}\", or write it otherwise");
    findings.push(Finding::new(&rule::NEWER_SYNTAX, bytes_of(&error), message, fix));
}
