//! Schemas as values and as validators.

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value};

use crate::discovery::JsonSchema;

/// A schema as values and as a validator, each made at its first use: most tools are listed and never called.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    schema: OnceLock<Box<Map<String, Value>>>,
    validator: OnceLock<Option<Box<Validator>>>,
}

impl Compiled {
    pub fn schema(&self, text: &JsonSchema) -> &Map<String, Value> {
        self.schema.get_or_init(|| Box::new(text.read()))
    }

    fn validator(&self, text: &JsonSchema, tool: &str) -> Option<&Validator> {
        let compile = || {
            let built =
                jsonschema::options().with_draft(Draft::Draft202012).build(&Value::Object(self.schema(text).clone()));
            built.map(Box::new).inspect_err(|error| tracing::error!(tool, %error, "schema does not compile")).ok()
        };
        self.validator.get_or_init(compile).as_deref()
    }
}

/// A schema that arguments or results have to match.
#[derive(Debug, Clone, Copy)]
pub struct Check<'t> {
    /// The schema.
    pub schema: &'t Map<String, Value>,
    /// What finds out whether a value does.
    pub validator: &'t Validator,
}

impl Compiled {
    /// `None` when the schema cannot be compiled, which is hostler's fault and no reason to refuse a call.
    pub fn check<'t>(&'t self, text: &JsonSchema, tool: &str) -> Option<Check<'t>> {
        Some(Check { schema: self.schema(text), validator: self.validator(text, tool)? })
    }
}

/// The schemas of a function as its file was read, where those in force are completed by an earlier run.
#[derive(Debug, Default)]
pub(super) struct AsRead {
    pub input: Compiled,
    pub output: Compiled,
}
