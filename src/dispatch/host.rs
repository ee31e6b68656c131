//! What a tool with access to hostler gets when it asks: other tools, the catalogue, the configuration, the client's model.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::{CallRequest, Dispatcher};
use crate::pool::Listener;
use crate::protocol::{HostMethod, WireError, wire_code};
use crate::registry::Tool;
use crate::worker::{Ask, HostAccess};

/// A question for the client's language model.
#[derive(Debug, Clone, Deserialize)]
pub struct LlmRequest {
    /// What is asked.
    #[serde(default)]
    pub prompt: Option<String>,
    /// A conversation so far, instead of a prompt.
    #[serde(default)]
    pub messages: Vec<LlmMessage>,
    /// How the model is to behave.
    #[serde(default)]
    pub system: Option<String>,
    /// The longest answer.
    #[serde(default)]
    pub max_tokens: Option<u32>,
}

/// What one side of a conversation said.
#[derive(Debug, Clone, Deserialize)]
pub struct LlmMessage {
    /// Who said it.
    pub role: LlmRole,
    /// What was said.
    pub content: String,
}

/// A side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmRole {
    /// Who asks.
    User,
    /// The model.
    Assistant,
}

/// A boxed answer.
pub type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// The client's language model.
pub trait Llm: Send + Sync {
    /// Asks it; the error is a sentence for the tool's author.
    fn ask(&self, request: LlmRequest) -> Answer<'_, String, String>;
}

struct CallHost {
    dispatcher: Weak<Dispatcher>,
    chain: Vec<String>,
    listener: Arc<dyn Listener>,
    llm: Option<Arc<dyn Llm>>,
}

/// The access that one call of a tool has.
pub(super) fn access(dispatcher: &Arc<Dispatcher>, tool: &Tool, request: &CallRequest) -> Arc<dyn HostAccess> {
    let mut chain = request.chain.clone();
    chain.push(tool.name.clone());
    let (listener, llm) = (Arc::clone(&request.listener), request.llm.clone());
    Arc::new(CallHost { dispatcher: Arc::downgrade(dispatcher), chain, listener, llm })
}

impl HostAccess for CallHost {
    fn answer(&self, ask: Ask) -> Answer<'_, Box<RawValue>, WireError> {
        Box::pin(async move {
            let Some(dispatcher) = self.dispatcher.upgrade() else { return Err(refused("hostler is ending")) };
            match ask.method {
                HostMethod::Call => self.call(&dispatcher, &ask.params, ask.left).await,
                HostMethod::Tools => raw(&tools(&dispatcher)),
                HostMethod::Config => raw(&config(&dispatcher)),
                HostMethod::Llm => self.llm(&ask.params).await,
            }
        })
    }
}

#[derive(Deserialize)]
struct CallParams {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl CallHost {
    async fn call(
        &self,
        dispatcher: &Arc<Dispatcher>,
        params: &RawValue,
        left: Duration,
    ) -> Result<Box<RawValue>, WireError> {
        let params: CallParams = read(params)?;
        self.refuse_cycle(dispatcher, &params.tool)?;
        let _waits = self.wait_for(dispatcher, &params.tool)?;
        let request = CallRequest {
            at_most: Some(left),
            llm: self.llm.clone(),
            listener: Arc::new(Within(Arc::clone(&self.listener))),
            chain: self.chain.clone(),
            ..CallRequest::new(params.tool, params.arguments)
        };
        // Boxed, because a call may be made within a call.
        let outcome = Box::pin(dispatcher.call(request)).await;
        outcome.ended.map_err(|fault| WireError {
            code: wire_code::HOST_REFUSED,
            message: fault.message,
            data: Some(json!({"code": fault.code.word()})),
        })
    }

    /// A worker runs one call at a time: a call that comes back to a file that waits for it would wait for ever.
    fn refuse_cycle(&self, dispatcher: &Dispatcher, name: &str) -> Result<(), WireError> {
        let catalogue = dispatcher.registry.catalogue();
        let Ok(tool) = catalogue.resolve(name) else { return Ok(()) };
        let pack = |name: &str| name.split('.').next().map(str::to_owned);
        if !self.chain.iter().any(|outer| pack(outer).as_deref() == Some(tool.entry.file.pack.as_str())) {
            return Ok(());
        }
        let cycle = self.chain.iter().map(String::as_str).chain([tool.name.as_str()]).collect::<Vec<_>>().join(" → ");
        Err(refused(&format!(
            "a cycle of calls: {cycle}. The worker of {} is busy with the first of them; call the function directly instead \
             of through hostler",
            tool.entry.file.pack
        )))
    }

