//! `hostler replay ID`: makes a call again with the source, lock and arguments that it had, and shows what differs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::call::{Feedback, readable};
use super::kept_calls::KnownCalls;
use super::options::Replay;
use super::style::{self, Refusal};
use super::{ask, calls, replay_test, show};
use crate::call::{CallDetails, CallInfo, CallRequest, CallState};
use crate::config::tool::Effects;
use crate::config::value::Word;
use crate::config::{Config, ConfigOptions, Environment};
use crate::journal::Place;
use crate::outcome::{Code, Outcome};
use crate::registry::Tool;
use crate::runtime::Workspace;
use crate::secrets::{REMOVED, Redactor, redactor_of};

/// A call as the journal has it.
pub(super) struct Recorded {
    pub call: CallInfo,
    pub details: CallDetails,
    pub arguments: Map<String, Value>,
}

pub(super) async fn run(
    args: &Replay,
    environment: &Arc<Environment>,
    asked: &ConfigOptions,
    here: &Path,
    open: impl FnOnce(&ConfigOptions, &Path) -> Result<Workspace, Refusal>,
) -> Result<ExitCode, Refusal> {
    let recorded = recorded(&args.id, environment)?;
    let (wanted, directory) = workspace(&recorded, asked, here);
    let source = source(args, &recorded, environment, here)?;
    if args.as_test {
        let written = replay_test::write(&recorded, &source, here)?;
        style::answer(&written.display().to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let mut tools = Config::load(&wanted, &directory)?.tools.value;
    // The last folder comes first where a name is in two of them.
    tools.extend(source.folder().map(Path::to_owned));
    let app = open(&ConfigOptions { tools, ..wanted }, &directory)?;
    app.calls.registry.asked_for(&recorded.call.tool).await;
    let tool = find(&app, &recorded, &source)?;
    let effects = tool.settings.effects.value;
    if effects != Effects::Pure {
        let name = &tool.name;
        let question = format!("{name} is `{}`: what the call did is done again. Make it?", effects.word());
        style::consent(&question, args.yes, &format!("{name} is `{}` and was not called again", effects.word()))
            .await?;
    }
    warn(&recorded);
    let outcome = call(&app, &tool.name, &recorded).await?;
    let secrets = redactor_of(&tool.entry.settings.secrets.value, &tool.entry.config).await;
    app.runtime().end_journal().await;
    Ok(report(args, &recorded, &source, &as_kept(&outcome, &source, secrets.as_deref())))
}

/// The call, which must have ended and have its arguments.
fn recorded(id: &str, environment: &Arc<Environment>) -> Result<Recorded, Refusal> {
    let Some(mut known) = KnownCalls::find(environment)? else {
        return Err(Refusal::not_found(
            "no call was written down",
            "only calls that a journal keeps can be made again",
        ));
    };
    let call = known.one(id)?;
    if call.state.is_open() {
        let fix = format!("`hostler calls wait {id}` waits for its end");
        return Err(Refusal::new(format!("the call {id} has not ended"), fix));
    }
    let Some(details) = call.details.clone() else {
        return Err(Refusal::new(format!("the call {id} was not written down"), "see `journal` of its tool"));
    };
    let was_not_made = |code: Code| matches!(code, Code::InvalidParams | Code::ToolNotFound);
    if let Some(error) = call.error.as_ref().filter(|error| was_not_made(error.code)) {
        return Err(Refusal::new(format!("the call {id} was not made: {}", error.message), "call the tool anew"));
    }
    let arguments = call.arguments.as_deref().and_then(|arguments| serde_json::from_str(arguments).ok());
    let Some(arguments) = arguments else {
        let fix = "those of failed and of background calls are; with `bodies = \"all\"` under [journal] those of every call are";
        return Err(Refusal::new(format!("the arguments of the call {id} were not kept"), fix));
    };
    Ok(Recorded { call, details: *details, arguments })
}

/// What the tools of a call are taken from.
pub(super) enum Source {
    /// The source as it was: its folder, and the tool file as it was called.
    Kept { folder: PathBuf, file: PathBuf },
    /// Another file.
    File(PathBuf),
    /// hostler itself, or the present tool file: nothing was kept.
    Present,
}

impl Source {
    /// The folder that has the tool.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Kept { folder, .. } => Some(folder),
            Self::File(file) => file.parent(),
            Self::Present => None,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Kept { .. } => "kept",
            Self::File(_) => "file",
            Self::Present => "present",
        }
    }
}

