//! Schemas as the text they are told in. A catalogue of them as values takes many times the memory, and nearly all of them
//! are only ever passed on.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// A JSON Schema that is an object, as JSON text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonSchema(Box<RawValue>);

impl JsonSchema {
    /// A schema as text. Every map has one; were there none, what admits everything would be right.
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

    /// The schema as values. Empty, which admits everything, should it nest too deeply to be read.
    pub fn read(&self) -> Map<String, Value> {
        serde_json::from_str(self.text()).unwrap_or_default()
    }
}

impl PartialEq for JsonSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
