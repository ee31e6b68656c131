//! Questions of calls to their client. While one is open, the call and those that wait for it are parked.

use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::{Asking, ClientError, ClientFeatures, Elicitation, Elicited, LlmRequest, NoClient};
use super::host::{raw, read, refused};
use crate::approvals::{Answer, ApprovalScope, PendingAnswer};
use crate::outcome::Code;
use crate::pool::Listener;
use crate::protocol::{HostMethod, WireError, wire_code};
use crate::worker::{Ask, Waits};

/// A call that waits for an inner call, with the calls that wait for it.
pub(crate) struct OuterCall {
    /// Its client sees only the outermost call.
    call_id: String,
    tool: String,
    arguments: Option<Arc<RawValue>>,
    waits: Option<Arc<dyn Waits>>,
    outer: Option<Arc<OuterCall>>,
}

/// The asker of one call's questions.
pub(super) struct Questions {
    pub client: Option<Arc<dyn ClientFeatures>>,
    pub call_id: String,
    pub tool: String,
    pub listener: Arc<dyn Listener>,
    pub outer: Option<Arc<OuterCall>>,
    /// How long a question may stay open.
    pub limit: Duration,
}

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The user of the calling client.
    Client,
    /// A person at a terminal, or a program with the scope `operate`.
    Operator,
}

impl By {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Client => "the client's user",
            Self::Operator => "the operator",
        }
    }
}

/// Why there is no answer to a request for approval.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// It could have been given elsewhere, too.
    #[error("there was no answer within {}; answer with `hostler approve`, or raise `approval_timeout` under [policy]", format_duration(*.0))]
    Late(Duration),
    /// Only the client's user was asked.
    #[error("there was no answer within {}; raise `approval_timeout` under [policy] if it takes longer", format_duration(*.0))]
    LateClient(Duration),
    /// The client did not ask its user.
    #[error("the client did not ask its user: {0}")]
    Client(#[from] ClientError),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandom,
}

#[derive(Deserialize)]
struct Key {
    #[serde(default)]
    key: Option<String>,
}

impl Questions {
    /// This call as the outer call of one that it makes.
    pub fn as_outer(&self, ask: &Ask) -> Arc<OuterCall> {
        Arc::new(OuterCall {
            call_id: self.call_id.clone(),
            tool: self.tool.clone(),
            arguments: ask.arguments.clone(),
            waits: ask.waits.clone(),
            outer: self.outer.clone(),
        })
    }

    /// Asks the client. The answer is JSON as the tool's side expects it.
    pub async fn ask(&self, ask: Ask) -> Result<Box<RawValue>, WireError> {
        let Key { key } = read(&ask.params)?;
        let asking = self.asking(&ask, key);
        let _parked = Parked::new(self.outer.clone());
        let client: &dyn ClientFeatures = self.client.as_deref().unwrap_or(&NoClient);
        match ask.method {
            HostMethod::Llm => {
                let request = llm_request(&ask.params)?;
                let text = self.wait("the client's language model", client.sample(asking, request)).await?;
                raw(&json!(text))
            }
            HostMethod::Elicit => {
                let question: Elicitation = read(&ask.params)?;
                let form = form(&question.schema)?;
                let mut answer = self.wait("the user", client.elicit(asking, question)).await?;
                if let Elicited::Accept { content } = &mut answer {
                    // A client may leave out what is empty.
                    if content.is_null() {
                        *content = json!({});
                    }
                    check(&form, content)?;
                }
                raw(&json!(answer))
            }
            _ => raw(&json!(self.wait("the client's folders", client.roots(asking)).await?)),
        }
    }

    /// Asks whether a call may be made: the client's user, if there is something to be shown, and those who may answer the question
    /// elsewhere. The first answer counts, and the other question is withdrawn.
    pub async fn consent(
        &self,
        shown: Option<(Arc<RawValue>, String)>,
        mut elsewhere: Option<PendingAnswer>,
    ) -> Result<(Answer, By), NoAnswer> {
        let _parked = Parked::new(self.outer.clone());
        let (is_client, is_elsewhere) = (shown.is_some(), elsewhere.is_some());
        let of_client = async {
            let Some((arguments, message)) = shown else { return std::future::pending().await };
            match self.consent_of_client(arguments, message).await {
                // It may still be answered elsewhere.
                Err(error) if is_elsewhere => {
                    tracing::debug!(%error, "the client does not ask its user for approval");
                    std::future::pending().await
                }
                answer => answer,
            }
        };
        let of_operator = async {
            match &mut elsewhere {
                Some(pending) => pending.wait().await,
                None => std::future::pending().await,
            }
        };
        let whom = if is_client { "the user" } else { "approval: answer with `hostler approve` in a terminal" };
        let answer = async {
            tokio::select! {
                biased;
                answer = of_operator => Ok((answer, By::Operator)),
                answer = of_client => answer.map(|answer| (answer, By::Client)),
            }
        };
        let answer = self.parked(whom, answer).await;
        // An answer that came meanwhile counts: it was already confirmed.
        if let Some(first) = elsewhere.as_mut().and_then(PendingAnswer::withdraw) {
            return Ok((first, By::Operator));
        }
        let late = if is_elsewhere { NoAnswer::Late } else { NoAnswer::LateClient };
        answer.unwrap_or_else(|| Err(late(self.limit)))
    }

