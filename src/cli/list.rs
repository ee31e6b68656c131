//! `hostler list`

use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use serde_json::{Map, Value};

use super::options::List;
use super::style;
use crate::discovery::LeftOut;
use crate::registry::{FileEntry, Filter, RoleKind, Tool};
use crate::runtime::Workspace;

const BROKEN: Style = AnsiColor::Red.on_default();

/// One line of the list.
#[derive(Serialize)]
struct Row {
    name: String,
    mcp_name: Option<String>,
    pack: String,
    kind: &'static str,
    /// Whether it is a tool, a resource or a prompt.
    role: &'static str,
    /// The address of a resource.
    uri: Option<String>,
    status: &'static str,
    /// What is wrong with the file.
    #[serde(rename = "reason")]
    problem: Option<String>,
    description: Option<String>,
    origin: String,
    /// Its declared policy.
    #[serde(flatten)]
    facts: Map<String, Value>,
}

pub(super) async fn run(app: &Workspace, args: &List) -> ExitCode {
    if args.refresh {
        style::note(&app.calls.refresh().await.to_string());
    } else {
        app.calls.registry.asked().await;
    }
    let rows = rows(app, &args.filter());
    if args.json {
        style::answer_json(&rows);
    } else if rows.is_empty() && !args.filter().is_empty() {
        let unknown = args.filter().missed(&app.calls.registry.catalogue());
        let general = || "no tool matches; `hostler list` shows all tools".to_owned();
        style::warn(&unknown.unwrap_or_else(general));
    } else if rows.is_empty() {
        let folders: Vec<String> = app.config().tools_there().map(|path| path.display().to_string()).collect();
        let place = if folders.is_empty() { "no tools folder".to_owned() } else { folders.join(", ") };
        let remedy = app.calls.registry.catalogue().remedy().unwrap_or_default();
        style::warn(&format!("no tools found ({place}): {remedy}"));
    } else {
        style::answer(&as_text(&rows));
    }
    ExitCode::SUCCESS
}

impl List {
    fn filter(&self) -> Filter {
        let (category, tag, pack) = (self.category.clone(), self.tag.clone(), self.pack.clone());
        Filter { mode: self.mode, category, tag, pack, kind: self.kind.clone() }
    }
}

fn rows(app: &Workspace, filter: &Filter) -> Vec<Row> {
    let catalogue = app.calls.registry.catalogue();
    let functions = catalogue.tools.iter().chain(&catalogue.resources).chain(&catalogue.prompts);
    let tools = functions.filter(|tool| filter.admits(tool)).map(|tool| tool_row(tool));
    // A broken file without known tools is listed as a whole.
    let unnamed = catalogue.files.iter().filter(|_| filter.is_empty());
    let unnamed = unnamed.filter(|entry| entry.file.functions.is_empty() && entry.broken().is_some());
    let left_out = catalogue.files.iter().filter(|_| filter.is_empty());
    let left_out = left_out.flat_map(|entry| entry.file.left_out.iter().map(|one| left_out_row(entry, one)));
    let mut rows: Vec<Row> = tools.chain(unnamed.map(|entry| file_row(entry))).chain(left_out).collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    rows
}

fn tool_row(tool: &Tool) -> Row {
    Row {
        name: tool.name.clone(),
        mcp_name: match tool.role_kind() {
            RoleKind::Tool => Some(tool.mcp_name.clone()),
            RoleKind::Resource => None,
            RoleKind::Prompt => Some(tool.prompt_name().to_owned()),
        },
        role: tool.role_kind().word(),
        uri: tool.uri().map(str::to_owned),
        description: tool.function().summary.clone(),
        facts: tool.settings.policy.as_json(),
        ..file_row(&tool.entry)
    }
}

/// A function that is not a tool because of its name.
fn left_out_row(entry: &FileEntry, one: &LeftOut) -> Row {
    let problem = Some(format!("line {}: {}", one.line, one.reason));
    Row { name: one.name.clone(), status: "broken", problem, ..file_row(entry) }
}

fn file_row(entry: &FileEntry) -> Row {
    Row {
        name: entry.file.pack.clone(),
        mcp_name: None,
        pack: entry.file.pack.clone(),
        kind: entry.kind_word(),
        role: RoleKind::Tool.word(),
        uri: None,
        status: entry.status(),
        problem: entry.trouble().or_else(|| entry.is_unknown()),
        description: entry.file.description.clone(),
        origin: entry.file.path.display().to_string(),
        facts: Map::new(),
    }
}

fn as_text(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let text = match &row.problem {
            Some(reason) => format!("{}: {reason}", row.origin),
            None => row.uri.iter().chain(&row.description).cloned().collect::<Vec<_>>().join("  "),
        };
        let kind = if row.role == RoleKind::Tool.word() { row.kind } else { row.role };
        vec![style::plain(&row.name), kind.to_owned(), row.status.to_owned(), style::plain(&text)]
    });
    let text = style::table(&cells.collect::<Vec<_>>(), style::terminal_width());
    if !style::colours(&std::io::stdout()) {
        return text;
    }
    let lines = text.lines().zip(rows).map(|(line, row)| {
        let painted = if row.problem.is_some() { style::paint(line, BROKEN, true) } else { line.to_owned() };
        painted + "\n"
    });
    lines.collect()
}
