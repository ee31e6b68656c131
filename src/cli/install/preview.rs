//! What is to be installed and what it may do, as text and as JSON. Every string in it is foreign text.

use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::conflicts::Conflicts;
use super::parcel::{Parcel, digest};
use super::staging::Staging;
use crate::check::{Level, Report, Surroundings, check};
use crate::cli::style;
use crate::config::value::Word;
use crate::discovery::{Kind, Status};
use crate::registry::{Catalogue, FileEntry};

/// One file, as it was copied.
pub(super) struct PreviewFile {
    pub at: PathBuf,
    pub from: PathBuf,
    pub size: u64,
    pub sha256: String,
}

/// Everything that is known of it before it is installed.
pub(super) struct Preview {
    pub catalogue: Arc<Catalogue>,
    pub files: Vec<PreviewFile>,
    /// The findings of `check`: level, and one line.
    pub findings: Vec<(Level, String)>,
}

impl Preview {
    pub fn of(
        parcel: &Parcel,
        staging: &Staging,
        catalogue: Arc<Catalogue>,
        surroundings: &Surroundings,
    ) -> Result<Self, String> {
        let mut files = Vec::new();
        for piece in &parcel.pieces {
            let path = staging.folder.join(&piece.at);
            if !path.is_dir() {
                let cannot = |error| format!("cannot read {}: {error}", piece.from.display());
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
        Ok(Self { findings: findings.collect(), catalogue, files })
    }

    /// Why it cannot be installed, not even by force.
    pub fn syntax_error(&self, parcel: &Parcel) -> Option<String> {
        let name = parcel.source.display();
        if self.catalogue.files.is_empty() {
            return Some(format!(
                "{name} would never be served: names that begin with `_`, `.` or `test_` are for helpers and tests; \
                 rename it"
            ));
        }
        let broken = self.catalogue.files.iter().find_map(|entry| entry.broken());
        if let Some(reason) = broken {
            return Some(format!("{name} is broken: {reason}"));
        }
        let none = self.catalogue.tools.is_empty();
        none.then(|| format!("{name} offers no tool; see `hostler check {name}`"))
    }

    pub fn main<'a>(&'a self, parcel: &Parcel, staging: &Staging) -> Option<&'a FileEntry> {
        let path = staging.folder.join(&parcel.main);
        let found = self.catalogue.files.iter().find(|entry| entry.file.path == path);
        found.or(self.catalogue.files.first()).map(Arc::as_ref)
    }

    /// A list of all tool files together, without duplicates.
    fn all<'a>(&'a self, of: impl Fn(&'a FileEntry) -> &'a [String]) -> Vec<&'a str> {
        let mut all: Vec<&str> = Vec::new();
        for one in self.catalogue.files.iter().flat_map(|entry| of(entry)) {
            if !all.contains(&one.as_str()) {
                all.push(one);
            }
        }
        all
    }

    pub fn uses_hostler(&self) -> bool {
        let may_ask = |entry: &FileEntry| entry.serving().has_workers() && entry.settings.host_access.value;
        self.catalogue.files.iter().any(|entry| may_ask(entry))
    }

    pub fn as_json(
        &self,
        parcel: &Parcel,
        staging: &Staging,
        conflicts: &Conflicts,
        target: &Path,
    ) -> Map<String, Value> {
        let main = self.main(parcel, staging);
        let header = main.and_then(|entry| entry.file.header.as_ref());
        let tools = self.catalogue.tools.iter().map(|tool| {
            let mut shown = json!({
                "name": tool.name, "mcp_name": tool.mcp_name, "description": tool.description(),
                "status": tool.entry.status(), "effects": tool.settings.effects.value.word(),
                "input_schema": tool.input_schema(),
            });
            if let Value::Object(shown) = &mut shown {
                shown.extend(tool.settings.policy.as_json());
            }
            shown
        });
        let file = |file: &PreviewFile| json!({"path": path(&file.at), "from": path(&file.from), "size": file.size, "sha256": file.sha256});
        let size: u64 = self.files.iter().map(|file| file.size).sum();
        let own = self.files.iter().find(|file| file.at == parcel.main).or(self.files.last());
        let shown = json!({
            "path": path(&target.join(&parcel.top)), "source": path(&parcel.source), "link": parcel.is_link,
            "kind": main.map(FileEntry::kind_word), "tools": tools.collect::<Value>(),
            "requires_python": header.and_then(|header| header.requires_python.clone()),
            "dependencies": self.all(|entry| entry.file.header.as_ref().map_or(&[], |header| &header.dependencies)),
            "secrets": self.all(|entry| &entry.settings.secrets.value),
            "uses_hostler": self.uses_hostler(),
            "size": size, "sha256": own.map(|file| file.sha256.clone()),
            "files": self.files.iter().map(file).collect::<Value>(),
            "in_the_way": conflicts.against, "overrides": conflicts.overrides, "hidden_by": conflicts.hidden_by.iter().map(|one| path(one)).collect::<Value>(),
            "served": conflicts.is_served,
            "findings": self.findings.iter().map(|(level, text)| json!({"level": level, "text": text})).collect::<Value>(),
        });
        if let Value::Object(shown) = shown { shown } else { Map::new() }
    }
}

