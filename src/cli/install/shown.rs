//! What is to be installed, as a person reads it. Everything in it was written by somebody else.

use std::path::Path;

use serde_json::Value;

use super::inspected::Inspected;
use super::parcel::Parcel;
use super::staging::Staging;
use super::standing::Standing;
use crate::check::Level;
use crate::cli::style;
use crate::discovery::{Kind, Status};
use crate::registry::{Catalogue, FileEntry};

/// A table that grows: a word for what a row is about, and what is said.
#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Rows {
    fn add(&mut self, key: &str, value: &str) {
        self.0.push(vec![format!("  {key}"), plain(value)]);
    }
}

impl Inspected {
    pub fn as_text(&self, parcel: &Parcel, staging: &Staging, standing: &Standing, target: &Path) -> String {
        let main = self.main(parcel, staging);
        let mut rows = Rows::default();
        rows.add("what", &main.map_or_else(|| "nothing that is served".to_owned(), |entry| self.what(entry, parcel)));
        rows.tools(&self.catalogue);
        rows.needs(&self.catalogue, main);
        rows.add("may", &may(self.uses_hostler()));
        for file in &self.files {
            rows.add("file", &format!("{}, {} bytes, sha256 {}", file.at.display(), file.size, file.sha256));
        }
        rows.places(parcel, standing, target);
        rows.unasked(&self.catalogue);
        let is_relative = |entry: &FileEntry| entry.file.header.as_ref().is_some_and(|header| header.relative_sources);
        if main.is_some_and(is_relative) && !parcel.is_link {
            rows.add("warning", "its header names places relative to where it lies now; --link leaves it there");
        }
        for (level, text) in &self.findings {
            rows.add(if *level == Level::Error { "error" } else { "warning" }, text);
        }
        format!("{}\n{}", plain(&parcel.main.display().to_string()), style::table(&rows.0, None).trim_end())
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

    /// Of every tool file that comes along, with its name where it is not the main one.
    fn needs(&mut self, catalogue: &Catalogue, main: Option<&FileEntry>) {
        for entry in &catalogue.files {
            let is_main = main.is_some_and(|main| main.file.path == entry.file.path);
            let whose = if is_main { String::new() } else { format!(" ({})", entry.file.pack) };
            for (key, value) in needs(entry) {
                self.add(key, &(value + &whose));
            }
        }
    }

    fn places(&mut self, parcel: &Parcel, standing: &Standing, target: &Path) {
        let verb = if parcel.is_link { "a link to" } else { "a copy of" };
        let place = target.join(&parcel.top);
        self.add("goes to", &format!("{}, {verb} {}", place.display(), parcel.source.display()));
        if parcel.is_link {
            parcel.along().for_each(|piece| self.add("", &format!("with a link to {}", piece.from.display())));
        }
        standing.against.iter().for_each(|text| self.add("in the way", text));
        standing.overrides.iter().for_each(|place| self.add("in place of", place));
        for path in &standing.hidden_by {
            self.add("hidden by", &format!("{}, which is served instead", path.display()));
        }
    }

    fn unasked(&mut self, catalogue: &Catalogue) {
        for entry in &catalogue.files {
            if let Status::SchemaUnknown { reason } = &entry.file.status {
                let words = format!("what it takes is not known, so it is called unchecked: {reason}");
                self.add("warning", &words);
            }
        }
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
