//! The catalogue as `tools/list` shows it.

use std::sync::Arc;

use rmcp::model::{Tool as McpTool, ToolAnnotations};

use crate::config::tool::Effects;
use crate::registry::{Catalogue, Tool};

/// Every tool that can be called, in the order of names: the same catalogue gives the same list.
pub(super) fn list(catalogue: &Catalogue) -> Vec<McpTool> {
    let mut tools: Vec<McpTool> = catalogue.ready().map(|tool| describe(tool)).collect();
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    tools
}

fn describe(tool: &Tool) -> McpTool {
    let description = tool.description().map(|text| text.to_owned().into());
    let schema = Arc::clone(&tool.function().input_schema);
    let mut shown = McpTool::new_with_raw(tool.mcp_name.clone(), description, schema)
        .with_title(tool.name.clone())
        .with_annotations(annotations(tool.settings.effects.value));
    shown.output_schema = tool.promised().map(Arc::clone);
    shown
}

/// What the author said about repeating a call, in MCP's words. Where nothing was said, nothing is claimed.
fn annotations(effects: Effects) -> ToolAnnotations {
    match effects {
        Effects::Pure => ToolAnnotations::new().read_only(true).destructive(false).idempotent(true),
        Effects::Idempotent => ToolAnnotations::new().read_only(false).idempotent(true),
        Effects::Once => ToolAnnotations::new().read_only(false).idempotent(false),
    }
}
