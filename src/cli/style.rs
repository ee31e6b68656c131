//! How things look: colour and tables on a terminal, plain text in a pipe.

use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};

use crate::process::Signals;
use crate::telemetry;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Whoever has read nothing for so long is not waited for.
const PAUSE: Duration = Duration::from_millis(100);

/// Says that something went wrong.
pub(super) fn error(message: &str) {
    say("error", ERROR, message);
}

/// Says that something is worth knowing.
pub(super) fn warn(message: &str) {
    say("warning", WARNING, message);
}

/// Says something that is neither the answer nor a complaint.
pub(super) fn note(message: &str) {
    talk(&format!("{}\n", plain(message)));
}

/// A text that others may have written, without what moves a terminal's cursor or turns lines around: nothing may paint over
/// what is said. Its lines stay lines.
pub(super) fn plain(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns(c);
    text.replace("\r\n", "\n").chars().map(|c| if is_hidden(c) { '·' } else { c }).collect()
}

fn say(word: &str, style: Style, message: &str) {
    let painted = paint(word, style, colours(&std::io::stderr()));
    talk(&format!("{painted}: {}\n", plain(message)));
}

/// Says it on standard error, in order with the log, and waits a moment: who sees both streams sees it before what comes
/// next on the other one. Not for what others wait for meanwhile.
pub(super) fn talk(text: &str) {
    telemetry::say(text);
    telemetry::flush(PAUSE);
}

/// Whether a stream is looked at by a person who wants colours.
pub(super) fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A word in a style.
pub(super) fn paint(text: &str, style: Style, colours: bool) -> String {
    if colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

/// Whether an answer did not get out.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether an answer could not be written, to a full disk for one.
pub(super) fn answer_was_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Prints an answer as it is, without a line's end of its own.
pub(super) fn answer_bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

fn written(result: std::io::Result<()>) {
    match result {
        Err(reason) if reason.kind() != ErrorKind::BrokenPipe => {
            LOST.store(true, Ordering::Relaxed);
            error(&format!("the answer could not be written to standard output: {reason}"));
        }
        _ => {}
    }
}

/// Prints an answer. A reader that has gone away ends the program quietly, as a pipe's reader may.
pub(super) fn answer(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let whole = stdout
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { stdout.write_all(b"\n") });
    written(whole.and_then(|()| stdout.flush()));
}

/// Rows in columns; the last column is cut to the width of the terminal, or whole in a pipe.
pub(super) fn table(rows: &[Vec<String>], width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let length = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
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
/// hostler or the machine.
pub(super) const SYSTEM: u8 = 70;
/// Cancelled by the person.
pub(super) const CANCELLED: u8 = 130;

/// Says what went wrong and gives the status.
pub(super) fn complain(status: u8, message: &str) -> ExitCode {
    error(message);
    ExitCode::from(status)
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Yes,
    No,
    /// There is no terminal to ask at.
    NoTerminal,
}

/// Asks for a yes, unless it was given already.
pub(super) async fn ask(question: &str, is_given: bool) -> Consent {
    if is_given {
        return Consent::Yes;
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Consent::NoTerminal;
    }
    talk(&format!("{question} [y/N] "));
    // On a thread, so that signals are handled meanwhile.
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    match answer.await {
        Ok(Ok(line)) if ["y", "yes"].contains(&line.trim().to_lowercase().as_str()) => Consent::Yes,
        _ => Consent::No,
    }
}

/// Runs `work` until a signal cancels it where it waits; what it holds is dropped in order.
pub(super) async fn unless_interrupted(work: impl Future<Output = ExitCode>) -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return complain(SYSTEM, &format!("cannot listen for signals: {error}")),
    };
    tokio::select! {
        code = work => code,
        name = signals.first() => complain(CANCELLED, &format!("nothing was changed: interrupted by {name}")),
    }
}
