//! The output of `--schema`: one tool or a list of them, with JSON Schemas or maps of parameters, and what they declare.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::schemas::{Schema, input_of, of_any_arguments, output_of};
use crate::config::declared_policy::{DeclaredPolicy, Risk};
use crate::config::icon::checked as checked_icon;
use crate::config::mode::Mode;
use crate::config::origin::{Diagnosis, Setting};
use crate::config::tool::{OutputForm, Protocol, ToolLayer};
use crate::config::value::{Word, is_option_word, parse_duration};
use crate::discovery::{Function, JsonSchema, Role};
use crate::pep723::is_identifier;
use crate::words::first_paragraph;

/// More tools than any one program has.
const MOST_TOOLS: usize = 256;
/// Longer texts are shortened in messages.
const MOST_SHOWN: usize = 120;

/// What an executable printed.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub functions: Vec<Function>,
    pub declared: ToolLayer,
    /// Declarations that were not understood.
    pub remarks: Vec<Diagnosis>,
    /// Why arguments or results are unknown. What else is declared holds.
    pub unknown: Option<Diagnosis>,
}

pub(super) fn unusable(what: impl Into<String>) -> Diagnosis {
    Diagnosis::new(what, "let `--schema` print a JSON schema of its arguments")
}

/// The same about one tool or parameter.
fn of_one(name: &str) -> impl Fn(Diagnosis) -> Diagnosis {
    move |reason| Diagnosis::new(format!("`{name}`: {}", reason.what), reason.fix)
}

/// The tools that an executable holds, or why its output cannot be used. A single one has the file's name.
pub(super) fn read(bytes: &[u8], name: &str) -> Result<Printed, Diagnosis> {
    let text = std::str::from_utf8(bytes).map_err(|_| unusable("the output of `--schema` is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(unusable("`--schema` prints nothing"));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let first = text.trim_start().lines().next().unwrap_or_default();
        let first = shortened(first.chars().filter(|one| !one.is_control()).collect());
        unusable(format!("the output of `--schema` begins with `{first}` and is not JSON: {error}"))
    })?;
    match unwrapped(value) {
        Value::Object(tool) => {
            let mut printed =
                Printed { declared: declared_settings(std::slice::from_ref(&tool))?, ..Printed::default() };
            printed.remarks = printed.add(&tool, name.to_owned());
            Ok(printed)
        }
        Value::Array(tools) if tools.is_empty() => Err(unusable("`--schema` prints an empty list")),
        Value::Array(tools) if tools.len() > MOST_TOOLS => {
            Err(unusable(format!("`--schema` prints more than {MOST_TOOLS} tools")))
        }
        Value::Array(tools) => several(tools),
        _ => Err(unusable("the output of `--schema` is neither an object nor a list of objects")),
    }
}

/// Without what some providers of models put around a tool or a list of tools: `{"type": "function", "function": {…}}`,
/// `{"tools": […]}`.
fn unwrapped(value: Value) -> Value {
    const LISTS: [&str; 4] = ["tools", "functions", "function_declarations", "functionDeclarations"];
    let Value::Object(mut outer) = value else { return value };
    let is_function = outer.get("type").is_some_and(|kind| kind == "function");
    if is_function && outer.get("function").is_some_and(Value::is_object) {
        return outer.remove("function").unwrap_or_default();
    }
    let list = LISTS.into_iter().find(|key| outer.get(*key).is_some_and(Value::is_array));
    match list.filter(|_| outer.get("name").is_none()) {
        Some(key) => outer.remove(key).unwrap_or_default(),
        None => Value::Object(outer),
    }
}

fn several(tools: Vec<Value>) -> Result<Printed, Diagnosis> {
    let (mut found, mut objects) = (Printed::default(), Vec::new());
    for (place, tool) in (1..).zip(tools) {
        let Value::Object(tool) = unwrapped(tool) else {
            return Err(unusable(format!("item {place} of the output of `--schema` is not an object")));
        };
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().replace('-', "_");
        if !is_identifier(&name) {
            return Err(unusable(format!("item {place} of the output of `--schema` has no valid `name`")));
        }
        if found.functions.iter().any(|other| other.name == name) {
            return Err(unusable(format!("`--schema` prints two tools called `{name}`")));
        }
        let remarks = found.add(&tool, name.clone());
        found.remarks.extend(remarks.into_iter().map(of_one(&name)));
        objects.push(tool);
    }
    found.declared = declared_settings(&objects)?;
    Ok(found)
}

impl Printed {
    /// Adds a tool. Returns what of it was not understood.
    fn add(&mut self, tool: &Schema, name: String) -> Vec<Diagnosis> {
        let (declared, remarks) = declared_policy(tool);
        let description =
            tool.get("description").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let input = input_of(tool).map_err(of_one(&name)).unwrap_or_else(|reason| self.open(reason));
        let output = output_of(tool).map_err(of_one(&name)).unwrap_or_else(|reason| {
            self.open(reason);
            None
        });
        self.functions.push(Function {
            served_as: None,
            summary: description.map(first_paragraph),
            description: description.map(str::to_owned),
            input_schema: JsonSchema::of(&input),
            output_schema: output.as_ref().map(JsonSchema::of),
            role: Role::Tool,
            is_async: false,
            line: 0,
            declared,
            name,
            symbol: None,
        });
        remarks
    }

    /// The schema of arguments that are unknown.
    fn open(&mut self, reason: Diagnosis) -> Schema {
        self.unknown.get_or_insert(reason);
        of_any_arguments()
    }
}

