//! One `tools/call`: from its parameters to the listener that answers it.

use std::sync::Arc;

use rmcp::model::{LoggingLevel, RequestId, RequestMetaObject};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::client::Abilities;
use super::lifecycle::{Era, Rules};
use super::notifier::Notifier;
use super::resources::ResourceShape;
use super::rounds::Responses;
use super::session::McpSession;
use crate::call::{Caller, ClientFeatures};
use crate::outcome::Outcome;
use crate::pool::Listener;
use crate::protocol::{ProgressNote, TraceContext};
use crate::registry::RoleKind;
use crate::worker::LogLine;

/// The parameters of `tools/call`. Members that hostler does not know are ignored.
#[derive(Deserialize)]
pub(super) struct CallParams {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    /// Answers to what the call asks, or asked.
    #[serde(rename = "inputResponses", default)]
    pub responses: Option<Responses>,
    /// Names the call that this request continues.
    #[serde(rename = "requestState", default)]
    pub state: Option<String>,
    #[serde(rename = "_meta", default, deserialize_with = "or_default")]
    pub meta: RequestMetaObject,
}

/// Some clients write `null` for what they leave out.
pub(super) fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// The client's idempotency key for a call, in its `_meta`.
const KEYS: [&str; 2] = ["hostler/idempotencyKey", "hostler/key"];
/// The client's tags for a call, a list of strings.
const TAGS: &str = "hostler/tags";
/// A W3C trace context.
const TRACE: &str = "traceparent";
/// What those who trace add to it.
const TRACE_STATE: &str = "tracestate";

/// The idempotency key of a call. One that is no text, or none, cannot be kept, and to ignore it would make the call twice.
pub(super) fn key(meta: &RequestMetaObject) -> Result<Option<String>, String> {
    let given = KEYS.iter().find_map(|name| Some((*name, meta.get(*name)?)));
    match given {
        None => Ok(None),
        Some((_, Value::String(key))) if !key.is_empty() => Ok(Some(key.clone())),
        Some((name, other)) => {
            Err(format!("`_meta` has no idempotency key in {name}: expected a string that is not empty, got {other}"))
        }
    }
}

/// What the metadata of a call says.
#[derive(Clone)]
pub(super) struct Terms {
    pub rules: Rules,
    pub caller: Arc<Caller>,
    /// What tools may ask the client for.
    pub client: Option<Arc<dyn ClientFeatures>>,
    /// The least severe log messages that the client receives; `None` for none.
    pub level: Option<LoggingLevel>,
    /// Whether its call may become a task.
    pub knows_tasks: bool,
    /// What the client can do for tools.
    pub abilities: Option<Abilities>,
}

/// The terms of the last call: clients of 2026-07-28 send the same metadata with every request, and decoding it takes longer
/// than the rest of the request.
#[derive(Default)]
pub(super) struct LastTerms(Option<(RequestMetaObject, Terms)>);

impl LastTerms {
    /// The known terms, if only the progress token differs.
    pub fn known(&self, meta: &RequestMetaObject) -> Option<Terms> {
        fn lasting(meta: &RequestMetaObject) -> impl Iterator<Item = (&String, &Value)> {
            meta.iter().filter(|(key, _)| *key != "progressToken")
        }
        self.0.as_ref().filter(|(known, _)| lasting(known).eq(lasting(meta))).map(|(_, terms)| terms.clone())
    }

    pub fn remember(&mut self, meta: RequestMetaObject, terms: Terms) {
        self.0 = Some((meta, terms));
    }
}

/// The caller that the metadata of a request names: the session's, unless it says something about it.
pub(super) fn caller(era: &Era, usual: &Arc<Caller>, meta: &RequestMetaObject) -> Arc<Caller> {
    let names_another = [TAGS, TRACE, "io.modelcontextprotocol/clientInfo"].iter().any(|key| meta.contains_key(*key));
    if !names_another {
        return Arc::clone(usual);
    }
    let tags = meta.get(TAGS).and_then(Value::as_array).into_iter().flatten();
    let text = |key: &str| meta.get(key).and_then(Value::as_str);
    Arc::new(Caller {
        session: usual.session,
        is_of_many: usual.is_of_many,
        client: era.client_name(meta),
        tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        trace: text(TRACE).and_then(|parent| TraceContext::read(parent, text(TRACE_STATE))),
    })
}

/// What a call is answered as.
pub(super) enum Shape {
    /// The result of `tools/call`.
    Tool,
    /// The contents of a resource.
    Resource(ResourceShape),
    /// The messages of a prompt.
    Prompt { description: Option<String> },
}

impl Shape {
    /// The request that it answers.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Tool => "tools/call",
            Self::Resource(_) => "resources/read",
            Self::Prompt { .. } => "prompts/get",
        }
    }

    /// The role of the function that is called.
    pub fn role(&self) -> RoleKind {
        match self {
            Self::Tool => RoleKind::Tool,
            Self::Resource(_) => RoleKind::Resource,
            Self::Prompt { .. } => RoleKind::Prompt,
        }
    }
}

/// The listener that answers a call's request.
pub(super) struct CallReply {
    pub session: Arc<McpSession>,
    pub id: RequestId,
    /// The number of the request in its session.
    pub number: u64,
    pub rules: Rules,
    pub shape: Shape,
    pub notifier: Option<Notifier>,
}

impl Listener for CallReply {
    fn note(&self, text: &str) {
        if let Some(notifier) = &self.notifier {
            notifier.note(text);
        }
    }

    /// From 2026-07-28 on the question itself is the answer of the request.
    fn asks(&self, text: &str) {
        if self.rules == Rules::Legacy {
            self.note(text);
        }
    }

    fn goes_on(&self) {
        if let Some(notifier) = &self.notifier {
            notifier.goes_on();
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

    fn is_behind_journal(&self) -> bool {
        true
    }

    fn ended(&self, outcome: &Arc<Outcome>) {
        if let Some(notifier) = &self.notifier {
            notifier.flush();
        }
        self.session.answer(&self.id, self.number, outcome, self.rules, &self.shape);
        if self.rules == Rules::Modern {
            self.session.round_trips().lock().ended(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_are_known_again_where_only_the_progress_token_differs() {
        let meta = |value: Value| -> RequestMetaObject { serde_json::from_value(value).unwrap() };
        let mut last = LastTerms::default();
        assert!(last.known(&RequestMetaObject::default()).is_none());
        let terms = Terms {
            rules: Rules::Modern,
            caller: Arc::default(),
            client: None,
            level: Some(LoggingLevel::Error),
            knows_tasks: false,
            abilities: None,
        };
        last.remember(meta(json!({"progressToken": 1, "hostler/tags": ["a"]})), terms);
        assert!(
            last.known(&meta(json!({"progressToken": 2, "hostler/tags": ["a"]})))
                .is_some_and(|known| known.level.is_some())
        );
        assert!(last.known(&meta(json!({"hostler/tags": ["a"]}))).is_some());
        for other in [json!({"hostler/tags": ["b"]}), json!({}), json!({"hostler/tags": ["a"], "traceparent": "00-1"})]
        {
            assert!(last.known(&meta(other.clone())).is_none(), "{other}");
        }
    }
}
