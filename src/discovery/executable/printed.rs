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
use crate::discovery::{Function, JsonSchema, Role, ToolHints};
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
            let mut printed = Printed::with_settings_of(std::slice::from_ref(&tool));
            let remarks = printed.add(&tool, name.to_owned());
            printed.remarks.extend(remarks);
            Ok(printed)
        }
        Value::Array(tools) => Ok(several(tools, name)),
        _ => Err(unusable("the output of `--schema` is neither an object nor a list of objects")),
    }
}

/// Without what some providers of models put around a tool or a list of tools: `{"type": "function", "function": {…}}`,
/// `{"tools": […]}`. What else is declared there holds for each tool.
fn unwrapped(value: Value) -> Value {
    const LISTS: [&str; 4] = ["tools", "functions", "function_declarations", "functionDeclarations"];
    let Value::Object(mut outer) = value else { return value };
    let is_function = outer.get("type").is_some_and(|kind| kind == "function");
    if is_function && outer.get("function").is_some_and(Value::is_object) {
        let function = outer.remove("function").unwrap_or_default();
        return within(function, &outer);
    }
    let list = LISTS.into_iter().find(|key| outer.get(*key).is_some_and(Value::is_array));
    match list.filter(|_| outer.get("name").is_none()).and_then(|key| outer.remove(key)) {
        Some(Value::Array(tools)) => {
            Value::Array(tools.into_iter().map(|tool| within(unwrapped(tool), &outer)).collect())
        }
        _ => Value::Object(outer),
    }
}

/// A tool with what is declared around it.
fn within(tool: Value, outer: &Schema) -> Value {
    let Value::Object(mut tool) = tool else { return tool };
    for (key, value) in
        outer.iter().filter(|(key, _)| !["type", "name", "title", "description"].contains(&key.as_str()))
    {
        tool.entry(key).or_insert_with(|| value.clone());
    }
    Value::Object(tool)
}

fn several(tools: Vec<Value>, name: &str) -> Printed {
    let count = tools.len();
    let all: Vec<Value> = tools.into_iter().map(unwrapped).collect();
    let objects: Vec<Schema> = all.iter().filter_map(|tool| tool.as_object().cloned()).collect();
    let names = if count == 0 {
        Err(unusable("`--schema` prints an empty list"))
    } else if count > MOST_TOOLS {
        Err(unusable(format!("`--schema` prints more than {MOST_TOOLS} tools")))
    } else {
        names_of(&all)
    };
    let mut found = Printed::with_settings_of(&objects);
    match names {
        Ok(names) => {
            for (tool, name) in objects.iter().zip(names) {
                let remarks = found.add(tool, name.clone());
                found.remarks.extend(remarks.into_iter().map(of_one(&name)));
            }
        }
        Err(reason) => found.add_unknown(name, &objects, reason),
    }
    found
}

/// The names of several tools.
fn names_of(tools: &[Value]) -> Result<Vec<String>, Diagnosis> {
    let mut names: Vec<String> = Vec::new();
    for (place, tool) in (1..).zip(tools) {
        let Value::Object(tool) = tool else {
            return Err(unusable(format!("item {place} of the output of `--schema` is not an object")));
        };
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().replace('-', "_");
        if !is_identifier(&name) {
            return Err(unusable(format!("item {place} of the output of `--schema` has no valid `name`")));
        }
        if names.contains(&name) {
            return Err(unusable(format!("`--schema` prints two tools called `{name}`")));
        }
        names.push(name);
    }
    Ok(names)
}

impl Printed {
    /// Adds a tool. Returns what of it was not understood.
    fn add(&mut self, tool: &Schema, name: String) -> Vec<Diagnosis> {
        let (mut declared, remarks) = declared_policy(tool);
        let annotations = tool.get("annotations").and_then(Value::as_object);
        let (mut hints, effects) = annotations.map(ToolHints::of_annotations).unwrap_or_default();
        hints.title = tool.get("title").and_then(Value::as_str).map(str::to_owned).or(hints.title);
        if let Some(effects) = effects.filter(|_| !tool.contains_key("effects")) {
            declared.get_or_insert_default().effects = Some(Setting::declared(effects));
        }
        let description =
            tool.get("description").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let input = input_of(tool).map_err(of_one(&name)).unwrap_or_else(|reason| self.leave_open(reason));
        let output = output_of(tool).map_err(of_one(&name)).unwrap_or_else(|reason| {
            self.leave_open(reason);
            None
        });
        self.functions.push(Function {
            served_as: None,
            wanted: None,
            summary: description.map(first_paragraph),
            description: description.map(str::to_owned),
            input_schema: JsonSchema::of(&input),
            output_schema: output.as_ref().map(JsonSchema::of),
            role: Role::Tool,
            is_async: false,
            line: 0,
            declared,
            hints: hints.if_any(),
            defined_in: None,
            server: None,
            name,
            symbol: None,
        });
        remarks
    }

