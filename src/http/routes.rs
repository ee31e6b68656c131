//! Which request is answered by what, and the checks before that.

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue, ORIGIN, UPGRADE, VARY, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, StatusCode};

use super::body::{Answer, bare, json, longest, read, refuse};
use super::conversation;
use super::face::Face;
use super::guard::{Guard, token_of};
use super::mcp::Peers;
use super::page;
use super::reports;
use super::seats::Seat;
use super::tokens::Tokens;
use super::trace::context_of;
use super::websocket;
use crate::control::Scope;

/// To who sends another token.
pub const NO_TOKEN: &str = "this token is not valid; `hostler token` prints the one that is";

/// What every connection is answered from.
pub struct Server {
    pub face: Arc<Face>,
    pub guard: Guard,
    pub tokens: Tokens,
    pub mcp: Peers,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The methods of the control face, by POST or over a WebSocket.
    Rpc,
    /// The key of a page, for its ticket.
    Key,
    /// MCP.
    Mcp,
    /// The calls of a conversation, over a WebSocket.
    Conversation,
    Metrics,
    MetricsOfTools,
    Health,
}

impl Place {
    fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/" | "/rpc" => Self::Rpc,
            "/page/key" => Self::Key,
            "/mcp" => Self::Mcp,
            "/ws" => Self::Conversation,
            "/metrics" => Self::Metrics,
            "/api/metrics/tools" => Self::MetricsOfTools,
            "/healthz" => Self::Health,
            _ => return None,
        })
    }

    fn methods(self) -> &'static [Method] {
        match self {
            Self::Rpc => &[Method::POST, Method::GET],
            Self::Mcp => &[Method::POST, Method::GET, Method::DELETE],
            Self::Key => &[Method::POST],
            _ => &[Method::GET],
        }
    }
}

/// Answers a request.
pub async fn route(server: &Arc<Server>, request: Request<Incoming>) -> Answer {
    if let Err(denied) = server.guard.admits(request.headers()) {
        return refuse(StatusCode::FORBIDDEN, denied.code(), denied.message());
    }
    let origin = request.headers().get(ORIGIN).cloned();
    let mut answer = admitted(server, request).await;
    if let Some(origin) = origin {
        share_with(origin, answer.headers_mut());
    }
    answer
}

/// Lets a page that may connect read the answer.
fn share_with(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert("access-control-allow-origin", origin);
    headers.insert("access-control-expose-headers", HeaderValue::from_static("mcp-session-id"));
    headers.insert(VARY, HeaderValue::from_static("origin"));
}

async fn admitted(server: &Arc<Server>, request: Request<Incoming>) -> Answer {
    let Some(place) = Place::at(request.uri().path()) else {
        return refuse(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            "there is nothing at this path; docs/control.md lists the paths",
        );
    };
    let method = request.method();
    if *method == Method::OPTIONS {
        return preflight(request.headers());
    }
    if !place.methods().contains(method) {
        return wrong_method(place.methods());
    }
    match place {
        Place::Health => return reports::health(&server.face),
        Place::Key => return page::key(server, request).await,
        Place::Rpc if is_page(&request) => return page::document(),
        _ => {}
    }
    let Some(token) = token_of(request.headers()) else {
        return unknown("send a token as `Authorization: Bearer TOKEN`; `hostler token` prints one");
    };
    let Some(scope) = scope_of(server, token) else {
        return unknown(NO_TOKEN);
    };
    if let Some(seat) = request.extensions().get::<Arc<Seat>>() {
        seat.keep();
    }
    match place {
        Place::Health | Place::Key => bare(StatusCode::NOT_FOUND),
        Place::Metrics => reports::metrics(&server.face).await,
        Place::MetricsOfTools => reports::of_tools(&server.face).await,
        Place::Conversation => conversation::serve(&server.face, request),
        Place::Mcp if scope < Scope::Call => refuse(
            StatusCode::FORBIDDEN,
            "FORBIDDEN",
            "MCP needs a token of the scope `call`: `hostler token call` prints it",
        ),
        Place::Mcp => server.mcp.answer(&server.face, request).await,
        Place::Rpc if request.method() == Method::GET => websocket::serve(&server.face, request, scope),
        Place::Rpc => rpc(&server.face, request, scope).await,
    }
}

/// A browser asks for the page by a plain request of the root.
fn is_page(request: &Request<Incoming>) -> bool {
    request.method() == Method::GET && request.uri().path() == "/" && !request.headers().contains_key(UPGRADE)
}

/// What the holder of a token, or of a page's key, may do.
fn scope_of(server: &Server, token: &str) -> Option<Scope> {
    let of_page = || server.face.control().pages.knows(token, Instant::now()).then_some(Scope::Operate);
    server.tokens.scope_of(token).or_else(of_page)
}

async fn rpc(face: &Arc<Face>, request: Request<Incoming>, scope: Scope) -> Answer {
    let trace = context_of(request.headers());
    let body = match read(request, longest(scope)).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let attendance = face.attend().await;
    match face.requests(scope).await {
        Ok(requests) => tokio::select! {
            answer = requests.answer(&body, trace) => match answer {
                Some(answer) => json(StatusCode::OK, answer),
                None => bare(StatusCode::ACCEPTED),
            },
            () = attendance.ended() => refuse(StatusCode::SERVICE_UNAVAILABLE, "CANCELLED", "the session was ended"),
        },
        Err(message) => refuse(StatusCode::SERVICE_UNAVAILABLE, "STARTUP_FAILED", &message),
    }
}

/// The answer to a browser that asks before it sends: what it may send then, the checks decide again.
fn preflight(asked: &HeaderMap) -> Answer {
    let mut answer = bare(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    headers.insert("access-control-allow-methods", HeaderValue::from_static("GET, POST, DELETE"));
    if let Some(names) = asked.get("access-control-request-headers") {
        headers.insert("access-control-allow-headers", names.clone());
    }
    answer
}

fn wrong_method(allowed: &[Method]) -> Answer {
    let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    let names = names.join(", ");
    let message = format!("this path is asked by {names}");
    let mut answer = refuse(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", &message);
    if let Ok(value) = HeaderValue::from_str(&names) {
        answer.headers_mut().insert(ALLOW, value);
    }
    answer
}

fn unknown(message: &str) -> Answer {
    let mut answer = refuse(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message);
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}
