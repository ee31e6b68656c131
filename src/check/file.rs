//! One tool file: its header, its syntax and every rule about its content; an executable as far as it can be checked
//! without running it.

use std::path::Path;
use std::sync::Arc;

use pep440_rs::VersionSpecifiers;
use ruff_python_ast::ModModule;
use ruff_python_parser::Parsed;

use super::report::bytes_of;
use super::{FileReport, Finding, Rule, Surroundings, Text, code, imports, interpreters, program, rule};
use crate::config::EffectiveTool;
use crate::config::origin::Diagnosis;
use crate::discovery::{
    Kind, LeftOut, Status, SyntaxError, ToolFile, enough_for, may_not_be_executed, syntax_error, syntax_tree,
    unknown_to,
};
use crate::pep723;
use crate::process::shell_word;

/// A file as the rules see it.
pub(super) struct Subject<'a> {
    pub(super) file: &'a ToolFile,
    pub(super) text: &'a Text,
    pub(super) settings: &'a EffectiveTool,
    pub(super) parsed: &'a Parsed<ModModule>,
}

/// Checks one file, whatever other files are called.
pub(super) fn check(file: &ToolFile, settings: &EffectiveTool, surroundings: &Surroundings) -> FileReport {
    // Opening a pipe would wait for a writer.
    let is_file = std::fs::metadata(&file.path).is_ok_and(|metadata| metadata.is_file());
    let bytes = is_file.then(|| std::fs::read(&file.path).ok()).flatten().unwrap_or_default();
    let source = match pep723::decode(&bytes) {
        Ok(source) => source,
        Err(error) => return undecodable(&file.path, &bytes, error),
    };
    let text = Text::new(source);
    let header = pep723::read(&text.source, &Arc::new(file.path.clone()));
    let has_valid_header = header.is_ok();
    let mut findings: Vec<Finding> = header.err().into_iter().flat_map(|error| of_header(error, &text)).collect();
    let parsed = syntax_tree(&text.source);
    let refused = parsed.as_ref().and_then(|parsed| refused(parsed, &text));
    // A merge conflict in the header is an error of the header and of the syntax; one of them is enough.
    let is_known =
        |refused: &Finding| findings.iter().any(|known| known.fix == refused.fix && known.range == refused.range);
    findings.extend(refused.filter(|refused| !is_known(refused)));
    if findings.is_empty() {
        let rule = match () {
            () if text.source.is_empty() => &rule::UNREADABLE,
            () if settings.serves_program() => &rule::SETTINGS,
            () => &rule::NAME,
        };
        findings.extend(name_problem(&file.status, rule, &text));
    }
    findings.extend(file.warnings.iter().map(|warning| {
        let Diagnosis { what, fix } = warning.reason.clone();
        let rule = Rule::named(&warning.rule).unwrap_or(&rule::EXPORTS);
        Finding::new(rule, text.range_of_line(warning.line), what, fix)
    }));
    if let Some(parsed) = &parsed {
        let subject = Subject { file, text: &text, settings, parsed };
        let imported = code::check(&subject, &mut findings);
        if has_valid_header {
            imports::check(&subject, &imported, surroundings, &mut findings);
        }
        program::check(&subject, &mut findings);
        interpreters::check(&subject, &surroundings.interpreters, &mut findings);
    }
    FileReport { path: file.path.clone(), text, findings }
}

/// Whether a file that others import is valid Python.
pub(super) fn check_helper(path: &Path) -> Option<FileReport> {
    let bytes = std::fs::read(path).ok()?;
    let source = match pep723::decode(&bytes) {
        Ok(source) => source,
        Err(error) => return Some(undecodable(path, &bytes, error)),
    };
    let text = Text::new(source);
    let findings: Vec<_> = syntax_tree(&text.source).and_then(|parsed| refused(&parsed, &text)).into_iter().collect();
    (!findings.is_empty()).then(|| FileReport { path: path.to_owned(), text, findings })
}

