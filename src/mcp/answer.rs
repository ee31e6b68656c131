//! An outcome as a `tools/call` result: content for models, structured content for programs, the rest in `_meta`.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, RequestId};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::outcome::{Code, Fault, Metadata, Outcome, milliseconds};

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
        Err(fault) if fault.code == Code::ToolNotFound => Err(not_found(&fault)),
        Err(fault) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(fault.to_string())]);
            result.meta = Some(meta(&outcome, Some(&fault)));
            Ok(result)
        }
    }
}

fn not_found(fault: &Fault) -> ErrorData {
    ErrorData::invalid_params(fault.message.clone(), serde_json::to_value(fault).ok())
}

fn meta(outcome: &Outcome, fault: Option<&Fault>) -> MetaObject {
    let rest = serde_json::to_value(rest(outcome, fault)).unwrap_or_default();
    let mut meta = Map::new();
    meta.insert(META_KEY.to_owned(), rest);
    MetaObject(meta)
}

/// JSON that is valid and that no client could read either: nested too deep, or numbers beyond every type.
fn unreadable(tool: &str, error: &serde_json::Error) -> Fault {
    let message =
        format!("what {tool} returned is JSON that clients cannot read: {error}; return it in a simpler shape");
    Fault::new(Code::InvalidOutput, message)
}

/// The same result as one line for the client, with the tool's JSON passed on as the text it came in.
pub(super) fn line(id: &RequestId, mut outcome: Outcome) -> Vec<u8> {
    let ended = std::mem::replace(&mut outcome.ended, Err(Fault::new(Code::SystemError, "")));
    let ended = ended.and_then(|raw| if is_readable(raw.get()) { Ok(raw) } else { check(&outcome.tool, raw) });
    let (answer, error) = match &ended {
        Ok(raw) => (Some(success(raw, &outcome)), None),
        Err(fault) if fault.code == Code::ToolNotFound => (None, Some(not_found(fault))),
        Err(fault) => (Some(failure(fault, &outcome)), None),
    };
    let mut line = serde_json::to_vec(&Reply { jsonrpc: "2.0", id, result: answer, error }).unwrap_or_default();
    line.push(b'\n');
    line
}

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Answer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorData>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    content: [Text<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Structured<'a>>,
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct Text<'a> {
    text: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    /// A string result is its own JSON text.
    AsItIs(&'a RawValue),
    Quoted(Cow<'a, str>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Structured<'a> {
    Object(&'a RawValue),
    Wrapped { result: &'a RawValue },
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "hostler/outcome")]
    outcome: Rest<'a>,
}

#[derive(Serialize)]
struct Rest<'a> {
    call_id: &'a str,
    tool: &'a str,
    success: bool,
    latency_ms: f64,
    metadata: &'a Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

fn success<'a>(raw: &'a RawValue, outcome: &'a Outcome) -> Answer<'a> {
    let text = raw.get();
    let content = if text.starts_with('"') { Content::AsItIs(raw) } else { Content::Quoted(text.into()) };
    let structured = if text.starts_with('{') { Structured::Object(raw) } else { Structured::Wrapped { result: raw } };
    Answer {
        content: [Text { text: content }],
        structured_content: Some(structured),
        is_error: false,
        meta: Meta { outcome: rest(outcome, None) },
    }
}

fn failure<'a>(fault: &'a Fault, outcome: &'a Outcome) -> Answer<'a> {
    Answer {
        content: [Text { text: Content::Quoted(fault.to_string().into()) }],
        structured_content: None,
        is_error: true,
        meta: Meta { outcome: rest(outcome, Some(fault)) },
    }
}

fn rest<'a>(outcome: &'a Outcome, error: Option<&'a Fault>) -> Rest<'a> {
    Rest {
        call_id: &outcome.call_id,
        tool: &outcome.tool,
        success: error.is_none(),
        latency_ms: milliseconds(outcome.latency),
        metadata: &outcome.metadata,
        error,
    }
}

/// Whether JSON can be told at a glance to be what every client can read: not deep, no exponents, no escapes of half a
/// character. What cannot is looked at closely.
fn is_readable(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped, mut last) = (0_usize, false, false, 0_u8);
    for byte in json.bytes() {
        if in_string {
            if escaped && byte == b'u' {
                return false;
            }
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'e' | b'E' if last.is_ascii_digit() => return false,
                _ => {}
            }
            if depth > DEEPEST {
                return false;
            }
        }
        last = byte;
    }
    true
}

/// Readers of JSON stop somewhere beyond a hundred levels.
const DEEPEST: usize = 100;

fn check(tool: &str, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(_) => Ok(raw),
        Err(error) => Err(unreadable(tool, &error)),
    }
}
