//! What is to be installed and what it may do, as text and as JSON. Every string in it is foreign text.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::conflicts::Conflicts;
use super::parcel::Parcel;
use super::staging::Staging;
use crate::check::{Level, Report, Surroundings, check};
use crate::cli::style::{self, Refusal};
use crate::config::value::Word;
use crate::discovery::{Kind, Status};
use crate::registry::{Catalogue, FileEntry};

/// One file, as it was copied.
struct PreviewFile {
    at: PathBuf,
    from: PathBuf,
    size: u64,
    sha256: String,
}

/// Everything that is known of a parcel before it is installed.
pub(super) struct Preview<'a> {
    parcel: &'a Parcel,
    conflicts: &'a Conflicts,
    /// Its tool file. It has none if its name is a helper's or a test's.
    pub entry: Option<&'a FileEntry>,
    pub catalogue: &'a Catalogue,
    /// Where it goes.
    place: PathBuf,
    files: Vec<PreviewFile>,
    /// The findings of `check`: level, and one line.
    findings: Vec<(Level, String)>,
    /// Its sandbox, or the one that would fit.
    pub sandbox: Option<String>,
    /// Whether it has one already, or one is chosen.
    pub is_walled: bool,
}

impl<'a> Preview<'a> {
    pub fn of(
        parcel: &'a Parcel,
        staging: &Staging,
        catalogue: &'a Catalogue,
        conflicts: &'a Conflicts,
        surroundings: &Surroundings,
    ) -> Result<Self, Refusal> {
        let mut files = Vec::new();
        for piece in &parcel.pieces {
            let path = staging.folder.join(&piece.at);
            if !path.is_dir() {
                let cannot = |error| Refusal::io(format!("cannot read {}", piece.from.display()), error);
                let (size, sha256) = digest(&path).map_err(cannot)?;
                files.push(PreviewFile { at: piece.at.clone(), from: piece.from.clone(), size, sha256 });
            }
        }
        let report =
            if parcel.is_executable { Report::default() } else { check(from_ref(&staging.folder), &[], surroundings) };
        let findings = report.findings().map(|(file, finding)| {
            let place = file.path.strip_prefix(&staging.folder).unwrap_or(&file.path).display();
            let line = finding.range.as_ref().map(|range| format!(":{}", file.text.line_of(range.start)));
            let fix = if finding.fix.is_empty() { String::new() } else { format!("; {}", finding.fix) };
            (finding.level, format!("{place}{}: {}{fix}", line.unwrap_or_default(), finding.message))
        });
        let findings = findings.collect();
        let entry = catalogue.files.first().map(Arc::as_ref);
        let place = staging.target.join(&parcel.top);
        Ok(Self { parcel, conflicts, entry, catalogue, place, files, findings, sandbox: None, is_walled: false })
    }

    /// Why it cannot be installed, or not without `force`.
    pub fn refusal(&self, force: bool) -> Option<Refusal> {
        let name = self.parcel.source.display();
        let refused = |what: String, fix: String| Some(Refusal::new(format!("nothing was installed: {what}"), fix));
        let Some(entry) = self.entry else {
            let why = "names that begin with `_`, `.` or `test_` are for helpers and tests";
            return refused(format!("{name} would never be served: {why}"), "rename it".to_owned());
        };
        if let Some(reason) = entry.broken() {
            return refused(format!("{name} is broken: {reason}"), String::new());
        }
        if self.catalogue.tools.is_empty() {
            return refused(format!("{name} offers no tool"), format!("see `hostler check {name}`"));
        }
        let against = &self.conflicts.against;
        if !against.is_empty() && !force {
            let is_replaced = !self.conflicts.in_the_way.is_empty();
            let what = if is_replaced { "replace it" } else { "install it anyway" };
            return refused(against.join("; "), format!("pass --force to {what}"));
        }
        None
    }

    fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    fn dependencies(&self) -> &[String] {
        let header = self.entry.and_then(|entry| entry.file.header.as_ref());
        header.map_or(&[], |header| &header.dependencies)
    }

    fn requires_python(&self) -> Option<&str> {
        self.entry?.file.header.as_ref()?.requires_python.as_deref()
    }

    fn secrets(&self) -> &[String] {
        self.entry.map_or(&[], |entry| &entry.settings.secrets.value)
    }

    fn uses_hostler(&self) -> bool {
        self.entry.is_some_and(|entry| entry.serving().has_workers() && entry.settings.host_access.value)
    }

    pub fn as_json(&self) -> Map<String, Value> {
        let Self { parcel, conflicts, .. } = self;
        let tools = self.catalogue.tools.iter().map(|tool| {
            let mut shown = json!({
                "name": tool.name, "mcp_name": tool.mcp_name, "description": tool.description(),
                "status": tool.entry.shown().0, "effects": tool.settings.effects.value.word(),
                "input_schema": tool.input_schema(),
            });
            if let Value::Object(shown) = &mut shown {
                shown.extend(tool.settings.policy.as_json());
            }
            shown
        });
        let file = |file: &PreviewFile| json!({"path": path(&file.at), "from": path(&file.from), "size": file.size, "sha256": file.sha256});
        let own = self.files.iter().find(|file| file.at == parcel.main).or(self.files.last());
        let shown = json!({
            "path": path(&self.place), "source": path(&parcel.source), "link": parcel.is_link,
            "kind": self.entry.map(FileEntry::kind_word), "tools": tools.collect::<Value>(),
            "requires_python": self.requires_python(), "dependencies": self.dependencies(), "secrets": self.secrets(),
            "uses_hostler": self.uses_hostler(), "sandbox": self.sandbox,
            "size": self.size(), "sha256": own.map(|file| file.sha256.clone()),
            "files": self.files.iter().map(file).collect::<Value>(),
            "in_the_way": conflicts.against, "overrides": conflicts.overrides,
            "hidden_by": conflicts.hidden_by.iter().map(|one| path(one)).collect::<Value>(),
            "served": conflicts.is_served,
            "findings": self.findings.iter().map(|(level, text)| json!({"level": level, "text": text})).collect::<Value>(),
        });
        if let Value::Object(shown) = shown { shown } else { Map::new() }
    }

