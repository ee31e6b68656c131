//! Whether two catalogues look the same to a client that lists their tools.

use super::catalogue::{Catalogue, Tool};
use crate::config::tool::Effects;
use crate::discovery::JsonSchema;

/// Compared part by part, and mostly settled by lengths: the whole list would be megabytes of text to write first.
pub(super) fn look_alike(before: &Catalogue, after: &Catalogue) -> bool {
    // Both stand in the order of names.
    before.ready().map(|tool| shown(tool)).eq(after.ready().map(|tool| shown(tool)))
}

#[derive(PartialEq)]
struct Shown<'a> {
    name: &'a str,
    description: Option<&'a str>,
    input_schema: &'a str,
    output_schema: Option<&'a str>,
    effects: Effects,
}

fn shown(tool: &Tool) -> Shown<'_> {
    Shown {
        name: &tool.name,
        description: tool.description(),
        input_schema: tool.function().input_schema.text(),
        output_schema: tool.promised().map(JsonSchema::text),
        effects: tool.settings.effects.value,
    }
}
