//! An outcome as the answer to `tools/call`: content for models, structured content for programs, the rest in `_meta`.
//!
//! The tool's JSON is passed on as text: nothing is parsed into values, and long integers stay exact.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{ContentBlock, ErrorCode, RequestId};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::blocks::{Apart, taken_apart};
use super::lifecycle::Rules;
use super::message;
use crate::outcome::{Code, Fault, Metadata, Outcome, fault_in_envelope, in_envelope, milliseconds};

/// What an answer depends on besides the outcome.
pub(super) struct Form<'a> {
    pub rules: Rules,
    /// Whether results are wrapped.
    pub envelope: bool,
    /// Whether the client was promised structured content of a certain form. Asked only where it matters.
    pub is_promised: &'a dyn Fn() -> bool,
}

/// A longer result is sent once, as text or as structured content. Escaping at most doubles a JSON text, so a result of this
/// length takes at most 3 MiB in both forms, and a line of 10 MiB, the limit of TypeScript clients, has room for it and for
/// what a tool prints.
pub(super) const MAX_TWICE: usize = 1 << 20;

/// The line that answers a call. An unknown tool is a protocol error; every other failure is a result with `isError`.
pub(super) fn line(id: &RequestId, outcome: &Outcome, metadata: &Metadata, form: &Form<'_>) -> Vec<u8> {
    let (envelope, to) = (form.envelope, To { outcome, metadata, form });
    match &outcome.ended {
        Ok(raw) => {
            let raw = if envelope { Cow::Owned(in_envelope(raw)) } else { Cow::Borrowed(&**raw) };
            match taken_apart(&outcome.call_id, raw.get(), 0) {
                Some(apart) => message::result(id, to.noted(to.with_blocks(apart))),
                None => message::result(id, to.noted(to.success(&raw))),
            }
        }
        Err(fault) => failed(id, fault, &to),
    }
}

/// The line that answers a successful call with these blocks in place of its result.
pub(super) fn line_of_blocks(
    id: &RequestId,
    outcome: &Outcome,
    metadata: &Metadata,
    form: &Form<'_>,
    blocks: Vec<ContentBlock>,
) -> Vec<u8> {
    let to = To { outcome, metadata, form };
    let content = blocks.into_iter().map(|block| Block::Other(Box::new(block))).collect();
    let structured_content = form.envelope.then(|| Structured::Apart(json!({"tool_success": true})));
    message::result(id, to.noted(Answer { content, structured_content, ..to.answer() }))
}

fn failed(id: &RequestId, fault: &Fault, to: &To<'_>) -> Vec<u8> {
    if let Some(error) = lacking(fault, to.form.rules) {
        return message::error(id, &error);
    }
    match fault.code {
        _ if to.form.envelope => message::result(id, to.noted(to.failure_in_envelope(fault))),
        Code::ToolNotFound => {
            let error = ErrorData::invalid_params(fault.message.clone(), serde_json::to_value(fault).ok());
            message::error(id, &error)
        }
        _ => message::result(id, to.noted(to.failure(fault))),
    }
}

/// The error for a call that asked for what its client cannot do, which revisions since 2026-07-28 have.
pub(super) fn lacking(fault: &Fault, rules: Rules) -> Option<ErrorData> {
    let (Code::NotSupported, Rules::Modern, Some(capability)) = (fault.code, rules, &fault.details.capability) else {
        return None;
    };
    let needed = json!({"requiredCapabilities": {capability: {}}});
    Some(ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, fault.message.clone(), Some(needed)))
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
    /// An image, a sound, another file, a link, or a text between them.
    Other(Box<ContentBlock>),
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
    /// The call's own span.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
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

/// One answer in the making.
struct To<'a> {
    outcome: &'a Outcome,
    metadata: &'a Metadata,
    form: &'a Form<'a>,
}

