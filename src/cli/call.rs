//! `hostler call TOOL`

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::arguments;
use super::options::Call;
use super::result::{self, Feedback};
use super::style::Refusal;
use super::{show, style};
use crate::call::CallRequest;
use crate::runtime::Workspace;

pub(super) async fn run(app: &Workspace, args: &Call) -> Result<ExitCode, Refusal> {
    // The arguments of an executable are only known once it has been asked.
    if app.calls.registry.catalogue().resolve(&args.tool).is_err() {
        app.calls.registry.asked().await;
    }
    if args.help {
        return help(app, &args.tool);
    }
    let arguments = gather(app, args)?;
    let signals = style::signals()?;
    let feedback = Arc::new(Feedback::new());
    let listener = Arc::clone(&feedback) as Arc<dyn crate::pool::Listener>;
    let request = CallRequest { listener, ..CallRequest::new(args.tool.clone(), arguments) };
    let outcome = tokio::select! {
        outcome = app.calls.call(request) => Ok(outcome),
        name = signals.first() => Err(name),
    };
    feedback.end();
    let code = match outcome {
        Ok(outcome) => Ok(result::report(&outcome, result::OutputFormat::of(args), &feedback)),
        Err(name) => {
            let what = format!("CANCELLED: the call of {} was interrupted by {name}", args.tool);
            Err(Refusal::cancelled(what))
        }
    };
    app.close_hearing(&signals).await;
    code
}

fn help(app: &Workspace, name: &str) -> Result<ExitCode, Refusal> {
    if name.is_empty() {
        style::answer(&super::options::help_of("call"));
    } else {
        let catalogue = app.calls.registry.catalogue();
        let tool = catalogue.resolve(name).map_err(|reason| show::missing(name, reason))?;
        style::answer(&show::help(tool, style::terminal_width()));
    }
    Ok(ExitCode::SUCCESS)
}

fn gather(app: &Workspace, args: &Call) -> Result<Map<String, Value>, Refusal> {
    let mut gathered = match args.input.as_deref() {
        None => Map::new(),
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| Refusal::io("cannot read standard input", error))?;
            arguments::object(&text)?
        }
        Some(text) => arguments::object(text)?,
    };
    let catalogue = app.calls.registry.catalogue();
    let schema = catalogue.resolve(&args.tool).ok().map(|tool| tool.input_schema());
    arguments::add(&mut gathered, &args.arguments, schema)?;
    Ok(gathered)
}
