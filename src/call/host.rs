//! Host access: a tool's requests for other tools, the catalogue, the configuration and the client's model.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::layer::CallContext;
use super::waits::Wait;
use super::{CallRequest, CallService};
use crate::pool::{Caller, Listener};
use crate::protocol::{HostMethod, WireError, wire_code};
use crate::worker::{Ask, HostAccess};

/// A request to the client's language model.
#[derive(Debug, Clone, Deserialize)]
pub struct LlmRequest {
    /// The prompt.
    #[serde(default)]
    pub prompt: Option<String>,
    /// A conversation, instead of a prompt.
    #[serde(default)]
    pub messages: Vec<LlmMessage>,
    /// The system prompt.
    #[serde(default)]
    pub system: Option<String>,
    /// The longest answer.
    #[serde(default)]
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

/// The role of a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// The boxed future of an answer.
pub type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// The client's language model.
pub trait Llm: Send + Sync {
    /// Sends the request; the error is a sentence for the tool's author.
    fn ask(&self, request: LlmRequest) -> Answer<'_, String, String>;
}

struct CallHost {
    service: Weak<CallService>,
    chain: Vec<String>,
    listener: Arc<dyn Listener>,
    llm: Option<Arc<dyn Llm>>,
    caller: Arc<Caller>,
}

/// The host access of one call.
pub(super) fn access(service: &Arc<CallService>, call: &CallContext) -> Arc<dyn HostAccess> {
    let mut chain = call.request.chain.clone();
    chain.push(call.tool.name.clone());
    Arc::new(CallHost {
        service: Arc::downgrade(service),
        chain,
        listener: Arc::clone(&call.running) as Arc<dyn Listener>,
        llm: call.request.llm.clone(),
        caller: Arc::clone(&call.request.caller),
    })
}

impl HostAccess for CallHost {
    fn answer(&self, ask: Ask) -> Answer<'_, Box<RawValue>, WireError> {
        Box::pin(async move {
            let Some(service) = self.service.upgrade() else { return Err(refused("hostler is ending")) };
            match ask.method {
                HostMethod::Call => self.call(&service, &ask.params, ask.left).await,
                HostMethod::Tools => raw(&tools(&service)),
                HostMethod::Config => raw(&config(&service)),
                HostMethod::Llm => self.llm(&ask.params).await,
                HostMethod::Status => raw(&json!(service.status().await)),
                HostMethod::Refresh => raw(&json!(service.refresh().await.to_string())),
            }
        })
    }
}

#[derive(Deserialize)]
struct CallParams {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// Whether this call blocks the other calls of its worker.
    #[serde(default)]
    blocks: bool,
}

impl CallHost {
    async fn call(
        &self,
        service: &Arc<CallService>,
        params: &RawValue,
        left: Duration,
    ) -> Result<Box<RawValue>, WireError> {
        let params: CallParams = read(params)?;
        self.refuse_cycle(service, &params.tool)?;
        let _waits = self.wait_for(service, &params)?;
        let request = CallRequest {
            at_most: Some(left),
            llm: self.llm.clone(),
            caller: Arc::clone(&self.caller),
            listener: Arc::new(Within(Arc::clone(&self.listener))),
            chain: self.chain.clone(),
            ..CallRequest::new(params.tool, params.arguments)
        };
        let outcome = service.call(request).await;
        outcome.ended.clone().map_err(|fault| WireError {
            code: wire_code::HOST_REFUSED,
            message: fault.message,
            data: Some(json!({"code": fault.code.word()})),
        })
    }

    /// Refuses recursion through hostler, which would never end.
    fn refuse_cycle(&self, service: &CallService, name: &str) -> Result<(), WireError> {
        let catalogue = service.registry.catalogue();
        let Ok(tool) = catalogue.resolve(name) else { return Ok(()) };
        if !self.chain.contains(&tool.name) {
            return Ok(());
        }
        Err(refused(&format!("a cycle of calls: {}; remove one of these calls", self.cycle(&tool.name))))
    }

    fn cycle(&self, name: &str) -> String {
        self.chain.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(" → ")
    }

