//! `resources/…`: what clients can read.

use rmcp::ErrorData;
use rmcp::model::{CacheScope, ErrorCode, RequestId, ResourceContents};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::lifecycle::Rules;
use super::message;
use super::session::McpSession;
use super::stored::Found;

/// The parameters of `resources/read`.
#[derive(Deserialize)]
pub(super) struct ReadParams {
    pub uri: String,
}

/// The answer to `resources/read`, and to lists: what clients may keep says for how long since 2026-07-28.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cacheable<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<CacheScope>,
    #[serde(flatten)]
    content: T,
}

impl<T: Serialize> Cacheable<T> {
    pub fn new(rules: Rules, content: T) -> Self {
        let is_modern = rules == Rules::Modern;
        Self {
            result_type: is_modern.then_some("complete"),
            ttl_ms: is_modern.then_some(0),
            cache_scope: is_modern.then_some(CacheScope::Private),
            content,
        }
    }
}

/// The answer with the contents of a resource.
pub(super) fn read_line(id: &RequestId, rules: Rules, contents: &[ResourceContents]) -> Vec<u8> {
    message::result(id, Cacheable::new(rules, json!({ "contents": contents })))
}

/// The error for an address under which there is nothing: revisions disagree about its code.
pub(super) fn not_found(rules: Rules, uri: &str) -> ErrorData {
    let code = match rules {
        Rules::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
        Rules::Modern => ErrorCode::INVALID_PARAMS,
    };
    let what = "there is no such resource; list them with resources/list and resources/templates/list";
    ErrorData::new(code, what, Some(json!({ "uri": uri })))
}

impl McpSession {
    /// Answers `resources/read`.
    pub(super) fn read_resource(&self, id: &RequestId, rules: Rules, params: &ReadParams) -> Result<(), ErrorData> {
        let uri = &params.uri;
        match self.results().read(uri) {
            Some(Found::Contents(contents)) => {
                self.outbox().send(&read_line(id, rules, &[contents]));
                Ok(())
            }
            Some(Found::Failed(error)) => {
                let what = format!("the stored result cannot be read: {error}; call the tool again");
                Err(ErrorData::internal_error(what, Some(json!({ "uri": uri }))))
            }
            None => Err(not_found(rules, uri)),
        }
    }
}