fn source(args: &Replay, recorded: &Recorded, environment: &Environment, here: &Path) -> Result<Source, Refusal> {
    if let Some(file) = &args.against {
        let file = here.join(file);
        let file = file.canonicalize().map_err(|error| Refusal::io(file.display().to_string(), error))?;
        return Ok(Source::File(file));
    }
    let version = recorded.details.version.as_deref().unwrap_or_default();
    let kept = Place::of(environment).sources().of(version, recorded.call.started_ms);
    Ok(kept.map_or(Source::Present, |kept| Source::Kept { folder: kept.folder, file: kept.file }))
}

/// Where the call was made: what its client's hostler was started with, unless this one is started with something else.
fn workspace(recorded: &Recorded, asked: &ConfigOptions, here: &Path) -> (ConfigOptions, PathBuf) {
    let details = &recorded.details;
    let folder = details.folder.as_ref().map(PathBuf::from).filter(|folder| folder.is_dir());
    let config = asked.config.as_ref().map(|path| here.join(path));
    let config = config.or_else(|| details.config.as_ref().map(PathBuf::from));
    let tools = asked.tools.iter().map(|folder| here.join(folder)).collect();
    (ConfigOptions { config, tools, ..asked.clone() }, folder.unwrap_or_else(|| here.to_owned()))
}

/// The tool that is called: that of the source, which must be what the call had where nothing else is wanted.
fn find(app: &Workspace, recorded: &Recorded, source: &Source) -> Result<Arc<Tool>, Refusal> {
    let name = &recorded.call.tool;
    let registry = &app.calls.registry;
    let Source::File(file) = source else {
        let tool = registry.find(name).map_err(|reason| show::missing(name, reason))?;
        let version = data_encoding::HEXLOWER.encode(&tool.entry.version);
        let is_other = recorded.details.version.as_ref().is_some_and(|wanted| *wanted != version);
        if is_other && matches!(source, Source::Present) {
            let what = format!("the source of {name} as it was called is not kept, and the present one differs");
            let fix = format!("replay it with --against {}", tool.entry.file.path.display());
            return Err(Refusal::new(what, fix));
        }
        return Ok(tool);
    };
    let function = name.split_once('.').map(|(_, function)| function);
    let catalogue = registry.catalogue();
    let entry = catalogue.files.iter().find(|entry| entry.file.path.canonicalize().is_ok_and(|path| path == *file));
    let Some(entry) = entry else {
        let what = format!("{} is no tool file", file.display());
        return Err(Refusal::not_found(what, format!("`hostler check {}` says why", file.display())));
    };
    if let Some(reason) = entry.broken() {
        return Err(Refusal::new(reason, format!("`hostler check {}` shows where", file.display())));
    }
    let pack = entry.file.served_pack();
    let name = function.map_or_else(|| pack.to_owned(), |function| format!("{pack}.{function}"));
    registry.find(&name).map_err(|reason| show::missing(&name, reason))
}

fn warn(recorded: &Recorded) {
    if recorded.call.arguments.as_ref().is_some_and(|arguments| arguments.contains(REMOVED)) {
        style::warn("a secret among the arguments is not kept: its name stands in its place");
    }
}