    pub fn as_text(&self) -> String {
        let Self { parcel, conflicts, .. } = self;
        let mut rows = Rows::default();
        rows.add("what", &self.entry.map_or_else(|| "no tool".to_owned(), |entry| self.what(entry)));
        rows.tools(self.catalogue);
        let python = self.requires_python().map(|range| format!("Python {range}"));
        let needs: Vec<String> = python.into_iter().chain(self.dependencies().iter().cloned()).collect();
        rows.add_some("needs", &needs.join(", "));
        rows.add_some("secrets", &self.secrets().join(", "));
        let more =
            if self.uses_hostler() { "; also call other tools, and the client's model, through hostler" } else { "" };
        let may = if self.is_walled {
            "do what its sandbox allows"
        } else {
            "do anything that you can: files, network, programs; tools are not sandboxed"
        };
        rows.add("may", &format!("{may}{more}"));
        rows.add_some("sandbox", self.sandbox.as_deref().unwrap_or_default());
        for file in &self.files {
            rows.add("file", &format!("{}, {} bytes, sha256 {}", file.at.display(), file.size, file.sha256));
        }
        let verb = if parcel.is_link { "linked to" } else { "a copy of" };
        rows.add("goes to", &format!("{}, {verb} {}", self.place.display(), parcel.source.display()));
        conflicts.against.iter().for_each(|text| rows.add("in the way", text));
        conflicts.overrides.iter().for_each(|place| rows.add("in place of", place));
        for path in &conflicts.hidden_by {
            rows.add("hidden by", &format!("{}, which is served instead", path.display()));
        }
        if let Some(Status::SchemaUnknown { reason }) = self.entry.map(|entry| &entry.file.status) {
            rows.add("warning", &format!("its arguments are unknown, so calls are not checked: {reason}"));
        }
        let header = self.entry.and_then(|entry| entry.file.header.as_ref());
        if header.is_some_and(|header| header.relative_sources) && !parcel.is_link {
            rows.add("warning", "its header has paths relative to its folder; --link keeps it there");
        }
        for (level, text) in &self.findings {
            rows.add(if *level == Level::Error { "error" } else { "warning" }, text);
        }
        format!("{}\n{}", plain(&parcel.main.display().to_string()), style::table(&rows.0, None).trim_end())
    }

    fn what(&self, entry: &FileEntry) -> String {
        let kind = match entry.file.kind {
            Kind::Internal => "a Python tool file without a header (internal: standard library only)",
            Kind::Executable if entry.serving().has_workers() => {
                "an executable worker; it was run with --schema to read its metadata"
            }
            Kind::Executable => "an executable; it was run with --schema to read its metadata",
            _ => "a Python tool file",
        };
        let about = entry.file.description.as_ref().filter(|_| entry.serving().has_environment());
        format!("{kind}, {} bytes{}", self.size(), after_colon(about))
    }
}

/// A path for JSON, where it must be text.
fn path(path: &Path) -> String {
    path.display().to_string()
}

fn after_colon(text: Option<&String>) -> String {
    text.map(|text| format!(": {text}")).unwrap_or_default()
}

/// Rows of a key and a value.
#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Rows {
    fn add(&mut self, key: &str, value: &str) {
        self.0.push(vec![format!("  {key}"), plain(value)]);
    }

    fn add_some(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.add(key, value);
        }
    }

    fn tools(&mut self, catalogue: &Catalogue) {
        for tool in &catalogue.tools {
            let about = after_colon(tool.function().summary.as_ref());
            self.add("tool", &format!("{} ({}){about}", tool.name, tool.settings.effects.value.word()));
            let facts = tool.settings.policy.as_json();
            let facts: Vec<String> = facts.iter().map(|(key, value)| format!("{key} {}", bare(value))).collect();
            self.add_some("", &facts.join(", "));
        }
    }
}

fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(bare).collect::<Vec<_>>().join("|"),
        other => other.to_string(),
    }
}

/// Foreign text on one line, without control characters.
fn plain(text: &str) -> String {
    style::plain(text).replace(['\n', '\t'], " ")
}

/// The size of a file, and its SHA-256. It may be larger than memory.
pub(super) fn digest(path: &Path) -> io::Result<(u64, String)> {
    let mut file = BufReader::new(File::open(path)?);
    let (mut hash, mut size) = (Sha256::new(), 0);
    loop {
        let piece = file.fill_buf()?;
        let length = piece.len();
        if length == 0 {
            return Ok((size, HEXLOWER.encode(&hash.finalize())));
        }
        hash.update(piece);
        size += length as u64;
        file.consume(length);
    }
}
