//! The catalogue as `tools/list` shows it: prepared text, because a thousand tools are six megabytes of schemas, which
//! rmcp would have as values, one by one, only to write them down again.

use std::borrow::Cow;

use rmcp::model::ToolAnnotations;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::tool::Effects;
use crate::discovery::JsonSchema;
use crate::outcome::envelope_schema;
use crate::registry::{Catalogue, Tool};

/// Every tool that can be called, in the order of names: the same catalogue gives the same list.
/// `envelope` says that results come wrapped, which their schemas then say too.
pub(super) fn list(catalogue: &Catalogue, envelope: bool) -> Vec<Shown<'_>> {
    let mut tools: Vec<Shown<'_>> = catalogue.ready().map(|tool| describe(tool, envelope)).collect();
    tools.sort_by(|left, right| left.name.cmp(right.name));
    tools
}

/// A tool as rmcp's own type would write it, field by field; a test holds the two together.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown<'a> {
    name: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a JsonSchema,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Cow<'a, RawValue>>,
    annotations: ToolAnnotations,
}

fn describe(tool: &Tool, envelope: bool) -> Shown<'_> {
    let promised = tool.promised().map(JsonSchema::raw);
    let output_schema = if envelope {
        RawValue::from_string(envelope_schema(promised.map(RawValue::get))).ok().map(Cow::Owned)
    } else {
        promised.map(Cow::Borrowed)
    };
    Shown {
        name: &tool.mcp_name,
        title: &tool.name,
        description: tool.description(),
        input_schema: &tool.function().input_schema,
        output_schema,
        annotations: annotations(tool.settings.effects.value),
    }
}

/// What the author said about repeating a call, in MCP's words. Where nothing was said, nothing is claimed.
fn annotations(effects: Effects) -> ToolAnnotations {
    match effects {
        Effects::Pure => ToolAnnotations::new().read_only(true).destructive(false).idempotent(true),
        Effects::Idempotent => ToolAnnotations::new().read_only(false).idempotent(true),
        Effects::Once => ToolAnnotations::new().read_only(false).idempotent(false),
    }
}