    /// One tool in place of several that cannot be distinguished, with the strictest of their policies.
    fn add_unknown(&mut self, name: &str, tools: &[Schema], reason: Diagnosis) {
        let mut policy = DeclaredPolicy::default();
        for tool in tools {
            let (declared, remarks) = declared_policy(tool);
            policy = stricter(policy, declared.map(|layer| layer.policy).unwrap_or_default());
            self.remarks.extend(remarks);
        }
        let declared = Some(Box::new(ToolLayer { policy, ..ToolLayer::default() }));
        self.functions.push(Function { declared, ..Function::unknown(name) });
        self.unknown.get_or_insert(reason);
    }

    /// With what an executable declares for all of its tools, which share its processes: what one declares holds for all.
    fn with_settings_of(tools: &[Schema]) -> Self {
        let mut printed = Self::default();
        for (tool, key) in tools.iter().flat_map(|tool| OF_ALL.iter().map(move |key| (tool, *key))) {
            let Some(value) = tool.get(key).filter(|value| !value.is_null()) else { continue };
            if let Err(reason) = printed.declare(key, value) {
                match key {
                    // Without it, the program would be called in a way that it does not understand.
                    "protocol" => drop(printed.unknown.get_or_insert(reason)),
                    _ => printed.remarks.push(reason),
                }
            }
        }
        printed
    }

    fn declare(&mut self, key: &str, value: &Value) -> Result<(), Diagnosis> {
        let word = value.as_str().unwrap_or_default();
        let ignored =
            |fix: &str| Diagnosis::new(format!("`{key}` is ignored: got {}", shortened(value.to_string())), fix);
        let declared = &mut self.declared;
        match key {
            "protocol" => {
                let fix = "write \"v1\" or \"bare\", or remove it";
                let own = Protocol::of(word);
                let own = own.ok_or_else(|| Diagnosis::new(format!("unknown `protocol` {value}"), fix))?;
                let other = declared.protocol.replace(Setting::declared(own));
                if other.is_some_and(|other| other.value != own) {
                    declared.protocol = None;
                    return Err(unusable("`--schema` prints two protocols, and a file has one"));
                }
            }
            "output" => {
                let form = OutputForm::of(word).ok_or_else(|| ignored("print \"json\" or \"text\""))?;
                declared.output = Some(Setting::declared(form));
            }
            "input_option" => {
                let word = Some(word).filter(|word| is_option_word(word));
                let word = word.ok_or_else(|| ignored("print an option, like \"--execute\""))?;
                declared.input_option = Some(Setting::declared(word.to_owned()));
            }
            _ => {
                let names: Result<Vec<String>, _> = serde_json::from_value(value.clone());
                let names = names.map_err(|_| ignored("print a list of names"))?;
                let all = &mut declared.secrets.get_or_insert_with(|| Setting::declared(Vec::new())).value;
                all.extend(names);
                all.sort_unstable();
                all.dedup();
            }
        }
        Ok(())
    }

    /// The schema of arguments that are unknown.
    fn leave_open(&mut self, reason: Diagnosis) -> Schema {
        self.unknown.get_or_insert(reason);
        of_any_arguments()
    }
}

pub(super) fn shortened(text: String) -> String {
    let short: String = text.chars().take(MOST_SHOWN).collect();
    if short.len() < text.len() { short + "…" } else { text }
}

/// What an executable declares for all of its tools.
const OF_ALL: [&str; 4] = ["protocol", "output", "input_option", "secrets"];

/// The stricter of what two tools declare about approval, sandbox, risk and modes.
fn stricter(left: DeclaredPolicy, right: DeclaredPolicy) -> DeclaredPolicy {
    fn either(left: Option<Setting<bool>>, right: Option<Setting<bool>>) -> Option<Setting<bool>> {
        left.filter(|set| set.value).or(right)
    }
    let modes = match (left.allowed_modes, right.allowed_modes) {
        (Some(left), Some(right)) => {
            let both = left.value.into_iter().filter(|mode| right.value.contains(mode)).collect();
            Some(Setting::declared(both))
        }
        (left, right) => left.or(right),
    };
    let risk = [left.risk_level, right.risk_level].into_iter().flatten().max_by_key(|risk| risk.value);
    DeclaredPolicy {
        risk_level: risk,
        allowed_modes: modes,
        requires_approval: either(left.requires_approval, right.requires_approval),
        requires_sandbox: either(left.requires_sandbox, right.requires_sandbox),
        ..DeclaredPolicy::default()
    }
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
