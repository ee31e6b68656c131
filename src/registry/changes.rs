//! What changes from one catalogue to the next: what the log says, what clients see, and what executables keep meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::catalogue::{Catalogue, RoleKind, Tool};
use super::file_entry::FileEntry;
use crate::config::origin::Diagnosis;
use crate::config::tool::Effects;
use crate::discovery::{JsonSchema, Kind, Role, SourceId, Status, ToolFile};

/// Logs what was added, changed and removed.
pub(super) fn log_changes(before: &Catalogue, after: &Catalogue) {
    let mut known: HashMap<SourceId, &Arc<FileEntry>> =
        before.files.iter().map(|entry| (entry.file.source(), entry)).collect();
    for entry in &after.files {
        let earlier = known.remove(&entry.file.source());
        if earlier.is_none_or(|earlier| state(earlier) != state(entry)) {
            log_entry(entry, earlier.is_none());
            log_left_out(entry);
        }
    }
    for gone in known.into_values() {
        tracing::info!(file = %gone.file.path.display(), "{} was removed", gone.file.pack);
    }
}

/// Logs the number of tools, and the files that cannot be served.
pub(super) fn log_contents(catalogue: &Catalogue) {
    let (files, tools) = (catalogue.files.len(), catalogue.ready().count());
    tracing::info!(files, tools, "serving");
    for entry in &catalogue.files {
        if entry.trouble().is_some() {
            log_entry(entry, true);
        }
        log_left_out(entry);
    }
}

fn log_left_out(entry: &FileEntry) {
    for one in &entry.file.left_out {
        tracing::warn!(file = %entry.file.path.display(), "{} is not served: {}", one.name, one.reason);
    }
}

/// A change of this is logged.
fn state(entry: &FileEntry) -> ([u8; 32], Option<String>) {
    (entry.version, entry.trouble())
}

fn log_entry(entry: &FileEntry, is_new: bool) {
    let (file, pack) = (entry.file.path.display(), &entry.file.pack);
    let tools = match entry.file.functions.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    if let Some(stale) = &entry.stale {
        let reason = &stale.reason;
        return tracing::warn!(%file, "{pack} cannot be served ({reason}); its last good version answers");
    }
    match (entry.broken(), is_new) {
        (Some(reason), _) => tracing::warn!(%file, "{pack} is broken: {reason}"),
        (None, true) => tracing::info!(%file, "{pack} was added: {tools}"),
        (None, false) => tracing::info!(%file, "{pack} changed: {tools}; new calls use the new version"),
    }
}

/// Whether clients see the same list. Compared part by part: the whole list would be megabytes of text.
pub(super) fn look_alike(role: RoleKind, before: &Catalogue, after: &Catalogue) -> bool {
    // All are sorted by name.
    match role {
        RoleKind::Tool => before.offered().map(|tool| listed(tool)).eq(after.offered().map(|tool| listed(tool))),
        RoleKind::Resource => {
            before.ready_resources().map(|one| listed(one)).eq(after.ready_resources().map(|one| listed(one)))
        }
        RoleKind::Prompt => {
            before.ready_prompts().map(|one| listed(one)).eq(after.ready_prompts().map(|one| listed(one)))
        }
    }
}

/// What clients see of a tool.
#[derive(PartialEq)]
struct Listed<'a> {
    name: &'a str,
    description: Option<&'a str>,
    input_schema: &'a str,
    output_schema: Option<&'a str>,
    effects: Effects,
    policy: Map<String, Value>,
    icon: Option<&'a str>,
    role: &'a Role,
}

fn listed(tool: &Tool) -> Listed<'_> {
    Listed {
        name: &tool.name,
        description: tool.description(),
        input_schema: tool.function().input_schema.text(),
        output_schema: tool.advertised().map(JsonSchema::text),
        effects: tool.settings.effects.value,
        policy: tool.settings.policy.as_json(),
        icon: tool.icon.as_deref(),
        role: &tool.function().role,
    }
}

/// An executable that changed keeps its tools until it has answered again, and so does one that overrides another: the list
/// does not lose them for a moment.
pub(super) fn keep_listed(files: &mut [ToolFile], before: &Catalogue) {
    for file in files.iter_mut().filter(|file| file.status == Status::Unasked) {
        let itself = before.entry_of(&file.source());
        let displaced = || before.files.iter().find(|entry| gives_way(&entry.file, file));
        if let Some(earlier) = itself.or_else(displaced).filter(|earlier| earlier.file.is_ready()) {
            file.functions.clone_from(&earlier.file.functions);
            file.description.clone_from(&earlier.file.description);
            file.declared.clone_from(&earlier.file.declared);
        }
    }
}

/// Whether an executable overrides a tool. The tools of a Python file do not have the file's name.
fn gives_way(weaker: &ToolFile, file: &ToolFile) -> bool {
    let is_alike = matches!(weaker.kind, Kind::Executable | Kind::Builtin);
    is_alike && weaker.pack == file.pack && weaker.rank < file.rank
}

/// Whether executables that no longer exist stay in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingExecutables {
    Listed,
    Forgotten,
}

/// Lists executables that no longer exist as missing.
pub(super) fn add_missing(files: &mut Vec<ToolFile>, before: &Catalogue) {
    let was_one = |file: &&ToolFile| file.kind == Kind::Executable && !file.functions.is_empty();
    for file in before.files.iter().map(|entry| &entry.file).filter(was_one) {
        let namesake = files.iter().any(|other| other.source() == file.source() || other.pack == file.pack);
        if !namesake {
            let (what, fix) = match std::fs::metadata(&file.path) {
                Ok(about) if about.is_file() => ("is no longer executable", "run `chmod +x` on it"),
                Ok(_) => ("is no longer a file", "put it back"),
                Err(_) => ("no longer exists", "put it back"),
            };
            let what = format!("{} {what}", file.path.display());
            let reason = Diagnosis::new(what, format!("{fix}, or refresh to remove it from the list"));
            files.push(ToolFile { status: Status::Missing { reason }, ..file.clone() });
        }
    }
}
