//! Executables, as far as they can be known without being run: whether they can be, and the names they claim.

use std::path::Path;

use super::{FileReport, Finding, Text, halves, rule};
use crate::discovery::{Kind, Status, ToolFile, may_not_be_executed};
use crate::pep723::is_identifier;
use crate::process::shell_word;

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
        let rule = if is_identifier(&file.pack) { &rule::NO_PROGRAM } else { &rule::NAME };
        Finding::new(rule, None, message, fix)
    });
    // What it said when it was asked; here nothing is run.
    let unknown = match &file.status {
        Status::SchemaUnknown { reason } => Some(reason),
        _ => None,
    };
    let remarks = unknown.into_iter().chain(file.warnings.iter().map(|remark| &remark.text)).map(|remark| {
        // Ours is the last word; what it said itself, which comes before, may hold any.
        let (message, fix) =
            remark.rsplit_once("; ").unwrap_or((remark, "let `--schema` print JSON that says what it takes"));
        Finding::new(&rule::METADATA, None, message, fix)
    });
    let findings = found.into_iter().chain(remarks).collect();
    FileReport { path: file.path.clone(), text: Text::new(String::new()), findings }
}

/// Scripts that would be tools if they might be executed, which an author forgets and no list shows.
pub(super) fn without_leave(folder: &Path) -> impl Iterator<Item = FileReport> {
    may_not_be_executed(folder).into_iter().map(|path| {
        let message = "it begins with `#!` and may not be executed, so it is no tool".to_owned();
        let fix = format!(
            "run `chmod +x {}`, or begin its name with `_` if it is a helper",
            shell_word(&path.to_string_lossy())
        );
        let findings = vec![Finding::new(&rule::NOT_EXECUTABLE, None, message, fix)];
        FileReport { path, text: Text::new(String::new()), findings }
    })
}
