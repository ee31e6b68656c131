//! An outcome as one line for the client, with the tool's JSON passed on as the text it came in: nothing is parsed into
//! values, and long integers stay what they are. What it says is what [`super::answer`] says through rmcp.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{ContentBlock, RequestId};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::not_found;
use super::content::{Apart, taken_apart};
use crate::outcome::{Code, Fault, Metadata, Outcome, fault_in_envelope, in_envelope, milliseconds};

/// Whether results say of what type they are, as they must since there is more than one type of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They do not: revisions with a handshake.
    Plain,
    /// They say that they are complete.
    Complete,
}

/// The reply to a request, in the dress that the configuration wants.
pub(super) fn line(id: &RequestId, mut outcome: Outcome, kind: Kind, envelope: bool) -> Vec<u8> {
    let ended = std::mem::replace(&mut outcome.ended, Err(Fault::new(Code::SystemError, "")));
    let ended = if envelope { ended.map(|raw| in_envelope(&raw)) } else { ended };
    let apart = ended.as_ref().ok().and_then(|raw| taken_apart(&outcome.call_id, raw.get()));
    let (answer, error) = match (&ended, apart) {
        (Ok(_), Some(apart)) => (Some(with_files(apart, &outcome, kind)), None),
        (Ok(raw), None) => (Some(success(raw, &outcome, kind)), None),
        (Err(fault), _) if envelope => (Some(failure_in_envelope(fault, &outcome, kind)), None),
        (Err(fault), _) if fault.code == Code::ToolNotFound => (None, Some(not_found(fault))),
        (Err(fault), _) => (Some(failure(fault, &outcome, kind)), None),
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
    content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Structured<'a>>,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    Text(Text<'a>),
    /// An image, a sound or another file.
    File(Box<ContentBlock>),
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
    Wrapped {
        result: &'a RawValue,
    },
    /// A result whose files were taken out of it.
    Apart(Value),
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "hostler/outcome")]
    outcome: Rest<'a>,
}

#[derive(Serialize)]
pub(super) struct Rest<'a> {
    call_id: &'a str,
    tool: &'a str,
    success: bool,
    latency_ms: f64,
    metadata: &'a Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

impl Kind {
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Complete => Some("complete"),
        }
    }
}

fn success<'a>(raw: &'a RawValue, outcome: &'a Outcome, kind: Kind) -> Answer<'a> {
    let text = raw.get();
    let content = if text.starts_with('"') { Content::AsItIs(raw) } else { Content::Quoted(text.into()) };
    let structured = if text.starts_with('{') { Structured::Object(raw) } else { Structured::Wrapped { result: raw } };
    Answer {
        content: vec![Block::Text(Text { text: content })],
        structured_content: Some(structured),
        is_error: false,
        result_type: kind.word(),
        meta: Meta { outcome: rest(outcome, None) },
    }
}

/// A success whose files are content of their own.
fn with_files(apart: Apart, outcome: &Outcome, kind: Kind) -> Answer<'_> {
    let text = Text { text: Content::Quoted(apart.result.to_string().into()) };
    let files = apart.files.into_iter().map(|file| Block::File(Box::new(file)));
    let structured = if apart.result.is_object() { apart.result } else { json!({"result": apart.result}) };
    Answer {
        content: [Block::Text(text)].into_iter().chain(files).collect(),
        structured_content: Some(Structured::Apart(structured)),
        is_error: false,
        result_type: kind.word(),
        meta: Meta { outcome: rest(outcome, None) },
    }
}

fn failure<'a>(fault: &'a Fault, outcome: &'a Outcome, kind: Kind) -> Answer<'a> {
    Answer {
        content: vec![Block::Text(Text { text: Content::Quoted(fault.to_string().into()) })],
        structured_content: None,
        is_error: true,
        result_type: kind.word(),
        meta: Meta { outcome: rest(outcome, Some(fault)) },
    }
}

