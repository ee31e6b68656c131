//! MCP over Streamable HTTP: a session for each client of the revisions that have them, and one for all requests of those that
//! do not.

mod frame;
mod headers;
mod peer;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use self::frame::{Frame, Params};
use self::headers::{REVISION, agree};
use self::peer::Peer;
use self::stream::{Read, Reader, Stream};
use super::body::{Answer, bare, json as json_answer, read, refuse};
use super::face::Face;
use super::trace::context_of;
use crate::mcp::is_known_revision;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// The first revision without sessions, and the one in which an empty event begins a stream.
const STATELESS: &str = "2026-07-28";
const GREETED: &str = "2025-11-25";
/// The most sessions. A new one takes the place of the one that was unused for longest.
const MOST: usize = 1024;
/// How long a session stays without a request or an open stream.
const UNUSED: Duration = Duration::from_hours(1);
/// How often that is looked at.
const LOOK: Duration = Duration::from_mins(1);
/// A request that takes longer is answered by a stream, so that its client sees that it is being worked on.
const SOON: Duration = Duration::from_secs(3);

/// The longest message: that of a session on a stream.
const LONGEST: usize = 128 << 20;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const HEADER_MISMATCH: i32 = -32020;
const NO_SESSION: i32 = -32001;

/// The sessions of MCP behind HTTP.
#[derive(Default)]
pub struct Peers {
    /// By the id that their clients know. Locked to look, to add or to remove.
    sessions: Mutex<HashMap<String, Arc<Peer>>>,
    /// The one of requests without a session. Locked to look or to replace.
    stateless: Mutex<Option<Arc<Peer>>>,
}

/// Cancels a request whose client cannot come back for the answer, once its stream is dropped.
struct Leaving {
    peer: Arc<Peer>,
    number: u64,
    cancels: bool,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.cancels {
            self.peer.left(self.number);
        }
    }
}

impl Peers {
    /// Answers a request at the path of MCP.
    pub async fn answer(&self, face: &Face, request: Request<Incoming>) -> Answer {
        match *request.method() {
            Method::GET => self.listen(request.headers()),
            Method::DELETE => match named(request.headers()).and_then(|id| self.sessions.lock().remove(id)) {
                Some(_) => bare(StatusCode::NO_CONTENT),
                None => no_session(None),
            },
            _ => self.post(face, request).await,
        }
    }

    /// Ends sessions that their clients have forgotten.
    pub async fn sweep(&self) {
        loop {
            sleep(LOOK).await;
            self.sessions.lock().retain(|_, peer| !peer.is_idle_for(UNUSED));
            self.stateless.lock().take_if(|peer| peer.is_idle_for(UNUSED));
        }
    }

    /// What belongs to no request, or the rest of a stream that broke.
    fn listen(&self, headers: &HeaderMap) -> Answer {
        let Some(id) = named(headers) else {
            let message = "a stream of its own has only a session, whose id is in `Mcp-Session-Id`";
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "NO_SESSION", message);
        };
        if !accepts(headers, "text/event-stream") {
            return refuse(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", "accept text/event-stream");
        }
        let Some(peer) = self.sessions.lock().get(id).cloned() else { return no_session(None) };
        let last =
            headers.get(LAST_EVENT).and_then(|value| value.to_str().ok()).and_then(|value| value.split_once('-'));
        let last = last.and_then(|(stream, next)| Some((stream.parse::<u64>().ok()?, next.parse::<u64>().ok()?)));
        let (number, from) = last.map_or((0, None), |(stream, next)| (stream, Some(next)));
        let Some(stream) = peer.stream(number) else {
            return refuse(StatusCode::NOT_FOUND, "NOT_FOUND", "this stream is no longer kept");
        };
        let reader = stream.read(from);
        let first = greeting(headers, &reader, reader.next);
        streamed(reader, first, peer)
    }

