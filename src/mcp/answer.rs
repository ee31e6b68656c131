//! An outcome as a `tools/call` result: content for models, structured content for programs, the rest in `_meta`.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

use super::content::taken_apart;
use super::reply::rest;
use crate::outcome::{Code, Fault, Outcome, fault_in_envelope, in_envelope};

/// The key of the outcome in `_meta`.
const META_KEY: &str = "hostler/outcome";

/// Makes the result. An unknown tool is an error of the protocol; every other failure is a result that says so.
pub(super) fn result(mut outcome: Outcome, envelope: bool) -> Result<CallToolResult, ErrorData> {
    let ended = std::mem::replace(&mut outcome.ended, Err(Fault::new(Code::SystemError, "")));
    let ended = if envelope { ended.map(|raw| in_envelope(&raw)) } else { ended };
    let read = ended.and_then(|raw| {
        if let Some(apart) = taken_apart(&outcome.call_id, raw.get()) {
            let text = apart.result.to_string();
            return Ok((apart.result, text, apart.files));
        }
        // Dispatch lets through what can be read.
        let value: Value = serde_json::from_str(raw.get()).map_err(|error| {
            Fault::new(Code::SystemError, format!("the result cannot be read: {error}; please report it"))
        })?;
        let text = match value {
            Value::String(ref text) => text.clone(),
            _ => String::from(Box::<str>::from(raw)),
        };
        Ok((value, text, Vec::new()))
    });
    match read {
        Ok((value, text, files)) => {
            let mut result = CallToolResult::success([ContentBlock::text(text)].into_iter().chain(files).collect());
            result.structured_content = Some(if value.is_object() { value } else { json!({"result": value}) });
            result.meta = Some(meta(&outcome, None));
            Ok(result)
        }
        Err(fault) if !envelope && fault.code == Code::ToolNotFound => Err(not_found(&fault)),
        Err(fault) => {
            let worn = envelope.then(|| fault_in_envelope(&fault));
            let text = worn.as_ref().map_or_else(|| fault.to_string(), |worn| worn.get().to_owned());
            let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
            result.structured_content = worn.and_then(|worn| serde_json::from_str(worn.get()).ok());
            result.meta = Some(meta(&outcome, Some(&fault)));
            Ok(result)
        }
    }
}

pub(super) fn not_found(fault: &Fault) -> ErrorData {
    ErrorData::invalid_params(fault.message.clone(), serde_json::to_value(fault).ok())
}

fn meta(outcome: &Outcome, fault: Option<&Fault>) -> MetaObject {
    let rest = serde_json::to_value(rest(outcome, fault)).unwrap_or_default();
    let mut meta = Map::new();
    meta.insert(META_KEY.to_owned(), rest);
    MetaObject(meta)
}
