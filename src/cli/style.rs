//! The terminal: answers on standard output, messages on standard error, colours, tables, exit statuses, consent.

use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::{ConfigError, Environment};
use crate::outcome::Code;
use crate::process::{Signals, limit_behind};
use crate::telemetry;
use crate::threads::blocking;
use crate::words::on_one_line;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// How long a message waits for a slow reader of standard error.
const PAUSE: Duration = Duration::from_millis(100);

/// Prints an error.
pub(super) fn error(message: &str) {
    say("error", ERROR, message);
}

/// Prints a warning.
pub(super) fn warn(message: &str) {
    say("warning", WARNING, message);
}

/// Prints a note.
pub(super) fn note(message: &str) {
    talk(&format!("{}\n", plain(message)));
}

/// A foreign text without characters that could overwrite or disguise what is printed. Its lines stay lines.
pub(super) fn plain(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(|c| if is_hidden(c) { '·' } else { c }).collect()
}

/// Controls, line and paragraph separators, and what Unicode calls format characters: direction marks, invisible ones, tags. Those that
/// scripts are written with are shown: joiners, the signs before Arabic, Syriac and Kaithi numbers, the Mongolian vowel separator, the
/// joiners of hieroglyphs.
fn is_hidden(c: char) -> bool {
    let is_format = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}');
    c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}' | '\u{2029}') || is_format
}

fn say(word: &str, style: Style, message: &str) {
    let painted = paint(word, style, colours(&std::io::stderr()));
    talk(&format!("{painted}: {}\n", plain(message)));
}

/// Writes to standard error, in order with the log, and waits a moment, so that it appears before what follows on standard output.
pub(super) fn talk(text: &str) {
    telemetry::say(text);
    telemetry::flush(PAUSE);
}

/// Whether `NO_COLOR` asks for plain text.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// Takes from the environment whether colours are wanted.
pub(super) fn heed(environment: &Environment) {
    PLAIN.store(environment.text("NO_COLOR").is_some(), Ordering::Relaxed);
}

/// Whether a stream is a terminal that wants colours.
pub(super) fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !PLAIN.load(Ordering::Relaxed)
}

/// A text in a style.
pub(super) fn paint(text: &str, style: Style, colours: bool) -> String {
    if colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

/// Whether an answer was lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether an answer could not be written, for example to a full disk.
pub(super) fn answer_was_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Prints an answer without adding a line end. A closed pipe is not an error.
pub(super) fn answer_bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(reason) if reason.kind() != ErrorKind::BrokenPipe => {
            LOST.store(true, Ordering::Relaxed);
            error(&format!("cannot write to standard output: {reason}"));
        }
        _ => {}
    }
}

/// Prints a part of what goes on. Whether it is still read.
pub(super) fn part(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// Prints an answer as a line.
pub(super) fn answer(text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    answer_bytes(format!("{text}{end}").as_bytes());
}

/// Clears the terminal before the next answer; in a pipe, answers follow each other.
pub(super) fn clear() {
    if std::io::stdout().is_terminal() {
        answer_bytes(b"\x1b[H\x1b[2J");
    }
}

/// Prints an answer for programs.
pub(super) fn answer_json(value: &impl Serialize) {
    answer(&serde_json::to_string_pretty(value).unwrap_or_default());
}

/// Whether standard output is read. A terminal, a file and a pipe with a reader are.
pub(super) fn is_read() -> bool {
    let mut asked = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    !poll(&mut asked, Some(&Timespec::default())).is_ok_and(|_| asked[0].revents().intersects(gone))
}

/// A text of at most this many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    fit(text, Some(most))
}

/// The end of a text that is longer than this.
pub(super) fn end_of(text: &str, most: Option<usize>) -> String {
    let length = text.chars().count();
    match most {
        Some(most) if length > most => ['…'].into_iter().chain(text.chars().skip(length - most + 1)).collect(),
        _ => text.to_owned(),
    }
}

/// Rows in columns; the last column is cut to the width of the terminal, or whole in a pipe. A cell is a line of plain text, whatever
/// it was made from.
pub(super) fn table(rows: &[Vec<String>], width: Option<usize>) -> String {
    // Spaces within a line are meant.
    let cell_of = |text: &str| if text.contains('\n') { on_one_line(text) } else { text.to_owned() };
    let cells = |row: &Vec<String>| row.iter().map(|cell| cell_of(&plain(cell))).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let length = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if column + 1 < row.len() {
                line.extend(std::iter::repeat_n(' ', widths[column].saturating_sub(length(cell)) + 2));
            }
        }
        text.push_str(&fit(line.trim_end(), width));
        text.push('\n');
    }
    text
}

fn fit(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

/// The terminal's width, when standard output is one.
pub(super) fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Usage, configuration, invalid parameters.
pub(super) const USAGE: u8 = 2;
/// A fault of hostler or the machine.
pub(super) const SYSTEM: u8 = 70;
/// Cancelled by the user.
pub(super) const CANCELLED: u8 = 130;

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("{what}{}{}", after(": ", source.as_ref()), after("; ", Some(fix).filter(|fix| !fix.is_empty())))]
pub(super) struct Refusal {
    /// The exit status.
    pub status: u8,
    pub what: String,
    /// What to do next.
    pub fix: String,
    pub source: Option<std::io::Error>,
}

