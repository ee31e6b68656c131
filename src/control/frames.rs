//! Frames of JSON-RPC 2.0, on whatever they come: one message or a batch. Notifications, answers to our own questions and
//! subscriptions are handled here; the methods answer single requests.

use jsonrpsee::Methods;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::client::Client;
use crate::outcome::Code;

/// The most requests in one frame.
const MOST_TOGETHER: usize = 1024;
/// Once the answers to requests of one frame have this many bytes, the others are refused.
const MOST_ANSWERED: usize = 32 << 20;
/// Notifications that a subscription may have on their way.
const ON_THE_WAY: usize = 16;

/// The requests that came together.
pub(super) struct Frame {
    requests: Vec<Request>,
    is_batch: bool,
}

struct Request {
    text: String,
    /// As JSON. A notification has none and gets no answer.
    id: Option<String>,
}

impl Client {
    /// Reads a frame: answers to our own questions are delivered, the requests are left; `None` if there are none. An error is
    /// the answer to what cannot be read.
    pub(super) fn read_frame(&self, text: &[u8]) -> Result<Option<Frame>, String> {
        let Messages { all, is_batch } = Messages::read(text)?;
        let mut requests = Vec::new();
        for message in all {
            match message {
                Message::Response { id, result } => self.answered(id, result.as_deref()),
                Message::Request(request) => requests.push(request),
            }
        }
        Ok((!requests.is_empty()).then_some(Frame { requests, is_batch }))
    }
}

impl Frame {
    /// Answers the requests in their order. The answer is empty if no request wants one.
    pub async fn answer(self, methods: &Methods) -> (Option<String>, Vec<Notifications>) {
        let (mut texts, mut subscriptions) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for Request { text, id } in self.requests {
            if bytes > MOST_ANSWERED {
                texts.extend(
                    id.map(|id| busy(&id, "the answers of this batch are too long; send fewer requests together")),
                );
                continue;
            }
            let answer = match methods.raw_json_request(&text, ON_THE_WAY).await {
                Ok((answer, notifications)) => {
                    subscriptions.extend(Notifications::behind(notifications));
                    String::from(Box::<str>::from(answer))
                }
                Err(_) => refusal(INVALID_REQUEST, EXPECTED),
            };
            if id.is_some() {
                bytes += answer.len();
                texts.push(answer);
            }
        }
        (joined(&texts, self.is_batch), subscriptions)
    }

    /// The answer if no request is run, because of too much else.
    pub fn refused(self, message: &str) -> Option<String> {
        let texts: Vec<String> = self.requests.iter().filter_map(|one| Some(busy(one.id.as_ref()?, message))).collect();
        joined(&texts, self.is_batch)
    }
}

/// The answers of a frame as one.
fn joined(answers: &[String], is_batch: bool) -> Option<String> {
    match answers {
        [] => None,
        [one] if !is_batch => Some(one.clone()),
        all => Some(format!("[{}]", all.join(","))),
    }
}

/// What follows the answer of a subscription.
pub(super) struct Notifications {
    first: Option<Box<RawValue>>,
    further: mpsc::Receiver<Box<RawValue>>,
}

impl Notifications {
    /// Those behind an answer; none behind that of a method that is no subscription.
    fn behind(mut further: mpsc::Receiver<Box<RawValue>>) -> Option<Self> {
        match further.try_recv() {
            Ok(first) => Some(Self { first: Some(first), further }),
            Err(mpsc::error::TryRecvError::Empty) => Some(Self { first: None, further }),
            Err(mpsc::error::TryRecvError::Disconnected) => None,
        }
    }

    pub async fn next(&mut self) -> Option<Box<RawValue>> {
        match self.first.take() {
            Some(first) => Some(first),
            None => self.further.recv().await,
        }
    }
}

/// The messages of a frame.
struct Messages {
    all: Vec<Message>,
    is_batch: bool,
}

enum Message {
    Request(Request),
    /// An answer to a question of ours.
    Response {
        id: u64,
        result: Option<Box<RawValue>>,
    },
}

/// The members by which messages differ.
#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow, default, deserialize_with = "also_null")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// `null` is an id, though a discouraged one; a message without the member has none.
fn also_null<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl Messages {
    /// Reads a frame, or says as an answer why it cannot be read.
    fn read(text: &[u8]) -> Result<Self, String> {
        let whole: &RawValue =
            serde_json::from_slice(text).map_err(|source| refusal(PARSE_ERROR, &format!("not JSON: {source}")))?;
        if !whole.get().starts_with('[') {
            return Ok(Self { all: vec![Message::of(whole)], is_batch: false });
        }
        let parts: Vec<&RawValue> = serde_json::from_str(whole.get()).unwrap_or_default();
        if parts.is_empty() || parts.len() > MOST_TOGETHER {
            return Err(refusal(INVALID_REQUEST, &format!("a batch has 1 to {MOST_TOGETHER} requests")));
        }
        Ok(Self { all: parts.into_iter().map(Message::of).collect(), is_batch: true })
    }
}

impl Message {
    fn of(text: &RawValue) -> Self {
        let shape: Option<Shape<'_>> = serde_json::from_str(text.get()).ok();
        match shape {
            Some(Shape { id: Some(id), method: None, result, error, .. }) if result.is_some() || error.is_some() => {
                // One with another id is an answer to nothing.
                let id = id.get().parse().unwrap_or_default();
                Self::Response { id, result: result.map(ToOwned::to_owned) }
            }
            Some(Shape { id: None, method: Some(method), params, .. }) => {
                let params = params.map_or("{}", RawValue::get);
                let text = format!(r#"{{"jsonrpc":"2.0","id":0,"method":{method},"params":{params}}}"#);
                Self::Request(Request { text, id: None })
            }
            // What is no request is refused as such.
            shape => {
                let id = shape.and_then(|shape| shape.id).map_or("null", RawValue::get);
                let id = if id.starts_with(['{', '[', 't', 'f']) { "null" } else { id };
                Self::Request(Request { text: text.get().to_owned(), id: Some(id.to_owned()) })
            }
        }
    }
}

const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
const BUSY: i32 = -32000;
const EXPECTED: &str =
    "expected a JSON-RPC 2.0 request: `jsonrpc`, `method`, and an id that is a string, a number or null";

/// An answer to a frame that has no request.
pub(super) fn refusal(code: i32, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}}).to_string()
}

/// An answer to a request that is not run. It may be sent again.
fn busy(id: &str, message: &str) -> String {
    let error = json!({"code": BUSY, "message": message, "data": {"code": Code::Busy.word()}});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}
