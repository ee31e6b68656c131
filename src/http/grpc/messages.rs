//! The messages of `proto/hostler/control/v1/control.proto`. That both say the same is tested with clients made from the file.

use prost::Message;

use crate::call::ToolMetrics;
use crate::control::{Available, Descriptor, Executed, Schemas};

#[derive(Clone, PartialEq, Message)]
pub struct ExecuteToolRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub input_json: String,
    #[prost(uint64, tag = "3")]
    pub timeout_ms: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ExecuteToolResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(string, tag = "2")]
    pub output_json: String,
    #[prost(string, tag = "3")]
    pub error: String,
    #[prost(double, tag = "4")]
    pub duration_ms: f64,
    #[prost(string, tag = "5")]
    pub error_code: String,
    #[prost(string, tag = "6")]
    pub call: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ListAvailableToolsRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct ListAvailableToolsResponse {
    #[prost(message, repeated, tag = "1")]
    pub tools: Vec<ToolDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ToolDescriptor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub mcp_name: String,
    #[prost(string, tag = "3")]
    pub version: String,
    #[prost(string, tag = "4")]
    pub description: String,
    #[prost(string, repeated, tag = "5")]
    pub tags: Vec<String>,
    #[prost(string, tag = "6")]
    pub input_schema_json: String,
    #[prost(string, tag = "7")]
    pub output_schema_json: String,
    #[prost(string, tag = "8")]
    pub status: String,
    #[prost(string, tag = "9")]
    pub error_message: String,
    #[prost(message, optional, tag = "10")]
    pub metrics: Option<Metrics>,
}

/// `ToolMetrics` there.
#[derive(Clone, PartialEq, Message)]
pub struct Metrics {
    #[prost(uint64, tag = "1")]
    pub executions: u64,
    #[prost(uint64, tag = "2")]
    pub succeeded: u64,
    #[prost(uint64, tag = "3")]
    pub failed: u64,
    #[prost(uint64, tag = "4")]
    pub cancelled: u64,
    #[prost(double, tag = "5")]
    pub total_ms: f64,
    #[prost(double, tag = "6")]
    pub mean_ms: f64,
    #[prost(uint64, tag = "7")]
    pub last_ms: u64,
    #[prost(uint64, tag = "8")]
    pub active: u64,
    #[prost(uint64, tag = "9")]
    pub queued: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetToolSchemaRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetToolSchemaResponse {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub input_schema_json: String,
    #[prost(string, tag = "3")]
    pub output_schema_json: String,
}

impl From<Executed> for ExecuteToolResponse {
    fn from(done: Executed) -> Self {
        let Executed { success, output_json, error, error_code, duration_ms, call } = done;
        Self { success, output_json, error, duration_ms, error_code, call }
    }
}

impl From<Available> for ListAvailableToolsResponse {
    fn from(available: Available) -> Self {
        Self { tools: available.tools.into_iter().map(Into::into).collect() }
    }
}

impl From<Descriptor> for ToolDescriptor {
    fn from(tool: Descriptor) -> Self {
        Self {
            name: tool.name,
            mcp_name: tool.mcp_name,
            version: tool.version.unwrap_or_default(),
            description: tool.description.unwrap_or_default(),
            tags: tool.tags,
            input_schema_json: tool.input_schema.to_string(),
            output_schema_json: text(tool.output_schema.as_ref()),
            status: tool.status,
            error_message: tool.error_message.unwrap_or_default(),
            metrics: tool.metrics.map(Into::into),
        }
    }
}

impl From<ToolMetrics> for Metrics {
    fn from(metrics: ToolMetrics) -> Self {
        Self {
            executions: metrics.executions,
            succeeded: metrics.succeeded,
            failed: metrics.failed,
            cancelled: metrics.cancelled,
            total_ms: metrics.total_ms,
            mean_ms: metrics.mean_ms.unwrap_or_default(),
            last_ms: metrics.last_ms.unwrap_or_default(),
            active: metrics.active as u64,
            queued: metrics.queued as u64,
        }
    }
}

impl From<Schemas> for GetToolSchemaResponse {
    fn from(schemas: Schemas) -> Self {
        Self {
            name: schemas.name,
            input_schema_json: schemas.input_schema.to_string(),
            output_schema_json: text(schemas.output_schema.as_ref()),
        }
    }
}

fn text(schema: Option<&serde_json::Value>) -> String {
    schema.map(ToString::to_string).unwrap_or_default()
}
