//! Requests to the client: its language model, through MCP sampling. Revisions from 2026-07-28 on have none.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{CreateMessageRequestParams, ErrorData, RequestId, SamplingMessage};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::lifecycle::Rules;
use super::message;
use crate::call::{Answer, Llm, LlmMessage, LlmRequest, LlmRole};
use crate::process::Outbox;

const DEFAULT_MAX_TOKENS: u32 = 1000;

/// The client's side of one session.
#[derive(Clone)]
pub(super) struct Client {
    outbox: Outbox,
    /// Locked only to add or to remove a request.
    pending: Arc<Mutex<Pending>>,
}

#[derive(Default)]
struct Pending {
    last: u64,
    requests: HashMap<u64, oneshot::Sender<Result<Value, ErrorData>>>,
}

impl Client {
    pub fn new(outbox: Outbox) -> Self {
        Self { outbox, pending: Arc::default() }
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
    async fn ask(&self, method: &str, params: &impl Serialize) -> Result<Value, String> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut pending = self.pending.lock();
            pending.last += 1;
            let id = pending.last;
            pending.requests.insert(id, sender);
            id
        };
        let _withdraws = Withdraw { client: self, id };
        self.outbox.send(&message::request(id, method, params));
        match answer.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(error.message.into_owned()),
            Err(_) => Err("the session ended".to_owned()),
        }
    }
}

/// Cancels a request that has no answer yet.
struct Withdraw<'a> {
    client: &'a Client,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        if self.client.pending.lock().requests.remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the call that asked has ended"});
            self.client.outbox.send(&message::notification("notifications/cancelled", params));
        }
    }
}

/// The language model of a client.
pub(super) struct ClientLlm {
    pub client: Client,
    pub rules: Rules,
}

impl Llm for ClientLlm {
    fn ask(&self, request: LlmRequest) -> Answer<'_, String, String> {
        Box::pin(async move {
            if self.rules == Rules::Modern {
                let text = "this client speaks MCP 2026-07-28, in which a server cannot ask the client's model";
                return Err(text.to_owned());
            }
            let prompt = request.prompt.map(SamplingMessage::user_text);
            let messages = request.messages.into_iter().map(message).chain(prompt).collect();
            let most = request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
            let mut params = CreateMessageRequestParams::new(messages, most);
            params.system_prompt = request.system;
            let answer = self.client.ask("sampling/createMessage", &params).await;
            let answer = answer
                .map_err(|error| format!("the client did not lend its language model (MCP sampling): {error}"))?;
            // The content is one block or a list of blocks; tools need their text.
            text_of(&answer["content"]).ok_or_else(|| "the client's language model answered without text".to_owned())
        })
    }
}

fn message(turn: LlmMessage) -> SamplingMessage {
    match turn.role {
        LlmRole::User => SamplingMessage::user_text(turn.content),
        LlmRole::Assistant => SamplingMessage::assistant_text(turn.content),
    }
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