pub(super) fn shortened(text: String) -> String {
    let short: String = text.chars().take(MOST_SHOWN).collect();
    if short.len() < text.len() { short + "…" } else { text }
}

/// The protocol and the secrets of an executable. Its tools share a worker, so what one of them declares holds for all.
fn declared_settings(tools: &[Schema]) -> Result<ToolLayer, Diagnosis> {
    let (mut protocol, mut secrets): (Option<Protocol>, Option<Vec<String>>) = (None, None);
    let (mut output, mut input_option) = (None, None);
    let get = |tool: &'_ Schema, key: &str| tool.get(key).filter(|value| !value.is_null()).cloned();
    for tool in tools {
        if let Some(value) = get(tool, "protocol") {
            let word = value.as_str().and_then(Protocol::of);
            let own = word.ok_or_else(|| {
                Diagnosis::new(format!("unknown `protocol` {value}"), "write \"v1\" or \"bare\", or remove it")
            })?;
            if protocol.replace(own).is_some_and(|other| other != own) {
                return Err(unusable("`--schema` prints two protocols, and a file has one"));
            }
        }
        if let Some(Value::String(word)) = get(tool, "output")
            && let Some(form) = OutputForm::of(&word)
        {
            output = Some(form);
        }
        if let Some(Value::String(word)) = get(tool, "input_option")
            && is_option_word(&word)
        {
            input_option = Some(Setting::declared(word));
        }
        if let Some(value) = get(tool, "secrets") {
            let names: Result<Vec<String>, _> = serde_json::from_value(value);
            let all = secrets.get_or_insert_default();
            all.extend(names.map_err(|_| unusable("`secrets` is not a list of names"))?);
            all.sort_unstable();
            all.dedup();
        }
    }
    let (protocol, secrets) = (protocol.map(Setting::declared), secrets.map(Setting::declared));
    Ok(ToolLayer { secrets, protocol, output: output.map(Setting::declared), input_option, ..ToolLayer::default() })
}

/// What a tool declares, and a message for each part that was not understood. Such a part does not keep the tool from being
/// served; where it restricts the tool (approval, sandbox, risk, modes), the strictest value takes its place.
fn declared_policy(tool: &Schema) -> (Option<Box<ToolLayer>>, Vec<Diagnosis>) {
    let mut reader = PolicyReader { tool, remarks: Vec::new() };
    let policy = DeclaredPolicy {
        version: reader.read("version", None),
        tags: reader.read("tags", None),
        category: reader.read("category", None),
        risk_level: reader.read("risk_level", Some(Risk::High)),
        allowed_modes: reader.read::<Vec<Mode>>("allowed_modes", Some(Vec::new())),
        requires_approval: reader.read("requires_approval", Some(true)),
        requires_sandbox: reader.read("requires_sandbox", Some(true)),
        rate_limit_per_hour: reader.read("rate_limit_per_hour", None),
        ..DeclaredPolicy::default()
    };
    let (timeout, effects) = (reader.timeout(), reader.read("effects", None));
    let icon = reader.icon();
    let declared = ToolLayer { timeout, effects, policy, icon, ..ToolLayer::default() };
    ((declared != ToolLayer::default()).then(|| Box::new(declared)), reader.remarks)
}

struct PolicyReader<'a> {
    tool: &'a Schema,
    remarks: Vec<Diagnosis>,
}

impl<'a> PolicyReader<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.tool.get(key).filter(|value| !value.is_null())
    }

    /// The value of a key. An unknown one is ignored, or taken as the strictest.
    fn read<T: DeserializeOwned + Serialize>(&mut self, key: &str, strictest: Option<T>) -> Option<Setting<T>> {
        let value = self.get(key)?;
        let as_written = serde_json::from_value(value.clone());
        let read = as_written.or_else(|_| serde_json::from_value(lowercase(value)));
        let used = read.or_else(|error| {
            let used = strictest.as_ref().map_or("ignored".to_owned(), |value| format!("taken as {}", json!(value)));
            let what = format!("`{key}` is {used}: {}", shortened(error.to_string()));
            self.remarks.push(Diagnosis::new(what, format!("correct `{key}` in the output of `--schema`")));
            strictest.ok_or(error)
        });
        used.ok().map(Setting::declared)
    }

    fn icon(&mut self) -> Option<Setting<String>> {
        let icon = self.read::<String>("icon", None)?;
        match checked_icon(icon.value) {
            Ok(icon) => Some(Setting::declared(icon)),
            Err(reason) => {
                self.remarks.push(Diagnosis::new(format!("`icon` is ignored: {}", reason.what), reason.fix));
                None
            }
        }
    }

    /// As words, or in seconds.
    fn timeout(&mut self) -> Option<Setting<Duration>> {
        let (key, value) = ["timeout", "timeout_seconds"].into_iter().find_map(|key| Some((key, self.get(key)?)))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let time = parse_duration(&text).filter(|time| !time.is_zero());
        if time.is_none() {
            let what = format!("`{key}` is ignored: got {}", shortened(text));
            self.remarks.push(Diagnosis::new(what, "print a number of seconds, or a string like \"30s\""));
        }
        time.map(Setting::declared)
    }
}

/// Some programs print words in upper case.
fn lowercase(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.to_lowercase()),
        Value::Array(items) => Value::Array(items.iter().map(lowercase).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
#[path = "printed_tests.rs"]
mod tests;