    async fn post(&self, face: &Face, request: Request<Incoming>) -> Answer {
        let headers = request.headers().clone();
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json")) {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "INVALID_REQUEST", "the body must be application/json");
        }
        let is_streamed = accepts(&headers, "text/event-stream");
        if !is_streamed && !accepts(&headers, "application/json") {
            let message = "accept application/json and text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", message);
        }
        let body = match read(request, LONGEST).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let Ok(text) = std::str::from_utf8(&body) else { return invalid(None, PARSE_ERROR, "the body is not UTF-8") };
        let frame: Frame<'_> = match serde_json::from_str(text) {
            Ok(frame) if text.trim_start().starts_with('{') => frame,
            Ok(_) => return invalid(None, INVALID_REQUEST, "send one message, an object"),
            Err(error) if error.is_data() => return invalid(None, INVALID_REQUEST, &format!("not a message: {error}")),
            Err(error) => return invalid(None, PARSE_ERROR, &format!("not JSON: {error}")),
        };
        self.pass(face, &headers, &frame, text, is_streamed).await
    }

    async fn pass(&self, face: &Face, headers: &HeaderMap, frame: &Frame<'_>, text: &str, is_streamed: bool) -> Answer {
        let revision = headers.get(REVISION).and_then(|value| value.to_str().ok()).map(str::trim);
        let method = frame.method.as_deref();
        let known = match frame.known() {
            Ok(known) => known,
            Err(message) => return invalid(frame.id, INVALID_PARAMS, &message),
        };
        let begins = method == Some("initialize") && revision != Some(STATELESS);
        let is_stateless = !begins && named(headers).is_none();
        if is_stateless && let Some(answer) = unasked(face, headers, frame, &known).await {
            return answer;
        }
        let (peer, fresh) = match named(headers).filter(|_| !begins) {
            Some(id) => {
                let Some(peer) = self.sessions.lock().get(id).cloned() else { return no_session(frame.id) };
                if revision.is_some_and(|revision| !is_known_revision(revision)) {
                    let message = format!("`{REVISION}` {revision:?} is not a revision that is served");
                    return invalid(frame.id, INVALID_REQUEST, &message);
                }
                (peer, None)
            }
            None => match self.peer(face, begins).await {
                Ok(found) => found,
                Err(refused) => return *refused,
            },
        };
        let (Some(_), Some(id)) = (method, frame.id) else {
            peer.tell(frame, &known, text).await;
            return bare(StatusCode::ACCEPTED);
        };
        let Ok((number, stream)) = peer.ask(frame, id, known.meta.token, context_of(headers).as_ref()).await else {
            return refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "SERVER_BUSY",
                "too many requests of this session are open",
            );
        };
        let leaving = Leaving { peer: Arc::clone(&peer), number, cancels: is_stateless };
        let mut answer = reply(&stream, leaving, headers, is_streamed, is_stateless || begins).await;
        if let Some(id) = fresh
            && answer.status() == StatusCode::OK
        {
            if !self.add(&id, peer) {
                let message = "too many sessions are at work; end one with DELETE";
                return refuse(StatusCode::SERVICE_UNAVAILABLE, "SERVER_BUSY", message);
            }
            if let Ok(value) = HeaderValue::from_str(&id) {
                answer.headers_mut().insert(SESSION, value);
            }
        }
        answer
    }

    /// A new session with its id, or the one of requests without.
    async fn peer(&self, face: &Face, begins: bool) -> Result<(Arc<Peer>, Option<String>), Box<Answer>> {
        let unavailable = |message: &str| Box::new(refuse(StatusCode::SERVICE_UNAVAILABLE, "STARTUP_FAILED", message));
        let service = Arc::clone(face.service().await.map_err(|message| unavailable(&message))?);
        let attendance = face.attend().await;
        if begins {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map_err(|_| unavailable("the system gives no random bytes"))?;
            let id = bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            return Ok((Peer::begin(service, true, attendance), Some(id)));
        }
        let mut stateless = self.stateless.lock();
        stateless.take_if(|peer| peer.is_over());
        let peer = stateless.get_or_insert_with(|| Peer::begin(service, false, attendance));
        Ok((Arc::clone(peer), None))
    }

    /// Adds a session, if there is room for it.
    fn add(&self, id: &str, peer: Arc<Peer>) -> bool {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MOST {
            let unused = sessions.iter().filter(|(_, peer)| peer.is_idle_for(Duration::ZERO));
            let oldest = unused.min_by_key(|(_, peer)| peer.used()).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return false };
            sessions.remove(&oldest);
        }
        sessions.insert(id.to_owned(), peer);
        true
    }
}

