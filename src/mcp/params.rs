//! The parameters of requests, and what is said about those that do not fit.

use rmcp::ErrorData;
use rmcp::model::{LoggingLevel, RequestId, RequestMetaObject, SubscriptionFilter};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::session::Refused;
use super::{call, message};

/// Whether the metadata of a request names a revision without a handshake.
pub(super) fn is_modern(method: &str, params: Option<&RawValue>, line: &[u8]) -> Result<bool, Refused> {
    let Meta { meta } = read(method, params, line)?;
    Ok(meta.protocol_version().is_some_and(|version| !version.has_initialize()))
}

#[derive(Deserialize)]
pub(super) struct Meta {
    #[serde(rename = "_meta", default, deserialize_with = "call::or_default")]
    pub meta: RequestMetaObject,
}

#[derive(Deserialize)]
pub(super) struct Level {
    pub level: LoggingLevel,
}

#[derive(Deserialize)]
pub(super) struct Listen {
    pub notifications: SubscriptionFilter,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancel {
    pub request_id: RequestId,
    #[serde(default)]
    pub reason: Option<String>,
}

/// The parameters of a request, or an error: invalid JSON, or the wrong shape.
pub(super) fn read<'a, T: Deserialize<'a>>(
    method: &str,
    params: Option<&'a RawValue>,
    line: &[u8],
) -> Result<T, Refused> {
    message::params(params).map_err(|error| {
        if crate::call::is_too_deep(&error) {
            return ErrorData::parse_error(message::too_deep(line), None);
        }
        if error.is_syntax() || error.is_eof() {
            let text =
                format!("this message is not valid JSON: {error}; use whole characters and numbers that fit a double");
            return ErrorData::parse_error(text, None);
        }
        let shape = match method {
            "tools/call" => "{\"name\": string, \"arguments\"?: object, \"_meta\"?: object}",
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => "{\"cursor\"?: string}",
            "resources/read" => "{\"uri\": string}",
            "prompts/get" => "{\"name\": string, \"arguments\"?: {name: string}}",
            "completion/complete" => "{\"ref\": {\"type\": \"ref/prompt\", \"name\"} or {\"type\": \"ref/resource\", \"uri\"}, \"argument\": {\"name\", \"value\"}}",
            "logging/setLevel" => "{\"level\": \"debug\", \"info\", \"warning\", \"error\" …}",
            _ => return ErrorData::invalid_params(format!("the params of {method} do not fit: {error}"), None),
        };
        ErrorData::invalid_params(format!("the params of {method} must be {shape}"), None)
    })
}
