//! Schemas as text.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// A JSON Schema as JSON text. As values, the schemas of a catalogue would take many times the memory, and most are never
/// needed as such.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonSchema(Box<RawValue>);

impl JsonSchema {
    /// A schema as text.
    pub fn of(schema: &Map<String, Value>) -> Self {
        Self(to_raw_value(schema).unwrap_or_else(|_| RawValue::TRUE.to_owned()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The text, as JSON.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The schema as values; empty, which admits anything, if it nests too deeply.
    pub fn read(&self) -> Map<String, Value> {
        serde_json::from_str(self.text()).unwrap_or_default()
    }
}

impl PartialEq for JsonSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
