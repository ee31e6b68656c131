//! What is made of a schema's text once somebody needs it. Most tools of a catalogue are listed and never called.

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value};

use crate::discovery::JsonSchema;

/// A schema as values and as a validator, each made at its first use and kept.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    schema: OnceLock<Box<Map<String, Value>>>,
    validator: OnceLock<Option<Box<Validator>>>,
}

impl Compiled {
    pub fn schema(&self, text: &JsonSchema) -> &Map<String, Value> {
        self.schema.get_or_init(|| Box::new(text.read()))
    }

    pub fn validator(&self, text: &JsonSchema, tool: &str) -> Option<&Validator> {
        let compile = || {
            let built =
                jsonschema::options().with_draft(Draft::Draft202012).build(&Value::Object(self.schema(text).clone()));
            built.map(Box::new).inspect_err(|error| tracing::error!(tool, %error, "schema does not compile")).ok()
        };
        self.validator.get_or_init(compile).as_deref()
    }
}
