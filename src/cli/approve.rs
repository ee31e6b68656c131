//! `hostler approve`: calls that wait for a person, and what was allowed for good.

use std::io::BufRead;
use std::process::ExitCode;
use std::time::Duration;

use humantime::format_duration;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Map, Value, json};

use super::ask::{self, line_of};
use super::options::{Allow, Approve, Listed};
use super::shared::{CLIENT, own, refusal};
use super::style::{self, Refusal};
use crate::approvals::{Kept, Remembered, WaitingCall, visible};
use crate::config::Environment;
use crate::control::Connection;
use crate::process::{is_below_hostler, is_marked};
use crate::telemetry::unix_ms;
use crate::words::plural;

/// The fewest characters of an id: an empty variable of a script means no call.
const SHORTEST: usize = 4;

/// How often `--watch` looks for calls.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn run(args: &Approve, environment: &Environment) -> Result<ExitCode, Refusal> {
    if args.list.is_none() && (is_marked(environment) || is_below_hostler()) {
        return Err(Refusal::new(
            "a tool may not decide about approvals",
            "run it in a terminal that no tool has started",
        ));
    }
    let remembered = Remembered::of(environment);
    if args.list == Some(Listed::Kept) {
        return kept(&remembered, args.json);
    }
    if let Some(which) = &args.forget {
        return forget(&remembered, which, args.json);
    }
    let Some(mut connection) = own(environment)? else {
        return Err(Refusal::not_found(
            "no shared hostler is running",
            "a client's `hostler serve --shared` starts one",
        ));
    };
    let waiting: Vec<WaitingCall> = connection.call("approvals.list", &json!({})).map_err(refusal)?;
    match &args.id {
        Some(id) => one(args, id, &waiting, &mut connection),
        None if args.watch && !ask::is_there() => Err(Refusal::new(
            "`--watch` needs a person at a terminal",
            "programs use `events.subscribe` and `approvals.list`",
        )),
        None if args.list.is_some() || args.json || !ask::is_there() => {
            list(&waiting, args.json);
            Ok(ExitCode::SUCCESS)
        }
        None => each(waiting, args.watch, &mut connection),
    }
}

fn list(waiting: &[WaitingCall], is_json: bool) {
    if is_json {
        style::answer_json(&waiting);
    } else if waiting.is_empty() {
        style::note("no call waits for approval");
    } else {
        let head = ["approval", "tool", "client", "waits", "why", "arguments"].map(str::to_owned).to_vec();
        let row = |call: &WaitingCall| {
            vec![
                call.approval.clone(),
                style::plain(&call.tool),
                style::cut(call.client.as_deref().unwrap_or("-"), CLIENT),
                for_long(call.waited_ms),
                style::plain(&call.reason),
                style::plain(&call.arguments),
            ]
        };
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(waiting.iter().map(row)).collect();
        style::answer(&style::table(&rows, style::terminal_width()));
    }
}

