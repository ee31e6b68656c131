//! Host access: a tool's requests for other tools, the catalogue and the configuration. `questions` holds those to the client.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::client::{Answer, Feature};
use super::handle::RunningCall;
use super::questions::Questions;
use super::waits::Wait;
use super::{CallRequest, CallService};
use crate::outcome::Fault;
use crate::pool::{Caller, Listener};
use crate::protocol::{HostMethod, WireError, wire_code};
use crate::registry::Tool;
use crate::secrets::Lease;
use crate::worker::{Ask, HostAccess};

struct CallHost {
    service: Weak<CallService>,
    chain: Vec<String>,
    caller: Arc<Caller>,
    questions: Questions,
    /// Whether it may ask more than its client.
    has_host_access: bool,
    has_client_access: bool,
}

/// What a running call asks is answered with this, made when it asks: most calls ask nothing.
#[derive(Clone)]
pub(super) struct AskContext {
    pub service: Weak<CallService>,
    pub running: Weak<RunningCall>,
    pub tool: Arc<Tool>,
    pub request: Arc<CallRequest>,
}

impl AskContext {
    fn host(self) -> Option<CallHost> {
        let Self { service, running, tool, request } = self;
        let running = running.upgrade()?;
        let settings = &tool.entry.settings;
        let mut chain = request.chain.clone();
        chain.push(tool.name.clone());
        Some(CallHost {
            service,
            chain,
            caller: caller_within(&running),
            questions: Questions {
                client: request.client.clone(),
                call_id: running.id.clone(),
                tool: tool.name.clone(),
                listener: running,
                outer: request.outer.clone(),
                limit: settings.question_timeout.value,
            },
            has_host_access: settings.host_access.value,
            has_client_access: settings.client_access.value,
        })
    }
}

/// The caller of what a call calls: that of the call itself, within the call's span.
fn caller_within(running: &RunningCall) -> Arc<Caller> {
    let Some(span) = &running.trace else { return Arc::clone(&running.caller) };
    Arc::new(Caller { trace: Some((**span).clone()), ..(*running.caller).clone() })
}

impl HostAccess for RunningCall {
    fn waits_for_client(&self, method: HostMethod) -> bool {
        let feature = match method {
            HostMethod::Llm => Feature::Sampling,
            HostMethod::Elicit => Feature::Elicitation,
            HostMethod::Roots => Feature::Roots,
            _ => return false,
        };
        let asks = self.asks.lock();
        asks.as_ref().and_then(|context| context.request.client.as_ref()).is_some_and(|client| client.offers(feature))
    }

    fn answer(&self, ask: Ask) -> Answer<'_, Box<RawValue>, WireError> {
        Box::pin(async move {
            let context = self.asks.lock().clone();
            let host = context.and_then(AskContext::host).ok_or_else(|| refused("the call has ended"))?;
            host.answer(ask).await
        })
    }

    fn holds(&self, secrets: &Arc<Lease>) {
        self.leases.lock().push(Arc::clone(secrets));
    }

    fn starts(&self) {
        self.watch_start();
    }

    fn dispatches(&self, process: (u32, u64)) -> Result<(), Fault> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.journal_dispatch(Some(process), false)
    }

    fn dispatches_at_once(&self) -> Result<(), Fault> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.journal_dispatch(None, true)
    }

    fn begins(&self) {
        self.watched.begins();
    }
}

impl CallHost {
    async fn answer(&self, ask: Ask) -> Result<Box<RawValue>, WireError> {
        let Some(service) = self.service.upgrade() else { return Err(refused("hostler is ending")) };
        if ask.method.asks_client() {
            if !self.has_client_access {
                return Err(no_client_access());
            }
            return self.questions.ask(ask).await;
        }
        if !self.has_host_access {
            return Err(no_host_access());
        }
        match ask.method {
            HostMethod::Call => self.call(&service, &ask).await,
            HostMethod::Tools => raw(&tools(&service)),
            HostMethod::Config => raw(&config(&service)),
            HostMethod::Status => raw(&json!(service.status().await)),
            HostMethod::Refresh => raw(&json!(service.refresh().await.to_string())),
            HostMethod::Llm | HostMethod::Elicit | HostMethod::Roots => Err(refused("the client answers this")),
        }
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
    async fn call(&self, service: &Arc<CallService>, ask: &Ask) -> Result<Box<RawValue>, WireError> {
        let params: CallParams = read(&ask.params)?;
        self.refuse_cycle(service, &params.tool)?;
        let _waits = self.wait_for(service, &params)?;
        let request = CallRequest {
            at_most: Some(ask.left),
            client: self.questions.client.clone(),
            outer: Some(self.questions.as_outer(ask)),
            caller: Arc::clone(&self.caller),
            listener: Arc::new(Within(Arc::clone(&self.questions.listener))),
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

    fn asks(&self, text: &str) {
        self.0.asks(text);
    }

    fn goes_on(&self) {
        self.0.goes_on();
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
    let config = service.config();
    json!({
        "files": config.files.iter().map(|path| path.display().to_string()).collect::<Value>(),
        "tools": config.tools_there().map(|path| path.display().to_string()).collect::<Value>(),
        "log": config.log.value,
        "secrets": config.secrets.keys().collect::<Vec<_>>(),
    })
}

pub(super) fn read<T: for<'de> Deserialize<'de>>(params: &RawValue) -> Result<T, WireError> {
    serde_json::from_str(params.get()).map_err(|error| refused(&format!("invalid request: {error}")))
}

pub(super) fn raw(value: &Value) -> Result<Box<RawValue>, WireError> {
    to_raw_value(value).map_err(|error| refused(&error.to_string()))
}

pub(super) fn refused(message: &str) -> WireError {
    WireError { code: wire_code::HOST_REFUSED, message: message.to_owned(), data: None }
}

/// The answer to a tool that may not use hostler.
fn no_host_access() -> WireError {
    refused(
        "this tool file has no host access: only internal tool files (without a header) have it, unless the operator sets \
         host_access = true for it under [tool] in hostler.toml",
    )
}

/// The answer to a tool that may not ask the client.
fn no_client_access() -> WireError {
    refused("this tool file may not ask the client: the operator has set client_access = false for it in hostler.toml")
}