impl<'a> To<'a> {
    fn success<'r>(&'r self, raw: &'r RawValue) -> Answer<'r> {
        let text = raw.get();
        let whole = || if text.starts_with('"') { Content::Verbatim(raw) } else { Content::Quoted(text.into()) };
        let structured =
            || if text.starts_with('{') { Structured::Object(raw) } else { Structured::Wrapped { result: raw } };
        let (content, structured) = match self.parts(text.len()) {
            Parts::Both => (whole(), Some(structured())),
            Parts::Text => (whole(), None),
            Parts::Structured => (Content::Quoted(elsewhere(text.len()).into()), Some(structured())),
        };
        Answer { content: vec![Block::Text(Text { text: content })], structured_content: structured, ..self.answer() }
    }

    /// A result with files or links. Clients that prefer structured content would not show them, so where they are all of the
    /// result there is none, unless it was promised.
    fn with_blocks(&self, apart: Apart) -> Answer<'_> {
        let Apart { result, blocks, is_all } = apart;
        let blocks = blocks.into_iter().map(|block| Block::Other(Box::new(block)));
        let wrapped = |result: Value| if result.is_object() { result } else { json!({ "result": result }) };
        if is_all {
            let structured = (self.form.is_promised)().then(|| Structured::Apart(wrapped(result)));
            return Answer { content: blocks.collect(), structured_content: structured, ..self.answer() };
        }
        let text = result.to_string();
        let parts = self.parts(text.len());
        let text = if parts == Parts::Structured { elsewhere(text.len()) } else { text };
        let first = Block::Text(Text { text: Content::Quoted(text.into()) });
        Answer {
            content: std::iter::once(first).chain(blocks).collect(),
            structured_content: (parts != Parts::Text).then(|| Structured::Apart(wrapped(result))),
            ..self.answer()
        }
    }

    /// In which forms a result of this length is sent.
    fn parts(&self, length: usize) -> Parts {
        match length {
            ..=MAX_TWICE => Parts::Both,
            _ if self.form.envelope || (self.form.is_promised)() => Parts::Structured,
            _ => Parts::Text,
        }
    }

    fn failure(&self, fault: &'a Fault) -> Answer<'_> {
        Answer {
            content: vec![Block::Text(Text { text: Content::Quoted(fault.to_string().into()) })],
            is_error: true,
            meta: self.meta(Some(fault)),
            ..self.answer()
        }
    }

    fn failure_in_envelope(&self, fault: &'a Fault) -> Answer<'_> {
        let envelope = fault_in_envelope(fault);
        let structured = serde_json::from_str(envelope.get()).unwrap_or_default();
        Answer {
            content: vec![Block::Text(Text { text: Content::Quoted(envelope.get().to_owned().into()) })],
            structured_content: Some(Structured::Apart(structured)),
            ..self.failure(fault)
        }
    }

    /// An answer that tells the model if it goes round in circles.
    fn noted<'r>(&'r self, mut answer: Answer<'r>) -> Answer<'r> {
        if let Some(times) = self.metadata.repeated {
            let is_denied = self.outcome.ended.as_ref().is_err_and(|fault| fault.code == Code::PermissionDenied);
            let tool = &self.outcome.tool;
            let text = if is_denied {
                format!(
                    "Note from hostler: this was denial {times} of {tool} for the same reason. Do not call it so again: do something else, or \
                     tell the user what is not allowed."
                )
            } else {
                format!(
                    "Note from hostler: this was call {times} in a row of {tool} with the same arguments, and it ended the same way. Another \
                     one will not help: change the arguments, do something else, or tell the user what is missing."
                )
            };
            answer.content.push(Block::Text(Text { text: Content::Quoted(text.into()) }));
        }
        answer
    }

    /// An answer without content.
    fn answer(&self) -> Answer<'_> {
        let result_type = (self.form.rules == Rules::Modern).then_some("complete");
        Answer { content: Vec::new(), structured_content: None, is_error: false, result_type, meta: self.meta(None) }
    }

    fn meta(&self, error: Option<&'a Fault>) -> Meta<'_> {
        let outcome = Rest {
            call_id: &self.outcome.call_id,
            tool: &self.outcome.tool,
            success: error.is_none(),
            latency_ms: milliseconds(self.outcome.latency),
            metadata: self.metadata,
            error,
        };
        Meta { outcome, traceparent: self.metadata.traceparent.as_deref() }
    }
}

/// The forms in which a result is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Both,
    Text,
    Structured,
}

