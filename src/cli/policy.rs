//! `hostler policy`: the rules in force, what they decide about a call, and a file of expected decisions.

use std::path::Path;
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::arguments;
use super::mode::named;
use super::options::{Policy, PolicyOf};
use super::show::missing;
use super::style::{self, Refusal};
use crate::call::decide_call;
use crate::config::Config;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::mode::Mode;
use crate::config::origin::Setting;
use crate::policy::{Decision, Rate};
use crate::registry::Tool;
use crate::runtime::Workspace;
use crate::words::plural;

/// The exit status of a test with another decision than expected.
const DIFFERS: u8 = 1;

/// Keys that say something about a tool, and rule nothing.
const FACTS: [&str; 4] = ["version", "tags", "category", "risk_level"];

pub(super) async fn run(app: &Workspace, args: &Policy, directory: &Path) -> Result<ExitCode, Refusal> {
    app.calls.registry.asked().await;
    match &args.what {
        None => show(app, args.json),
        Some(PolicyOf::Explain { tool, arguments, mode }) => {
            return explain(app, tool, arguments, mode.as_deref(), args.json);
        }
        Some(PolicyOf::Test { file }) => return test(app, &directory.join(file), args.json),
    }
    Ok(ExitCode::SUCCESS)
}

fn rules(policy: &DeclaredPolicy) -> impl Iterator<Item = (&'static str, Value, String)> {
    let rules = policy.declared().filter(|(key, ..)| !FACTS.contains(key));
    rules.map(|(key, value, origin)| (key, value, origin.to_string())).collect::<Vec<_>>().into_iter()
}

/// The policies whose rates count the calls of several tools together, and which tools those are.
fn together(config: &Config) -> impl Iterator<Item = (String, &DeclaredPolicy)> {
    let categories = config.categories.iter().map(|(name, set)| (format!("category {name}"), &set.policy));
    std::iter::once(("all tools".to_owned(), &config.policy)).chain(categories)
}

fn rates(policy: &DeclaredPolicy) -> impl Iterator<Item = (&'static str, Value, String)> {
    rules(policy).filter(|(key, ..)| Rate::has_key(key))
}

fn show(app: &Workspace, is_json: bool) {
    let catalogue = app.calls.registry.catalogue();
    let config = app.config();
    let tools = || catalogue.tools.iter().chain(&catalogue.resources).chain(&catalogue.prompts);
    if is_json {
        let row = |tool: &Tool| {
            let rules: Map<String, Value> = rules(&tool.settings.policy)
                .map(|(key, value, origin)| (key.to_owned(), json!({"value": value, "origin": origin})))
                .collect();
            json!({"tool": tool.name, "rules": rules})
        };
        let together: Vec<Value> = together(&config)
            .flat_map(|(of, policy)| {
                rates(policy)
                    .map(move |(key, value, origin)| json!({"of": of, "rule": key, "value": value, "origin": origin}))
            })
            .collect();
        let mode = json!({"value": config.mode.value.word(), "origin": config.mode.origin.to_string()});
        let tools: Vec<Value> = tools().map(|tool| row(tool)).collect();
        return style::answer_json(&json!({"mode": mode, "rates": together, "tools": tools}));
    }
    let mut rows = vec![mode_row(&config.mode)];
    for (of, policy) in together(&config) {
        for (key, value, origin) in rates(policy) {
            rows.push(vec![style::plain(&of), key.to_owned(), style::plain(&shown(&value)), origin]);
        }
    }
    let mut free = 0;
    for tool in tools() {
        let mut name = tool.name.clone();
        for (key, value, origin) in rules(&tool.settings.policy) {
            rows.push(vec![
                style::plain(&std::mem::take(&mut name)),
                key.to_owned(),
                style::plain(&shown(&value)),
                origin,
            ]);
        }
        free += usize::from(!name.is_empty());
    }
    style::answer(&style::table(&rows, style::terminal_width()));
    style::note(&format!("without rules: {}", plural(free, "tool")));
}

/// The mode with this name, or the one in force.
fn mode_of(app: &Workspace, name: Option<&str>) -> Result<Mode, Refusal> {
    let config = app.config();
    name.map_or(Ok(config.mode.value), |name| named(name, || Ok(config.modes.clone())))
}

fn mode_row(mode: &Setting<Mode>) -> Vec<String> {
    vec!["mode".to_owned(), String::new(), mode.value.word().to_uppercase(), mode.origin.to_string()]
}

