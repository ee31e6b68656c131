//! Methods about tools: those with the names that specification 000 gives them, and the catalogue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::{Client, NAME, context};
use super::message::{LIST, ListParams, SHOW, ToolParams};
use super::refusals::{invalid_params, of_fault};
use super::table::{Answer, Entry, Nothing, Scope, Table};
use crate::call::{CallRequest, Caller, ToolMetrics};
use crate::outcome::milliseconds;
use crate::protocol::TraceContext;
use crate::registry::{Listing, RoleKind, Tool};

/// How long `ExecuteTool` waits if it says nothing.
const USUAL_LIMIT: Duration = Duration::from_mins(5);
/// The most bytes that say why arguments cannot be read.
const MAX_MESSAGE: usize = 1000;

pub(super) const EXECUTE: Entry = Entry {
    name: "ExecuteTool",
    scope: Scope::Call,
    session: true,
    about: "Runs a tool to its end. `success` says whether it has a result; `error` says why not.",
};
pub(super) const AVAILABLE: Entry = Entry {
    name: "ListAvailableTools",
    scope: Scope::Observe,
    session: true,
    about: "All tools with what became of their calls, those that cannot be called included: `status` and `error_message` say so.",
};
pub(super) const SCHEMAS: Entry = Entry {
    name: "GetToolSchema",
    scope: Scope::Observe,
    session: true,
    about: "The schemas of a tool's arguments and of its result.",
};

pub(super) fn enter(table: &mut impl Table) {
    table.enter_traced(EXECUTE, execute);
    table.enter(AVAILABLE, available);
    table.enter(SCHEMAS, schemas);
    let about = "The tools as rows, sorted by name, and what to do if there are none.";
    table.enter(Entry { name: LIST, scope: Scope::Observe, session: true, about }, list);
    let about = "A tool with its schemas and its declared policy.";
    table.enter(Entry { name: SHOW, scope: Scope::Observe, session: true, about }, show);
    let about = "Reads all tool files again and asks every executable for its schema.";
    table.enter(Entry { name: "tools.refresh", scope: Scope::Operate, session: true, about }, refresh);
}

/// The parameters of `ExecuteTool`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// The tool's name.
    pub name: String,
    /// Its arguments: the text of a JSON object.
    #[serde(default)]
    pub input_json: String,
    /// The limit of the call in milliseconds, 0 for five minutes; that of the tool applies if it is shorter.
    #[serde(default)]
    pub timeout_ms: u64,
    /// The span that it belongs to (W3C trace context).
    #[serde(default)]
    pub traceparent: Option<String>,
    /// The `tracestate` of that.
    #[serde(default)]
    pub tracestate: Option<String>,
}

/// The answer of `ExecuteTool`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Executed {
    /// Whether there is a result.
    pub success: bool,
    /// The result as JSON text; empty without success.
    pub output_json: String,
    /// What happened and what to do next; empty with success.
    pub error: String,
    /// The code of the error, as in every outcome; empty with success.
    pub error_code: String,
    /// How long the call took, in milliseconds.
    pub duration_ms: f64,
    /// The id of the call.
    pub call: String,
}

pub(super) async fn execute(client: Arc<Client>, trace: Option<TraceContext>, params: Execute) -> Answer<Executed> {
    let session = client.session()?;
    let text = if params.input_json.trim().is_empty() { "{}" } else { &params.input_json };
    let arguments: Map<String, Value> = match serde_json::from_str(text) {
        Ok(arguments) => arguments,
        Err(error) => {
            let mut error = format!("input_json is not the text of a JSON object: {error}");
            // It may hold the whole text.
            error.truncate(error.floor_char_boundary(MAX_MESSAGE));
            let (output_json, call) = (String::new(), String::new());
            let error_code = crate::outcome::Code::InvalidParams.word().to_owned();
            return Ok(Executed { success: false, output_json, error, error_code, duration_ms: 0.0, call });
        }
    };
    let limit = if params.timeout_ms == 0 { USUAL_LIMIT } else { Duration::from_millis(params.timeout_ms) };
    let trace = context(params.traceparent.as_deref(), params.tracestate.as_deref(), trace);
    let is_served = trace.is_some();
    let caller = Arc::new(Caller { client: Some(NAME.to_owned()), trace, ..Caller::default() });
    let request = CallRequest { at_most: Some(limit), caller, is_served, ..CallRequest::new(params.name, arguments) };
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
pub struct Descriptor {
    /// Its full name.
    pub name: String,
    /// Its name for models, which accept no dot.
    pub mcp_name: String,
    /// Its declared version.
    pub version: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Its declared tags.
    pub tags: Vec<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the result, where it is known.
    pub output_schema: Option<Value>,
    /// `ready`, or why it cannot be called in a word.
    pub status: String,
    /// Why it cannot be called.
    pub error_message: Option<String>,
    /// What became of its calls; only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<ToolMetrics>,
}

/// The answer of `ListAvailableTools`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Available {
    /// Sorted by name.
    pub tools: Vec<Descriptor>,
}

fn descriptor(tool: &Tool) -> Descriptor {
    let policy = &tool.settings.policy;
    let (status, problem) = tool.entry.shown();
    Descriptor {
        name: tool.name.clone(),
        mcp_name: tool.mcp_name.clone(),
        version: policy.version.as_ref().map(|version| version.value.clone()),
        description: tool.description().map(str::to_owned),
        tags: policy.tags.iter().flat_map(|tags| tags.value.iter().cloned()).collect(),
        input_schema: Value::Object(tool.input_schema().clone()),
        output_schema: tool.promised_schema().cloned().map(Value::Object),
        status: status.to_owned(),
        error_message: problem,
        metrics: None,
    }
}

pub(super) async fn available(client: Arc<Client>, _: Nothing) -> Answer<Available> {
    let registry = &client.service()?.registry;
    registry.asked().await;
    let metrics = client.control().runtime().watch.metrics().await;
    let mut metrics: HashMap<String, ToolMetrics> =
        metrics.into_iter().map(|metrics| (metrics.tool.clone(), metrics)).collect();
    let catalogue = registry.catalogue();
    let mut counted = |tool: &Tool| Descriptor { metrics: metrics.remove(&tool.name), ..descriptor(tool) };
    let mut tools: Vec<Descriptor> = catalogue.tools.iter().map(|tool| counted(tool)).collect();
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(Available { tools })
}

/// The parameters of `GetToolSchema`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The tool's name.
    pub name: String,
}

/// The answer of `GetToolSchema`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Schemas {
    /// The tool's full name.
    pub name: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the result, where it is known.
    pub output_schema: Option<Value>,
}

pub(super) async fn schemas(client: Arc<Client>, params: Named) -> Answer<Schemas> {
    let tool = find(&client, &params.name).await?;
    let Descriptor { name, input_schema, output_schema, .. } = descriptor(&tool);
    Ok(Schemas { name, input_schema, output_schema })
}

async fn list(client: Arc<Client>, params: ListParams) -> Answer<Listing> {
    let registry = &client.service()?.registry;
    registry.asked().await;
    if let Some(unknown) = params.filter.unknown_mode(&registry.catalogue()) {
        return Err(invalid_params(&format!("`mode`: {unknown}")));
    }
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
        origin: tool.defined_in().display().to_string(),
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
