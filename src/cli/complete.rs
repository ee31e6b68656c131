//! Shell completion: commands and flags by clap, tools and their arguments from the catalogue.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap_complete::CompletionCandidate;
use clap_complete::env::Shells;
use serde_json::Value;

use super::options::Completions;
use super::style::Refusal;
use super::{show, style};
use crate::config::ConfigOptions;
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
    let (Some(app), Some(name)) = (app(), tool_of(&words())) else { return Vec::new() };
    let catalogue = app.calls.registry.catalogue();
    let Ok(tool) = catalogue.resolve(&name) else { return Vec::new() };
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

/// The tool on a `call` line: the first word that is neither a flag nor its value.
fn tool_of(words: &[String]) -> Option<String> {
    let mut rest = words.iter().skip_while(|word| *word != "call" && *word != "invoke").skip(1);
    while let Some(word) = rest.next() {
        if ["--config", "--tools", "--input", "--timeout"].contains(&word.as_str()) {
            rest.next();
        } else if !word.starts_with('-') {
            return Some(word.clone());
        }
    }
    None
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

/// The words of the line to complete.
fn words() -> Vec<String> {
    let all: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    all.into_iter().skip_while(|word| word != "--").skip(1).collect()
}

/// hostler with the flags of the line; errors are ignored.
fn app() -> Option<Workspace> {
    let words = words();
    let flag = |name: &str| -> Vec<PathBuf> {
        let apart = words.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].clone());
        let joined = words.iter().filter_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()));
        apart.chain(joined).map(PathBuf::from).collect()
    };
    let wanted = ConfigOptions {
        config: flag("--config").pop(),
        tools: flag("--tools"),
        timeout: None,
        environment: Arc::new(Environment::of_process()),
    };
    Workspace::open(&wanted, &std::env::current_dir().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::tool_of;

    #[test]
    fn the_tool_is_found_among_flags() {
        let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for text in
            ["hostler call a.b x=", "hostler --tools t call --timeout 3s a.b", "hostler invoke --json --tools=x a.b"]
        {
            assert_eq!(tool_of(&line(text)).as_deref(), Some("a.b"), "{text}");
        }
        assert_eq!(tool_of(&line("hostler call --tools t")), None);
    }
}
