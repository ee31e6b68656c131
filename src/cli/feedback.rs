//! Feedback during a call: a spinner with its progress, and the tool's own output.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use super::style;
use crate::pool::Listener;
use crate::protocol::ProgressNote;
use crate::worker::LogLine;

/// Feedback on standard error: a spinner on a terminal, lines in a pipe.
pub(super) struct Feedback {
    bar: ProgressBar,
    terminal: bool,
    /// The end of the tool's output, so that it is not printed twice.
    shown: Mutex<String>,
}

/// More than the last output that a fault repeats.
const KEPT: usize = 64 * 1024;

impl Feedback {
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {wide_msg} {elapsed:.dim}") {
            bar.set_style(style);
        }
        Self { bar, terminal, shown: Mutex::default() }
    }

    /// Whether every line of a text was shown during the call.
    pub fn has_shown(&self, text: &str) -> bool {
        let shown = self.shown.lock();
        text.lines().all(|line| shown.contains(line.trim()))
    }

    /// Removes the spinner, and ends an open line of the tool's output.
    pub fn end(&self) {
        self.bar.finish_and_clear();
        let shown = self.shown.lock();
        if !shown.is_empty() && !shown.ends_with('\n') {
            style::talk("\n");
        }
    }
}

impl Listener for Feedback {
    fn note(&self, text: &str) {
        if self.terminal {
            self.bar.enable_steady_tick(Duration::from_millis(100));
            self.bar.set_message(text.to_owned());
        } else if !text.starts_with("starting ") && !text.ends_with(" is ready") {
            style::note(text);
        }
    }

    fn progress(&self, note: &ProgressNote) {
        let share = note.total.map(|total| format!("{}/{total} ", note.progress)).unwrap_or_default();
        let text = format!("{share}{}", note.message.as_deref().unwrap_or_default());
        if self.terminal {
            self.bar.enable_steady_tick(Duration::from_millis(100));
            self.bar.set_message(text);
        }
    }

    fn output(&self, _stream: &str, text: &str) {
        let mut shown = self.shown.lock();
        shown.push_str(text);
        if shown.len() > 2 * KEPT {
            let end = (shown.len() - KEPT..shown.len()).find(|at| shown.is_char_boundary(*at)).unwrap_or(shown.len());
            shown.drain(..end);
        }
        self.bar.suspend(|| style::talk(text));
    }

    fn log(&self, line: &LogLine) {
        // Warnings and errors reach standard error through the log; the rest only with -v.
        let _ = line;
    }
}
