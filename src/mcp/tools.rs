//! The catalogue as `tools/list` shows it. A thousand tools are six megabytes of schemas: they are written as the text
//! that they are, and never made into values.

use std::borrow::Cow;

use rmcp::model::{CacheScope, RequestId, ToolAnnotations};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::lifecycle::Rules;
use super::message;
use crate::config::tool::Effects;
use crate::discovery::{JsonSchema, ToolHints};
use crate::outcome::envelope_schema;
use crate::registry::{Catalogue, Tool};

/// What `tools/list` asks for, and how.
pub(super) struct Listing<'a> {
    pub rules: Rules,
    /// Whether results come wrapped, which their schemas then say too.
    pub envelope: bool,
    /// The name after which the page begins.
    pub cursor: Option<&'a str>,
    /// The longest line.
    pub most: usize,
}

/// The line that answers `tools/list`. One page, unless that would be too long for a client: many never ask for a second.
pub(super) fn line(id: &RequestId, catalogue: &Catalogue, listing: &Listing<'_>) -> Vec<u8> {
    let is_modern = listing.rules == Rules::Modern;
    let mut list = List {
        result_type: is_modern.then_some("complete"),
        ttl_ms: is_modern.then_some(0),
        cache_scope: is_modern.then_some(CacheScope::Private),
        tools: list(catalogue, listing.envelope),
        next_cursor: None,
    };
    if let Some(cursor) = listing.cursor {
        list.tools.retain(|tool| tool.name > cursor);
    }
    let line = message::result(id, &list);
    if line.len() <= listing.most {
        return line;
    }
    // Both ends of the line need room.
    let (mut room, mut fits) = (listing.most - listing.most / 8, 0);
    for tool in &list.tools {
        let length = serde_json::to_vec(tool).map_or(0, |text| text.len() + 1);
        // A single tool that does not fit is listed all the same: without it the list would never go on.
        if length > room && fits > 0 {
            break;
        }
        (room, fits) = (room.saturating_sub(length), fits + 1);
    }
    if fits < list.tools.len() {
        list.tools.truncate(fits);
        list.next_cursor = list.tools.last().map(|tool| tool.name);
    }
    message::result(id, &list)
}

/// As rmcp's own type would be written, field by field; a test holds the two together.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<CacheScope>,
    tools: Vec<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

/// Every tool that can be called in the mode in force, in the order of names: the same catalogue gives the same list.
fn list(catalogue: &Catalogue, envelope: bool) -> Vec<Shown<'_>> {
    let mut tools: Vec<Shown<'_>> = catalogue.offered().map(|tool| describe(tool, envelope)).collect();
    tools.sort_by(|left, right| left.name.cmp(right.name));
    tools
}

/// A tool as rmcp's own type would write it, field by field; a test holds the two together.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    name: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a JsonSchema,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Cow<'a, RawValue>>,
    annotations: ToolAnnotations,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: Option<[ShownIcon<'a>; 1]>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
}

/// An icon, as rmcp's own type would write it.
#[derive(Serialize)]
struct ShownIcon<'a> {
    src: &'a str,
}

/// What MCP has no field for.
#[derive(Serialize)]
struct Meta {
    /// The declared policy: version, tags, category, risk, approval and the rest.
    #[serde(rename = "hostler/policy")]
    policy: Map<String, Value>,
}

fn describe(tool: &Tool, envelope: bool) -> Shown<'_> {
    let promised = tool.advertised().map(JsonSchema::raw);
    let output_schema = if envelope {
        RawValue::from_string(envelope_schema(promised.map(RawValue::get))).ok().map(Cow::Owned)
    } else {
        promised.map(Cow::Borrowed)
    };
    let hints = tool.function().hints.as_deref();
    Shown {
        name: &tool.mcp_name,
        title: hints.and_then(|hints| hints.title.as_deref()).unwrap_or(&tool.name),
        description: tool.description(),
        input_schema: &tool.function().input_schema,
        output_schema,
        icons: tool.icon.as_deref().map(|src| [ShownIcon { src }]),
        annotations: annotations(tool.settings.effects.value, hints),
        meta: Some(tool.settings.policy.as_json()).filter(|policy| !policy.is_empty()).map(|policy| Meta { policy }),
    }
}

