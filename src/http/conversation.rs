//! The calls of one conversation, in the four messages of a chat's user interface.

use std::io;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use tokio::io::{AsyncWriteExt, copy, duplex, sink, split};

use super::body::{Answer, LONGEST_QUESTION, refuse};
use super::face::Face;
use super::websocket::{Socket, WITHIN, accept, carry, held_by, opened};
use crate::call::{EventFilter, EventKind, Subscription};

/// Tags by which callers say where a call belongs: `conversation:1`, `prompt:10`, `tool_call:5`.
const CONVERSATION: &str = "conversation:";
const PROMPT: &str = "prompt:";
const TOOL_CALL: &str = "tool_call:";

/// What such a user interface hears.
const KINDS: [EventKind; 5] = [
    EventKind::ToolCallStarted,
    EventKind::ToolOutput,
    EventKind::ToolResult,
    EventKind::ToolCallFailed,
    EventKind::ToolCallBlocked,
];

/// An event, as far as it is passed on.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "event")]
    kind: EventKind,
    call_id: &'a str,
    tool_name: &'a str,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    text: String,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    omitted_bytes: Option<usize>,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

/// A message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notice<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    prompt_id: Value,
    tool_call_id: Value,
    #[serde(flatten)]
    what: What<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum What<'a> {
    ToolName(&'a str),
    Output(String),
    Result(Option<&'a RawValue>),
    #[serde(rename = "result")]
    Omitted {
        omitted_bytes: usize,
    },
    Error(String),
}

/// Serves a socket that hears of one conversation.
pub fn serve(face: &Arc<Face>, mut request: Request<Incoming>) -> Answer {
    let Some(conversation) = request.uri().query().and_then(named) else {
        return refuse(StatusCode::BAD_REQUEST, "INVALID_PARAMS", "name the conversation: /ws?conversation=ID");
    };
    let (answer, upgrade) = match accept(&mut request) {
        Ok(accepted) => accepted,
        Err(refused) => return *refused,
    };
    let (face, held) = (Arc::clone(face), held_by(&request));
    let tag = format!("{CONVERSATION}{conversation}");
    let filter = EventFilter { tag: Some(tag), kinds: Some(KINDS.to_vec()), ..EventFilter::default() };
    // From now on: what happens before the handshake is answered is not missed.
    let events = face.control().runtime().watch.subscribe(filter);
    tokio::spawn(async move {
        let _held = held;
        if let Some(socket) = opened(upgrade, LONGEST_QUESTION).await {
            tell(&face, socket, events).await;
        }
    });
    answer
}

/// The conversation that a query names.
fn named(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("conversation="))?;
    let value = percent_decode_str(value).decode_utf8().ok()?;
    (!value.is_empty()).then(|| value.into_owned())
}

async fn tell(face: &Face, socket: Socket, mut events: Subscription) {
    let attendance = face.attend().await;
    let (near, far) = duplex(WITHIN);
    let (mut heard, mut lines) = split(far);
    let mut nothing = sink();
    let telling = async {
        while let Some(batch) = events.next().await {
            for text in batch.events.iter().filter_map(|event| message(event.get())) {
                lines.write_all((text + "\n").as_bytes()).await?;
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        () = carry(socket, near) => {}
        _ = telling => {}
        // Nothing is expected of the client but its end.
        _ = copy(&mut heard, &mut nothing) => {}
        () = attendance.ended() => {}
    }
}

/// The message of an event.
fn message(event: &str) -> Option<String> {
    let event: Event<'_> = serde_json::from_str(event).ok()?;
    let (kind, what) = match event.kind {
        EventKind::ToolCallStarted => ("tool_started", What::ToolName(event.tool_name)),
        EventKind::ToolOutput => ("tool_output", What::Output(event.text)),
        EventKind::ToolResult => match event.omitted_bytes {
            None => ("tool_complete", What::Result(event.result)),
            Some(omitted_bytes) => ("tool_complete", What::Omitted { omitted_bytes }),
        },
        _ => ("tool_error", What::Error(event.error.map(|error| error.message).unwrap_or_default())),
    };
    let id = |prefix| event.tags.iter().find_map(|tag| tag.strip_prefix(prefix)).map(as_id);
    let notice = Notice {
        kind,
        prompt_id: id(PROMPT).unwrap_or_default(),
        tool_call_id: id(TOOL_CALL).unwrap_or_else(|| event.call_id.into()),
        what,
    };
    serde_json::to_string(&notice).ok()
}

/// An id is a number where it reads as one.
fn as_id(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => Number::from(number).into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notice_of(event: &Value) -> Value {
        serde_json::from_str(&message(&event.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn the_four_messages_have_exactly_their_members() {
        let tags = json!(["conversation:1", "prompt:10", "tool_call:5"]);
        let event = |kind: &str, more: Value| {
            let mut event =
                json!({"event": kind, "time_ms": 1, "call_id": "c", "tool_name": "bash", "session": 1, "tags": tags});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            notice_of(&event)
        };
        let started = json!({"type": "tool_started", "promptId": 10, "toolCallId": 5, "toolName": "bash"});
        assert_eq!(event("tool_call_started", json!({})), started);
        let output = json!({"type": "tool_output", "promptId": 10, "toolCallId": 5, "output": "hi\n"});
        assert_eq!(event("tool_output", json!({"stream": "stdout", "text": "hi\n", "chunk": 0})), output);
        let result = json!({"stdout": "hi\n", "exitCode": 0});
        let complete = json!({"type": "tool_complete", "promptId": 10, "toolCallId": 5, "result": result});
        assert_eq!(event("tool_result", json!({"result": result})), complete);
        let long = json!({"type": "tool_complete", "promptId": 10, "toolCallId": 5, "result": {"omitted_bytes": 9}});
        assert_eq!(event("tool_result", json!({"omitted_bytes": 9})), long);
        let error = json!({"type": "tool_error", "promptId": 10, "toolCallId": 5, "error": "no coal"});
        assert_eq!(event("tool_call_failed", json!({"error": {"code": "TOOL_ERROR", "message": "no coal"}})), error);
    }

    #[test]
    fn ids_are_what_the_caller_says_or_the_call() {
        let event = json!({"event": "tool_call_started", "call_id": "c", "tool_name": "a.b", "tags": ["prompt:x-007"]});
        let expected = json!({"type": "tool_started", "promptId": "x-007", "toolCallId": "c", "toolName": "a.b"});
        assert_eq!(notice_of(&event), expected);
        assert_eq!((as_id("007"), as_id("7"), as_id("")), (json!("007"), json!(7), json!("")));
    }

    #[test]
    fn a_query_names_the_conversation() {
        assert_eq!(named("a=b&conversation=x%20y").as_deref(), Some("x y"));
        assert_eq!((named("conversation="), named("conversations=1"), named("conversation=%ff")), (None, None, None));
    }
}