/// Syntax that the oldest allowed version cannot parse.
pub(super) fn newer_syntax(subject: &Subject<'_>, range: &VersionSpecifiers, findings: &mut Vec<Finding>) {
    let source = &subject.text.source;
    let oldest = pep723::oldest_minor(range).map(|(_, minor)| minor);
    let Some((oldest, error)) = oldest.and_then(|oldest| Some((oldest, unknown_to(source, oldest)?))) else { return };
    let Some(enough) = enough_for(source, oldest) else { return };
    let message = format!("`{range}` allows versions that cannot parse this: {error}");
    let fix = format!("begin `requires-python` with \">=3.{enough}\", or use older syntax");
    findings.push(Finding::new(&rule::NEWER_SYNTAX, bytes_of(&error), message, fix));
}

/// Why a file cannot be served although its header and its syntax are valid.
pub(super) fn name_problem(status: &Status, rule: &'static Rule, text: &Text) -> Option<Finding> {
    let Status::Broken { line, reason } = status else { return None };
    let Diagnosis { what, fix } = reason.clone();
    Some(Finding::new(rule, line.map(|line| text.range_of_line(line)), what, fix))
}

/// A function that is not a tool because of its name.
pub(super) fn left_out(function: &LeftOut, text: &Text) -> Finding {
    let Diagnosis { what, fix } = function.reason.clone();
    let range = (function.line > 0).then(|| text.range_of_line(function.line));
    Finding::new(&rule::NAME, range, what, fix)
}

fn undecodable(path: &Path, bytes: &[u8], error: pep723::HeaderError) -> FileReport {
    let text = Text::new(String::from_utf8_lossy(bytes).into_owned());
    let findings = of_header(error, &text);
    FileReport { path: path.to_owned(), text, findings }
}

fn of_header(error: pep723::HeaderError, text: &Text) -> Vec<Finding> {
    let first = Finding::new(&rule::HEADER, text.range_of_line(error.line), error.reason, error.fix);
    std::iter::once(first).chain(error.others.into_iter().flat_map(|other| of_header(other, text))).collect()
}

fn refused(parsed: &Parsed<ModModule>, text: &Text) -> Option<Finding> {
    let SyntaxError { range, reason: Diagnosis { what, fix } } = syntax_error(&text.source, parsed)?;
    Some(Finding::new(&rule::SYNTAX, range, what, fix))
}

/// Assumes that an executable without known metadata is one tool, named after its file.
pub(super) fn assume(file: &mut ToolFile) {
    if file.kind == Kind::Executable && file.functions.is_empty() {
        file.functions = vec![file.as_one_tool()];
    }
}

/// Whether an executable can be started, and what was wrong with its metadata when it was last asked. It is not run here.
pub(super) fn check_executable(file: &ToolFile, is_switched_off: bool) -> FileReport {
    let finding = |rule, reason: &Diagnosis| Finding::new(rule, None, reason.what.clone(), reason.fix.clone());
    let found = match &file.status {
        Status::Broken { reason, .. } | Status::Missing { reason } => {
            let is_named = pep723::is_identifier(&file.pack);
            Some(finding(if is_named { &rule::NO_PROGRAM } else { &rule::NAME }, reason))
        }
        Status::SchemaUnknown { reason } => Some(finding(&rule::METADATA, reason)),
        // What the operator has chosen is no finding.
        Status::NotAsked { reason } => (!is_switched_off).then(|| finding(&rule::NOT_ASKED, reason)),
        Status::Ready | Status::Unasked => None,
    };
    let remarks = file.warnings.iter().map(|remark| finding(&rule::METADATA, &remark.reason));
    let findings = found.into_iter().chain(remarks).collect();
    FileReport::without_text(&file.path, findings)
}

/// Scripts that would be tools if they had execute permission; no list shows them.
pub(super) fn not_executable(folder: &Path) -> impl Iterator<Item = FileReport> {
    may_not_be_executed(folder).into_iter().map(|path| {
        let message = "it begins with `#!` but has no execute permission, so it is not a tool";
        let command = format!("chmod +x {}", shell_word(&path.to_string_lossy()));
        let fix = format!("run `{command}`, or begin its name with `_` if it is a helper");
        FileReport::without_text(&path, vec![Finding::new(&rule::NOT_EXECUTABLE, None, message, fix)])
    })
}
