//! `hostler call TOOL`

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::arguments::{self, BadArgument};
use super::hearing::Talk;
use super::options::Call;
use super::{exit, files, pretty, signature, style};
use crate::call::CallRequest;
use crate::outcome::{Cancelled, Canceller, Code, Fault, Outcome, fault_in_envelope, in_envelope};
use crate::process::Signals;
use crate::runtime::Workspace;

pub(super) async fn run(app: &Workspace, wanted: Call) -> ExitCode {
    // An executable has no arguments before it has said which: neither its help nor the type of a word is known.
    if app.dispatcher.registry.catalogue().resolve(&wanted.tool).is_err() {
        app.dispatcher.registry.asked().await;
    }
    if wanted.help {
        return help(app, &wanted.tool);
    }
    let arguments = match gather(app, &wanted) {
        Ok(arguments) => arguments,
        Err(error) => return exit::complain(exit::USAGE, &error.to_string()),
    };
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return exit::complain(exit::SYSTEM, &format!("cannot listen for signals: {error}")),
    };
    let talk = Arc::new(Talk::new());
    let listener = Arc::clone(&talk) as Arc<dyn crate::pool::Listener>;
    let request = CallRequest { listener, ..CallRequest::new(wanted.tool.clone(), arguments) };
    let handle = app.dispatcher.start(request);
    let outcome = tokio::select! {
        outcome = handle.outcome() => outcome,
        name = signals.first() => {
            handle.cancel(Cancelled::because(Canceller::Signal, name));
            handle.outcome().await
        }
    };
    talk.end();
    let code = report(&outcome, Dress::of(&wanted), &talk);
    app.close_hearing(&signals).await;
    code
}

fn help(app: &Workspace, tool: &str) -> ExitCode {
    if tool.is_empty() {
        style::answer(&super::options::help_of("call"));
        return ExitCode::SUCCESS;
    }
    match app.dispatcher.registry.catalogue().resolve(tool) {
        Ok(tool) => {
            style::answer(&signature::help(tool, style::terminal_width()));
            ExitCode::SUCCESS
        }
        Err(missing) => super::show::missing(tool, missing),
    }
}

fn gather(app: &Workspace, wanted: &Call) -> Result<Map<String, Value>, BadArgument> {
    let mut gathered = match wanted.input.as_deref() {
        None => Map::new(),
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| BadArgument::NotObject(format!("standard input: {error}")))?;
            arguments::object(&text)?
        }
        Some(text) => arguments::object(text)?,
    };
    let catalogue = app.dispatcher.registry.catalogue();
    let schema = catalogue.resolve(&wanted.tool).ok().map(|tool| tool.input_schema());
    arguments::add(&mut gathered, &wanted.arguments, schema)?;
    Ok(gathered)
}

/// How an outcome is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dress {
    /// The result alone; a fault goes to standard error.
    Plain,
    /// All that is known of it.
    Whole,
    /// Whether the tool ran, with the result or the error.
    Envelope,
}

impl Dress {
    fn of(wanted: &Call) -> Self {
        match (wanted.json, wanted.envelope) {
            (true, _) => Self::Whole,
            (false, true) => Self::Envelope,
            (false, false) => Self::Plain,
        }
    }
}

/// Prints the outcome and gives its exit status.
pub(super) fn report(outcome: &Outcome, dress: Dress, talk: &Talk) -> ExitCode {
    match (&outcome.ended, dress) {
        (_, Dress::Whole) => style::answer(&serde_json::to_string_pretty(outcome).unwrap_or_default()),
        (Ok(raw), Dress::Envelope) => style::answer(&pretty::indented(in_envelope(raw).get())),
        (Err(fault), Dress::Envelope) => style::answer(&pretty::indented(fault_in_envelope(fault).get())),
        (Ok(raw), Dress::Plain) => {
            if !files::answer(raw.get()) {
                style::answer(&readable(raw.get()));
            }
        }
        (Err(fault), Dress::Plain) => complain(fault, talk),
    }
    outcome.ended.as_ref().map_or_else(|fault| ExitCode::from(fault.code.exit_status()), |_| ExitCode::SUCCESS)
}

/// A string as it is, anything else as indented JSON.
fn readable(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_else(|_| pretty::indented(raw))
}

fn complain(fault: &Fault, talk: &Talk) {
    style::error(&fault.to_string());
    let details = &fault.details;
    // Once is enough: uv's reason is in the message, and the last words may be, where they were not shown as they came.
    let is_told = |text: &&str| talk.has_shown(text) || text.lines().all(|line| fault.message.contains(line.trim()));
    let stderr = details.stderr.as_deref().filter(|_| fault.code != Code::EnvironmentFailed);
    let stderr = stderr.filter(|text| !is_told(text));
    let more = details.traceback.as_deref().or(stderr);
    if let Some(text) = more {
        style::note(text.trim_end());
    }
}
