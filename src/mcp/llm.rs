//! The client's language model, lent to internal tools through MCP sampling.

use rmcp::model::{CreateMessageRequestParams, SamplingMessage};
use rmcp::service::{Peer, RoleServer};
use serde_json::Value;

use crate::call::{Answer, Llm, LlmMessage, LlmRequest, LlmRole};

const DEFAULT_MAX_TOKENS: u32 = 1000;

pub(super) struct ClientLlm(pub Peer<RoleServer>);

impl Llm for ClientLlm {
    fn ask(&self, request: LlmRequest) -> Answer<'_, String, String> {
        Box::pin(async move {
            let prompt = request.prompt.map(SamplingMessage::user_text);
            let messages = request.messages.into_iter().map(message).chain(prompt).collect();
            let most = request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
            let mut params = CreateMessageRequestParams::new(messages, most);
            params.system_prompt = request.system;
            let answer = self
                .0
                .create_message(params)
                .await
                .map_err(|error| format!("the client did not lend its language model (MCP sampling): {error}"))?;
            // The content is one block or a list of them; its text is what a tool wants.
            let content = serde_json::to_value(&answer.message.content).unwrap_or_default();
            text_of(&content).ok_or_else(|| "the client's language model answered without text".to_owned())
        })
    }
}

fn message(said: LlmMessage) -> SamplingMessage {
    match said.role {
        LlmRole::User => SamplingMessage::user_text(said.content),
        LlmRole::Assistant => SamplingMessage::assistant_text(said.content),
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
