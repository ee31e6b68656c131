//! What is to be installed, and what it may do, for people and for programs. Everything in it was written by somebody else.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::parcel::Parcel;
use super::staging::Staging;
use super::standing::Standing;
use crate::check::{Level, Report, Surroundings, check};
use crate::cli::style;
use crate::discovery::{Kind, Status};
use crate::registry::{Catalogue, FileEntry};

/// A file that is brought along, as it was brought.
struct Brought {
    at: PathBuf,
    from: PathBuf,
    size: u64,
    sha256: String,
}

/// All that can be said of it before it is installed.
pub(super) struct Inspected {
    pub catalogue: Arc<Catalogue>,
    files: Vec<Brought>,
    /// What `check` finds: how bad, where, what, and what to do.
    findings: Vec<(Level, String)>,
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

    fn main<'a>(&'a self, parcel: &Parcel, staging: &Staging) -> Option<&'a FileEntry> {
        let path = staging.folder.join(&parcel.main);
        let found = self.catalogue.files.iter().find(|entry| entry.file.path == path);
        found.or(self.catalogue.files.first()).map(Arc::as_ref)
    }

    pub fn as_text(&self, parcel: &Parcel, staging: &Staging, standing: &Standing, target: &Path) -> String {
        let mut rows: Vec<[String; 2]> = Vec::new();
        let mut row = |key: &str, value: String| rows.push([key.to_owned(), plain(&value)]);
        let main = self.main(parcel, staging);
        row("what", main.map_or_else(|| "nothing that is served".to_owned(), |entry| self.what(entry, parcel)));
        for tool in &self.catalogue.tools {
            let about = tool.function().summary.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            row("tool", format!("{} ({}){about}", tool.name, tool.settings.effects.value.word()));
            let facts = tool.settings.facts.as_json();
            let facts: Vec<String> = facts.iter().map(|(key, value)| format!("{key} {}", bare(value))).collect();
            if !facts.is_empty() {
                row("", facts.join(", "));
            }
        }
        for entry in &self.catalogue.files {
            let whose = if main.is_some_and(|main| main.file.path == entry.file.path) {
                String::new()
            } else {
                format!(" ({})", entry.file.pack)
            };
            for (key, value) in needs(entry) {
                row(key, value + &whose);
            }
        }
        row("may", may(self.uses_hostler()));
        for file in &self.files {
            row("file", format!("{}, {} bytes, sha256 {}", file.at.display(), file.size, file.sha256));
        }
        let verb = if parcel.is_link { "a link to" } else { "a copy of" };
        row("goes to", format!("{}, {verb} {}", target.join(&parcel.top).display(), parcel.source.display()));
        if parcel.is_link {
            parcel.along().for_each(|piece| row("", format!("with a link to {}", piece.from.display())));
        }
        standing.against.iter().for_each(|text| row("in the way", text.clone()));
        standing.overrides.iter().for_each(|place| row("in place of", place.clone()));
        standing
            .hidden_by
            .iter()
            .for_each(|path| row("hidden by", format!("{}, which is served instead", path.display())));
        for entry in &self.catalogue.files {
            if let Status::SchemaUnknown { reason } = &entry.file.status {
                row("warning", format!("what it takes is not known, so it is called unchecked: {reason}"));
            }
        }
        if main.and_then(|entry| entry.file.header.as_ref()).is_some_and(|header| header.relative_sources)
            && !parcel.is_link
        {
            row("warning", "its header names places relative to where it lies now; --link leaves it there".to_owned());
        }
        for (level, text) in &self.findings {
            row(if *level == Level::Error { "error" } else { "warning" }, text.clone());
        }
        let rows: Vec<Vec<String>> = rows.into_iter().map(|[key, value]| vec![format!("  {key}"), value]).collect();
        format!("{}\n{}", plain(&parcel.main.display().to_string()), style::table(&rows, None).trim_end())
    }

    fn what(&self, entry: &FileEntry, parcel: &Parcel) -> String {
        let size: u64 = self.files.iter().map(|file| file.size).sum();
        let kind = match entry.file.kind {
            Kind::Internal => "a Python tool file without a header (internal: the standard library only)",
            Kind::Executable if entry.serving().has_workers() => {
                "an executable that stays as a worker; it was run with --schema to learn what it is"
            }
            Kind::Executable => "an executable; it was run with --schema to learn what it is",
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

    fn uses_hostler(&self) -> bool {
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
                said.extend(tool.settings.facts.as_json());
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

fn needs(entry: &FileEntry) -> Vec<(&'static str, String)> {
    let header = entry.file.header.as_ref();
    let python = header.and_then(|header| header.requires_python.as_ref()).map(|wish| format!("Python {wish}"));
    let all = python.into_iter().chain(header.iter().flat_map(|header| header.dependencies.iter().cloned()));
    let all: Vec<String> = all.collect();
    let secrets = &entry.settings.secrets.value;
    let rows = [("needs", all.join(", ")), ("secrets", secrets.join(", "))];
    rows.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// What nobody keeps it from.
fn may(uses_hostler: bool) -> String {
    let own = "do whatever you may: files, network, programs; there are no walls around tools yet";
    if uses_hostler {
        format!("{own}; and use hostler: call other tools and the client's model")
    } else {
        own.to_owned()
    }
}

/// A path for JSON, which knows no bytes that are no text.
fn path(path: &Path) -> String {
    path.display().to_string()
}

/// The size of a file and what tells it from any other, whatever its length.
fn digest(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 16]);
    let (mut hash, mut size) = (Sha256::new(), 0);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
        size += read as u64;
    }
    Ok((size, HEXLOWER.encode(&hash.finalize())))
}

fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(bare).collect::<Vec<_>>().join("|"),
        other => other.to_string(),
    }
}

/// A foreign text on one line.
fn plain(text: &str) -> String {
    style::plain(text).replace(['\n', '\t'], " ")
}
