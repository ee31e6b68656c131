//! Events as a person reads them: a line for each, or for each line of what a tool writes.

use serde_json::Value;

use crate::words::plural;

/// So much of an id tells calls apart for a person.
const SHORT: usize = 10;

/// One line about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// Since 1970.
    pub time_ms: u64,
    /// A call, or what else it is about.
    pub subject: String,
    /// Foreign text in it may hold control characters.
    pub what: String,
    /// Whether something went wrong.
    pub is_fault: bool,
}

/// The lines that show an event.
pub(super) fn said(event: &Value) -> impl Iterator<Item = Said> {
    let kind = event["event"].as_str().unwrap_or_default();
    let time_ms = event["time_ms"].as_u64().unwrap_or_default();
    let subject = match event["call_id"].as_str() {
        Some(call) => format!("{} {}", event["tool_name"].as_str().unwrap_or_default(), short(call)),
        None => kind.replace('_', " "),
    };
    let is_fault = matches!(kind, "tool_call_failed" | "tool_call_blocked" | "worker_failed" | "lost");
    lines(kind, event).into_iter().map(move |what| Said { time_ms, subject: subject.clone(), what, is_fault })
}

fn lines(kind: &str, event: &Value) -> Vec<String> {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let number = |name: &str| event[name].as_f64().unwrap_or_default();
    let error = || {
        let error = &event["error"];
        format!("{}: {}", error["code"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
    };
    let what = match kind {
        "tool_output" => {
            let sign = if text("stream") == "stdout" { "|" } else { "!" };
            return text("text").lines().map(|line| format!("{sign} {line}")).collect();
        }
        "tool_call_started" => "started".to_owned(),
        "tool_call_completed" => format!("completed in {:.1} ms", number("latency_ms")),
        "tool_call_failed" => format!("failed after {:.1} ms: {}", number("latency_ms"), error()),
        "tool_call_blocked" => format!("blocked: {}", error()),
        "approval_requested" => format!("waits for approval: {}", text("message")),
        "approval_answered" => format!("approval: {}", text("message")),
        "tool_progress" => {
            let total = event["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
            format!("progress {}{total} {}", number("progress"), text("message"))
        }
        "lost" => {
            let count = event["count"].as_u64().unwrap_or_default();
            format!("{} not read in time", plural(count, "event"))
        }
        _ => members(event),
    };
    vec![what.replace('\n', " ")]
}

fn members(event: &Value) -> String {
    let members = event.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| !["event", "time_ms"].contains(&name.as_str()));
    members.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

pub(super) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}