/// The session that a request names.
fn named(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|value| value.to_str().ok())
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let group = kind.split('/').next().unwrap_or_default();
    let is_kind = |part: &str| {
        let named = part.split(';').next().unwrap_or_default().trim();
        named == "*/*" || named.eq_ignore_ascii_case(kind) || named.strip_suffix("/*") == Some(group)
    };
    let mut all = headers.get_all(ACCEPT).iter().peekable();
    all.peek().is_none() || all.any(|value| value.to_str().is_ok_and(|value| value.split(',').any(is_kind)))
}

/// The answer to what comes without a session and is not passed on: what is invalid there, and what is no request.
async fn unasked(face: &Face, headers: &HeaderMap, frame: &Frame<'_>, known: &Params<'_>) -> Option<Answer> {
    let (Some(method), Some(_)) = (frame.method.as_deref(), frame.id) else {
        // It would reach the requests of others.
        return Some(bare(StatusCode::ACCEPTED));
    };
    if method == "initialize" {
        let message = format!("`initialize` begins a session; since {STATELESS} there are none");
        return Some(error(StatusCode::NOT_FOUND, frame.id, METHOD_NOT_FOUND, &message));
    }
    if known.meta.revision.is_none() {
        let message =
            "without a session, `_meta` must name the revision of the protocol, the client and its capabilities";
        return Some(invalid(frame.id, INVALID_PARAMS, message));
    }
    let service = face.service().await.ok()?;
    let catalogue = service.registry.catalogue();
    let schema = |name: &str| catalogue.resolve(name).ok().map(|tool| tool.input_schema());
    let message = agree(headers, frame, known, schema).err()?;
    Some(invalid(frame.id, HEADER_MISMATCH, &message))
}

/// The answer to a request: JSON if nothing comes before it and it comes soon, otherwise a stream.
async fn reply(
    stream: &Arc<Stream>,
    leaving: Leaving,
    headers: &HeaderMap,
    is_streamed: bool,
    is_strict: bool,
) -> Answer {
    let (peer, number) = (Arc::clone(&leaving.peer), leaving.number);
    let whole = |message: Option<&str>| {
        peer.forget(number);
        whole(message, is_strict)
    };
    let mut reader = stream.read(None);
    if !is_streamed {
        let mut last = None;
        while let Read::Message(_, message) = reader.next().await {
            last = Some(message);
        }
        return whole(last.as_deref());
    }
    let mut first = Vec::new();
    match timeout(SOON, reader.next()).await {
        Ok(Read::Message(_, message)) if reader.is_done() => return whole(Some(&message)),
        Ok(Read::Message(number, message)) => {
            first.extend(greeting(headers, &reader, number).filter(|_| !is_strict));
            first.push(reader.event(number, &message));
        }
        Ok(Read::End) => return whole(None),
        Err(_) => {
            first.extend(greeting(headers, &reader, 0).filter(|_| !is_strict).or(Some(Bytes::from_static(b":\n\n"))));
        }
    }
    streamed(reader, first, leaving)
}

/// An event without a message, for clients of the revision that knows it.
fn greeting(headers: &HeaderMap, reader: &Reader, from: u64) -> Option<Bytes> {
    (headers.get(REVISION)? == GREETED).then(|| reader.greeting(from))
}

fn whole(message: Option<&str>, is_strict: bool) -> Answer {
    let Some(message) = message else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "CANCELLED", "the session ended before the answer");
    };
    let code = serde_json::from_str::<Frame<'_>>(message).ok().and_then(|frame| frame.code());
    let status = match code.filter(|_| is_strict) {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32602 | -32600 | -32700 | -32023..=-32020) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    json_answer(status, message.to_owned())
}

fn streamed(reader: Reader, first: impl IntoIterator<Item = Bytes>, guard: impl Send + 'static) -> Answer {
    let mut answer = Response::new(reader.body(first.into_iter().collect(), guard));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn error(status: StatusCode, id: Option<&RawValue>, code: i32, message: &str) -> Answer {
    json_answer(status, json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string())
}

fn invalid(id: Option<&RawValue>, code: i32, message: &str) -> Answer {
    error(StatusCode::BAD_REQUEST, id, code, message)
}

fn no_session(id: Option<&RawValue>) -> Answer {
    error(StatusCode::NOT_FOUND, id, NO_SESSION, "there is no such session; begin one with `initialize`")
}
