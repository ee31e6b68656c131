//! An outcome as one line for the client, with the tool's JSON passed on as the text it came in: nothing is parsed into
//! values, and long integers stay what they are. What it says is what [`super::answer`] says through rmcp.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{ContentBlock, RequestId};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::{not_found, unreadable};
use super::content::{Apart, taken_apart};
use crate::outcome::{Code, Fault, Metadata, Outcome, milliseconds};

/// Whether results say of what type they are, as they must since there is more than one type of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They do not: revisions with a handshake.
    Plain,
    /// They say that they are complete.
    Complete,
}

/// The reply to a request.
pub(super) fn line(id: &RequestId, mut outcome: Outcome, kind: Kind) -> Vec<u8> {
    let ended = std::mem::replace(&mut outcome.ended, Err(Fault::new(Code::SystemError, "")));
    let ended = ended.and_then(|raw| if is_readable(raw.get()) { Ok(raw) } else { check(&outcome.tool, raw) });
    let apart = ended.as_ref().ok().and_then(|raw| taken_apart(&outcome.call_id, raw.get()));
    let (answer, error) = match (&ended, apart) {
        (Ok(_), Some(apart)) => (Some(with_files(apart, &outcome, kind)), None),
        (Ok(raw), None) => (Some(success(raw, &outcome, kind)), None),
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

/// Whether JSON can be told at a glance to be what every client can read: not deep, no exponents, no number beyond every
/// type, no escapes of half a character. What cannot is looked at closely.
fn is_readable(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped, mut last, mut digits) = (0_usize, false, false, 0_u8, 0_usize);
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
            digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
            if depth > DEEPEST || digits > LONGEST {
                return false;
            }
        }
        last = byte;
    }
    true
}

/// Readers of JSON stop somewhere beyond a hundred levels.
const DEEPEST: usize = 100;

/// Numbers of more digits may be beyond 1.8e308, which many readers refuse, and with it the whole answer.
const LONGEST: usize = 300;

fn check(tool: &str, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(_) => Ok(raw),
        Err(error) => Err(unreadable(tool, &error)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::model::{JsonRpcResponse, JsonRpcVersion2_0, ServerResult};

    use super::*;
    use crate::outcome::Details;
    use crate::protocol::{Incoming, parse};

    fn outcome(ended: Result<&str, Fault>) -> Outcome {
        Outcome {
            call_id: "c-1".to_owned(),
            tool: "a.b".to_owned(),
            ended: ended.map(|text| RawValue::from_string(text.to_owned()).unwrap()),
            latency: Duration::from_micros(1500),
            metadata: Metadata::default(),
        }
    }

    fn both(ended: &Result<&str, Fault>, kind: Kind) -> (Value, Value) {
        let id = RequestId::Number(7);
        let ours: Value = serde_json::from_slice(&line(&id, outcome(ended.clone()), kind)).unwrap();
        let theirs = match super::super::answer::result(outcome(ended.clone())) {
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
            Ok("1e400"),
            Ok("\"\\ud800\""),
            Ok("\"\\u00e9\""),
            Err(Fault::new(Code::ToolCrashed, "it died").with(details)),
            Err(Fault::new(Code::ToolNotFound, "there is none")),
        ];
        for ended in ends {
            for kind in [Kind::Plain, Kind::Complete] {
                let (ours, theirs) = both(&ended, kind);
                assert_eq!(ours, theirs, "{ended:?}");
            }
        }
    }

    #[test]
    fn long_integers_stay_what_they_are() {
        let outcome = outcome(Ok("{\"n\":36893488147419103233}"));
        let line = String::from_utf8(line(&RequestId::String("x".into()), outcome, Kind::Plain)).unwrap();
        assert!(line.contains("\"structuredContent\":{\"n\":36893488147419103233}"), "{line}");
        assert!(line.ends_with("}\n") && line.contains("\"id\":\"x\""));
    }

    #[test]
    fn what_clients_cannot_read_is_told_instead_of_sent() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let (ours, theirs) = both(&Ok(&deep), Kind::Complete);
        assert_eq!(ours, theirs);
        assert!(ours["result"]["content"][0]["text"].as_str().unwrap().starts_with("INVALID_OUTPUT"));
        assert!(is_readable("{\"e\": \"1e9 [[[ \\\" \", \"b\": true}"));
        assert!(!is_readable("[1e9]") && !is_readable("\"\\u0041\""));
    }

    #[test]
    fn whatever_a_worker_answers_the_client_gets_a_line_that_it_can_read() {
        let levels = |many: usize| format!("{}{}", "[".repeat(many), "]".repeat(many));
        let refused = ["\"\\ud800\"", "[\"\\udc00\\ud800\"]", "1e400", "-1E400", &"9".repeat(400), &levels(100_000)]
            .map(str::to_owned);
        let passed =
            ["{\"a\":1,\"a\":2}", "1e-400", "\"\\ud83d\\ude82\"", &"9".repeat(299), &levels(100)].map(str::to_owned);
        for (text, is_refused) in refused.into_iter().zip([true; 6]).chain(passed.into_iter().zip([false; 5])) {
            let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{text}}}");
            let Ok(Incoming::Reply { answer: Ok(raw), .. }) = parse(frame.as_bytes()) else {
                panic!("no reply: {frame}")
            };
            let reply = line(&RequestId::Number(7), Outcome { ended: Ok(raw), ..outcome(Ok("1")) }, Kind::Plain);
            let read: Value = serde_json::from_slice(&reply).unwrap();
            let said = read["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(said.starts_with("INVALID_OUTPUT"), is_refused, "{said}");
            assert_eq!(read["result"]["isError"], is_refused);
        }
    }
}
