//! Shell completion: commands and flags by clap, tools and their arguments from the catalogue.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompletionCandidate;
use clap_complete::env::Shells;
use serde_json::Value;

use super::options::{Command, Completions, Options};
use super::style::Refusal;
use super::{show, style};
use crate::config::Environment;
use crate::runtime::Workspace;

/// The environment variable of a completion request.
const VARIABLE: &str = "COMPLETE";

/// `hostler completions SHELL`: the script that a shell loads at its start.
pub(super) fn script(args: &Completions) -> Result<ExitCode, Refusal> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&args.shell) else {
        let known = shells.names().collect::<Vec<_>>().join(", ");
        return Err(Refusal::new(format!("no completions for `{}`", args.shell), format!("supported shells: {known}")));
    };
    let mut script = Vec::new();
    let cannot = |error| Refusal { status: style::SYSTEM, ..Refusal::io("cannot write the script", error) };
    shell.write_registration(VARIABLE, "hostler", "hostler", "hostler", &mut script).map_err(cannot)?;
    style::answer(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}

/// Names of tools, without those of broken files.
pub(super) fn tools(prefix: &OsStr) -> Vec<CompletionCandidate> {
    let prefix = prefix.to_string_lossy();
    let Some(app) = app() else { return Vec::new() };
    let catalogue = app.calls.registry.catalogue();
    let tools = catalogue.ready().filter(|tool| tool.name.starts_with(&*prefix));
    tools.map(|tool| candidate(&tool.name, tool.function().summary.as_deref())).collect()
}

/// Names of modes.
pub(super) fn modes(prefix: &OsStr) -> Vec<CompletionCandidate> {
    let prefix = prefix.to_string_lossy().to_lowercase();
    let modes = app().map(|app| app.config().modes.clone()).unwrap_or_default();
    modes.names().filter(|name| name.starts_with(&prefix)).map(|name| candidate(name, None)).collect()
}

/// Names of packs, and of tools.
pub(super) fn packs(prefix: &OsStr) -> Vec<CompletionCandidate> {
    let text = prefix.to_string_lossy();
    let Some(app) = app() else { return Vec::new() };
    let catalogue = app.calls.registry.catalogue();
    let packs = catalogue.files.iter().filter(|entry| entry.file.is_ready() && entry.file.pack.starts_with(&*text));
    let packs = packs.map(|entry| candidate(&entry.file.pack, entry.file.description.as_deref()));
    packs.chain(tools(prefix)).collect()
}

/// `key=` for each argument of the tool, and `key=value` where the values are known.
pub(super) fn arguments(prefix: &OsStr) -> Vec<CompletionCandidate> {
    let prefix = prefix.to_string_lossy();
    let (Some(app), Some(Command::Call(call))) = (app(), typed().map(|typed| typed.command)) else { return Vec::new() };
    let catalogue = app.calls.registry.catalogue();
    let Ok(tool) = catalogue.resolve(&call.tool) else { return Vec::new() };
    let schema = tool.input_schema();
    let mut candidates = Vec::new();
    for (key, property) in show::properties(schema) {
        let text = property.get("description").and_then(Value::as_str);
        let values = values(show::resolved(schema, property));
        if prefix.starts_with(&format!("{key}=")) && !values.is_empty() {
            candidates.extend(values.iter().map(|value| candidate(&format!("{key}={value}"), None)));
        } else {
            candidates.push(candidate(&format!("{key}="), text));
        }
    }
    candidates.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(&*prefix));
    candidates
}

fn values(property: &Value) -> Vec<String> {
    let options = property.get("enum").and_then(Value::as_array);
    let options: Vec<String> = options
        .into_iter()
        .flatten()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    match property.get("type").and_then(Value::as_str) {
        Some("boolean") => vec!["true".to_owned(), "false".to_owned()],
        _ => options,
    }
}

fn candidate(value: &str, help: Option<&str>) -> CompletionCandidate {
    CompletionCandidate::new(value).help(help.map(|text| text.to_owned().into()))
}

/// The options on the line to complete, as far as it is typed.
fn typed() -> Option<Options> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    parsed(words)
}

fn parsed(words: impl Iterator<Item = OsString>) -> Option<Options> {
    let matches = Options::command().ignore_errors(true).try_get_matches_from(words).ok()?;
    Options::from_arg_matches(&matches).ok()
}

/// hostler with the flags of the line; errors are ignored.
fn app() -> Option<Workspace> {
    let wanted = typed()?.wanted(&Arc::new(Environment::of_process()));
    Workspace::open(&wanted, &std::env::current_dir().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_found_among_flags() {
        let tool = |line: &str| match parsed(line.split(' ').map(OsString::from))?.command {
            Command::Call(call) => Some(call.tool),
            _ => None,
        };
        for text in
            ["hostler call a.b x=", "hostler --tools t call --timeout 3s a.b", "hostler invoke --json --tools=x a.b"]
        {
            assert_eq!(tool(text).as_deref(), Some("a.b"), "{text}");
        }
        assert_eq!(tool("hostler call --tools t").unwrap_or_default(), "");
    }
}
