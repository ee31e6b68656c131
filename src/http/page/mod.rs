//! The page for people: one document without data, which gets a key for its ticket and then speaks to the control face.
//!
//! The key is held by the page, not in a cookie: browsers send cookies of this machine to the servers of all its ports.

use std::sync::LazyLock;
use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Incoming;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS};
use hyper::{Request, StatusCode};
use sha2::{Digest, Sha256};

use super::body::{Answer, answer, json, read, refuse};
use super::guard::token_of;
use super::routes::{NO_TOKEN, Server};
use crate::control::Scope;

/// The longest ticket that is read.
const LONGEST: usize = 1 << 10;

const STYLE: &str = include_str!("page.css");
/// One script to the browser, in this order.
const SCRIPT: &str = concat!(
    include_str!("text.js"),
    include_str!("connection.js"),
    include_str!("calls.js"),
    include_str!("workers.js"),
    include_str!("form.js"),
    include_str!("tools.js"),
    include_str!("questions.js"),
    include_str!("main.js"),
);

static PAGE: LazyLock<String> =
    LazyLock::new(|| include_str!("page.html").replacen("/*style*/", STYLE, 1).replacen("/*script*/", SCRIPT, 1));

/// Nothing but its own script and style runs, and it connects to its own server alone.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
});

/// The page. It has no data, so it needs no token.
pub fn document() -> Answer {
    let mut answer = answer(StatusCode::OK, "text/html; charset=utf-8", PAGE.as_str());
    let headers = answer.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    answer
}

/// A key for the ticket that the body is, or for a token that may do everything. A page does not keep a token: it would be sent to
/// whatever listens at this port once hostler has ended.
pub async fn key(server: &Server, request: Request<Incoming>) -> Answer {
    let token = token_of(request.headers()).map(|token| server.tokens.scope_of(token));
    let body = match read(request, LONGEST).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let (pages, now) = (&server.face.control().pages, Instant::now());
    let traded = match token {
        Some(Some(Scope::Operate)) => pages.key(now).map(Some),
        Some(Some(_)) => {
            return refuse(
                StatusCode::FORBIDDEN,
                "FORBIDDEN",
                "the page needs the token that `hostler token operate` prints",
            );
        }
        Some(None) => return refuse(StatusCode::FORBIDDEN, "UNAUTHORIZED", NO_TOKEN),
        None => pages.trade(std::str::from_utf8(&body).unwrap_or_default(), now),
    };
    match traded {
        Ok(Some(key)) => json(StatusCode::OK, serde_json::json!({"key": key}).to_string()),
        Ok(None) => {
            let message = "this ticket is not valid, or was used before; `hostler open` gives a new one";
            refuse(StatusCode::FORBIDDEN, "INVALID_TICKET", message)
        }
        Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, "SYSTEM_ERROR", &error.to_string()),
    }
}