/// The text in place of a result that is in the structured content alone.
fn elsewhere(length: usize) -> String {
    format!("The result, {}, is the structured content of this answer.", megabytes(length))
}

/// A size for people.
pub(super) fn megabytes(bytes: usize) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

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

    fn answered(ended: Result<&str, Fault>, form: &Form<'_>) -> Value {
        let outcome = outcome(ended);
        let line = line(&RequestId::Number(7), &outcome, &outcome.metadata, form);
        serde_json::from_slice(&line).unwrap()
    }

    fn written(ended: Result<&str, Fault>, rules: Rules, envelope: bool) -> Value {
        answered(ended, &Form { rules, envelope, is_promised: &|| false })
    }

    fn promised(ended: Result<&str, Fault>, rules: Rules, is_promised: bool) -> Value {
        answered(ended, &Form { rules, envelope: false, is_promised: &|| is_promised })
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
        let form = Form { rules: Rules::Legacy, envelope: false, is_promised: &|| false };
        let line = line(&RequestId::String("x".into()), &outcome, &outcome.metadata, &form);
        let line = String::from_utf8(line).unwrap();
        assert!(line.contains("\"structuredContent\":{\"n\":36893488147419103233}"), "{line}");
        assert!(line.ends_with("}\n") && line.contains("\"id\":\"x\""));
    }

    #[test]
    fn a_list_of_content_has_no_structured_content_unless_it_was_promised() {
        let list = r#"["a",{"mime_type":"image/png","base64":"iVBO"}]"#;
        for is_promised in [false, true] {
            let answer = promised(Ok(list), Rules::Modern, is_promised)["result"].take();
            let kinds: Vec<&Value> = answer["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
            assert_eq!(kinds, ["text", "image"]);
            let place = json!({"result": ["a", {"mime_type": "image/png", "size": 3, "content": 1}]});
            assert_eq!(answer.get("structuredContent"), is_promised.then_some(&place));
        }
    }

    #[test]
    fn a_large_result_is_sent_once() {
        let text = "x".repeat(MAX_TWICE);
        let (long, object) = (json!(text).to_string(), json!({ "text": text }).to_string());
        for raw in [&long, &object] {
            let as_text = promised(Ok(raw), Rules::Legacy, false)["result"].take();
            assert_eq!(
                (
                    as_text.get("structuredContent"),
                    as_text["content"][0]["text"].as_str().map(str::len) >= Some(MAX_TWICE)
                ),
                (None, true)
            );
            let structured = promised(Ok(raw), Rules::Legacy, true)["result"].take();
            let inner = &structured["structuredContent"];
            assert_eq!(inner.get("text").or(inner.get("result")), Some(&json!(text)));
            assert!(structured["content"][0]["text"].as_str().unwrap().len() < 100);
        }
        let enveloped = written(Ok(&long), Rules::Legacy, true)["result"].take();
        assert_eq!(enveloped["structuredContent"]["result"], json!(text), "a schema promises every envelope");
        let with_file = json!({"text": text, "file": {"mime_type": "image/png", "base64": "iVBO"}}).to_string();
        let answer = promised(Ok(&with_file), Rules::Legacy, false)["result"].take();
        assert_eq!((answer.get("structuredContent"), answer["content"].as_array().unwrap().len()), (None, 2));
        let short = json!("x".repeat(MAX_TWICE - 2)).to_string();
        assert!(promised(Ok(&short), Rules::Legacy, false)["result"].get("structuredContent").is_some());
    }
}