/// What the author says about calling it, in MCP's words. What only reads destroys nothing.
fn annotations(effects: Effects, hints: Option<&ToolHints>) -> ToolAnnotations {
    let (is_read_only, is_idempotent) = (effects == Effects::Pure, effects != Effects::Once);
    let is_destructive = if is_read_only { Some(false) } else { hints.and_then(|hints| hints.is_destructive) };
    let is_open_world = hints.and_then(|hints| hints.is_open_world);
    ToolAnnotations::from_raw(None, Some(is_read_only), is_destructive, Some(is_idempotent), is_open_world)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::{
        Icon, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0, ListToolsResult, ServerJsonRpcMessage, ServerResult,
        Tool as McpTool,
    };

    use serde_json::json;

    use super::*;
    use crate::config::{Config, ConfigOptions};
    use crate::registry::Registry;

    const TOOLS: &str = "from dataclasses import dataclass\n\n@dataclass\nclass Spot:\n    x: int\n    y: float = 0.5\n\n\
        def bare(): ...\n\ndef two(spot: Spot, spots: list[Spot] = (), **rest: int) -> list[int]:\n    \"\"\"Count \"two\".\n\n    \
        Over\\nlines \u{1F600} \u{2028}.\n\n    Args:\n        spot: Where.\n    \"\"\"\n";

    fn catalogue() -> Arc<Catalogue> {
        let folder = tempfile::tempdir().unwrap();
        for effects in ["pure", "idempotent", "once"] {
            let header =
                format!("# /// script\n# dependencies = []\n# [tool.hostler]\n# effects = \"{effects}\"\n# ///\n");
            let header = header.replace(
                "\"once\"",
                "\"once\"\n# icon = \"https://a.b/c.png\"\n# tags = [\"web\"]\n# risk_level = \"high\"",
            );
            std::fs::write(folder.path().join(format!("{effects}.py")), header + TOOLS).unwrap();
        }
        let hinted = "from fastmcp import FastMCP\nmcp = FastMCP()\n@mcp.tool(title='Look up', annotations={'destructiveHint': False, \
            'openWorldHint': True})\ndef look(): ...\n@mcp.tool(annotations={'destructiveHint': True, 'readOnlyHint': True})\ndef read(): ...\n";
        std::fs::write(folder.path().join("hinted.py"), hinted).unwrap();
        std::fs::write(folder.path().join("internal.py"), TOOLS).unwrap();
        std::fs::write(folder.path().join("broken.py"), "def f(:\n").unwrap();
        let unchecked = "[tool.internal]\nvalidate = false\n";
        std::fs::write(folder.path().join("hostler.toml"), unchecked).unwrap();
        let tools = vec![folder.path().to_owned()];
        let wanted =
            ConfigOptions { tools, config: Some(folder.path().join("hostler.toml")), ..ConfigOptions::default() };
        Registry::open(Arc::new(Config::load(&wanted, folder.path()).unwrap())).catalogue()
    }

    /// As rmcp's own type has it.
    fn theirs(tool: &Tool) -> McpTool {
        let (read_only, destructive, idempotent, open) =
            match (tool.entry.file.pack.as_str(), tool.function().name.as_str()) {
                ("pure", _) | ("hinted", "read") => (true, Some(false), true, None),
                ("idempotent", _) => (false, None, true, None),
                ("hinted", _) => (false, Some(false), false, Some(true)),
                _ => (false, None, false, None),
            };
        let title = if tool.function().name == "look" { "Look up" } else { &tool.name };
        let description = tool.description().map(|text| text.to_owned().into());
        let schema = Arc::new(tool.input_schema().clone());
        let mut shown = McpTool::new_with_raw(tool.mcp_name.clone(), description, schema)
            .with_title(title)
            .with_annotations(ToolAnnotations::from_raw(None, Some(read_only), destructive, Some(idempotent), open));
        if tool.entry.file.pack == "once" {
            let policy = json!({"hostler/policy": {"tags": ["web"], "risk_level": "high"}});
            shown.icons = Some(vec![Icon::new("https://a.b/c.png")]);
            shown.meta = serde_json::from_value(policy).unwrap();
        }
        shown.output_schema = tool.promised_schema().map(|schema| Arc::new(schema.clone()));
        shown
    }

    #[test]
    fn a_list_is_written_as_rmcps_own_type_would_be() {
        let catalogue = catalogue();
        let mut tools: Vec<McpTool> = catalogue.ready().map(|tool| theirs(tool)).collect();
        tools.sort_by(|left, right| left.name.cmp(&right.name));
        let promising = tools.iter().filter(|tool| tool.output_schema.is_some()).count();
        assert_eq!((tools.len(), promising), (10, 3), "what is not checked is not promised");
        let modern = || {
            let mut result = ServerResult::ListToolsResult(ListToolsResult::with_all_items(Vec::new()));
            result.fill_missing_cache_hints();
            result
        };
        let legacy = || {
            let mut result = ServerResult::ListToolsResult(ListToolsResult::with_all_items(Vec::new()));
            result.strip_result_type_for_legacy_peer();
            result
        };
        let text = RequestId::String("a \"b\"".into());
        for (id, result, rules) in [(RequestId::Number(7), modern(), Rules::Modern), (text, legacy(), Rules::Legacy)] {
            let ServerResult::ListToolsResult(around) = result else { panic!("it is a list") };
            let ours = line(&id, &catalogue, &Listing { rules, envelope: false, cursor: None, most: 1 << 20 });
            let result = ServerResult::ListToolsResult(ListToolsResult { tools: tools.clone(), ..around });
            let message: ServerJsonRpcMessage =
                JsonRpcMessage::Response(JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result });
            assert_eq!(String::from_utf8(ours).unwrap(), serde_json::to_string(&message).unwrap() + "\n");
        }
    }
}
