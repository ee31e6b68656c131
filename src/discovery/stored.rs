//! A tool file as it is kept between runs: what [`super::read_file`] found out, and nothing that depends on other files.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Function, Kind, OpenNames, RULES, Status, ToolFile, Warning, Wishes};
use crate::pep723::Metadata;

/// Counts up with every change to what is stored or to what it means.
pub(super) const FORMAT: u32 = 9;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<'a> {
    pack: Cow<'a, str>,
    kind: Kind,
    /// As its text: reading it again is quicker than storing what it says with the place of every word.
    header: Option<Header<'a>>,
    description: Cow<'a, Option<String>>,
    functions: Cow<'a, [Function]>,
    status: Cow<'a, Status>,
    fingerprint: [u8; 32],
    warnings: Vec<Remark<'a>>,
    imports: Cow<'a, [String]>,
    open: Cow<'a, OpenNames>,
    wishes: Cow<'a, Wishes>,
}

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    toml: Cow<'a, str>,
    first_line: usize,
}

/// A warning.
#[derive(Serialize, Deserialize)]
struct Remark<'a> {
    line: usize,
    rule: Cow<'a, str>,
    text: Cow<'a, str>,
}

/// A file as JSON on one line. Nothing for one that could not be read: why not may be over at any time, unseen.
pub(super) fn to_json(file: &ToolFile) -> Option<String> {
    // Named one by one, so that a new field must be thought of here. The path is the key; helpers are told by neighbours.
    let ToolFile {
        path: _,
        pack,
        kind,
        header,
        description,
        functions,
        status,
        fingerprint,
        warnings,
        imports,
        open,
        helpers: _,
        rank: _,
        overrides: _,
        wishes,
    } = file;
    if *fingerprint == [0; 32] {
        return None;
    }
    let header =
        header.as_ref().map(|header| Header { toml: Cow::Borrowed(&header.toml), first_line: header.first_line });
    let stored = Stored {
        pack: Cow::Borrowed(pack),
        kind: *kind,
        header,
        description: Cow::Borrowed(description),
        functions: Cow::Borrowed(functions),
        status: Cow::Borrowed(status),
        fingerprint: *fingerprint,
        warnings: warnings.iter().map(Remark::of).collect(),
        imports: Cow::Borrowed(imports),
        open: Cow::Borrowed(open),
        wishes: Cow::Borrowed(wishes),
    };
    serde_json::to_string(&stored).ok()
}

/// The file at that path, as it was stored.
pub(super) fn from_json(path: &Path, json: &str) -> Option<ToolFile> {
    let stored: Stored<'_> = serde_json::from_str(json).ok()?;
    let header = match stored.header {
        Some(header) => Some(Metadata::from_toml(&header.toml, header.first_line, &Arc::new(path.to_owned())).ok()?),
        None => None,
    };
    Some(ToolFile {
        path: path.to_owned(),
        pack: stored.pack.into_owned(),
        kind: stored.kind,
        header,
        description: stored.description.into_owned(),
        functions: stored.functions.into_owned(),
        status: stored.status.into_owned(),
        fingerprint: stored.fingerprint,
        warnings: stored.warnings.into_iter().map(Remark::warning).collect::<Option<_>>()?,
        imports: stored.imports.into_owned(),
        open: stored.open.into_owned(),
        helpers: Vec::new(),
        rank: 0,
        overrides: Vec::new(),
        wishes: stored.wishes.into_owned(),
    })
}

impl<'a> Remark<'a> {
    fn of(warning: &'a Warning) -> Self {
        Self { line: warning.line, rule: Cow::Borrowed(warning.rule), text: Cow::Borrowed(&warning.text) }
    }

    fn warning(self) -> Option<Warning> {
        let rule = RULES.into_iter().find(|rule| *rule == self.rule)?;
        Some(Warning { line: self.line, rule, text: self.text.into_owned() })
    }
}