fn shown(value: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(word).collect::<Vec<_>>().join(", "),
        single => word(single),
    }
}

fn explain(
    app: &Workspace,
    name: &str,
    typed: &[String],
    mode: Option<&str>,
    is_json: bool,
) -> Result<ExitCode, Refusal> {
    let catalogue = app.calls.registry.catalogue();
    let tool = catalogue.resolve(name).map_err(|reason| missing(name, reason))?;
    let mut arguments = Map::new();
    arguments::add(&mut arguments, typed, Some(tool.input_schema()))?;
    let mode = mode_of(app, mode)?;
    let decision = app.calls.decide_now(tool, &arguments, mode).map_err(|error| {
        Refusal::new(format!("the calls of {} cannot be counted: {error}", tool.name), "see the error")
    })?;
    if is_json {
        style::answer_json(&as_json(tool, mode, &decision));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{}: {} in {} mode\n", tool.name, decision.word(), mode.word().to_uppercase());
    let rows: Vec<Vec<String>> = decision
        .because()
        .iter()
        .map(|rule| vec![style::plain(&rule.reason), rule.key.to_owned(), rule.origin.to_string()])
        .collect();
    text.push_str(&style::table(&rows, style::terminal_width()));
    style::answer(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn as_json(tool: &Tool, mode: Mode, decision: &Decision) -> Value {
    let rule = |rule: &crate::policy::Because| json!({"rule": rule.key, "origin": rule.origin.to_string(), "reason": rule.reason});
    let because: Vec<Value> = decision.because().iter().map(rule).collect();
    json!({"tool": tool.name, "mode": mode.word(), "decision": decision.word(), "because": because})
}

/// A file of expected decisions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    decision: Vec<Row>,
}

/// One of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    tool: toml::Spanned<String>,
    #[serde(default)]
    arguments: Map<String, Value>,
    expect: String,
    rule: Option<String>,
    mode: Option<String>,
}

fn test(app: &Workspace, file: &Path, is_json: bool) -> Result<ExitCode, Refusal> {
    let text =
        std::fs::read_to_string(file).map_err(|error| Refusal::io(format!("cannot read {}", file.display()), error))?;
    let expected: Expected = toml::from_str(&text).map_err(|error| {
        let what = format!("{} has no expected decisions: {}", file.display(), error.to_string().trim_end());
        Refusal::new(what, "`hostler policy --help` shows one")
    })?;
    let mut differences = Vec::new();
    for row in &expected.decision {
        let line = text[..row.tool.span().start].matches('\n').count() + 1;
        if let Some(what) = row.difference(app)? {
            differences.push(json!({"line": line, "tool": row.tool.get_ref(), "what": what}));
        }
    }
    if is_json {
        style::answer_json(&json!({"decisions": expected.decision.len(), "differences": differences}));
    } else {
        let one = |found: &Value| {
            format!("{}:{}: {}: {}", file.display(), found["line"], word(&found["tool"]), word(&found["what"]))
        };
        let lines: Vec<String> = differences.iter().map(one).collect();
        if !lines.is_empty() {
            style::answer(&lines.join("\n"));
        }
        let all = plural(expected.decision.len(), "decision");
        style::note(&format!("{all}, {}", plural(differences.len(), "difference")));
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) })
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Row {
    /// How the decision differs from the expected one.
    fn difference(&self, app: &Workspace) -> Result<Option<String>, Refusal> {
        let name = self.tool.get_ref();
        let catalogue = app.calls.registry.catalogue();
        let tool = catalogue.resolve(name).map_err(|reason| missing(name, reason))?;
        if !["allowed", "denied", "ask"].contains(&self.expect.as_str()) {
            let what = format!("{name}: {:?} is no decision", self.expect);
            return Err(Refusal::new(what, "write \"allowed\", \"denied\" or \"ask\""));
        }
        let mode = mode_of(app, self.mode.as_deref())?;
        let decision = decide_call(tool, &self.arguments, mode);
        let keys: Vec<&str> = decision.because().iter().map(|rule| rule.key).collect();
        let by = if keys.is_empty() { String::new() } else { format!(" by {}", keys.join(", ")) };
        let got = format!("got {}{by}", decision.word());
        if decision.word() != self.expect {
            return Ok(Some(format!("expected {}, {got}", self.expect)));
        }
        let is_other = self.rule.as_ref().filter(|rule| !keys.contains(&rule.as_str()));
        Ok(is_other.map(|rule| format!("expected {} by {rule}, {got}", self.expect)))
    }
}
