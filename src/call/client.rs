//! What the client of a call can do for its tools: its language model, its user, its folders.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The boxed future of an answer.
pub type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A request to the client's language model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LlmRequest {
    /// The prompt.
    pub prompt: Option<String>,
    /// A conversation, instead of a prompt.
    pub messages: Vec<LlmMessage>,
    /// Images that the model sees before the prompt.
    pub images: Vec<LlmImage>,
    /// The system prompt.
    pub system: Option<String>,
    /// How varied the answer is, from 0.
    pub temperature: Option<f64>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
}

/// One message of a conversation.
#[derive(Debug, Clone, Deserialize)]
pub struct LlmMessage {
    /// The speaker.
    pub role: LlmRole,
    /// The text.
    pub content: String,
}

/// An image for a model.
#[derive(Debug, Clone, Deserialize)]
pub struct LlmImage {
    /// The bytes in base64.
    pub data: String,
    /// `image/png`.
    pub mime_type: String,
}

/// The role of a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A question to the client's user: a form.
#[derive(Debug, Clone, Deserialize)]
pub struct Elicitation {
    /// What the user reads.
    pub message: String,
    /// The form as a JSON Schema: an object whose properties are strings, numbers, booleans or choices.
    pub schema: Value,
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Elicited {
    /// The form was filled in.
    Accept {
        /// The form's values.
        #[serde(default)]
        content: Value,
    },
    /// The user does not want to answer.
    Decline,
    /// The user closed the form.
    Cancel,
}

/// A folder that the client works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// `file:///home/user/project`.
    pub uri: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// A folder by its path.
    pub(crate) fn of_folder(path: &str) -> Self {
        const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
        Self { uri: format!("file://{}", utf8_percent_encode(path, PATH)), name: None }
    }
}

/// The call that asks.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The id of the client's call. If a tool called the tool that asks, this is the outermost call.
    pub call_id: String,
    /// The full name of the tool that the client called.
    pub tool: String,
    /// The arguments of the client's call; `None` for calls of built-in tools.
    pub arguments: Option<Arc<RawValue>>,
    /// The tool's own name for the question.
    pub key: Option<String>,
    /// How long the question may stay open.
    pub limit: Duration,
}

/// A part of a client that a tool can need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Its language model.
    Sampling,
    /// Its user.
    Elicitation,
    /// Its folders.
    Roots,
}

impl Feature {
    /// The name of the MCP capability.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
            Self::Roots => "roots",
        }
    }
}

/// The reason for a missing answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The client has no such feature.
    #[error(
        "the client of this call cannot do this: it has no MCP `{}`; use another client, or do without it",
        .0.word()
    )]
    Unsupported(Feature),
    /// The client refused, or its answer cannot be used.
    #[error("{0}")]
    Failed(String),
}

/// What a client can do for the tools that it calls. Every method may be left out.
pub trait ClientFeatures: Send + Sync {
    /// Whether it may answer requests of this kind. A call that asks for what is not offered is refused at once.
    fn offers(&self, feature: Feature) -> bool {
        let _ = feature;
        true
    }

    /// Asks the client's language model.
    fn sample(&self, asking: Asking, request: LlmRequest) -> Answer<'_, String, ClientError> {
        let _ = (asking, request);
        Box::pin(std::future::ready(Err(ClientError::Unsupported(Feature::Sampling))))
    }

    /// Asks the client's user.
    fn elicit(&self, asking: Asking, question: Elicitation) -> Answer<'_, Elicited, ClientError> {
        let _ = (asking, question);
        Box::pin(std::future::ready(Err(ClientError::Unsupported(Feature::Elicitation))))
    }

    /// Asks for the folders that the client works in.
    fn roots(&self, asking: Asking) -> Answer<'_, Vec<Root>, ClientError> {
        let _ = asking;
        Box::pin(std::future::ready(Err(ClientError::Unsupported(Feature::Roots))))
    }

    /// The request that made the call has been answered, and the call goes on. From now on questions wait until they are asked for.
    fn detached(&self) {}

    /// Questions of such a call that have no answer yet, by key. A key names one question for ever.
    fn open_questions(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Answers such questions. Answers to others are ignored.
    fn answered(&self, answers: Map<String, Value>) {
        let _ = answers;
    }
}

/// A client without features.
pub(super) struct NoClient;

impl ClientFeatures for NoClient {}
