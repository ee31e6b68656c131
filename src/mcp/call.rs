//! One `tools/call`: from its parameters to the listener that answers it.

use std::sync::Arc;

use rmcp::model::{RequestId, RequestMetaObject};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::lifecycle::Rules;
use super::notifier::Notifier;
use super::session::McpSession;
use crate::call::{Caller, SessionId};
use crate::outcome::Outcome;
use crate::pool::Listener;
use crate::protocol::ProgressNote;
use crate::worker::LogLine;

/// The parameters of `tools/call`. Members that hostler does not know are ignored.
#[derive(Deserialize)]
pub(super) struct CallParams {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    #[serde(rename = "_meta", default)]
    pub meta: RequestMetaObject,
}

/// The client's idempotency key for a call, in its `_meta`.
const KEY: &str = "hostler/key";
/// The client's tags for a call, a list of strings.
const TAGS: &str = "hostler/tags";
/// A W3C trace context.
const TRACE: &str = "traceparent";

/// The idempotency key of a call.
pub(super) fn key(meta: &RequestMetaObject) -> Option<String> {
    meta.get(KEY)?.as_str().map(str::to_owned)
}

/// The caller of a request: `usual`, unless its metadata names another.
pub(super) fn caller(
    session: SessionId,
    usual: &Arc<Caller>,
    meta: &RequestMetaObject,
    client: impl FnOnce() -> Option<String>,
) -> Arc<Caller> {
    let names_another = [TAGS, TRACE, "io.modelcontextprotocol/clientInfo"].iter().any(|key| meta.contains_key(*key));
    if !names_another {
        return Arc::clone(usual);
    }
    let tags = meta.get(TAGS).and_then(Value::as_array).into_iter().flatten();
    Arc::new(Caller {
        session,
        client: client(),
        tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        trace: meta.get(TRACE).and_then(Value::as_str).map(str::to_owned),
    })
}

/// The listener that answers a call's request.
pub(super) struct CallReply {
    pub session: Arc<McpSession>,
    pub id: RequestId,
    pub rules: Rules,
    pub notifier: Option<Notifier>,
}

impl Listener for CallReply {
    fn note(&self, text: &str) {
        if let Some(notifier) = &self.notifier {
            notifier.note(text);
        }
    }

    fn progress(&self, note: &ProgressNote) {
        if let Some(notifier) = &self.notifier {
            notifier.progress(note);
        }
    }

    fn log(&self, line: &LogLine) {
        if let Some(notifier) = &self.notifier {
            notifier.log(line);
        }
    }

    fn ended(&self, outcome: &Arc<Outcome>) {
        self.session.answer(&self.id, outcome, self.rules);
    }
}
