//! `hostler show TOOL`, and the help of a single tool, `hostler call --help TOOL`.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::options::Show;
use super::style::{self, Refusal};
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::tool::Protocol;
use crate::discovery::Kind;
use crate::outcome::Code;
use crate::registry::{NotFound, RoleKind, Serving, Tool};
use crate::runtime::Workspace;

pub(super) async fn run(app: &Workspace, args: &Show) -> Result<ExitCode, Refusal> {
    app.calls.registry.asked().await;
    let catalogue = app.calls.registry.catalogue();
    let tool = catalogue.resolve(&args.tool).or_else(|reason| {
        let role = [RoleKind::Resource, RoleKind::Prompt]
            .into_iter()
            .find_map(|role| catalogue.resolve_as(role, &args.tool).ok());
        role.ok_or(reason)
    });
    let tool = tool.map_err(|reason| missing(&args.tool, reason))?;
    if args.json {
        style::answer_json(&as_json(tool));
    } else {
        style::answer(&style::plain(&as_text(tool, style::terminal_width())));
    }
    Ok(ExitCode::SUCCESS)
}

/// That there is no such tool, or why it is not served.
pub(super) fn missing(name: &str, reason: NotFound) -> Refusal {
    match reason {
        NotFound::Broken(path, reason) => {
            let status = Code::StartupFailed.exit_status();
            Refusal { status, ..Refusal::new(format!("{path} is broken: {reason}"), "") }
        }
        NotFound::Unknown { advice, .. } => Refusal::not_found(format!("there is no tool {name}"), advice),
    }
}

fn as_json(tool: &Tool) -> Value {
    let settings = tool.entry.settings.shown(&tool.settings);
    let settings: Map<String, Value> = settings
        .into_iter()
        .map(|row| (row.key.to_owned(), json!({"value": row.value, "origin": row.origin.to_string()})))
        .collect();
    let function = tool.function();
    let (status, problem) = tool.entry.shown();
    json!({
        "name": tool.name,
        "mcp_name": tool.mcp_name,
        "role": tool.role_kind().word(),
        "uri": tool.uri(),
        "pack": tool.entry.file.pack,
        "kind": tool.entry.kind_word(),
        "status": status,
        "reason": problem,
        "description": tool.description(),
        "origin": tool.defined_in().display().to_string(),
        "overrides": tool.entry.file.overrides.iter().map(|path| path.display().to_string()).collect::<Value>(),
        "line": function.line,
        "input_schema": tool.input_schema(),
        "output_schema": tool.promised_schema(),
        "settings": settings,
    })
}

/// Whether a setting has an effect on a tool, by how its calls are made.
fn has_effect(tool: &Tool, setting: &str) -> bool {
    const OF_ALL: [&str; 6] = ["timeout", "max_queue", "effects", "validate", "large", "journal"];
    // A bare worker does not report when it is ready, and cannot call hostler.
    const NOT_BARE: [&str; 4] = ["startup_timeout", "question_timeout", "host_access", "client_access"];
    let has_command = tool.entry.settings.launcher.value.command().is_some();
    match tool.entry.serving() {
        _ if DeclaredPolicy::has_key(setting) => true,
        Serving::Shim => setting != "functions",
        Serving::Itself => !NOT_BARE.contains(&setting),
        Serving::Program(protocol) => {
            let is_without_effect = protocol == Protocol::Bare && NOT_BARE.contains(&setting);
            !is_without_effect && (setting == "launcher" && has_command || !["launcher", "pass_env"].contains(&setting))
        }
        Serving::EachCall => {
            let of_processes = ["cwd", "env", "protocol", "new_privileges", "sandbox", "max_memory", "max_cpu"];
            OF_ALL.contains(&setting) || of_processes.contains(&setting) || setting == "launcher" && has_command
        }
        // Of what runs inside hostler, only commands and tools in a process of their own have a sandbox.
        Serving::Inside => {
            let (is_bash, has_process) = (tool.entry.file.pack == "bash", tool.entry.needs_process());
            match setting {
                "sandbox" | "max_memory" | "max_cpu" => is_bash || has_process,
                "launcher" => is_bash && has_command,
                "new_privileges" => true,
                other => OF_ALL.contains(&other),
            }
        }
    }
}

