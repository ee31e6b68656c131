//! One tool file: its header, its syntax, and every rule about what it says.

use std::path::Path;
use std::sync::Arc;

use ruff_python_ast::ModModule;
use ruff_python_parser::Parsed;

use super::Text;
use super::names::Names;
use super::{
    FileReport, Finding, Surroundings, credentials, functions, halves, imports, interpreters, rule, variables,
};
use crate::config::EffectiveTool;
use crate::discovery::{Status, SyntaxError, ToolFile, syntax_error, syntax_tree};
use crate::pep723;

/// A file as the rules see it.
pub(super) struct Subject<'a> {
    pub(super) file: &'a ToolFile,
    pub(super) text: &'a Text,
    pub(super) settings: &'a EffectiveTool,
    pub(super) parsed: &'a Parsed<ModModule>,
    pub(super) names: Names,
}

/// Checks one file, whatever other files are called.
pub(super) fn check(file: &ToolFile, settings: &EffectiveTool, surroundings: &Surroundings) -> FileReport {
    // Asked before it is opened: opening a pipe would wait for somebody to write.
    let is_file = std::fs::metadata(&file.path).is_ok_and(|metadata| metadata.is_file());
    let bytes = is_file.then(|| std::fs::read(&file.path).ok()).flatten().unwrap_or_default();
    let source = match pep723::decode(&bytes) {
        Ok(source) => source,
        Err(error) => {
            let text = Text::new(String::from_utf8_lossy(&bytes).into_owned());
            let findings = of_header(error, &text);
            return FileReport { path: file.path.clone(), text, findings };
        }
    };
    let text = Text::new(source);
    let mut findings = Vec::new();
    let header = pep723::read(&text.source, &Arc::new(file.path.clone()));
    let says_what_it_needs = header.is_ok();
    findings.extend(header.err().into_iter().flat_map(|error| of_header(error, &text)));
    let parsed = syntax_tree(&text.source);
    let refused = parsed.as_ref().and_then(|parsed| refused(parsed, &text));
    // What a merge left in the header is no Python either; once is enough.
    let is_told =
        |refused: &Finding| findings.iter().any(|told| told.fix == refused.fix && told.range == refused.range);
    findings.extend(refused.filter(|refused| !is_told(refused)));
    if findings.is_empty() {
        findings.extend(broken(&file.status, &text));
    }
    findings.extend(file.warnings.iter().map(|warning| {
        let (message, fix) = halves(&warning.text);
        let rule = super::Rule::named(warning.rule).unwrap_or(&rule::EXPORTS);
        Finding::new(rule, text.range_of_line(warning.line), message, fix)
    }));
    if let Some(parsed) = &parsed {
        let names = Names::of(parsed.suite());
        let subject = Subject { file, text: &text, settings, parsed, names };
        functions::check(&subject, &mut findings);
        if says_what_it_needs {
            imports::check(&subject, surroundings, &mut findings);
        }
        credentials::check(&subject, &mut findings);
        variables::check(&subject, &mut findings);
        interpreters::check(&subject, &surroundings.interpreters, &mut findings);
    }
    FileReport { path: file.path.clone(), text, findings }
}

/// Whether a file that others import is Python at all; nothing else is asked of it.
pub(super) fn check_helper(path: &Path) -> Option<FileReport> {
    let bytes = std::fs::read(path).ok()?;
    let (text, findings) = match pep723::decode(&bytes) {
        Err(error) => {
            let text = Text::new(String::from_utf8_lossy(&bytes).into_owned());
            let findings = of_header(error, &text);
            (text, findings)
        }
        Ok(source) => {
            let text = Text::new(source);
            let findings = syntax_tree(&text.source).and_then(|parsed| refused(&parsed, &text)).into_iter().collect();
            (text, findings)
        }
    };
    (!findings.is_empty()).then(|| FileReport { path: path.to_owned(), text, findings })
}

fn of_header(error: pep723::HeaderError, text: &Text) -> Vec<Finding> {
    let others = error.others.into_iter().flat_map(|other| of_header(other, text));
    let mut findings: Vec<Finding> = others.collect();
    findings.insert(0, Finding::new(&rule::HEADER, text.range_of_line(error.line), error.reason, error.fix));
    findings
}

fn refused(parsed: &Parsed<ModModule>, text: &Text) -> Option<Finding> {
    let SyntaxError { range, what, fix } = syntax_error(&text.source, parsed)?;
    Some(Finding::new(&rule::SYNTAX, range, what, fix))
}

/// Why a file with a good header and good syntax cannot be served.
fn broken(own: &Status, text: &Text) -> Option<Finding> {
    let Status::Broken { line, reason } = own else { return None };
    let (message, fix) = halves(reason);
    let rule = if text.source.is_empty() { &rule::UNREADABLE } else { &rule::NAME };
    Some(Finding::new(rule, line.map(|line| text.range_of_line(line)), message, fix))
}
