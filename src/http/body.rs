//! Bodies of requests and answers.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Request, Response, StatusCode};

use crate::control::Scope;

/// What answers have.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
/// A whole answer.
pub type Answer = Response<Body>;

/// The longest body of a request: the arguments of a call.
const LONGEST: usize = 512 << 20;
/// The longest of a client that may call nothing.
pub const LONGEST_QUESTION: usize = 1 << 20;

const JSON: &str = "application/json";

/// An answer of this type.
pub fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// JSON that is written already.
pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    answer(status, JSON, text)
}

/// A status alone.
pub fn bare(status: StatusCode) -> Answer {
    answer(status, "text/plain; charset=utf-8", Bytes::new())
}

/// A refusal: a sentence for people, in the shape of the control face's errors for programs.
pub fn refuse(status: StatusCode, code: &str, message: &str) -> Answer {
    let error = serde_json::json!({"code": -32000, "message": message, "data": {"code": code}});
    json(status, serde_json::json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string())
}

/// How many bytes a client may send at once.
pub fn longest(scope: Scope) -> usize {
    if scope < Scope::Call { LONGEST_QUESTION } else { LONGEST }
}

/// The body of a request, whole, if it has no more bytes than this.
pub async fn read(request: Request<Incoming>, most: usize) -> Result<Bytes, Answer> {
    match Limited::new(request.into_body(), most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => {
            let message = format!("the body cannot be read, or is longer than {most} bytes: {error}");
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "INVALID_REQUEST", &message))
        }
    }
}