/// Where a tool is defined.
fn origin(tool: &Tool) -> String {
    let path = tool.defined_in().display();
    match tool.entry.file.kind {
        Kind::Python | Kind::Internal => format!("from {path} line {}", tool.function().line),
        Kind::Executable => format!("from {path}"),
        Kind::Builtin => "part of hostler".to_owned(),
    }
}

fn as_text(tool: &Tool, width: Option<usize>) -> String {
    let file = &tool.entry.file;
    let path = file.path.display();
    let role = match tool.role_kind() {
        RoleKind::Tool => format!("MCP name {}", tool.mcp_name),
        RoleKind::Resource => format!("the resource {}", tool.uri().unwrap_or_default()),
        RoleKind::Prompt => format!("the prompt {}", tool.prompt_name()),
    };
    let mut text = format!("{}  ({role})\n{}\n", tool.name, origin(tool));
    for other in &file.overrides {
        text.extend(["overrides ", &other.display().to_string(), "\n"]);
    }
    if let (status, Some(reason)) = tool.entry.shown() {
        text.extend([status, ": ", &reason, "\n"]);
    }
    if let Some(description) = tool.description() {
        text.extend(["\n", description, "\n"]);
    }
    text.push_str("\nArguments\n");
    text.push_str(&arguments(tool.input_schema(), width));
    if let Some(promised) = tool.promised_schema() {
        text.extend(["\nReturns\n  ", &returned(promised), "\n"]);
    }
    text.push_str("\nSettings\n");
    let rows = tool.entry.settings.shown(&tool.settings);
    let rows = rows.into_iter().filter(|row| has_effect(tool, row.key));
    let rows: Vec<Vec<String>> =
        rows.map(|row| vec![format!("  {}", row.key), row.value, row.origin.to_string()]).collect();
    text.push_str(&style::table(&rows, None));
    for warning in &file.warnings {
        let line = if warning.line == 0 { String::new() } else { format!(":{}", warning.line) };
        text.extend([format!("\nwarning: {path}{line}: {}", warning.reason)]);
    }
    text
}

/// The result's type and description, in a line.
pub(super) fn returned(promised: &Map<String, Value>) -> String {
    // Every executable may return an error instead, which need not be repeated here.
    let done = promised.get("anyOf").and_then(|branches| branches.get(0)?.as_object());
    let promised = done.filter(|_| promised.get("type").is_some_and(|kind| kind == "object")).unwrap_or(promised);
    let wrapped = promised.get("properties").and_then(|all| all.get("result"));
    let schema = wrapped.cloned().unwrap_or_else(|| Value::Object(promised.clone()));
    let text = schema.get("description").and_then(Value::as_str).map(|text| format!(": {text}"));
    type_word(&schema) + &text.unwrap_or_default()
}

/// A schema in a word or two.
pub(super) fn type_word(schema: &Value) -> String {
    if let Some(Value::Array(values)) = schema.get("enum") {
        return values.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
        return branches.iter().map(type_word).collect::<Vec<_>>().join("|");
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or("object").to_owned();
    }
    if let Some(Value::Array(kinds)) = schema.get("type") {
        // Whether it is optional is shown elsewhere.
        let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
        return kinds.collect::<Vec<_>>().join("|");
    }
    match (schema.get("type").and_then(Value::as_str), schema.get("items"), schema.get("format")) {
        (Some("array"), Some(items), _) => format!("list of {}", type_word(items)),
        (Some(word), _, Some(Value::String(format))) => format!("{word} ({format})"),
        (Some(word), ..) => word.to_owned(),
        (None, ..) => "anything".to_owned(),
    }
}