    /// Notes that the running call of this file waits for another file. Two calls of two files that wait for each other
    /// would do so until their time is over, and every other caller behind them.
    fn wait_for(&self, dispatcher: &Arc<Dispatcher>, name: &str) -> Result<Option<Waiting>, WireError> {
        let catalogue = dispatcher.registry.catalogue();
        let (Some(outer), Ok(tool)) = (self.chain.last(), catalogue.resolve(name)) else { return Ok(None) };
        // Another worker of that file may come, or the same run this call beside the other.
        if tool.entry.settings.max_workers.value > 1 || tool.entry.settings.concurrency.value > 1 {
            return Ok(None);
        }
        let edge = (pack_of(outer).to_owned(), tool.entry.file.pack.clone());
        let mut waits = dispatcher.waits.lock();
        if let Some(way) = way(&waits, &edge.1, &edge.0) {
            let files = [&[edge.0.as_str()], &way[..]].concat().join(" → ");
            return Err(refused(&format!(
                "{} is busy with a call that waits for {} itself ({files}), so this call would never begin; try again \
                 later, or let one of the two files do without the other",
                edge.1, edge.0
            )));
        }
        waits.push(edge.clone());
        drop(waits);
        Ok(Some(Waiting { dispatcher: Arc::clone(dispatcher), edge }))
    }

    async fn llm(&self, params: &RawValue) -> Result<Box<RawValue>, WireError> {
        let request: LlmRequest = read(params)?;
        if request.prompt.is_none() && request.messages.is_empty() {
            return Err(refused(
                "nothing is asked: give a text, or a list like [{\"role\": \"user\", \"content\": \"…\"}]",
            ));
        }
        let none = "the caller of this tool lends no language model (an MCP client does if it supports sampling)";
        let llm = self.llm.as_ref().ok_or_else(|| refused(none))?;
        let text = llm.ask(request).await.map_err(|reason| refused(&reason))?;
        raw(&json!(text))
    }
}

fn pack_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The files from one to another along who waits for whom, both included; `None` when there is no such way.
fn way<'w>(waits: &'w [(String, String)], from: &'w str, to: &str) -> Option<Vec<&'w str>> {
    let mut ways = vec![vec![from]];
    let mut seen = vec![from];
    while let Some(way) = ways.pop() {
        let last = way.last().copied()?;
        if last == to {
            return Some(way);
        }
        for (_, next) in waits.iter().filter(|(waiting, _)| waiting == last) {
            if !seen.contains(&next.as_str()) {
                seen.push(next);
                ways.push([&way[..], &[next.as_str()]].concat());
            }
        }
    }
    None
}

/// Taken back when the inner call is over, however it is over.
struct Waiting {
    dispatcher: Arc<Dispatcher>,
    edge: (String, String),
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waits = self.dispatcher.waits.lock();
        if let Some(place) = waits.iter().position(|edge| *edge == self.edge) {
            waits.swap_remove(place);
        }
    }
}

/// A call made by a tool: its notes and logs are its caller's to hear, its progress is not the outer call's.
struct Within(Arc<dyn Listener>);

impl Listener for Within {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn log(&self, line: &crate::worker::LogLine) {
        self.0.log(line);
    }
}

fn tools(dispatcher: &Dispatcher) -> Value {
    let catalogue = dispatcher.registry.catalogue();
    let list = catalogue.ready().map(|tool| {
        json!({
            "name": tool.name,
            "description": tool.description(),
            "input_schema": tool.function().input_schema.read(),
        })
    });
    list.collect()
}

/// The configuration without anything private: values of `[secrets]`, `env` and other tools' `config` stay out.
fn config(dispatcher: &Dispatcher) -> Value {
    let config = &dispatcher.config;
    json!({
        "files": config.files,
        "tools": config.tools.value,
        "log": config.log.value,
        "secrets": config.layer.secrets.keys().collect::<Vec<_>>(),
    })
}

fn read<T: for<'de> Deserialize<'de>>(params: &RawValue) -> Result<T, WireError> {
    serde_json::from_str(params.get()).map_err(|error| refused(&format!("this request is not understood: {error}")))
}

fn raw(value: &Value) -> Result<Box<RawValue>, WireError> {
    to_raw_value(value).map_err(|error| refused(&error.to_string()))
}

fn refused(message: &str) -> WireError {
    WireError { code: wire_code::HOST_REFUSED, message: message.to_owned(), data: None }
}
