//! An outcome as a `tools/call` result: content for models, structured content for programs, the rest in `_meta`.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

use crate::outcome::{Code, Fault, Outcome, milliseconds};

/// The key of the outcome in `_meta`.
const META_KEY: &str = "hostler/outcome";

/// Makes the result. An unknown tool is an error of the protocol; every other failure is a result that says so.
pub(super) fn result(mut outcome: Outcome) -> Result<CallToolResult, ErrorData> {
    let ended = std::mem::replace(&mut outcome.ended, Err(Fault::new(Code::SystemError, "")));
    let read = ended.and_then(|raw| {
        let value: Value = serde_json::from_str(raw.get()).map_err(|error| unreadable(&outcome.tool, &error))?;
        let text = match value {
            Value::String(ref text) => text.clone(),
            _ => String::from(Box::<str>::from(raw)),
        };
        Ok((value, text))
    });
    match read {
        Ok((value, text)) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(if value.is_object() { value } else { json!({"result": value}) });
            result.meta = Some(meta(&outcome, None));
            Ok(result)
        }
        Err(fault) if fault.code == Code::ToolNotFound => {
            let data = serde_json::to_value(&fault).ok();
            Err(ErrorData::invalid_params(fault.message, data))
        }
        Err(fault) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(fault.to_string())]);
            result.meta = Some(meta(&outcome, Some(&fault)));
            Ok(result)
        }
    }
}

fn meta(outcome: &Outcome, fault: Option<&Fault>) -> MetaObject {
    let mut rest = Map::new();
    rest.insert("call_id".to_owned(), outcome.call_id.clone().into());
    rest.insert("tool".to_owned(), outcome.tool.clone().into());
    rest.insert("success".to_owned(), fault.is_none().into());
    rest.insert("latency_ms".to_owned(), milliseconds(outcome.latency).into());
    rest.insert("metadata".to_owned(), serde_json::to_value(&outcome.metadata).unwrap_or_default());
    if let Some(fault) = fault {
        rest.insert("error".to_owned(), serde_json::to_value(fault).unwrap_or_default());
    }
    let mut meta = Map::new();
    meta.insert(META_KEY.to_owned(), Value::Object(rest));
    MetaObject(meta)
}

/// JSON that is valid and that no client could read either: nested too deep, or numbers beyond every type.
fn unreadable(tool: &str, error: &serde_json::Error) -> Fault {
    let message =
        format!("what {tool} returned is JSON that clients cannot read: {error}; return it in a simpler shape");
    Fault::new(Code::InvalidOutput, message)
}
