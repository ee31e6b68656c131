//! JSON that is passed on as the text that it is.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::refusals::internal;
use super::table::Answer;

/// Any JSON value.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Json(Box<RawValue>);

impl Json {
    /// The text of a value.
    pub fn of(value: &impl Serialize) -> Answer<Self> {
        to_raw_value(value).map(Self).map_err(|error| internal(&error))
    }
}

impl JsonSchema for Json {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}