async fn call(app: &Workspace, name: &str, recorded: &Recorded) -> Result<Arc<Outcome>, Refusal> {
    let signals = style::signals()?;
    let feedback = Arc::new(Feedback::new());
    let limit = Duration::from_millis(recorded.details.timeout_ms);
    let request = CallRequest {
        timeout: Some(limit).filter(|limit| !limit.is_zero()),
        listener: Arc::clone(&feedback) as _,
        client: ask::person(&feedback),
        ..CallRequest::new(name.to_owned(), recorded.arguments.clone())
    };
    let outcome = tokio::select! {
        outcome = app.calls.call(request) => Ok(outcome),
        name = signals.first() => Err(Refusal::cancelled(format!("the replay was interrupted by {name}"))),
    };
    feedback.end();
    outcome
}

/// What a call came to, as it is compared: `None` where it was not kept.
fn then(call: &CallInfo) -> Option<Result<Value, String>> {
    match &call.error {
        Some(error) => Some(Err(format!("{}: {}", error.code, error.message))),
        None => call.result.clone().map(Ok),
    }
}

/// An outcome as the journal would have it: without secrets, and with the place of the tool file as it was called.
fn as_kept(outcome: &Outcome, source: &Source, secrets: Option<&Redactor>) -> Outcome {
    let mut outcome = outcome.clone();
    if let (Ok(result), Some(secrets)) = (&mut outcome.ended, secrets)
        && let Ok(mut value) = serde_json::from_str(result.get())
    {
        secrets.value(&mut value);
        *result = to_raw_value(&value).unwrap_or_default();
    }
    if let Err(fault) = &mut outcome.ended {
        if let Some(secrets) = secrets {
            secrets.fault(fault);
        }
        if let Source::Kept { folder, file } = source
            && let (Some(there), Some(here)) = (file.parent(), folder.to_str())
        {
            fault.message = fault.message.replace(here, &there.to_string_lossy());
        }
    }
    outcome
}

fn now(outcome: &Outcome) -> Result<Value, String> {
    let value = |raw: &serde_json::value::RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
    outcome.ended.as_ref().map(|raw| value(raw)).map_err(|fault| format!("{}: {}", fault.code, fault.message))
}

fn text(end: &Result<Value, String>) -> String {
    end.as_ref().map_or_else(Clone::clone, |value| readable(&value.to_string())) + "\n"
}

/// Prints what differs, and returns 0 if nothing does.
fn report(args: &Replay, recorded: &Recorded, source: &Source, outcome: &Outcome) -> ExitCode {
    let (then, now) = (then(&recorded.call), now(outcome));
    let is_same = then.as_ref().map_or(recorded.call.state == CallState::Complete && now.is_ok(), |then| *then == now);
    if args.json {
        let same = then.is_some().then_some(is_same);
        style::answer_json(&json!({"same": same, "source": source.word(), "then": recorded.call, "now": outcome}));
    } else {
        style::note(&summary(recorded, source, outcome));
        match then {
            None => style::answer(text(&now).trim_end()),
            Some(_) if is_same => style::answer(if now.is_ok() { "the same result" } else { "the same error" }),
            Some(then) => style::answer(difference(&text(&then), &text(&now)).trim_end()),
        }
    }
    if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn summary(recorded: &Recorded, source: &Source, outcome: &Outcome) -> String {
    let call = &recorded.call;
    let with = match source {
        Source::Kept { .. } if recorded.details.lock.is_some() => "with the source and the lock that it had".to_owned(),
        Source::Kept { .. } => "with the source that it had".to_owned(),
        Source::File(file) => format!("with {}", file.display()),
        Source::Present => "with the present source, which is the same".to_owned(),
    };
    let (before, after) = (calls::took(call.duration_ms), calls::took(outcome.latency.as_secs_f64() * 1000.0));
    let kept = if call.error.is_none() && call.result.is_none() { "; its result was not kept" } else { "" };
    format!("{} {with}: then {before}, now {after}{kept}", style::plain(&call.tool))
}

fn difference(then: &str, now: &str) -> String {
    style::plain(&TextDiff::from_lines(then, now).unified_diff().context_radius(3).header("then", "now").to_string())
}
