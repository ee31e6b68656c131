//! `hostler calls`: what runs in the shared hostler, and what the journal keeps.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::events::short;
use super::kept_calls::KnownCalls;
use super::options::{Calls, CallsOf};
use super::prune;
use super::shared::{CLIENT, refusal};
use super::style::{self, Refusal};
use crate::call::{CallDetails, CallFilter, CallInfo, CallState};
use crate::config::Environment;
use crate::control::Connection;
use crate::outcome::{Code, Outcome};
use crate::telemetry::unix_ms;
use crate::words::plural;

/// The most characters of a tool's name in the list.
const TOOL: usize = 40;

pub(super) fn run(args: &Calls, environment: &Arc<Environment>) -> Result<ExitCode, Refusal> {
    let usual = CallsOf::List { tool: None, running: false, denied: false, limit: 20 };
    let what = args.what.as_ref().unwrap_or(&usual);
    if let CallsOf::Prune { keep, keep_calls, dry_run } = what {
        return prune::run(environment, args.json, *keep, *keep_calls, *dry_run);
    }
    let Some(mut known) = KnownCalls::find(environment)? else {
        match what {
            CallsOf::List { .. } if args.json => style::answer_json(&json!([])),
            _ if args.json => style::answer_json(&json!({"running": false})),
            _ => style::note(
                "no shared hostler is running, and no call was written down; a client's `hostler serve` starts one",
            ),
        }
        return Ok(ExitCode::FAILURE);
    };
    match what {
        CallsOf::List { tool, running, denied, limit } => {
            let states =
                if *running { Some(CallState::OPEN.to_vec()) } else { denied.then(|| vec![CallState::Denied]) };
            let filter = CallFilter { tool: tool.clone(), states, limit: Some(*limit), ..CallFilter::default() };
            list(&mut known, args, &filter)?;
        }
        CallsOf::Show { id } => {
            let call = known.one(id)?;
            if args.json { style::answer_json(&call) } else { style::answer(&as_text(&call)) }
        }
        CallsOf::Wait { id, timeout } => return wait(&mut known, args, id, *timeout),
        CallsOf::Retry { id } => {
            let call = known.one(id)?;
            let begun: Value = known.running()?.call("calls.retry", &json!({"call": call.call_id})).map_err(refusal)?;
            if args.json {
                style::answer_json(&begun);
            } else {
                style::answer(begun["call"].as_str().unwrap_or_default());
            }
        }
        CallsOf::Cancel { id } => {
            let call = known.one(id)?;
            let is_done =
                known.running()?.call::<bool>("calls.cancel", &json!({"call": call.call_id})).map_err(refusal)?;
            if !is_done {
                return Err(Refusal::new(format!("the call {id} has ended"), "`hostler calls` lists those that run"));
            }
            style::note(&format!("cancelled {} ({})", call.call_id, style::plain(&call.tool)));
        }
        CallsOf::Output { id, follow } => output(known, id, *follow, environment)?,
        CallsOf::Prune { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn list(known: &mut KnownCalls, args: &Calls, filter: &CallFilter) -> Result<(), Refusal> {
    let calls = known.list(filter)?;
    if args.json {
        style::answer_json(&calls);
    } else if calls.is_empty() {
        let does = match filter.states.as_deref() {
            None => "runs or has ended lately",
            Some([CallState::Denied]) => "was denied",
            Some(_) => "runs",
        };
        style::note(&format!("{} {does}", no_call(filter.tool.as_deref())));
    } else {
        style::answer(&style::table(&rows(&calls), style::terminal_width()));
    }
    Ok(())
}

/// Waits for the end of a background call, and ends as `hostler call` would have.
fn wait(known: &mut KnownCalls, args: &Calls, id: &str, limit: Option<Duration>) -> Result<ExitCode, Refusal> {
    let call = known.one(id)?;
    let until = limit.map(|limit| Instant::now() + limit);
    let connection = known.running()?;
    let outcome = loop {
        let left = until.map_or(PART, |until| until.saturating_duration_since(Instant::now()).min(PART));
        let asked = json!({"call": call.call_id, "timeout_ms": u64::try_from(left.as_millis()).unwrap_or(u64::MAX)});
        let outcome: Option<Outcome> = connection.call("calls.wait", &asked).map_err(refusal)?;
        match outcome {
            Some(outcome) => break outcome,
            None if until.is_some_and(|until| Instant::now() >= until) => {
                let what = format!("the call {} goes on", call.call_id);
                return Err(Refusal {
                    status: Code::ToolTimeout.exit_status(),
                    ..Refusal::new(what, "wait for it again")
                });
            }
            None => {}
        }
    };
    Ok(super::call::report_of(&outcome, args.json))
}

/// How long one request of `wait` waits.
const PART: Duration = Duration::from_secs(10);

/// The subject where a list of calls is empty.
pub(super) fn no_call(tool: Option<&str>) -> String {
    tool.map_or_else(|| "no call".to_owned(), |tool| format!("no call of {tool}"))
}

/// Prints what was kept of a call's output, or what it prints from now on.
fn output(mut known: KnownCalls, id: &str, follows: bool, environment: &Arc<Environment>) -> Result<(), Refusal> {
    let call = known.one(id)?;
    if !follows && let Some(output) = &call.output {
        style::part(&style::plain(output));
        return Ok(());
    }
    let KnownCalls::Running(mut connection) = known else {
        return Err(Refusal::new(
            format!("no output of the call {} was kept", call.call_id),
            "see `bodies` under [journal]",
        ));
    };
    let kinds = ["tool_output", "tool_call_completed", "tool_call_failed", "tool_call_blocked"];
    connection.subscribe(&json!({"call": call.call_id, "kinds": kinds})).map_err(refusal)?;
    // What it has printed so far. It may also have ended before: then no event follows.
    let mut again = KnownCalls::find(environment)?;
    let now = again.as_mut().map(|known| known.one(&call.call_id)).transpose()?.unwrap_or(call);
    if follows && let Some(before) = &now.output {
        style::part(&style::plain(before));
    }
    follow(connection, &now)
}

/// Prints the output of a call until it ends.
fn follow(connection: Connection, call: &CallInfo) -> Result<(), Refusal> {
    if !call.state.is_open() {
        return Err(Refusal::new(
            format!("the call {} has ended", call.call_id),
            "only a running call prints something",
        ));
    }
    let heard = connection.events(Some(rustix::stdio::stdout()), |event| {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        match text("event") {
            "tool_output" if text("stream") == "stdout" => style::part(&style::plain(text("text"))),
            "tool_output" => {
                style::talk(&style::plain(text("text")));
                true
            }
            "lost" => {
                let count = event["count"].as_u64().unwrap_or_default();
                style::warn(&format!("{} of output not read in time", plural(count, "piece")));
                true
            }
            _ => false,
        }
    });
    heard.map_err(refusal)
}

pub(super) fn word(state: CallState) -> String {
    serde_json::to_value(state).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn rows(calls: &[CallInfo]) -> Vec<Vec<String>> {
    let head = ["call", "tool", "state", "began", "took", "client", ""].map(str::to_owned);
    let row = |call: &CallInfo| {
        let error = call.error.as_ref();
        vec![
            short(&call.call_id).to_owned(),
            style::cut(&call.tool, TOOL),
            word(call.state),
            ago(call.started_ms),
            took(call.duration_ms),
            style::cut(call.client.as_deref().unwrap_or("-"), CLIENT),
            error.map(|error| format!("{}: {}", error.code, error.message)).unwrap_or_default(),
        ]
    };
    std::iter::once(head.into()).chain(calls.iter().map(row)).collect()
}

pub(super) fn as_text(call: &CallInfo) -> String {
    let mut rows = vec![
        ("call", call.call_id.clone()),
        ("tool", call.tool.clone()),
        ("state", word(call.state)),
        ("began", ago(call.started_ms)),
        ("took", took(call.duration_ms)),
        ("session", call.session.to_string()),
    ];
    rows.extend(call.client.clone().map(|client| ("client", client)));
    rows.extend((!call.tags.is_empty()).then(|| ("tags", call.tags.join(", "))));
    rows.extend(call.trace.clone().map(|trace| ("trace", trace)));
    rows.extend(call.arguments.clone().map(|arguments| ("arguments", arguments)));
    rows.extend((call.attempts > 1).then(|| ("attempts", call.attempts.to_string())));
    rows.extend(call.background.then(|| ("background", "yes".to_owned())));
    rows.extend(call.retry_at_ms.map(|at| ("tried again", format!("in {}", until(at)))));
    rows.extend(call.result.as_ref().map(|result| ("result", result.to_string())));
    rows.extend(call.output.clone().map(|output| ("output", output)));
    rows.extend(call.error.as_ref().map(|error| ("error", format!("{}: {}", error.code, error.message))));
    let details = call.details.as_deref();
    rows.extend(details.map(of_details).unwrap_or_default());
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    let parts = details.map(|details| [("stack", &details.stack), ("standard error", &details.stderr)]);
    let part = |(name, part): (&str, &Option<String>)| {
        let lines: Vec<String> = part.as_ref()?.lines().map(|line| format!("\n  {}", style::plain(line))).collect();
        Some(format!("\n{name}:{}\n", lines.concat()))
    };
    style::table(&rows, None) + &parts.into_iter().flatten().filter_map(part).collect::<String>()
}

/// What is written down of a call, in the order in which it happened.
fn of_details(details: &CallDetails) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let steps = [("waited", details.queue_ms), ("started a worker", details.start_ms), ("ran", details.run_ms)];
    let steps = steps.into_iter().chain([("waited for answers", details.asked_ms)]);
    let steps: Vec<String> =
        steps.filter_map(|(step, time)| Some(format!("{step} {}", took(time.filter(|time| *time > 0.0)?)))).collect();
    rows.extend((!steps.is_empty()).then(|| ("steps", steps.join(", "))));
    rows.extend(details.sent_ms.map(|at| ("sent", ago(at))));
    rows.extend(details.process.map(|pid| ("process", pid.to_string())));
    rows.extend(details.folder.clone().map(|folder| ("folder", folder)));
    rows.extend(details.version.as_deref().map(|version| ("version", short(version).to_owned())));
    rows.extend(details.source.clone().map(|source| ("source", source)));
    rows.extend(details.lock.clone().map(|lock| ("lock", lock)));
    rows.extend(details.config.clone().map(|config| ("configuration", config)));
    let limit = Duration::from_millis(details.timeout_ms);
    rows.extend((!limit.is_zero()).then(|| ("time limit", humantime::format_duration(limit).to_string())));
    rows.extend((!details.effects.is_empty()).then(|| ("effects", details.effects.clone())));
    rows.extend(details.tries.iter().map(|fault| ("tried before", fault.clone())));
    rows
}

pub(super) fn took(milliseconds: f64) -> String {
    if milliseconds < 10_000.0 { format!("{milliseconds:.1} ms") } else { format!("{:.1} s", milliseconds / 1000.0) }
}

fn until(at_ms: u64) -> String {
    let left = Duration::from_millis(at_ms.saturating_sub(unix_ms()));
    humantime::format_duration(Duration::from_secs(left.as_secs())).to_string()
}

fn ago(since_ms: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let passed = now.saturating_sub(Duration::from_millis(since_ms));
    format!("{} ago", humantime::format_duration(Duration::from_secs(passed.as_secs())))
}
