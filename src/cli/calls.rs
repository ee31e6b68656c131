//! `hostler calls`: what runs in the shared hostler, and what ran lately.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::events::short;
use super::options::{Calls, CallsOf};
use super::shared::{CLIENT, own, refusal};
use super::style::{self, Refusal};
use crate::call::{CallInfo, CallState};
use crate::config::Environment;
use crate::control::Connection;
use crate::words::plural;

/// The most characters of a tool's name in the list.
const TOOL: usize = 40;

pub(super) fn run(args: &Calls, environment: &Environment) -> Result<ExitCode, Refusal> {
    let usual = CallsOf::List { tool: None, running: false, limit: 20 };
    let what = args.what.as_ref().unwrap_or(&usual);
    let Some(mut connection) = own(environment)? else {
        match what {
            CallsOf::List { .. } if args.json => style::answer_json(&json!([])),
            _ if args.json => style::answer_json(&json!({"running": false})),
            _ => style::note("no shared hostler is running; a client's `hostler serve` starts one"),
        }
        return Ok(ExitCode::FAILURE);
    };
    match what {
        CallsOf::List { tool, running, limit } => {
            let states = running.then_some(["queued", "running", "asking"]);
            let filter = json!({"tool": tool, "states": states, "limit": limit});
            let calls: Vec<CallInfo> = connection.call("calls.list", &filter).map_err(refusal)?;
            if args.json {
                style::answer_json(&calls);
            } else if calls.is_empty() {
                let runs = if *running { "runs" } else { "runs or has ended lately" };
                style::note(&format!("{} {runs}", no_call(tool.as_deref())));
            } else {
                style::answer(&style::table(&rows(&calls), style::terminal_width()));
            }
        }
        CallsOf::Show { id } => {
            let call = find(&mut connection, id)?;
            if args.json { style::answer_json(&call) } else { style::answer(&as_text(&call)) }
        }
        CallsOf::Cancel { id } => {
            let call = find(&mut connection, id)?;
            let is_done = connection.call::<bool>("calls.cancel", &json!({"call": call.call_id})).map_err(refusal)?;
            if !is_done {
                return Err(Refusal::new(format!("the call {id} has ended"), "`hostler calls` lists those that run"));
            }
            style::note(&format!("cancelled {} ({})", call.call_id, style::plain(&call.tool)));
        }
        CallsOf::Output { id } => {
            let call = find(&mut connection, id)?;
            let kinds = ["tool_output", "tool_call_completed", "tool_call_failed", "tool_call_blocked"];
            connection.subscribe(&json!({"call": call.call_id, "kinds": kinds})).map_err(refusal)?;
            // It may have ended before: then no event follows.
            let now = own(environment)?.map(|mut other| find(&mut other, &call.call_id)).transpose()?.unwrap_or(call);
            follow(connection, &now)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The subject where a list of calls is empty.
pub(super) fn no_call(tool: Option<&str>) -> String {
    tool.map_or_else(|| "no call".to_owned(), |tool| format!("no call of {tool}"))
}

/// The call whose id begins so.
fn find(connection: &mut Connection, begin: &str) -> Result<CallInfo, Refusal> {
    let calls: Vec<CallInfo> = connection.call("calls.list", &json!({})).map_err(refusal)?;
    let mut found = calls.into_iter().filter(|call| call.call_id.starts_with(begin));
    let unknown = || Refusal::not_found(format!("there is no call {begin}"), "`hostler calls` lists them");
    let first = found.next().ok_or_else(unknown)?;
    match found.next() {
        Some(_) => Err(Refusal::new(format!("several calls begin with {begin}"), "write more of the id")),
        None => Ok(first),
    }
}

/// Prints the output of a call until it ends.
fn follow(connection: Connection, call: &CallInfo) -> Result<(), Refusal> {
    if !is_running(call.state) {
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

pub(super) fn is_running(state: CallState) -> bool {
    matches!(state, CallState::Queued | CallState::Running | CallState::Asking)
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
    rows.extend(call.error.as_ref().map(|error| ("error", format!("{}: {}", error.code, error.message))));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    style::table(&rows, None)
}

pub(super) fn took(milliseconds: f64) -> String {
    if milliseconds < 10_000.0 { format!("{milliseconds:.1} ms") } else { format!("{:.1} s", milliseconds / 1000.0) }
}

fn ago(since_ms: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let passed = now.saturating_sub(Duration::from_millis(since_ms));
    format!("{} ago", humantime::format_duration(Duration::from_secs(passed.as_secs())))
}