/// Decides on one call, as the options say or the person.
fn one(args: &Approve, id: &str, waiting: &[WaitingCall], connection: &mut Connection) -> Result<ExitCode, Refusal> {
    let mut meant = waiting.iter().filter(|call| id.len() >= SHORTEST && call.approval.starts_with(id));
    let (first, other) = (meant.next(), meant.next());
    let list = "`hostler approve --list` shows the calls that wait";
    let call = match (first, other) {
        _ if id.len() < SHORTEST => {
            return Err(Refusal::new(format!("the id {id:?} is too short"), "write at least 4 of its characters"));
        }
        (None, _) => return Err(Refusal::not_found(format!("no call waits for the approval {id}"), list)),
        (_, Some(_)) => return Err(Refusal::not_found(format!("several approvals begin with {id}"), list)),
        (Some(call), None) => call,
    };
    let decision = match args.allow {
        _ if args.deny => Some(Decision { word: "deny", reason: args.reason.clone() }),
        // What is not seen is not approved.
        _ if !ask::is_there() => {
            return Err(Refusal::new(
                "approving needs a person",
                "run it in a terminal; programs use `approvals.answer`",
            ));
        }
        Some(allow) => {
            show(call);
            Some(Decision { word: allow.word(), reason: None })
        }
        None => {
            show(call);
            match person(call.session.is_some()) {
                Said::Decided(decision) => Some(decision),
                Said::Later | Said::Nothing => None,
            }
        }
    };
    match decision {
        Some(decision) => decide(call, &decision, args.json, connection)?,
        None => style::note("skipped; it still waits"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks about each call that waits, and those that come if they are waited for. Fails if an answer decided nothing.
fn each(mut waiting: Vec<WaitingCall>, watches: bool, connection: &mut Connection) -> Result<ExitCode, Refusal> {
    let (mut passed, mut status): (Vec<String>, _) = (Vec::new(), ExitCode::SUCCESS);
    if waiting.is_empty() {
        style::note("no call waits for approval");
    }
    loop {
        if let Some(call) = waiting.iter().find(|call| !passed.contains(&call.approval)) {
            passed.push(call.approval.clone());
            show(call);
            match person(call.session.is_some()) {
                Said::Decided(decision) => {
                    // It may have ended meanwhile, or another answer was first.
                    if let Err(refusal) = decide(call, &decision, false, connection) {
                        style::note(&format!("{}; nothing was decided", refusal.what));
                        status = ExitCode::FAILURE;
                    }
                }
                Said::Later => style::note("skipped; it still waits"),
                Said::Nothing => return Ok(status),
            }
        } else if watches {
            std::thread::sleep(LOOK);
        } else {
            return Ok(status);
        }
        waiting = connection.call("approvals.list", &json!({})).map_err(refusal)?;
        passed.retain(|id| waiting.iter().any(|call| call.approval == *id));
    }
}

/// A decision as the control face knows it.
#[derive(Debug, PartialEq, Eq)]
struct Decision {
    word: &'static str,
    reason: Option<String>,
}

/// What a person says.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Decided(Decision),
    /// Not now.
    Later,
    /// The input has ended.
    Nothing,
}

/// Asks the person at the terminal. What was typed before they saw the call decides nothing.
fn person(has_session: bool) -> Said {
    let stdin = std::io::stdin();
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    asked(&mut stdin.lock(), has_session)
}

/// Asks the person. An approval for the session is offered where that is one client's.
fn asked(lines: &mut impl BufRead, has_session: bool) -> Said {
    let session = if has_session { "this [s]ession · " } else { "" };
    loop {
        style::talk(&format!(
            "[o]nce · {session}always with these [a]rguments · always this [t]ool · [d]eny · Enter: later > "
        ));
        let Some(word) = line_of(lines) else { return Said::Nothing };
        let word = match word.to_lowercase().as_str() {
            "" => return Said::Later,
            "o" | "once" => Allow::Once.word(),
            "s" | "session" if has_session => Allow::Session.word(),
            "a" | "arguments" => Allow::Arguments.word(),
            "t" | "tool" => Allow::Tool.word(),
            "d" | "deny" => {
                style::talk("why (the model reads it; Enter: no reason) > ");
                let reason = line_of(lines).filter(|reason| !reason.is_empty());
                return Said::Decided(Decision { word: "deny", reason });
            }
            _ => continue,
        };
        return Said::Decided(Decision { word, reason: None });
    }
}

fn decide(call: &WaitingCall, decision: &Decision, is_json: bool, connection: &mut Connection) -> Result<(), Refusal> {
    let asked = json!({"approval": call.approval, "decision": decision.word, "reason": decision.reason});
    // Somebody else may have been first.
    let settled: Value = connection.call("approvals.answer", &asked).map_err(refusal)?;
    if is_json {
        style::answer_json(&settled);
        return Ok(());
    }
    let others = settled["calls"].as_array().map_or(0, |calls| calls.len().saturating_sub(1));
    let others =
        if others == 0 { String::new() } else { format!(", and {} that waited", plural(others, "other call")) };
    let done = if decision.word == "deny" { "denied" } else { "approved" };
    style::note(&format!("{done} {}{others}", style::plain(&call.tool)));
    Ok(())
}

fn for_long(milliseconds: u64) -> String {
    format_duration(Duration::from_secs(milliseconds / 1000)).to_string()
}

fn show(call: &WaitingCall) {
    // The client chooses its name: it must not look like a part of the question.
    let on_a_line = |text: &str| style::plain(&visible(text));
    let client = call.client.as_deref().map(|client| format!(" of {}", style::cut(&on_a_line(client), CLIENT)));
    let client = client.unwrap_or_default();
    let session = call.session.map(|session| format!(", session {session}")).unwrap_or_default();
    style::talk(&format!("\n{}{client}{session}: {}\n", on_a_line(&call.tool), on_a_line(&call.reason)));
    style::talk(&format!("  in {}\n", on_a_line(&call.folder)));
    for line in arguments(&call.arguments, call.approved_before.as_deref()) {
        style::talk(&format!("  {}\n", on_a_line(&line)));
    }
}

/// The arguments, one on a line, with what each was when the tool was approved last.
fn arguments(now: &str, before: Option<&str>) -> Vec<String> {
    let read = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
    let Some(given) = read(now) else { return vec![now.to_owned()] };
    if given.is_empty() {
        return vec!["no arguments".to_owned()];
    }
    let before = before.and_then(read);
    // Values as they were written: what is invisible has its number.
    let text = |value: &Value| visible(&value.to_string());
    let shown = |(name, value): (&String, &Value)| {
        let was = before.as_ref().map(|before| before.get(name));
        let note = match was {
            Some(Some(was)) if was != value => format!("    (approved before: {})", text(was)),
            Some(None) => "    (not given before)".to_owned(),
            _ => String::new(),
        };
        format!("{}: {}{note}", text(&Value::String(name.clone())), text(value))
    };
    let gone = before.iter().flatten().filter(|(name, _)| !given.contains_key(*name));
    let gone = gone.map(|(name, was)| {
        format!("{} is not given    (approved before: {})", text(&Value::String(name.clone())), text(was))
    });
    given.iter().map(shown).chain(gone).collect()
}

fn kept(remembered: &Remembered, is_json: bool) -> Result<ExitCode, Refusal> {
    let kept = remembered.list().map_err(|error| Refusal::io("the approvals cannot be read", error))?;
    if is_json {
        let row = |one: &Kept| json!({"id": one.id(), "tool": one.tool, "version": one.version, "project": one.project, "folder": one.folder, "arguments": one.arguments, "any_arguments": one.digest.is_none(), "since_ms": one.since_ms});
        style::answer_json(&kept.iter().map(row).collect::<Vec<_>>());
    } else if kept.is_empty() {
        style::note("no approval is kept");
    } else {
        let head = ["id", "tool", "given", "in", "arguments"].map(str::to_owned).to_vec();
        let row = |one: &Kept| {
            vec![
                one.id()[..8].to_owned(),
                style::plain(&one.tool),
                format!("{} ago", for_long(unix_ms().saturating_sub(one.since_ms))),
                style::plain(&one.folder),
                match (&one.arguments, &one.digest) {
                    (Some(arguments), _) => style::plain(arguments),
                    (None, Some(_)) => "certain ones, not shown: the tool gets secrets".to_owned(),
                    (None, None) => "any".to_owned(),
                },
            ]
        };
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(kept.iter().map(row)).collect();
        style::answer(&style::table(&rows, style::terminal_width()));
    }
    Ok(ExitCode::SUCCESS)
}

fn forget(remembered: &Remembered, which: &str, is_json: bool) -> Result<ExitCode, Refusal> {
    let meant =
        |one: &Kept| which == "all" || one.tool == which || (which.len() >= SHORTEST && one.id().starts_with(which));
    let gone = remembered.forget(meant).map_err(|error| Refusal::io("the approvals cannot be revoked", error))?;
    if gone == 0 {
        let what = format!("no kept approval has the id or the tool {which}");
        return Err(Refusal::not_found(what, "`hostler approve --list kept` shows them"));
    }
    if is_json {
        style::answer_json(&json!({"forgotten": gone}));
    } else {
        style::note(&format!("revoked {}", plural(gone, "approval")));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_with_what_changed() {
        let shown = arguments(r#"{"a":1,"b":"x\u202ey","d":2}"#, Some(r#"{"a":1,"b":"z","c":3}"#));
        assert_eq!(
            shown,
            [
                "\"a\": 1",
                "\"b\": \"x\\u202ey\"    (approved before: \"z\")",
                "\"d\": 2    (not given before)",
                "\"c\" is not given    (approved before: 3)",
            ]
        );
        assert_eq!(arguments("{}", None), ["no arguments"]);
    }

    #[test]
    fn a_person_decides_by_a_letter_and_says_why_not() {
        let said = |typed: &str| asked(&mut typed.as_bytes(), true);
        let allowed = |word| Said::Decided(Decision { word, reason: None });
        assert_eq!(
            [said("o\n"), said("what\nS\n"), said("a\n"), said("tool\n")],
            ["once", "session", "arguments", "tool"].map(allowed)
        );
        assert_eq!(said("d\nnot now\n"), Said::Decided(Decision { word: "deny", reason: Some("not now".to_owned()) }));
        assert_eq!([said("\n"), said("")], [Said::Later, Said::Nothing], "the end of the input decides nothing");
        assert_eq!(asked(&mut "s\n".as_bytes(), false), Said::Nothing, "it is not offered");
    }
}
