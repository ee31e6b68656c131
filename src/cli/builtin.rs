//! `hostler builtin`: hostler's own tools as executables, by name or by a link to this program under that name.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::options::Builtin;
use super::show;
use super::style::{self, Refusal};
use crate::builtin::Builtins;
use crate::builtin::walled::{self, SentAnswer};
use crate::call::CallRequest;
use crate::config::builtin::{ALIASES, GROUPS, listed_as};
use crate::config::origin::Setting;
use crate::config::section::nearest;
use crate::config::{Config, ConfigOptions, Environment};
use crate::outcome::{Code, Fault};
use crate::registry::Tool;
use crate::runtime::Workspace;

/// The command line; a program name that is a built-in tool's becomes `builtin NAME`.
pub(super) fn words(mut typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let Some(program) = typed.next() else { return Vec::new() };
    let name = Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match own_name(&name) {
        Some(name) if name != "hostler" => [program, "builtin".into(), name.into()].into_iter().chain(typed).collect(),
        _ => [program].into_iter().chain(typed).collect(),
    }
}

/// The built-in tool of a name, also with hyphens or by an alias of other hosts.
fn own_name(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_");
    let own = listed_as(&name).unwrap_or(&name);
    GROUPS.iter().flat_map(|(_, tools)| tools.iter()).find(|tool| **tool == own).copied()
}

pub(super) async fn run(args: &Builtin, wanted: &ConfigOptions, directory: &Path) -> Result<ExitCode, Refusal> {
    let config = Config::load(wanted, directory)?;
    if let Some(folder) = &args.link {
        return link(&directory.join(folder));
    }
    let Some(typed) = &args.name else {
        list(&config, args.json);
        return Ok(ExitCode::SUCCESS);
    };
    let Some(name) = own_name(typed) else {
        let known = GROUPS.iter().flat_map(|(_, tools)| tools.iter().copied());
        let near = nearest(typed, known).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        let fix = format!("{near}`hostler builtin` lists them");
        return Err(Refusal::not_found(format!("there is no built-in tool {typed}"), fix));
    };
    let app = Workspace::build(alone(config, name, directory));
    if !args.schema {
        return call(&app, name).await;
    }
    let catalogue = app.calls.registry.catalogue();
    let tool = catalogue.resolve(name).map_err(|reason| show::missing(name, reason))?;
    style::answer_json(&schema(name, tool));
    Ok(ExitCode::SUCCESS)
}

/// Makes the call on standard input. This process has the walls of the tool's sandbox, and no configuration.
pub(super) async fn in_sandbox(environment: Environment) -> Result<ExitCode, Refusal> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Refusal::io("cannot read standard input", error))?;
    let answer = match walled::read_call(&text) {
        Ok(call) => call.answer(environment).await,
        Err(fault) => SentAnswer::Fault(fault),
    };
    style::answer(&serde_json::to_string(&answer).map_err(|error| Refusal::new(error.to_string(), ""))?);
    Ok(ExitCode::SUCCESS)
}

/// A configuration with this tool enabled and nothing else.
fn alone(mut config: Config, name: &str, directory: &Path) -> Config {
    config.tools.value.clear();
    let builtin = &mut config.builtin;
    builtin.enable = Some(Setting::default_value(vec![name.to_owned()]));
    builtin.disable = None;
    builtin.roots.get_or_insert_with(|| Setting::default_value(vec![directory.to_owned()]));
    config
}

fn schema(name: &str, tool: &Tool) -> Value {
    let mut answer = json!({
        "name": name,
        "version": env!("CARGO_PKG_VERSION"),
        "description": tool.description(),
        "input_schema": tool.input_schema(),
    });
    if let Some(promised) = tool.promised_schema() {
        answer["output_schema"] = Value::Object(promised.clone());
    }
    answer
}

/// A failed operation is a result with status 0. The exit status reports a call that did not take place.
async fn call(app: &Workspace, name: &str) -> Result<ExitCode, Refusal> {
    let outcome = app.calls.call(CallRequest::new(name, arguments()?)).await;
    let answer = match &outcome.ended {
        Ok(result) => result.get().to_owned(),
        Err(fault) if is_of_the_call(fault.code) => {
            return Err(Refusal { status: fault.code.exit_status(), ..Refusal::new(fault.to_string(), "") });
        }
        Err(Fault { code, message, .. }) => json!({"error": message, "error_code": code}).to_string(),
    };
    style::answer(&answer);
    Ok(ExitCode::SUCCESS)
}

fn is_of_the_call(code: Code) -> bool {
    matches!(code, Code::InvalidParams | Code::SystemError | Code::ToolTimeout | Code::Cancelled | Code::ShuttingDown)
}

fn arguments() -> Result<Map<String, Value>, Refusal> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Refusal::io("cannot read standard input", error))?;
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let bad = |error| Refusal::new(format!("standard input must be a JSON object of arguments: {error}"), "");
    serde_json::from_str(&text).map_err(bad)
}

fn list(config: &Config, as_json: bool) {
    let on = config.builtin.enabled();
    let files = Builtins::every(config).files();
    let about = |tool: &str| {
        let file = files.iter().find(|file| file.pack == tool);
        file.and_then(|file| file.description.clone()).unwrap_or_default()
    };
    let rows = GROUPS.iter().flat_map(|(group, tools)| tools.iter().map(move |tool| (*group, *tool)));
    if as_json {
        let row = |(group, tool)| json!({"name": tool, "group": group, "enabled": on.contains(tool), "description": about(tool)});
        return style::answer_json(&rows.map(row).collect::<Value>());
    }
    let row = |(group, tool): (&str, &str)| {
        let state = if on.contains(tool) { "on" } else { "off" };
        vec![tool.to_owned(), group.to_owned(), state.to_owned(), about(tool)]
    };
    style::answer(&style::table(&rows.map(row).collect::<Vec<_>>(), style::terminal_width()));
    if on.is_empty() {
        style::note(
            "enable them in hostler.toml, by name or by group: [builtin] enable = [\"search\"], roots = [\".\"]",
        );
    }
}

/// Links this program under the name of each tool that needs no host, with hyphens, as files are named.
fn link(folder: &Path) -> Result<ExitCode, Refusal> {
    let unknown =
        |error| Refusal { status: style::SYSTEM, ..Refusal::io("cannot find this program's own path", error) };
    let program = std::env::current_exe().and_then(std::fs::canonicalize).map_err(unknown)?;
    std::fs::create_dir_all(folder).map_err(|error| Refusal::io(folder.display().to_string(), error))?;
    let tools = GROUPS.iter().filter(|(group, _)| *group != "host").flat_map(|(_, tools)| tools.iter());
    let mut made = Vec::new();
    for tool in tools {
        // Under the names that hosts of executables use.
        let name = ALIASES.iter().find(|(_, own)| own == tool).map_or(*tool, |(alias, _)| alias).replace('_', "-");
        place(&program, &folder.join(&name))?;
        made.push(name);
    }
    style::answer(&made.join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// Creates a link, unless it exists. Anything else is not replaced.
fn place(program: &Path, at: &Path) -> Result<(), Refusal> {
    match std::os::unix::fs::symlink(program, at) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match std::fs::read_link(at) {
            Ok(target) if target == program => Ok(()),
            _ => {
                let what = format!("{} exists and is not a link to this program", at.display());
                Err(Refusal::new(what, "remove it first"))
            }
        },
        Err(error) => Err(Refusal::io(at.display().to_string(), error)),
    }
}
