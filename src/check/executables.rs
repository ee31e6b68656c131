//! Executables, as far as they can be known without being run: whether they can be, and the names they claim.

use super::{FileReport, Finding, Text, halves, rule};
use crate::discovery::{Kind, Status, ToolFile};

/// Takes an executable that nobody has asked for the one tool that its file is named after, which most are.
pub(super) fn assume(file: &mut ToolFile) {
    if file.kind == Kind::Executable && file.functions.is_empty() {
        file.functions = vec![file.as_one_tool()];
    }
}

/// Whether it can be run.
pub(super) fn check(file: &ToolFile) -> FileReport {
    let reason = match &file.status {
        Status::Broken { reason, .. } | Status::Missing { reason } => Some(reason),
        _ => None,
    };
    let found = reason.map(|reason| {
        let (message, fix) = halves(reason);
        Finding::new(&rule::NO_PROGRAM, None, message, fix)
    });
    FileReport { path: file.path.clone(), text: Text::new(String::new()), findings: found.into_iter().collect() }
}