fn failure_in_envelope<'a>(fault: &'a Fault, outcome: &'a Outcome, kind: Kind) -> Answer<'a> {
    let worn = fault_in_envelope(fault);
    let structured = serde_json::from_str(worn.get()).unwrap_or_default();
    Answer {
        content: vec![Block::Text(Text { text: Content::Quoted(worn.get().to_owned().into()) })],
        structured_content: Some(Structured::Apart(structured)),
        ..failure(fault, outcome, kind)
    }
}

pub(super) fn rest<'a>(outcome: &'a Outcome, error: Option<&'a Fault>) -> Rest<'a> {
    Rest {
        call_id: &outcome.call_id,
        tool: &outcome.tool,
        success: error.is_none(),
        latency_ms: milliseconds(outcome.latency),
        metadata: &outcome.metadata,
        error,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::model::{JsonRpcResponse, JsonRpcVersion2_0, ServerResult};

    use super::*;
    use crate::outcome::Details;

    fn outcome(ended: Result<&str, Fault>) -> Outcome {
        Outcome {
            call_id: "c-1".to_owned(),
            tool: "a.b".to_owned(),
            ended: ended.map(|text| RawValue::from_string(text.to_owned()).unwrap()),
            latency: Duration::from_micros(1500),
            metadata: Metadata::default(),
        }
    }

    fn both(ended: &Result<&str, Fault>, kind: Kind, envelope: bool) -> (Value, Value) {
        let id = RequestId::Number(7);
        let ours: Value = serde_json::from_slice(&line(&id, outcome(ended.clone()), kind, envelope)).unwrap();
        let theirs = match super::super::answer::result(outcome(ended.clone()), envelope) {
            Ok(mut result) => {
                if kind == Kind::Plain {
                    // As rmcp does for revisions with a handshake.
                    result.result_type = None;
                }
                json!(JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result: ServerResult::CallToolResult(result) })
            }
            Err(error) => json!({"jsonrpc": "2.0", "id": 7, "error": error}),
        };
        (ours, theirs)
    }

    #[test]
    fn both_ways_say_the_same() {
        let details = Details { exit_code: Some(3), ..Details::default() };
        let ends = [
            Ok("{\"a\":[1,2.5,null]}"),
            Ok("[]"),
            Ok("null"),
            Ok("\"text with \\\"quotes\\\" and \\n lines\""),
            Ok("{\"mime_type\":\"image/png\",\"base64\":\"iVBO\"}"),
            Ok("[1,{\"mime_type\":\"text/csv\",\"base64\":\"YSxi\",\"name\":\"a\"}]"),
            Ok("\"\\u00e9\""),
            Err(Fault::new(Code::ToolCrashed, "it died").with(details)),
            Err(Fault::new(Code::ToolNotFound, "there is none")),
        ];
        for ended in ends {
            for kind in [Kind::Plain, Kind::Complete] {
                for envelope in [false, true] {
                    let (ours, theirs) = both(&ended, kind, envelope);
                    assert_eq!(ours, theirs, "{ended:?}");
                }
            }
        }
    }

    #[test]
    fn in_an_envelope_every_outcome_has_one_shape() {
        let worn = |ended| both(&ended, Kind::Plain, true).0["result"].clone();
        let ran = worn(Ok("{\"exit_code\":127}"));
        assert_eq!(ran["structuredContent"], json!({"tool_success": true, "result": {"exit_code": 127}}));
        assert_eq!(ran["content"][0]["text"], "{\"tool_success\":true,\"result\":{\"exit_code\":127}}");
        for code in [Code::ToolCrashed, Code::ToolNotFound] {
            let failed = worn(Err(Fault::new(code, "it died")));
            let expected = json!({"tool_success": false, "error": "it died", "error_code": code.word()});
            assert_eq!((&failed["structuredContent"], &failed["isError"]), (&expected, &json!(true)));
        }
    }

    #[test]
    fn long_integers_stay_what_they_are() {
        let outcome = outcome(Ok("{\"n\":36893488147419103233}"));
        let line = String::from_utf8(line(&RequestId::String("x".into()), outcome, Kind::Plain, false)).unwrap();
        assert!(line.contains("\"structuredContent\":{\"n\":36893488147419103233}"), "{line}");
        assert!(line.ends_with("}\n") && line.contains("\"id\":\"x\""));
    }
}
