//! Answers to `tools/list`, written past rmcp's types: everything around the tools is as rmcp made it, for whatever
//! revision the client speaks; the tools are prepared text.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    CacheScope, Cursor, JsonRpcMessage, JsonRpcResponse, ListToolsResult, MetaObject, RequestId, ResultType,
    ServerResult,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;

use super::face::Face;
use super::outbox::Outbox;
use super::tools::{self, Shown};
use crate::registry::Catalogue;

/// A transport that puts the tools into the lists that pass through it.
pub(super) struct Listed<T> {
    inner: T,
    face: Arc<Face>,
    outbox: Outbox,
}

impl<T> Listed<T> {
    pub fn new(inner: T, face: Arc<Face>, outbox: Outbox) -> Self {
        Self { inner, face, outbox }
    }
}

impl<T: Transport<RoleServer, Error = io::Error>> Transport<RoleServer> for Listed<T> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sending = match item {
            JsonRpcMessage::Response(JsonRpcResponse { id, result: ServerResult::ListToolsResult(around), .. }) => {
                Err(self.outbox.send(line(&id, around, &self.face.catalogue(), self.face.wears_envelope())))
            }
            other => Ok(self.inner.send(other)),
        };
        async move {
            match sending {
                Ok(sending) => sending.await,
                Err(sent) => sent,
            }
        }
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        self.inner.close()
    }
}

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: List<'a>,
}

/// rmcp's list, field by field, with our tools.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<MetaObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<CacheScope>,
    tools: Vec<Shown<'a>>,
}

fn line(id: &RequestId, around: ListToolsResult, catalogue: &Catalogue, envelope: bool) -> Vec<u8> {
    // Named one by one: a field that a later rmcp adds must be looked at here.
    let ListToolsResult { result_type, meta, next_cursor, ttl_ms, cache_scope, tools: _ } = around;
    let tools = tools::list(catalogue, envelope);
    let result = List { result_type, meta, next_cursor, ttl_ms, cache_scope, tools };
    let mut line = serde_json::to_vec(&Reply { jsonrpc: "2.0", id, result }).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonRpcVersion2_0, Tool as McpTool, ToolAnnotations};

    use super::*;
    use crate::config::{Config, ConfigOptions};
    use crate::registry::{Registry, Tool};

    const TOOLS: &str = "from dataclasses import dataclass\n\n@dataclass\nclass Spot:\n    x: int\n    y: float = 0.5\n\n\
        def bare(): ...\n\ndef two(spot: Spot, spots: list[Spot] = (), **rest: int) -> list[int]:\n    \"\"\"Count \"two\".\n\n    \
        Over\\nlines \u{1F600} \u{2028}.\n\n    Args:\n        spot: Where.\n    \"\"\"\n";

    fn catalogue() -> Arc<Catalogue> {
        let folder = tempfile::tempdir().unwrap();
        for effects in ["pure", "idempotent", "once"] {
            let header =
                format!("# /// script\n# dependencies = []\n# [tool.hostler]\n# effects = \"{effects}\"\n# ///\n");
            std::fs::write(folder.path().join(format!("{effects}.py")), header + TOOLS).unwrap();
        }
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
        let (read_only, destructive, idempotent) = match tool.entry.file.pack.as_str() {
            "pure" => (true, Some(false), true),
            "idempotent" => (false, None, true),
            _ => (false, None, false),
        };
        let description = tool.description().map(|text| text.to_owned().into());
        let schema = Arc::new(tool.input_schema().clone());
        let mut shown = McpTool::new_with_raw(tool.mcp_name.clone(), description, schema)
            .with_title(tool.name.clone())
            .with_annotations(ToolAnnotations::from_raw(None, Some(read_only), destructive, Some(idempotent), None));
        shown.output_schema = tool.promised_schema().map(|schema| Arc::new(schema.clone()));
        shown
    }

    #[test]
    fn a_list_is_written_as_rmcp_would_write_it() {
        let catalogue = catalogue();
        let mut tools: Vec<McpTool> = catalogue.ready().map(|tool| theirs(tool)).collect();
        tools.sort_by(|left, right| left.name.cmp(&right.name));
        let promising = tools.iter().filter(|tool| tool.output_schema.is_some()).count();
        assert_eq!((tools.len(), promising), (8, 3), "what is not checked is not promised");
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
        for (id, result) in [(RequestId::Number(7), modern()), (RequestId::String("a \"b\"".into()), legacy())] {
            let ServerResult::ListToolsResult(around) = result else { panic!("it is a list") };
            let ours = line(&id, around.clone(), &catalogue, false);
            let result = ServerResult::ListToolsResult(ListToolsResult { tools: tools.clone(), ..around });
            let message: TxJsonRpcMessage<RoleServer> =
                JsonRpcMessage::Response(JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result });
            assert_eq!(String::from_utf8(ours).unwrap(), serde_json::to_string(&message).unwrap() + "\n");
        }
    }
}
