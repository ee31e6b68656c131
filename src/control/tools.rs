//! Methods about tools: those with the names that specification 000 gives them, and the catalogue.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::Client;
use super::message::{LIST, ListParams, SHOW, ToolParams};
use super::refusals::of_fault;
use super::table::{Answer, Entry, Nothing, Scope, Table};
use crate::call::{CallRequest, Caller};
use crate::outcome::milliseconds;
use crate::protocol::TraceContext;
use crate::registry::{Listing, RoleKind, Tool};

/// How long `ExecuteTool` waits if it says nothing.
const USUAL_LIMIT: Duration = Duration::from_mins(5);

pub(super) fn enter(table: &mut impl Table) {
    let about = "Runs a tool to its end. `success` says whether it has a result; `error` says why not.";
    table.enter(Entry { name: "ExecuteTool", scope: Scope::Call, session: true, about }, execute);
    let about = "All tools, those that cannot be called included: `status` and `error_message` say so.";
    table.enter(Entry { name: "ListAvailableTools", scope: Scope::Observe, session: true, about }, available);
    let about = "The schemas of a tool's arguments and of its result.";
    table.enter(Entry { name: "GetToolSchema", scope: Scope::Observe, session: true, about }, schemas);
    let about = "The tools as rows, sorted by name, and what to do if there are none.";
    table.enter(Entry { name: LIST, scope: Scope::Observe, session: true, about }, list);
    let about = "A tool with its schemas and its declared policy.";
    table.enter(Entry { name: SHOW, scope: Scope::Observe, session: true, about }, show);
    let about = "Reads all tool files again and asks every executable for its schema.";
    table.enter(Entry { name: "tools.refresh", scope: Scope::Operate, session: true, about }, refresh);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Execute {
    /// The tool's name.
    name: String,
    /// Its arguments: the text of a JSON object.
    #[serde(default)]
    input_json: String,
    /// The limit of the call in milliseconds, 0 for five minutes; that of the tool applies if it is shorter.
    #[serde(default)]
    timeout_ms: u64,
    /// The span that it belongs to (W3C trace context).
    #[serde(default)]
    traceparent: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Executed {
    success: bool,
    /// The result as JSON text; empty without success.
    output_json: String,
    /// What happened and what to do next; empty with success.
    error: String,
    /// The code of the error, as in every outcome; empty with success.
    error_code: String,
    duration_ms: f64,
    /// The id of the call.
    call: String,
}

async fn execute(client: Arc<Client>, params: Execute) -> Answer<Executed> {
    let session = client.session()?;
    let text = if params.input_json.trim().is_empty() { "{}" } else { &params.input_json };
    let arguments: Map<String, Value> = match serde_json::from_str(text) {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = format!("input_json is not the text of a JSON object: {error}");
            let (output_json, call) = (String::new(), String::new());
            let error_code = crate::outcome::Code::InvalidParams.word().to_owned();
            return Ok(Executed { success: false, output_json, error, error_code, duration_ms: 0.0, call });
        }
    };
    let limit = if params.timeout_ms == 0 { USUAL_LIMIT } else { Duration::from_millis(params.timeout_ms) };
    let trace = params.traceparent.and_then(|parent| TraceContext::read(&parent, None));
    let caller = Arc::new(Caller { client: Some(super::client::NAME.to_owned()), trace, ..Caller::default() });
    let request = CallRequest { at_most: Some(limit), caller, ..CallRequest::new(params.name, arguments) };
    let outcome = session.call(request).await;
    let (output_json, error, error_code) = match &outcome.ended {
        Ok(result) => (result.get().to_owned(), String::new(), String::new()),
        Err(fault) => (String::new(), fault.message.clone(), fault.code.word().to_owned()),
    };
    let (success, duration_ms) = (outcome.ended.is_ok(), milliseconds(outcome.latency));
    Ok(Executed { success, output_json, error, error_code, duration_ms, call: outcome.call_id.clone() })
}

/// A tool as `ListAvailableTools` describes it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Descriptor {
    name: String,
    /// Its name for models, which accept no dot.
    mcp_name: String,
    version: Option<String>,
    description: Option<String>,
    tags: Vec<String>,
    /// JSON Schema of the arguments.
    input_schema: Value,
    /// JSON Schema of the result, where it is known.
    output_schema: Option<Value>,
    /// `ready`, or why it cannot be called in a word.
    status: String,
    /// Why it cannot be called.
    error_message: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Available {
    tools: Vec<Descriptor>,
}

fn descriptor(tool: &Tool) -> Descriptor {
    let policy = &tool.settings.policy;
    Descriptor {
        name: tool.name.clone(),
        mcp_name: tool.mcp_name.clone(),
        version: policy.version.as_ref().map(|version| version.value.clone()),
        description: tool.description().map(str::to_owned),
        tags: policy.tags.iter().flat_map(|tags| tags.value.iter().cloned()).collect(),
        input_schema: Value::Object(tool.input_schema().clone()),
        output_schema: tool.promised_schema().cloned().map(Value::Object),
        status: tool.entry.status().to_owned(),
        error_message: tool.entry.trouble(),
    }
}

async fn available(client: Arc<Client>, _: Nothing) -> Answer<Available> {
    let registry = &client.service()?.registry;
    registry.asked().await;
    let catalogue = registry.catalogue();
    let mut tools: Vec<Descriptor> = catalogue.tools.iter().map(|tool| descriptor(tool)).collect();
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(Available { tools })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// The tool's name.
    name: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Schemas {
    name: String,
    /// JSON Schema of the arguments.
    input_schema: Value,
    /// JSON Schema of the result, where it is known.
    output_schema: Option<Value>,
}

async fn schemas(client: Arc<Client>, params: Named) -> Answer<Schemas> {
    let tool = find(&client, &params.name).await?;
    let Descriptor { name, input_schema, output_schema, .. } = descriptor(&tool);
    Ok(Schemas { name, input_schema, output_schema })
}

async fn list(client: Arc<Client>, params: ListParams) -> Answer<Listing> {
    let registry = &client.service()?.registry;
    registry.asked().await;
    Ok(registry.listing(&params.filter))
}

/// A tool as `tools.show` describes it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Shown {
    #[serde(flatten)]
    descriptor: Descriptor,
    pack: String,
    /// The kind of its file.
    kind: String,
    /// Its file.
    origin: String,
    line: usize,
    /// Its declared policy.
    policy: Map<String, Value>,
}

async fn show(client: Arc<Client>, params: ToolParams) -> Answer<Shown> {
    let tool = find(&client, &params.tool).await?;
    Ok(Shown {
        descriptor: descriptor(&tool),
        pack: tool.entry.file.pack.clone(),
        kind: tool.entry.kind_word().to_owned(),
        origin: tool.entry.file.path.display().to_string(),
        line: tool.function().line,
        policy: tool.settings.policy.as_json(),
    })
}

pub(super) async fn find(client: &Client, name: &str) -> Answer<Arc<Tool>> {
    let service = client.service()?;
    service.registry.asked_for(name).await;
    service.find_asked(RoleKind::Tool, name).await.map_err(|fault| of_fault(&fault))
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Refreshed {
    /// Tools that can be called.
    tools: usize,
}

async fn refresh(client: Arc<Client>, _: Nothing) -> Answer<Refreshed> {
    Ok(Refreshed { tools: client.service()?.refresh().await.tools })
}
