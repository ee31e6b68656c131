//! `hostler dev FILE`: watches one file, shows its tools and findings after each change, and takes calls in the same terminal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::builder::styling::{AnsiColor, Style};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::call::{self, Feedback};
use super::options::Dev;
use super::style::Refusal;
use super::{arguments, check, show, status, style};
use crate::call::CallRequest;
use crate::config::{Config, ConfigOptions};
use crate::outcome::Outcome;
use crate::registry::{FileEntry, Tool};
use crate::runtime::Workspace;

/// How often the file is checked for changes.
const LOOK: Duration = Duration::from_millis(200);

const QUIET: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default().bold();

const HELP: &str = "Call a function: NAME key=value …, as with `hostler call`. `status` shows its worker, an empty line the file. Quit: \
     Ctrl-D.";

pub(super) async fn run(args: &Dev, wanted: &ConfigOptions, directory: &Path) -> Result<ExitCode, Refusal> {
    let file = directory.join(&args.file);
    if !file.is_file() {
        let what = format!("{} does not exist", file.display());
        return Err(Refusal::new(what, "`hostler new NAME` writes a tool file to start from"));
    }
    let config = Config::load(wanted, directory)?;
    // Neighbours can be called and imported, as when the file is served.
    let folder = file.parent().unwrap_or(directory).to_owned();
    let wanted = ConfigOptions { tools: vec![folder], ..wanted.clone() };
    let app = Workspace::open(&wanted, directory)?;
    app.ask();
    let signals = style::signals()?;
    let lines = BufReader::new(tokio::io::stdin()).lines();
    let mut session = Session { app, file, config, directory: directory.to_owned(), lines, seen: None };
    tokio::select! {
        () = session.work() => {}
        name = signals.first() => style::note(&format!("{name}: shutting down; send it again to quit at once")),
    }
    session.app.close_hearing(&signals).await;
    Ok(ExitCode::SUCCESS)
}

struct Session {
    app: Workspace,
    file: PathBuf,
    config: Config,
    directory: PathBuf,
    lines: Lines<BufReader<Stdin>>,
    /// Time and size of the file when it was last shown.
    seen: Option<(SystemTime, u64)>,
}

impl Session {
    async fn work(&mut self) {
        style::note(HELP);
        self.look().await;
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                _ = looks.tick() => self.look().await,
                line = self.lines.next_line() => match line {
                    Ok(Some(line)) => self.take(&line).await,
                    _ => return,
                },
            }
        }
    }

    /// Shows the file if it has changed.
    async fn look(&mut self) {
        let now = std::fs::metadata(&self.file).ok().and_then(|data| Some((data.modified().ok()?, data.len())));
        if now != self.seen {
            let first = self.seen.is_none();
            self.seen = now;
            if !first {
                style::answer(&format!("\n{}", style::paint("── changed ──", QUIET, colours())));
            }
            self.show().await;
        }
    }

    async fn show(&self) {
        self.app.calls.registry.refresh_if_changed();
        // An executable has to be asked first.
        self.app.calls.registry.asked().await;
        let surroundings = check::surroundings(self.config.clone());
        let report = crate::check::check(&[], std::slice::from_ref(&self.file), &surroundings);
        let findings = check::as_text(&report, &self.directory);
        let catalogue = self.app.calls.registry.catalogue();
        let mut text = String::new();
        for tool in catalogue.tools.iter().filter(|tool| tool.entry.file.path == self.file) {
            text.push_str(&outline(tool));
        }
        let own = catalogue.files.iter().filter(|entry| entry.file.path == self.file);
        for reason in own.filter_map(|entry| entry.is_unknown()) {
            text.extend(["calls are not checked: ", &reason, "\n"]);
        }
        text.push_str(&findings);
        let is_stale = |entry: &Arc<FileEntry>| entry.file.path == self.file && entry.stale.is_some();
        if catalogue.files.iter().any(is_stale) {
            text.push_str("Until this is fixed, calls go to the last good version, shown above.\n");
        }
        if text.is_empty() {
            "this file offers no tools\n".clone_into(&mut text);
        }
        style::answer(&text);
    }

    async fn take(&mut self, line: &str) {
        let Some(words) = shlex::split(line) else { return style::error("a quote is not closed") };
        let Some((name, rest)) = words.split_first() else { return self.show().await };
        match name.as_str() {
            "help" | "?" => return style::note(HELP),
            "status" if rest.is_empty() => {
                return style::answer(&status::as_text(&self.app.calls.status().await));
            }
            _ => {}
        }
        self.app.calls.registry.refresh_if_changed();
        let catalogue = self.app.calls.registry.catalogue();
        let own =
            catalogue.tools.iter().find(|tool| tool.entry.file.path == self.file && tool.function().name == *name);
        let name = own.map_or_else(|| name.clone(), |tool| tool.name.clone());
        let schema = catalogue.resolve(&name).ok().map(|tool| tool.input_schema());
        let mut gathered = serde_json::Map::new();
        if let Err(error) = arguments::add(&mut gathered, rest, schema) {
            return style::error(&error.to_string());
        }
        let feedback = Arc::new(Feedback::new());
        let listener = Arc::clone(&feedback) as Arc<dyn crate::pool::Listener>;
        let outcome = self.app.calls.call(CallRequest { listener, ..CallRequest::new(name, gathered) }).await;
        feedback.end();
        let times = times(&outcome);
        let _ = call::report(&outcome, call::OutputFormat::Plain, &feedback);
        style::answer(&style::paint(&times, QUIET, colours()));
    }
}

fn colours() -> bool {
    style::colours(&std::io::stdout())
}

/// A tool in a few lines: name, summary, arguments, result.
fn outline(tool: &Tool) -> String {
    let summary = tool.function().summary.as_deref().unwrap_or_default();
    let name = style::paint(&tool.name, NAME, colours());
    let arguments = show::arguments(tool.input_schema(), style::terminal_width());
    let output = tool.promised_schema().map(|promised| format!("  → {}\n", show::returned(promised)));
    format!("{name}  {summary}\n{arguments}{}", output.unwrap_or_default())
}

fn times(outcome: &Outcome) -> String {
    let metadata = &outcome.metadata;
    let start = if metadata.cold { format!(" after a start of {:.0} ms", metadata.start_ms) } else { String::new() };
    let stale = metadata.stale.as_ref().map(|reason| format!(", as its last good version: {reason}"));
    format!("{} ran {:.2} ms{start}{}", outcome.tool, metadata.run_ms, stale.unwrap_or_default())
}
