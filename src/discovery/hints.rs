//! What authors tell clients about a tool beside its effects, in MCP's words.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::tool::Effects;

/// What its author says of a tool, for people and clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_destructive: Option<bool>,
    /// Whether it acts on more than what is known, such as the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_open_world: Option<bool>,
}

impl ToolHints {
    /// Of annotations as MCP writes them, with the effects that they mean. Keys may be in lower case.
    pub(super) fn of_annotations(annotations: &Map<String, Value>) -> (Self, Option<Effects>) {
        let says = |name: &str| {
            let found = annotations.iter().find(|(key, _)| key.replace('_', "").eq_ignore_ascii_case(name));
            found.and_then(|(_, value)| value.as_bool())
        };
        let title = annotations.get("title").and_then(Value::as_str).map(str::to_owned);
        let is_pure = says("readOnlyHint").unwrap_or_default();
        let is_idempotent = says("idempotentHint").unwrap_or_default();
        let effects = match (is_pure, is_idempotent) {
            (true, _) => Some(Effects::Pure),
            (false, true) => Some(Effects::Idempotent),
            _ => None,
        };
        (Self { title, is_destructive: says("destructiveHint"), is_open_world: says("openWorldHint") }, effects)
    }

    /// `None` where nothing is said.
    pub(super) fn if_any(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}
