//! What an executable says in `--schema` besides what it takes and returns. What is not understood is left out: another host's
//! keys are no reason not to serve a tool.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::facts::Declared;
use crate::config::value::parse_duration;

/// What it asks for, if anything.
pub(super) fn of(tool: &Map<String, Value>) -> Option<Box<Declared>> {
    let declared = Declared {
        timeout: time(tool),
        effects: read(tool, "effects"),
        version: read(tool, "version"),
        tags: read(tool, "tags"),
        category: read(tool, "category"),
        risk_level: read(tool, "risk_level"),
        allowed_modes: modes(tool),
        requires_approval: read(tool, "requires_approval"),
        requires_sandbox: read(tool, "requires_sandbox"),
        rate_limit_per_hour: read(tool, "rate_limit_per_hour"),
    };
    (declared != Declared::default()).then(|| Box::new(declared))
}

fn read<T: DeserializeOwned>(tool: &Map<String, Value>, key: &str) -> Option<T> {
    serde_json::from_value(tool.get(key)?.clone()).ok()
}

/// As words, or in seconds.
fn time(tool: &Map<String, Value>) -> Option<Duration> {
    let said = tool.get("timeout").or_else(|| tool.get("timeout_seconds"))?;
    let text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    parse_duration(&text).filter(|time| !time.is_zero())
}

/// Some write the names of modes large.
fn modes(tool: &Map<String, Value>) -> Option<Vec<crate::config::facts::Mode>> {
    let names: Vec<String> = read(tool, "allowed_modes")?;
    let small = names.into_iter().map(|name| Value::String(name.to_lowercase())).collect();
    serde_json::from_value(Value::Array(small)).ok()
}