impl Refusal {
    pub fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: USAGE, what: what.into(), fix: fix.into(), source: None }
    }

    /// Something that the system refused.
    pub fn io(what: impl Into<String>, error: std::io::Error) -> Self {
        Self { source: Some(error), ..Self::new(what, "") }
    }

    /// Something without which hostler cannot work here.
    pub fn system(what: impl Into<String>, error: std::io::Error) -> Self {
        let fix = limit_behind(&error).map(|limit| limit.to_string()).unwrap_or_default();
        Self { status: SYSTEM, fix, ..Self::io(what, error) }
    }

    /// No tool has that name.
    pub fn not_found(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Code::ToolNotFound.exit_status(), ..Self::new(what, fix) }
    }

    pub fn cancelled(what: impl Into<String>) -> Self {
        Self { status: CANCELLED, ..Self::new(what, "") }
    }

    /// Prints it and returns its exit status.
    pub fn complain(&self) -> ExitCode {
        complain(self.status, &self.to_string())
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Unreadable { path, error, fix } => Self { fix: fix.to_owned(), ..Self::io(path, error) },
            ConfigError::Problems(_) => Self::new(error.to_string(), ""),
        }
    }
}

fn after(separator: &str, text: Option<impl std::fmt::Display>) -> String {
    text.map(|text| format!("{separator}{text}")).unwrap_or_default()
}

/// Prints an error and returns the exit status.
pub(super) fn complain(status: u8, message: &str) -> ExitCode {
    error(message);
    ExitCode::from(status)
}

/// Asks for a yes, unless it was given already. `undone` says what did not happen without it.
pub(super) async fn consent(question: &str, is_given: bool, undone: &str) -> Result<(), Refusal> {
    if is_given {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Refusal::new(format!("{undone}: not a terminal"), "pass --yes to confirm"));
    }
    match line(&format!("{question} [y/N] "), undone).await? {
        Some(line) if ["y", "yes"].contains(&line.trim().to_lowercase().as_str()) => Ok(()),
        _ => Err(Refusal::cancelled(undone)),
    }
}

/// Asks at a terminal for a line; `None` if it ends instead. `undone` says what did not happen where that cannot be asked.
pub(super) async fn line(question: &str, undone: &str) -> Result<Option<String>, Refusal> {
    talk(question);
    // On a thread, so that signals are handled meanwhile.
    let answer = blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|read| (read > 0).then_some(line))
    });
    Ok(answer.map_err(|error| Refusal::system(undone, error))?.await.unwrap_or_default())
}

/// Prints what a command showed and did, as JSON or as the place it concerns.
pub(super) fn report(is_json: bool, mut shown: Map<String, Value>, done: &str, outcome: Result<&Path, &Refusal>) {
    if is_json {
        shown.insert(done.to_owned(), outcome.is_ok().into());
        shown.insert("reason".to_owned(), outcome.err().map(ToString::to_string).into());
        answer_json(&Value::Object(shown));
    } else if let Ok(place) = outcome {
        answer(&place.display().to_string());
    }
}

/// Runs `work` until a signal cancels it where it waits; what it holds is dropped in order.
pub(super) async fn unless_interrupted(work: impl Future<Output = Result<(), Refusal>>) -> Result<ExitCode, Refusal> {
    let signals = signals()?;
    tokio::select! {
        done = work => done.map(|()| ExitCode::SUCCESS),
        name = signals.first() => Err(Refusal::cancelled(format!("nothing was changed: interrupted by {name}"))),
    }
}

/// Listens for signals, which otherwise end the program.
pub(super) fn signals() -> Result<Signals, Refusal> {
    Signals::listen().map_err(|error| Refusal::system("cannot listen for signals", error))
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn hidden_characters_are_shown_as_dots() {
        let of_scripts = regex::Regex::new(
            r"[\n\t\u{200C}\u{200D}\u{180E}\u{600}-\u{605}\u{6DD}\u{70F}\u{890}\u{891}\u{8E2}\u{110BD}\u{110CD}\u{13430}-\u{1343F}]",
        )
        .unwrap();
        let hidden = regex::Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{E0000}-\u{E007F}]").unwrap();
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            if hidden.is_match(&text) {
                let shown = if of_scripts.is_match(&text) { text.as_str() } else { "·" };
                assert_eq!(plain(&text), shown, "{:?}", c.escape_unicode().to_string());
            }
        }
        // Two lines, an emoji of a family, an emoji with a variation selector, Persian with a non-joiner, Hindi with a joiner.
        let ordinary = "a\tb\nc 👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} می\u{200c}خواهم क्\u{200d}ष 葛\u{e0100}";
        assert_eq!(plain(ordinary), ordinary);
        assert_eq!(plain("a\r\nb\rc"), "a\nb·c");
    }

    #[test]
    fn a_configuration_that_cannot_be_read_keeps_the_reason() {
        let unreadable = || ConfigError::Unreadable {
            path: "a".to_owned(),
            error: ErrorKind::IsADirectory.into(),
            fix: "name a file",
        };
        let refusal = Refusal::from(unreadable());
        assert_eq!(refusal.to_string(), unreadable().to_string());
        let source = refusal.source().and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(source.map(std::io::Error::kind), Some(ErrorKind::IsADirectory));
    }
}