    async fn consent_of_client(&self, arguments: Arc<RawValue>, message: String) -> Result<Answer, NoAnswer> {
        // One that cannot be answered before it was asked.
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|_| NoAnswer::NoRandom)?;
        let key = format!("approval_{:032x}", u128::from_le_bytes(secret));
        let asking = self.asking_with(Some(arguments), Some(key));
        let client: &dyn ClientFeatures = self.client.as_deref().unwrap_or(&NoClient);
        let question = Elicitation { message, schema: json!({"type": "object", "properties": {}}) };
        match client.elicit(asking, question).await? {
            Elicited::Accept { .. } => Ok(Answer::Allow(ApprovalScope::Once)),
            _ => Ok(Answer::Deny(None)),
        }
    }

    fn asking(&self, ask: &Ask, key: Option<String>) -> Asking {
        self.asking_with(ask.arguments.clone(), key)
    }

    fn asking_with(&self, own: Option<Arc<RawValue>>, key: Option<String>) -> Asking {
        let mut outermost = self.outer.as_ref();
        while let Some(outer) = outermost.and_then(|outer| outer.outer.as_ref()) {
            outermost = Some(outer);
        }
        let (call_id, tool, arguments) = match outermost {
            Some(outer) => (&outer.call_id, &outer.tool, outer.arguments.clone()),
            None => (&self.call_id, &self.tool, own),
        };
        let (call_id, tool) = (call_id.clone(), tool.clone());
        Asking { call_id, tool, arguments, key, limit: self.limit }
    }

    /// Waits for an answer, and says so. `None` if it takes too long.
    async fn parked<T>(&self, whom: &str, answer: impl Future<Output = T>) -> Option<T> {
        self.listener.asks(&format!("{} waits for {whom}", self.tool));
        let answer = tokio::time::timeout(self.limit, answer).await;
        self.listener.goes_on();
        answer.ok()
    }

    async fn wait<T>(&self, whom: &str, answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, WireError> {
        match self.parked(whom, answer).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(unanswered(&error)),
            None => {
                let limit = format_duration(self.limit);
                let message =
                    format!("{whom} did not answer within {limit}; raise `question_timeout` if it needs longer");
                Err(coded(Code::ToolTimeout, message))
            }
        }
    }
}

/// The calls that wait for a call with an open question.
struct Parked(Option<Arc<OuterCall>>);

impl Parked {
    fn new(outer: Option<Arc<OuterCall>>) -> Self {
        if let Some(outer) = &outer {
            outer.inner_asks();
        }
        Self(outer)
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        if let Some(outer) = &self.0 {
            outer.inner_goes_on();
        }
    }
}

impl OuterCall {
    /// This call and those that wait for it, innermost first.
    fn each(&self, tell: impl Fn(&dyn Waits)) {
        let mut call = Some(self);
        while let Some(this) = call {
            if let Some(waits) = &this.waits {
                tell(&**waits);
            }
            call = this.outer.as_deref();
        }
    }
}

impl Waits for OuterCall {
    fn inner_asks(&self) {
        self.each(|waits| waits.inner_asks());
    }

    fn inner_goes_on(&self) {
        self.each(|waits| waits.inner_goes_on());
    }
}

fn llm_request(params: &RawValue) -> Result<LlmRequest, WireError> {
    let request: LlmRequest = read(params)?;
    if request.prompt.is_none() && request.messages.is_empty() {
        return Err(refused(
            "the prompt is empty: pass a string, or a list like [{\"role\": \"user\", \"content\": \"…\"}]",
        ));
    }
    Ok(request)
}

/// The validator of a form. MCP allows objects with plain members only.
fn form(schema: &Value) -> Result<jsonschema::Validator, WireError> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(refused("the schema of a question must be an object with one property for each value"));
    }
    jsonschema::validator_for(schema)
        .map_err(|error| refused(&format!("the schema of the question is invalid: {error}")))
}

fn check(form: &jsonschema::Validator, content: &Value) -> Result<(), WireError> {
    let Some(error) = form.iter_errors(content).next() else { return Ok(()) };
    let place = error.instance_path().to_string();
    let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
    // Not what the user typed: it may be a password, and faults are logged.
    let message = format!("the client's answer does not fit the form{place}: {}", error.masked());
    Err(coded(Code::InvalidParams, message))
}

fn unanswered(error: &ClientError) -> WireError {
    match error {
        ClientError::Unsupported(feature) => {
            let data = json!({"code": Code::NotSupported.word(), "capability": feature.word()});
            WireError { code: wire_code::HOST_REFUSED, message: error.to_string(), data: Some(data) }
        }
        ClientError::Failed(reason) => refused(reason),
    }
}

fn coded(code: Code, message: String) -> WireError {
    WireError { code: wire_code::HOST_REFUSED, message, data: Some(json!({"code": code.word()})) }
}
