//! What is to be installed and what it may do, and the same for programs.

use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::digest::digest;
use super::parcel::Parcel;
use super::staging::Staging;
use super::standing::Standing;
use crate::check::{Level, Report, Surroundings, check};
use crate::registry::{Catalogue, FileEntry};

/// A file that is brought along, as it was brought.
pub(super) struct Brought {
    pub at: PathBuf,
    pub from: PathBuf,
    pub size: u64,
    pub sha256: String,
}

/// All that can be said of it before it is installed.
pub(super) struct Inspected {
    pub catalogue: Arc<Catalogue>,
    pub files: Vec<Brought>,
    /// What `check` finds: how bad, where, what, and what to do.
    pub findings: Vec<(Level, String)>,
}

impl Inspected {
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
                let cannot = |error| format!("{} cannot be read: {error}", piece.from.display());
                let (size, sha256) = digest(&path).map_err(cannot)?;
                files.push(Brought { at: piece.at.clone(), from: piece.from.clone(), size, sha256 });
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

    /// Why it cannot be installed, whatever anybody says.
    pub fn refusal(&self, parcel: &Parcel) -> Option<String> {
        let name = parcel.source.display();
        if self.catalogue.files.is_empty() {
            return Some(format!(
                "{name} would never be served: names that begin with `_`, `.` or `test_` are those of helpers and tests; \
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

    /// What the tool files that come together say of something, once each.
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
        standing: &Standing,
        target: &Path,
    ) -> Map<String, Value> {
        let main = self.main(parcel, staging);
        let header = main.and_then(|entry| entry.file.header.as_ref());
        let tools = self.catalogue.tools.iter().map(|tool| {
            let mut said = json!({
                "name": tool.name, "mcp_name": tool.mcp_name, "description": tool.description(),
                "status": tool.entry.status(), "effects": tool.settings.effects.value.word(),
                "input_schema": tool.input_schema(),
            });
            if let Value::Object(said) = &mut said {
                said.extend(tool.settings.policy.as_json());
            }
            said
        });
        let file = |file: &Brought| json!({"path": path(&file.at), "from": path(&file.from), "size": file.size, "sha256": file.sha256});
        let size: u64 = self.files.iter().map(|file| file.size).sum();
        let own = self.files.iter().find(|file| file.at == parcel.main).or(self.files.last());
        let said = json!({
            "path": path(&target.join(&parcel.top)), "source": path(&parcel.source), "link": parcel.is_link,
            "kind": main.map(FileEntry::kind_word), "tools": tools.collect::<Value>(),
            "requires_python": header.and_then(|header| header.requires_python.clone()),
            "dependencies": self.all(|entry| entry.file.header.as_ref().map_or(&[], |header| &header.dependencies)),
            "secrets": self.all(|entry| &entry.settings.secrets.value),
            "uses_hostler": self.uses_hostler(),
            "size": size, "sha256": own.map(|file| file.sha256.clone()),
            "files": self.files.iter().map(file).collect::<Value>(),
            "in_the_way": standing.against, "overrides": standing.overrides, "hidden_by": standing.hidden_by.iter().map(|one| path(one)).collect::<Value>(),
            "served": standing.is_served,
            "findings": self.findings.iter().map(|(level, text)| json!({"level": level, "text": text})).collect::<Value>(),
        });
        if let Value::Object(said) = said { said } else { Map::new() }
    }
}

/// A path for JSON, which knows no bytes that are no text.
fn path(path: &Path) -> String {
    path.display().to_string()
}
