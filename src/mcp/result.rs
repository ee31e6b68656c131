//! An outcome as the answer to `tools/call`: content for models, structured content for programs, the rest in `_meta`.
//!
//! The tool's JSON is passed on as text: nothing is parsed into values, and long integers stay exact.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::ErrorData;
use rmcp::model::{ContentBlock, ErrorCode, RequestId, ResourceContents};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::lifecycle::Rules;
use super::message;
use crate::outcome::{
    Code, Fault, File, Metadata, Missing, Outcome, each_file, fault_in_envelope, in_envelope, may_hold_files,
    milliseconds, without_bytes,
};

/// The line that answers a call. An unknown tool is a protocol error; every other failure is a result with `isError`.
pub(super) fn line(id: &RequestId, outcome: &Outcome, rules: Rules, envelope: bool) -> Vec<u8> {
    let answer = match &outcome.ended {
        Ok(raw) => {
            let raw = if envelope { Cow::Owned(in_envelope(raw)) } else { Cow::Borrowed(&**raw) };
            match taken_apart(&outcome.call_id, raw.get()) {
                Some(apart) => return message::result(id, with_files(apart, outcome, rules)),
                None => return message::result(id, success(&raw, outcome, rules)),
            }
        }
        Err(fault) if rules == Rules::Modern && capability(fault).is_some() => {
            let needed = json!({"requiredCapabilities": {capability(fault).unwrap_or_default(): {}}});
            let code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
            return message::error(id, &ErrorData::new(code, fault.message.clone(), Some(needed)));
        }
        Err(fault) if envelope => failure_in_envelope(fault, outcome, rules),
        Err(fault) if fault.code == Code::ToolNotFound => {
            let error = ErrorData::invalid_params(fault.message.clone(), serde_json::to_value(fault).ok());
            return message::error(id, &error);
        }
        Err(fault) => failure(fault, outcome, rules),
    };
    message::result(id, answer)
}

