//! Reports that are read with a plain request.

use hyper::StatusCode;

use super::body::{Answer, answer, json};
use super::face::Face;

/// The format that Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether new sessions are accepted. It says no more: it needs no token.
pub fn health(face: &Face) -> Answer {
    let is_ready = *face.control().accepts().borrow();
    let (status, text) =
        if is_ready { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "draining\n") };
    answer(status, "text/plain; charset=utf-8", text)
}

/// What Prometheus reads.
pub async fn metrics(face: &Face) -> Answer {
    answer(StatusCode::OK, OPEN_METRICS, face.control().runtime().watch.prometheus().await)
}

/// The same for programs that read JSON.
pub async fn of_tools(face: &Face) -> Answer {
    let metrics = face.control().runtime().watch.all_metrics().await;
    json(StatusCode::OK, serde_json::to_string(&metrics).unwrap_or_default())
}
