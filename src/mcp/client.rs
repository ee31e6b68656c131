//! The client's side of a session: its language model, its user and its folders, by requests to the client until
//! 2025-11-25, and by answers that ask for input from 2026-07-28 on (`rounds`).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::model::{ClientCapabilities, ErrorData, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::lifecycle::Rules;
use super::message;
use super::session::McpSession;
use super::task_questions::TaskQuestions;
use crate::call::{
    Answer, Asking, ClientError, ClientFeatures, Elicitation, Elicited, Feature, LlmRequest, LlmRole, Root,
};
use crate::process::Outbox;

const DEFAULT_MAX_TOKENS: u32 = 1000;

/// Requests to the client of one session.
#[derive(Clone)]
pub(super) struct Requests {
    outbox: Outbox,
    /// Locked only to add or to remove a request.
    pending: Arc<Mutex<Pending>>,
}

#[derive(Default)]
struct Pending {
    last: u64,
    requests: HashMap<u64, oneshot::Sender<Result<Value, ErrorData>>>,
}

impl Requests {
    /// Requests whose ids follow this number.
    pub fn new(outbox: Outbox, last: u64) -> Self {
        Self { outbox, pending: Arc::new(Mutex::new(Pending { last, requests: HashMap::new() })) }
    }

    /// Delivers the answer to one of our requests. An answer without an open request is ignored.
    pub fn answered(&self, id: &RequestId, answer: Result<&RawValue, &RawValue>) {
        let RequestId::Number(number) = id else { return };
        let Ok(number) = u64::try_from(*number) else { return };
        let Some(waiting) = self.pending.lock().requests.remove(&number) else { return };
        let read = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
        let unread = |raw: &RawValue| ErrorData::internal_error(raw.get().to_owned(), None);
        let answer = answer.map(read).map_err(|raw| serde_json::from_str(raw.get()).unwrap_or_else(|_| unread(raw)));
        let _ = waiting.send(answer);
    }

    /// Sends a request. Dropping the future cancels it.
    async fn ask(&self, method: &str, params: &Value) -> Result<Value, ClientError> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut pending = self.pending.lock();
            pending.last += 1;
            let id = pending.last;
            pending.requests.insert(id, sender);
            id
        };
        let _withdraws = Withdraw { requests: self, id };
        self.outbox.send(&message::request(id, method, params));
        match answer.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(ClientError::Failed(format!("the client refused {method}: {}", error.message))),
            Err(_) => Err(ClientError::Failed("the session ended".to_owned())),
        }
    }
}

/// Cancels a request that has no answer yet.
struct Withdraw<'a> {
    requests: &'a Requests,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        if self.requests.pending.lock().requests.remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the call that asked has ended"});
            self.requests.outbox.send(&message::notification("notifications/cancelled", params));
        }
    }
}

/// What a client says it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    sampling: bool,
    elicitation: bool,
    roots: bool,
}

impl Abilities {
    pub fn of(capabilities: &ClientCapabilities) -> Self {
        // `{}` means forms; a client that names only `url` has none.
        let forms = capabilities.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
        Self { sampling: capabilities.sampling.is_some(), elicitation: forms, roots: capabilities.roots.is_some() }
    }

    pub const fn any(self) -> bool {
        self.sampling || self.elicitation || self.roots
    }

    const fn has(self, feature: Feature) -> bool {
        match feature {
            Feature::Sampling => self.sampling,
            Feature::Elicitation => self.elicitation,
            Feature::Roots => self.roots,
        }
    }
}

/// The client of a session, as its calls ask it.
pub(super) struct McpClient {
    pub session: Weak<McpSession>,
    pub abilities: Abilities,
    pub rules: Rules,
    /// The questions of its call, if that becomes a task.
    pub task: Option<Arc<TaskQuestions>>,
}