    /// Records that this call's file waits for another file. Files that wait for each other with all their capacity
    /// would block until the timeout, and every later caller behind them.
    fn wait_for(&self, service: &Arc<CallService>, params: &CallParams) -> Result<Option<Waiting>, WireError> {
        let catalogue = service.registry.catalogue();
        let outer = self.chain.last().and_then(|outer| catalogue.resolve(outer).ok());
        let (Some(outer), Ok(tool)) = (outer, catalogue.resolve(&params.tool)) else { return Ok(None) };
        let settings = &outer.entry.settings;
        let (workers, each) = (settings.max_workers.value.max(1), settings.concurrency.value.max(1));
        let (from, to) = (outer.entry.file.pack.clone(), tool.entry.file.pack.clone());
        let uses = if params.blocks { each } else { 1 };
        let wait = Wait { from, to, uses, capacity: workers.saturating_mul(each) };
        let entered = service.waits.lock().enter(wait.clone());
        let Err(way) = entered else { return Ok(Some(Waiting { service: Arc::clone(service), wait })) };
        let Wait { from, to, .. } = wait;
        let is_within = self.chain.iter().any(|outer| pack_of(outer) == to);
        Err(refused(&if is_within {
            format!(
                "a cycle of calls: {}. All workers of {to} are busy with calls of this cycle, so this call would never \
                 start; call the function directly instead of through hostler, or raise `max_workers` of {to}",
                self.cycle(&tool.name)
            )
        } else {
            let files = std::iter::once(&from).chain(&way).map(String::as_str).collect::<Vec<_>>().join(" → ");
            format!(
                "all workers of {to} wait for {from} ({files}), so this call would never start; try \
                 again later, remove one of the calls between the files, or raise `max_workers` of one of them"
            )
        }))
    }

    async fn llm(&self, params: &RawValue) -> Result<Box<RawValue>, WireError> {
        let request: LlmRequest = read(params)?;
        if request.prompt.is_none() && request.messages.is_empty() {
            return Err(refused(
                "the prompt is empty: pass a string, or a list like [{\"role\": \"user\", \"content\": \"…\"}]",
            ));
        }
        let none = "the caller of this tool has no language model; an MCP client has one if it supports sampling";
        let llm = self.llm.as_ref().ok_or_else(|| refused(none))?;
        let text = llm.ask(request).await.map_err(|reason| refused(&reason))?;
        raw(&json!(text))
    }
}

fn pack_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Removes the wait when the inner call ends.
struct Waiting {
    service: Arc<CallService>,
    wait: Wait,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.service.waits.lock().leave(&self.wait);
    }
}

/// The listener of a call made by a tool: forwards notes and logs to the outer caller, but not progress.
struct Within(Arc<dyn Listener>);

impl Listener for Within {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn log(&self, line: &crate::worker::LogLine) {
        self.0.log(line);
    }
}

fn tools(service: &CallService) -> Value {
    let catalogue = service.registry.catalogue();
    let list = catalogue.ready().map(|tool| {
        let mut described = tool.settings.policy.as_json();
        described.insert("name".to_owned(), json!(tool.name));
        described.insert("description".to_owned(), json!(tool.description()));
        described.insert("input_schema".to_owned(), json!(tool.function().input_schema));
        Value::Object(described)
    });
    list.collect()
}

/// The configuration without private values: `[secrets]`, `env` and the `config` of other tools are left out.
fn config(service: &CallService) -> Value {
    let config = &service.config;
    json!({
        "files": config.files.iter().map(|path| path.display().to_string()).collect::<Value>(),
        "tools": config.tools_there().map(|path| path.display().to_string()).collect::<Value>(),
        "log": config.log.value,
        "secrets": config.secrets.keys().collect::<Vec<_>>(),
    })
}

fn read<T: for<'de> Deserialize<'de>>(params: &RawValue) -> Result<T, WireError> {
    serde_json::from_str(params.get()).map_err(|error| refused(&format!("invalid request: {error}")))
}

fn raw(value: &Value) -> Result<Box<RawValue>, WireError> {
    to_raw_value(value).map_err(|error| refused(&error.to_string()))
}

fn refused(message: &str) -> WireError {
    WireError { code: wire_code::HOST_REFUSED, message: message.to_owned(), data: None }
}
