//! Asking for consent at the terminal.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use super::{exit, style};
use crate::process::Signals;

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
    style::talk(&format!("{question} [y/N] "));
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
        Err(error) => return exit::complain(exit::SYSTEM, &format!("cannot listen for signals: {error}")),
    };
    tokio::select! {
        code = work => code,
        name = signals.first() => exit::complain(exit::CANCELLED, &format!("nothing was changed: interrupted by {name}")),
    }
}