impl McpClient {
    async fn ask(
        &self,
        feature: Feature,
        asking: Asking,
        method: &'static str,
        params: Value,
    ) -> Result<Value, ClientError> {
        if !self.abilities.has(feature) {
            return Err(ClientError::Unsupported(feature));
        }
        let gone = || ClientError::Failed("the session ended".to_owned());
        let request = || json!({"method": method, "params": params});
        if let Some(task) = self.task.as_ref().filter(|task| task.is_task()) {
            return task.ask(asking.key.as_deref(), request()).await.ok_or_else(gone);
        }
        let session = self.session.upgrade().ok_or_else(gone)?;
        match self.rules {
            Rules::Legacy => {
                let requests = session.requests().clone();
                drop(session);
                requests.ask(method, &params).await
            }
            Rules::Modern => {
                let answer = session.asks(asking, request())?;
                drop(session);
                answer.answer().await.ok_or_else(gone)
            }
        }
    }
}

impl ClientFeatures for McpClient {
    fn detached(&self) {
        self.task.iter().for_each(|task| task.becomes_task());
    }

    fn open_questions(&self) -> Map<String, Value> {
        self.task.as_ref().map(|task| task.open()).unwrap_or_default()
    }

    fn answered(&self, answers: Map<String, Value>) {
        self.task.iter().for_each(|task| task.answered(answers.clone()));
    }

    fn offers(&self, feature: Feature) -> bool {
        self.abilities.has(feature)
    }

    fn sample(&self, asking: Asking, request: LlmRequest) -> Answer<'_, String, ClientError> {
        Box::pin(async move {
            let answer = self.ask(Feature::Sampling, asking, "sampling/createMessage", sampling(request)).await?;
            // The content is one block or a list of blocks; tools need their text.
            let no_text = || ClientError::Failed("the client's language model answered without text".to_owned());
            text_of(&answer["content"]).ok_or_else(no_text)
        })
    }

    fn elicit(&self, asking: Asking, question: Elicitation) -> Answer<'_, Elicited, ClientError> {
        Box::pin(async move {
            let params = json!({"message": question.message, "requestedSchema": question.schema});
            let answer = self.ask(Feature::Elicitation, asking, "elicitation/create", params).await?;
            serde_json::from_value(answer)
                .map_err(|_| misshapen("elicitation/create", "`action` accept, decline or cancel"))
        })
    }

    fn roots(&self, asking: Asking) -> Answer<'_, Vec<Root>, ClientError> {
        #[derive(Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        Box::pin(async move {
            let answer = self.ask(Feature::Roots, asking, "roots/list", json!({})).await?;
            let Roots { roots } =
                serde_json::from_value(answer).map_err(|_| misshapen("roots/list", "`roots` with a `uri` each"))?;
            Ok(roots)
        })
    }
}

/// Without the answer's own text, which may be what a user typed.
fn misshapen(method: &str, expected: &str) -> ClientError {
    ClientError::Failed(format!("the client's answer to {method} is invalid: expected {expected}"))
}

/// One block a message: revisions before 2025-11-25 know no lists of them.
fn sampling(request: LlmRequest) -> Value {
    let message = |role: LlmRole, content: Value| {
        let role = if role == LlmRole::User { "user" } else { "assistant" };
        json!({"role": role, "content": content})
    };
    let text = |text: String| json!({"type": "text", "text": text});
    let turns = request.messages.into_iter().map(|turn| message(turn.role, text(turn.content)));
    let image =
        |image: crate::call::LlmImage| json!({"type": "image", "data": image.data, "mimeType": image.mime_type});
    let images = request.images.into_iter().map(|shown| message(LlmRole::User, image(shown)));
    let prompt = request.prompt.map(|prompt| message(LlmRole::User, text(prompt)));
    let messages: Vec<Value> = turns.chain(images).chain(prompt).collect();
    let mut params = json!({"messages": messages, "maxTokens": request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)});
    if let Some(system) = request.system {
        params["systemPrompt"] = system.into();
    }
    if let Some(temperature) = request.temperature {
        params["temperature"] = temperature.into();
    }
    params
}

fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        Value::Object(block) => block.get("text")?.as_str().map(str::to_owned),
        _ => None,
    }
}
