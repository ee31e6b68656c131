//! What an executable says in `--schema` besides what it takes and returns. What is not understood is no reason not to serve a
//! tool; it is told, and what guards the tool (approval, sandbox, risk, modes) is read as strictly as it may be meant.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::declared_policy::{Declared, Mode, Risk};
use crate::config::value::parse_duration;

/// What it asks for, if anything, and a sentence for each of its words that was not understood.
pub(super) fn of(tool: &Map<String, Value>) -> (Option<Box<Declared>>, Vec<String>) {
    let mut said = Said { tool, remarks: Vec::new() };
    let declared = Declared {
        timeout: said.time(),
        effects: said.read("effects", "\"pure\", \"idempotent\" or \"once\"", None),
        version: said.read("version", "a text", None),
        tags: said.read("tags", "a list of texts", None),
        category: said.read("category", "a text", None),
        risk_level: said.read("risk_level", "\"low\", \"medium\" or \"high\"", Some(("\"high\"", Risk::High))),
        allowed_modes: said.modes(),
        requires_approval: said.read("requires_approval", "true or false", Some(("true", true))),
        requires_sandbox: said.read("requires_sandbox", "true or false", Some(("true", true))),
        rate_limit_per_hour: said.read("rate_limit_per_hour", "a whole number", None),
    };
    ((declared != Declared::default()).then(|| Box::new(declared)), said.remarks)
}

struct Said<'a> {
    tool: &'a Map<String, Value>,
    remarks: Vec<String>,
}

impl<'a> Said<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.tool.get(key).filter(|value| !value.is_null())
    }

    /// What stands there; what it is taken for where that is nothing known, and how that is written.
    fn read<T: DeserializeOwned>(&mut self, key: &str, known: &str, instead: Option<(&str, T)>) -> Option<T> {
        let value = self.get(key)?;
        let as_written = serde_json::from_value(value.clone());
        if let Ok(read) = as_written.or_else(|_| serde_json::from_value(lowercase(value))) {
            return Some(read);
        }
        let taken = instead.as_ref().map_or("is left out".to_owned(), |(word, _)| format!("is taken for {word}"));
        self.remark(key, value, &taken, known);
        instead.map(|(_, value)| value)
    }

    fn remark(&mut self, key: &str, value: &Value, taken: &str, known: &str) {
        self.remarks.push(format!("`{key}` is {}, which {taken}; write {known}", shown(value)));
    }

    /// As words, or in seconds.
    fn time(&mut self) -> Option<Duration> {
        let (key, value) = ["timeout", "timeout_seconds"].into_iter().find_map(|key| Some((key, self.get(key)?)))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let time = parse_duration(&text).filter(|time| !time.is_zero());
        if time.is_none() {
            self.remark(key, value, "is left out", "a number of seconds, or a text like \"30s\"");
        }
        time
    }

    /// Those that are known. A list of other hosts' modes allows none of ours.
    fn modes(&mut self) -> Option<Vec<Mode>> {
        let value = self.get("allowed_modes")?;
        let one = |value: &Value| serde_json::from_value(lowercase(value)).ok();
        let modes: Vec<Mode> = value.as_array().into_iter().flatten().filter_map(one).collect();
        if value.as_array().is_none_or(|names| names.len() > modes.len()) {
            let words: Vec<&str> = modes.iter().map(|mode| mode.word()).collect();
            let words = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
            let known = Mode::EVERY.map(|(word, _)| format!("\"{word}\"")).join(", ");
            self.remark("allowed_modes", value, &format!("is taken for {words}"), &format!("a list of {known}"));
        }
        Some(modes)
    }
}

/// Some write words large.
fn lowercase(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| Value::String(text.to_lowercase()))
}

/// A value in a line.
fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    let short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() { short + "…" } else { short }
}
