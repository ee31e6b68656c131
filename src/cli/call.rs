//! `hostler call TOOL`

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::arguments::{self, BadArgument};
use super::feedback::Feedback;
use super::options::Call;
use super::{result, show, style};
use crate::call::CallRequest;
use crate::process::Signals;
use crate::runtime::Workspace;

pub(super) async fn run(app: &Workspace, args: Call) -> ExitCode {
    // The arguments of an executable are only known once it has been asked.
    if app.calls.registry.catalogue().resolve(&args.tool).is_err() {
        app.calls.registry.asked().await;
    }
    if args.help {
        return help(app, &args.tool);
    }
    let arguments = match gather(app, &args) {
        Ok(arguments) => arguments,
        Err(error) => return style::complain(style::USAGE, &error.to_string()),
    };
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return style::complain(style::SYSTEM, &format!("cannot listen for signals: {error}")),
    };
    let feedback = Arc::new(Feedback::new());
    let listener = Arc::clone(&feedback) as Arc<dyn crate::pool::Listener>;
    let request = CallRequest { listener, ..CallRequest::new(args.tool.clone(), arguments) };
    let outcome = tokio::select! {
        outcome = app.calls.call(request) => Ok(outcome),
        name = signals.first() => Err(name),
    };
    feedback.end();
    let code = match outcome {
        Ok(outcome) => result::report(&outcome, result::OutputFormat::of(&args), &feedback),
        Err(name) => {
            let message = format!("CANCELLED: the call of {} was interrupted by {name}", args.tool);
            style::complain(style::CANCELLED, &message)
        }
    };
    app.close_hearing(&signals).await;
    code
}

fn help(app: &Workspace, tool: &str) -> ExitCode {
    if tool.is_empty() {
        style::answer(&super::options::help_of("call"));
        return ExitCode::SUCCESS;
    }
    match app.calls.registry.catalogue().resolve(tool) {
        Ok(tool) => {
            style::answer(&show::help(tool, style::terminal_width()));
            ExitCode::SUCCESS
        }
        Err(missing) => show::missing(tool, missing),
    }
}

fn gather(app: &Workspace, args: &Call) -> Result<Map<String, Value>, BadArgument> {
    let mut gathered = match args.input.as_deref() {
        None => Map::new(),
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| BadArgument::NotObject(format!("standard input: {error}")))?;
            arguments::object(&text)?
        }
        Some(text) => arguments::object(text)?,
    };
    let catalogue = app.calls.registry.catalogue();
    let schema = catalogue.resolve(&args.tool).ok().map(|tool| tool.input_schema());
    arguments::add(&mut gathered, &args.arguments, schema)?;
    Ok(gathered)
}