/// The capability that the client lacked.
fn capability(fault: &Fault) -> Option<&str> {
    match &fault.details.missing {
        Some(Missing::Capability(name)) => Some(name),
        _ => None,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Structured<'a>>,
    is_error: bool,
    /// Required since revision 2026-07-28, which has several types of results.
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
    Verbatim(&'a RawValue),
    Quoted(Cow<'a, str>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Structured<'a> {
    Object(&'a RawValue),
    Wrapped {
        result: &'a RawValue,
    },
    /// A result without its files.
    Apart(Value),
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

const fn result_type(rules: Rules) -> Option<&'static str> {
    match rules {
        Rules::Legacy => None,
        Rules::Modern => Some("complete"),
    }
}

fn success<'a>(raw: &'a RawValue, outcome: &'a Outcome, rules: Rules) -> Answer<'a> {
    let text = raw.get();
    let content = if text.starts_with('"') { Content::Verbatim(raw) } else { Content::Quoted(text.into()) };
    let structured = if text.starts_with('{') { Structured::Object(raw) } else { Structured::Wrapped { result: raw } };
    Answer {
        content: vec![Block::Text(Text { text: content })],
        structured_content: Some(structured),
        is_error: false,
        result_type: result_type(rules),
        meta: meta(outcome, None),
    }
}

/// A success whose files are content blocks.
fn with_files(apart: Apart, outcome: &Outcome, rules: Rules) -> Answer<'_> {
    let text = Text { text: Content::Quoted(apart.result.to_string().into()) };
    let files = apart.files.into_iter().map(|file| Block::File(Box::new(file)));
    let structured = if apart.result.is_object() { apart.result } else { json!({"result": apart.result}) };
    Answer {
        content: [Block::Text(text)].into_iter().chain(files).collect(),
        structured_content: Some(Structured::Apart(structured)),
        is_error: false,
        result_type: result_type(rules),
        meta: meta(outcome, None),
    }
}

fn failure<'a>(fault: &'a Fault, outcome: &'a Outcome, rules: Rules) -> Answer<'a> {
    Answer {
        content: vec![Block::Text(Text { text: Content::Quoted(fault.to_string().into()) })],
        structured_content: None,
        is_error: true,
        result_type: result_type(rules),
        meta: meta(outcome, Some(fault)),
    }
}

fn failure_in_envelope<'a>(fault: &'a Fault, outcome: &'a Outcome, rules: Rules) -> Answer<'a> {
    let envelope = fault_in_envelope(fault);
    let structured = serde_json::from_str(envelope.get()).unwrap_or_default();
    Answer {
        content: vec![Block::Text(Text { text: Content::Quoted(envelope.get().to_owned().into()) })],
        structured_content: Some(Structured::Apart(structured)),
        ..failure(fault, outcome, rules)
    }
}

fn meta<'a>(outcome: &'a Outcome, error: Option<&'a Fault>) -> Meta<'a> {
    let outcome = Rest {
        call_id: &outcome.call_id,
        tool: &outcome.tool,
        success: error.is_none(),
        latency_ms: milliseconds(outcome.latency),
        metadata: &outcome.metadata,
        error,
    };
    Meta { outcome }
}

/// A result without its files, and the files.
struct Apart {
    /// The result; `size` and `content` (the index of the content block) replace a file's bytes.
    result: Value,
    /// The files, in the order of the result.
    files: Vec<ContentBlock>,
}

/// Content blocks before the files: the result as text.
const BEFORE: usize = 1;

/// Separates a result from its files; `None` if it has no files.
fn taken_apart(call_id: &str, json: &str) -> Option<Apart> {
    if !may_hold_files(json) {
        return None;
    }
    let mut result: Value = serde_json::from_str(json).ok()?;
    let mut files = Vec::new();
    each_file(&mut result, &mut |object| {
        let place = files.len() + BEFORE;
        files.extend(File::of(object).map(|file| block(&file, call_id, place)));
        without_bytes(object, place);
    });
    (!files.is_empty()).then_some(Apart { result, files })
}

fn block(file: &File<'_>, call_id: &str, place: usize) -> ContentBlock {
    match file.mime_type.split('/').next() {
        Some("image") => ContentBlock::image(file.base64, file.mime_type),
        Some("audio") => ContentBlock::audio(file.base64, file.mime_type),
        _ => {
            let name =
                file.name.map_or_else(|| place.to_string(), |name| utf8_percent_encode(name, NOT_ENCODED).to_string());
            let uri = format!("hostler://calls/{call_id}/{name}");
            ContentBlock::resource(ResourceContents::blob(file.base64, uri).with_mime_type(file.mime_type))
        }
    }
}

/// Characters that need no encoding in a URI, besides letters and digits.
const NOT_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::model::CallToolResult;

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

    fn written(ended: Result<&str, Fault>, rules: Rules, envelope: bool) -> Value {
        let line = line(&RequestId::Number(7), &outcome(ended), rules, envelope);
        serde_json::from_slice(&line).unwrap()
    }

    /// The same content, written by rmcp's own type.
    fn theirs(value: &Value, text: &str, rules: Rules) -> Value {
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(if value.is_object() { value.clone() } else { json!({"result": value}) });
        if rules == Rules::Legacy {
            result.result_type = None;
        }
        json!(result)
    }

    #[test]
    fn a_result_is_written_as_rmcps_own_type_would_be() {
        for rules in [Rules::Legacy, Rules::Modern] {
            for raw in
                ["{\"a\":[1,2.5,null]}", "[]", "null", "\"text with \\\"quotes\\\" and \\n lines\"", "\"\\u00e9\""]
            {
                let mut ours = written(Ok(raw), rules, false)["result"].take();
                ours.as_object_mut().unwrap().remove("_meta");
                let value: Value = serde_json::from_str(raw).unwrap();
                let text = value.as_str().map_or_else(|| raw.to_owned(), str::to_owned);
                assert_eq!(ours, theirs(&value, &text, rules), "{raw}");
            }
        }
    }

    #[test]
    fn a_fault_is_a_result_but_for_an_unknown_tool() {
        let details = Details { exit_code: Some(3), ..Details::default() };
        let crashed = written(Err(Fault::new(Code::ToolCrashed, "it died").with(details)), Rules::Modern, false);
        assert_eq!(crashed["result"]["isError"], true);
        assert_eq!(crashed["result"]["_meta"]["hostler/outcome"]["error"]["details"], json!({"exit_code": 3}));
        let unknown = written(Err(Fault::new(Code::ToolNotFound, "no such tool")), Rules::Legacy, false);
        assert_eq!((&unknown["error"]["code"], unknown.get("result")), (&json!(-32602), None));
        assert_eq!(unknown["error"]["data"]["code"], "TOOL_NOT_FOUND");
    }

    #[test]
    fn in_an_envelope_every_outcome_has_one_shape() {
        let in_envelope = |ended| written(ended, Rules::Legacy, true)["result"].clone();
        let ran = in_envelope(Ok("{\"exit_code\":127}"));
        assert_eq!(ran["structuredContent"], json!({"tool_success": true, "result": {"exit_code": 127}}));
        assert_eq!(ran["content"][0]["text"], "{\"tool_success\":true,\"result\":{\"exit_code\":127}}");
        for code in [Code::ToolCrashed, Code::ToolNotFound] {
            let failed = in_envelope(Err(Fault::new(code, "it died")));
            let expected = json!({"tool_success": false, "error": "it died", "error_code": code.word()});
            assert_eq!((&failed["structuredContent"], &failed["isError"]), (&expected, &json!(true)));
        }
    }

    #[test]
    fn long_integers_stay_exact() {
        let outcome = outcome(Ok("{\"n\":36893488147419103233}"));
        let line = line(&RequestId::String("x".into()), &outcome, Rules::Legacy, false);
        let line = String::from_utf8(line).unwrap();
        assert!(line.contains("\"structuredContent\":{\"n\":36893488147419103233}"), "{line}");
        assert!(line.ends_with("}\n") && line.contains("\"id\":\"x\""));
    }

    #[test]
    fn files_become_content_and_the_result_says_where_they_are() {
        let result = json!({
            "title": "engine",
            "pictures": [{"mime_type": "image/png", "base64": "iVBO", "name": "a.png"}],
            "report": {"mime_type": "text/csv", "base64": "YSxi", "name": "two words.csv"},
        });
        let apart = taken_apart("c-1", &result.to_string()).unwrap();
        assert_eq!(
            apart.result,
            json!({
                "title": "engine",
                "pictures": [{"mime_type": "image/png", "name": "a.png", "size": 3, "content": 1}],
                "report": {"mime_type": "text/csv", "name": "two words.csv", "size": 3, "content": 2},
            })
        );
        assert_eq!(
            json!(apart.files),
            json!([
                {"type": "image", "data": "iVBO", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "hostler://calls/c-1/two%20words.csv", "mimeType": "text/csv",
                 "blob": "YSxi"}},
            ])
        );
        assert!(taken_apart("c-1", "{\"base64\": \"x\", \"mime_type\": 3}").is_none());
        assert_eq!(
            written(Ok(&result.to_string()), Rules::Modern, false)["result"]["content"].as_array().unwrap().len(),
            3
        );
    }
}
