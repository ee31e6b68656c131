//! The catalogue as `hostler list` shows it: a row for each function, and for each file that has none because it is broken.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Catalogue, FileEntry, Filter, Registry, RoleKind, Tool};
use crate::discovery::{LeftOut, Warning, server_below};

/// One line of the list.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    /// `pack.function`.
    pub name: String,
    /// Its name for MCP clients.
    pub mcp_name: Option<String>,
    /// The pack.
    pub pack: String,
    /// The kind of its file.
    pub kind: String,
    /// Whether it is a tool, a resource or a prompt.
    pub role: String,
    /// The address of a resource.
    pub uri: Option<String>,
    /// Whether it can be called.
    pub status: String,
    /// What is wrong with the file.
    #[serde(rename = "reason")]
    pub problem: Option<String>,
    /// The first line of its description.
    pub description: Option<String>,
    /// Its file.
    pub origin: String,
    /// Its declared policy.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

/// A list, and what to do if it is empty.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Listing {
    /// Sorted by name.
    pub rows: Vec<Row>,
    /// Why there are none, or none of a tool, and what to do.
    pub advice: Option<String>,
}

impl Registry {
    /// What a filter selects now.
    pub fn listing(&self, filter: &Filter) -> Listing {
        let catalogue = self.catalogue();
        let rows = catalogue.rows(filter);
        let general = || "no tool matches; `hostler list` shows all tools".to_owned();
        let advice = match (rows.is_empty(), filter.is_empty()) {
            (false, true) if catalogue.tools.is_empty() => server_below(&catalogue.below),
            (false, _) => None,
            (true, false) => Some(filter.missed(&catalogue).unwrap_or_else(general)),
            (true, true) => {
                let config = self.config();
                let folders: Vec<String> = config.tools_there().map(|path| path.display().to_string()).collect();
                let place = if folders.is_empty() { "no tools folder".to_owned() } else { folders.join(", ") };
                Some(format!("no tools found ({place}): {}", catalogue.remedy().unwrap_or_default()))
            }
        };
        Listing { rows, advice }
    }
}

impl Catalogue {
    fn rows(&self, filter: &Filter) -> Vec<Row> {
        let functions = self.tools.iter().chain(&self.resources).chain(&self.prompts);
        let mode = filter.mode.as_ref().and_then(|name| self.modes.named(name));
        let mut shown: HashMap<*const FileEntry, (&'static str, Option<String>)> = HashMap::new();
        let tools = functions.filter(|tool| filter.admits(tool, mode)).map(|tool| {
            // Once a file: it looks for what the file imports.
            let (status, problem) = shown.entry(Arc::as_ptr(&tool.entry)).or_insert_with(|| tool.entry.shown()).clone();
            Row { status: status.to_owned(), problem, ..tool_row(tool) }
        });
        // A broken file without known tools is listed as a whole.
        let unnamed = self.files.iter().filter(|_| filter.is_empty());
        let has_reason = |entry: &FileEntry| entry.broken().is_some() || entry.file.not_asked().is_some();
        let unnamed = unnamed.filter(|entry| entry.file.functions.is_empty() && has_reason(entry));
        let left_out = self.files.iter().filter(|_| filter.is_empty());
        let left_out = left_out.flat_map(|entry| entry.file.left_out.iter().map(|one| left_out_row(entry, one)));
        let mut rows: Vec<Row> = tools.chain(unnamed.map(|entry| file_row(entry))).chain(left_out).collect();
        if filter.is_empty() {
            rows.extend(self.files.iter().flat_map(|entry| unserved_rows(entry)));
        }
        rows.sort_by(|left, right| left.name.cmp(&right.name));
        rows
    }
}

/// Classes that are not served, and a file that offers nothing and helps no other.
fn unserved_rows(entry: &FileEntry) -> Vec<Row> {
    let is_empty = entry.file.functions.is_empty() && entry.file.left_out.is_empty() && entry.broken().is_none();
    let warnings = entry.file.warnings.iter();
    // A server of several files has many of them, which `check` names.
    let first_maker = warnings.clone().find(|one| ["inner-tools", "low-level-server"].contains(&&*one.rule));
    let is_first = |one: &Warning| first_maker.is_some_and(|first| std::ptr::eq(first, one));
    let shown = warnings.filter(|one| one.rule == "class" || is_empty && (one.rule == "no-tools" || is_first(one)));
    let place = |one: &Warning| if one.line == 0 { String::new() } else { format!("line {}: ", one.line) };
    let row = |one: &Warning| Row {
        status: "not served".to_owned(),
        problem: Some(format!("{}{}", place(one), one.reason)),
        ..file_row(entry)
    };
    shown.map(row).collect()
}

fn tool_row(tool: &Tool) -> Row {
    Row {
        name: tool.name.clone(),
        mcp_name: match tool.role_kind() {
            RoleKind::Tool => Some(tool.mcp_name.clone()),
            RoleKind::Resource => None,
            RoleKind::Prompt => Some(tool.prompt_name().to_owned()),
        },
        role: tool.role_kind().word().to_owned(),
        uri: tool.uri().map(str::to_owned),
        description: tool.function().summary.clone(),
        facts: tool.settings.policy.as_json(),
        ..file_row(&tool.entry)
    }
}

/// A function that is not a tool because of its name.
fn left_out_row(entry: &FileEntry, one: &LeftOut) -> Row {
    let problem =
        Some(if one.line > 0 { format!("line {}: {}", one.line, one.reason) } else { one.reason.to_string() });
    Row { name: one.name.clone(), status: "broken".to_owned(), problem, ..file_row(entry) }
}

fn file_row(entry: &FileEntry) -> Row {
    Row {
        name: entry.file.pack.clone(),
        mcp_name: None,
        pack: entry.file.pack.clone(),
        kind: entry.kind_word().to_owned(),
        role: RoleKind::Tool.word().to_owned(),
        uri: None,
        status: entry.status().to_owned(),
        problem: entry.trouble().or_else(|| entry.is_unknown()),
        description: entry.file.description.clone(),
        origin: entry.file.path.display().to_string(),
        facts: Map::new(),
    }
}