/// `hostler call --help TOOL`
pub(super) fn help(tool: &Tool, width: Option<usize>) -> String {
    let schema = tool.input_schema();
    let mut text = String::new();
    if let Some(description) = tool.description() {
        text.extend([description, "\n\n"]);
    }
    text.extend(["Usage: hostler call ", &tool.name]);
    for (name, property) in properties(schema) {
        let word = format!("{name}={}", placeholder(resolved(schema, property)));
        text.extend([" ", &if is_required(schema, name) { word } else { format!("[{word}]") }]);
    }
    text.push_str("\n\nArguments:\n");
    text.push_str(&arguments(schema, width));
    if let Some(words) = example(tool) {
        text.extend(["\nFor example:\n  hostler call ", &tool.name, &words, "\n"]);
    }
    text
}

/// A table of arguments: name, type, whether it is required, description.
pub(super) fn arguments(schema: &Map<String, Value>, width: Option<usize>) -> String {
    let rows: Vec<Vec<String>> = properties(schema)
        .map(|(name, property)| {
            let default = property.get("default").map(|value| format!("default {value}"));
            let need = if is_required(schema, name) {
                "required".to_owned()
            } else {
                default.unwrap_or("optional".to_owned())
            };
            let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
            vec![format!("  {name}"), type_word(resolved(schema, property)), need, text.to_owned()]
        })
        .collect();
    if rows.is_empty() { "  none\n".to_owned() } else { style::table(&rows, width) }
}

pub(super) fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// A property, or the definition it refers to.
pub(super) fn resolved<'s>(schema: &'s Map<String, Value>, property: &'s Value) -> &'s Value {
    let name = property.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/$defs/"));
    name.and_then(|name| schema.get("$defs")?.get(name)).unwrap_or(property)
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
}

fn placeholder(property: &Value) -> String {
    match property.get("type").and_then(Value::as_str) {
        Some("string") => "TEXT",
        Some("integer" | "number") => "NUMBER",
        Some("boolean") => "yes|no",
        _ => return format!("({})", type_word(property)),
    }
    .to_owned()
}

/// Example arguments; none where a required one cannot be invented.
fn example(tool: &Tool) -> Option<String> {
    let schema = tool.input_schema();
    let mut words = String::new();
    for (name, property) in properties(schema).filter(|(name, _)| is_required(schema, name)) {
        let property = resolved(schema, property);
        let value = match (property.get("enum"), property.get("type").and_then(Value::as_str)) {
            (Some(Value::Array(options)), _) => options.first()?.as_str().map(str::to_owned)?,
            (_, Some("string")) => "'some text'".to_owned(),
            (_, Some("integer" | "number")) => "3".to_owned(),
            (_, Some("boolean")) => "yes".to_owned(),
            _ => return None,
        };
        words.extend([" ", name, "=", &value]);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use crate::config::ConfigOptions;
    use crate::runtime::Workspace;

    #[test]
    fn a_tool_is_shown_with_its_arguments_and_the_origin_of_its_settings() {
        let folder = tempfile::tempdir().unwrap();
        let tools = folder.path().join("tools");
        std::fs::create_dir(&tools).unwrap();
        let tool = "# /// script\n# dependencies = []\n# [tool.hostler]\n# effects = \"pure\"\n# ///\n\ndef search(query: str, \
                    count: int = 10, mode: str | None = None) -> list:\n    \"\"\"Search the web.\n\n    Args:\n        query: \
                    What to look for.\n        count: How many.\n    \"\"\"\n";
        std::fs::write(tools.join("brave.py"), tool).unwrap();
        let config = "[tool.brave]\ntimeout = \"20s\"\nsecrets = [\"KEY\"]\n";
        std::fs::write(folder.path().join("hostler.toml"), config).unwrap();
        let app = Workspace::open(&ConfigOptions::default(), folder.path()).unwrap();
        let catalogue = app.calls.registry.catalogue();
        let shown = super::as_text(catalogue.resolve("brave_search").unwrap(), None);
        insta::assert_snapshot!(shown.replace(&folder.path().display().to_string(), "FOLDER"));
    }
}
