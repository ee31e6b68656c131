//! `hostler audit`: what was decided about calls, and whether the records of it are as they were written.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::options::{Audit, AuditOf};
use super::style::{self, Refusal};
use crate::audit::{
    AuditLog, Checkpoint, DecisionRecord, Finding, Kind, ModeSet, Record, RecordFilter, Verified, folder, records,
    verify,
};
use crate::config::audit::AuditSettings;
use crate::config::{Config, ConfigOptions};
use crate::telemetry::{rfc3339, unix_ms};
use crate::words::plural;

/// The exit status where something is not as it was written.
const CHANGED: u8 = 1;

pub(super) fn run(args: &Audit, wanted: &ConfigOptions) -> Result<ExitCode, Refusal> {
    let folder = folder(&wanted.environment);
    let usual = AuditOf::List { tool: None, call: None, denied: false, since: None, limit: 20 };
    match args.what.as_ref().unwrap_or(&usual) {
        AuditOf::List { tool, call, denied, since, limit } => {
            let since =
                since.map(|since| unix_ms().saturating_sub(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)));
            let (tool, call) = (tool.clone(), call.clone());
            let wanted = RecordFilter { tool, call, is_denied: *denied, since_ms: since, limit: *limit };
            list(&folder, &wanted, args.json)
        }
        AuditOf::Verify { against } => {
            let kept = against.as_deref().map(checkpoints).transpose()?.unwrap_or_default();
            Ok(said(&verified(&folder, &kept)?, kept.len(), args.json))
        }
        AuditOf::Checkpoint => checkpoint(&folder, wanted),
    }
}

fn unreadable(folder: &Path) -> impl Fn(io::Error) -> Refusal {
    move |error| Refusal::io(format!("cannot read {}", folder.display()), error)
}

fn list(folder: &Path, wanted: &RecordFilter, is_json: bool) -> Result<ExitCode, Refusal> {
    let found = records(folder, wanted).map_err(unreadable(folder))?;
    if is_json {
        style::answer_json(&found);
    } else if found.is_empty() {
        style::note("the audit log has no such record; [audit] log = \"all\" writes down allowed calls, too");
    } else {
        style::answer(&style::table(&found.iter().map(row).collect::<Vec<_>>(), style::terminal_width()));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(record: &Record) -> Vec<String> {
    let (what, of, why) = match &record.kind {
        Kind::Decision(decided) => (decided.decision.replace('_', " "), decided.tool.clone(), why(decided)),
        Kind::Mode(set) => ("mode".to_owned(), set.mode.as_deref().unwrap_or("cleared").to_uppercase(), why_mode(set)),
        Kind::Begin { why, .. } => ("begin".to_owned(), String::new(), why.clone().unwrap_or_default()),
        Kind::Resumed { why } => ("damaged".to_owned(), String::new(), why.clone()),
        Kind::Pruned { first, .. } => ("removed".to_owned(), String::new(), format!("the records before {first}")),
        Kind::Checkpoint { .. } => ("checkpoint".to_owned(), String::new(), String::new()),
    };
    [rfc3339(record.at_ms), what, of, why].iter().map(|text| style::plain(text)).collect()
}

fn why(decided: &DecisionRecord) -> String {
    let rule = decided.rules.first().map(|rule| format!("{} ({}, {})", rule.reason, rule.rule, rule.origin));
    let parts = [decided.by.clone(), decided.reason.clone(), rule, Some(format!("call {}", decided.call))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn why_mode(set: &ModeSet) -> String {
    let until = set.until_ms.map(|until| format!("until {}", rfc3339(until)));
    let counts_for = set.counts_for.as_ref().map(|file| format!("for {file}"));
    let parts = [Some(format!("by {}", set.by)), set.reason.clone(), until, counts_for];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The checkpoints in a file, one a line.
fn checkpoints(file: &Path) -> Result<Vec<Checkpoint>, Refusal> {
    let text =
        std::fs::read_to_string(file).map_err(|error| Refusal::io(format!("cannot read {}", file.display()), error))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = lines.map(serde_json::from_str).collect::<Result<Vec<Checkpoint>, _>>();
    let none = || format!("{} has no checkpoint", file.display());
    let fix = "name a file with lines that `hostler audit checkpoint` has printed";
    match read {
        Ok(read) if !read.is_empty() => Ok(read),
        Ok(_) => Err(Refusal::new(none(), fix)),
        Err(error) => Err(Refusal::new(format!("{}: {error}", none()), fix)),
    }
}

fn verified(folder: &Path, kept: &[Checkpoint]) -> Result<Verified, Refusal> {
    verify(folder, kept).map_err(unreadable(folder))
}

fn said(found: &Verified, compared: usize, is_json: bool) -> ExitCode {
    if is_json {
        style::answer_json(&json!(found));
    } else {
        found.findings.iter().for_each(|finding| style::warn(&described(finding)));
        let times = found.from_ms.zip(found.to_ms);
        let parts = [
            Some(plural(found.records, "record")),
            Some(plural(found.checkpoints, "checkpoint")),
            times.map(|(from, to)| format!("from {} to {}", rfc3339(from), rfc3339(to))),
            (found.unsigned > 0).then(|| format!("{} not signed yet", plural(found.unsigned, "record"))),
            (compared > 0).then(|| format!("compared with {}", plural(compared as u64, "checkpoint"))),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let is_right = if found.findings.is_empty() { "as written" } else { "not as written" };
        style::answer(&format!("{is_right}: {text}"));
    }
    if found.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CHANGED) }
}

fn described(finding: &Finding) -> String {
    let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}: {}", finding.file.display(), finding.what)
}

/// Signs the log and prints the checkpoint, with findings beside it on standard error.
fn checkpoint(folder: &Path, wanted: &ConfigOptions) -> Result<ExitCode, Refusal> {
    if !folder.is_dir() {
        return Err(Refusal::new("the audit log is empty", "make a checkpoint when something was decided"));
    }
    let own = Config::of_person(wanted).map_or_else(|_| AuditSettings::unknown(), |own| own.audit);
    let failed = |error| Refusal::system("cannot make a checkpoint", io::Error::other(format!("{error}")));
    AuditLog::in_folder(folder.to_owned()).sign(own.keep()).map_err(failed)?;
    let found = verified(folder, &[])?;
    found.findings.iter().for_each(|finding| style::warn(&described(finding)));
    if let Some(checkpoint) = &found.last_checkpoint {
        style::answer(&json!(checkpoint).to_string());
    }
    Ok(if found.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CHANGED) })
}