/// A path for JSON, where it must be text.
fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Rows of a key and a value.
#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Rows {
    fn add(&mut self, key: &str, value: &str) {
        self.0.push(vec![format!("  {key}"), plain(value)]);
    }
}

impl Preview {
    pub fn as_text(&self, parcel: &Parcel, staging: &Staging, conflicts: &Conflicts, target: &Path) -> String {
        let main = self.main(parcel, staging);
        let mut rows = Rows::default();
        rows.add("what", &main.map_or_else(|| "no tool".to_owned(), |entry| self.what(entry, parcel)));
        rows.tools(&self.catalogue);
        rows.needs(&self.catalogue, main);
        rows.add("may", &may(self.uses_hostler()));
        for file in &self.files {
            rows.add("file", &format!("{}, {} bytes, sha256 {}", file.at.display(), file.size, file.sha256));
        }
        rows.places(parcel, conflicts, target);
        rows.unasked(&self.catalogue);
        let is_relative = |entry: &FileEntry| entry.file.header.as_ref().is_some_and(|header| header.relative_sources);
        if main.is_some_and(is_relative) && !parcel.is_link {
            rows.add("warning", "its header has paths relative to its folder; --link keeps it there");
        }
        for (level, text) in &self.findings {
            rows.add(if *level == Level::Error { "error" } else { "warning" }, text);
        }
        format!("{}\n{}", plain(&parcel.main.display().to_string()), style::table(&rows.0, None).trim_end())
    }

    fn what(&self, entry: &FileEntry, parcel: &Parcel) -> String {
        let size: u64 = self.files.iter().map(|file| file.size).sum();
        let kind = match entry.file.kind {
            Kind::Internal => "a Python tool file without a header (internal: standard library only)",
            Kind::Executable if entry.serving().has_workers() => {
                "an executable worker; it was run with --schema to read its metadata"
            }
            Kind::Executable => "an executable; it was run with --schema to read its metadata",
            _ => "a Python tool file",
        };
        let size = if parcel.is_link { String::new() } else { format!(", {size} bytes") };
        let about = entry
            .file
            .description
            .as_ref()
            .filter(|_| entry.serving().has_environment())
            .map(|text| format!(": {text}"));
        format!("{kind}{size}{}", about.unwrap_or_default())
    }
}

impl Rows {
    fn tools(&mut self, catalogue: &Catalogue) {
        for tool in &catalogue.tools {
            let about = tool.function().summary.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            self.add("tool", &format!("{} ({}){about}", tool.name, tool.settings.effects.value.word()));
            let facts = tool.settings.policy.as_json();
            let facts: Vec<String> = facts.iter().map(|(key, value)| format!("{key} {}", bare(value))).collect();
            if !facts.is_empty() {
                self.add("", &facts.join(", "));
            }
        }
    }

    /// Requirements of every tool file, with its name where it is not the main one.
    fn needs(&mut self, catalogue: &Catalogue, main: Option<&FileEntry>) {
        for entry in &catalogue.files {
            let is_main = main.is_some_and(|main| main.file.path == entry.file.path);
            let whose = if is_main { String::new() } else { format!(" ({})", entry.file.pack) };
            for (key, value) in needs(entry) {
                self.add(key, &(value + &whose));
            }
        }
    }

    fn places(&mut self, parcel: &Parcel, conflicts: &Conflicts, target: &Path) {
        let verb = if parcel.is_link { "a link to" } else { "a copy of" };
        let place = target.join(&parcel.top);
        self.add("goes to", &format!("{}, {verb} {}", place.display(), parcel.source.display()));
        if parcel.is_link {
            parcel.along().for_each(|piece| self.add("", &format!("with a link to {}", piece.from.display())));
        }
        conflicts.against.iter().for_each(|text| self.add("in the way", text));
        conflicts.overrides.iter().for_each(|place| self.add("in place of", place));
        for path in &conflicts.hidden_by {
            self.add("hidden by", &format!("{}, which is served instead", path.display()));
        }
    }

    fn unasked(&mut self, catalogue: &Catalogue) {
        for entry in &catalogue.files {
            if let Status::SchemaUnknown { reason } = &entry.file.status {
                let text = format!("its arguments are unknown, so calls are not checked: {reason}");
                self.add("warning", &text);
            }
        }
    }
}

fn needs(entry: &FileEntry) -> Vec<(&'static str, String)> {
    let header = entry.file.header.as_ref();
    let python = header.and_then(|header| header.requires_python.as_ref()).map(|range| format!("Python {range}"));
    let all = python.into_iter().chain(header.iter().flat_map(|header| header.dependencies.iter().cloned()));
    let all: Vec<String> = all.collect();
    let secrets = &entry.settings.secrets.value;
    let rows = [("needs", all.join(", ")), ("secrets", secrets.join(", "))];
    rows.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// What nothing prevents it from doing.
fn may(uses_hostler: bool) -> String {
    let own = "do anything that you can: files, network, programs; tools are not sandboxed";
    if uses_hostler {
        format!("{own}; also call other tools, and the client's model, through hostler")
    } else {
        own.to_owned()
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
