//! The way of a call, the same for every face and every kind of tool: resolve, validate, execute, and the outcome back.

mod deep;
mod host;
mod overview;
mod readable;
mod request;
mod results;
#[cfg(test)]
mod tests;
mod validate;
mod waits;
mod whole;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

pub use deep::{TOO_DEEP, deep_argument, is_too_deep, keys_to_the_depth};
pub use host::{Answer, Llm, LlmMessage, LlmRequest, LlmRole};
pub use overview::{Overview, Refreshed};
pub use request::CallRequest;
pub use validate::arguments as validate_arguments;

use crate::config::Config;
use crate::discovery::Status;
use crate::executor::{BuiltIns, OneShots, Pools, Prepared};
use crate::outcome::{Code, Details, Fault, Metadata, Outcome};
use crate::pool::Settled;
use crate::registry::{Asking, Catalogue, NotFound, Registry, Serving, Tool};

/// Takes calls from the faces.
pub struct Dispatcher {
    /// The catalogue.
    pub registry: Arc<Registry>,
    /// The workers.
    pub pools: Pools,
    one_shots: OneShots,
    built_ins: BuiltIns,
    pub(crate) config: Arc<Config>,
    /// Files whose running calls wait for other files. Held only to look or to change it.
    waits: Mutex<waits::Waits>,
    /// Whether the workers that should always be there were started.
    is_warm: AtomicBool,
    run: String,
    next: AtomicU64,
}

impl Dispatcher {
    /// Puts the parts together.
    pub fn new(
        config: Arc<Config>,
        registry: Arc<Registry>,
        pools: Pools,
        one_shots: OneShots,
        built_ins: BuiltIns,
    ) -> Arc<Self> {
        // Calls are told apart across runs: the time of this one, and a counter within it.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let run = format!("{:x}{:x}", now.as_micros(), std::process::id());
        Arc::new(Self {
            registry,
            pools,
            one_shots,
            built_ins,
            config,
            waits: Mutex::default(),
            is_warm: AtomicBool::new(false),
            run,
            next: AtomicU64::new(1),
        })
    }

    /// Starts the workers that should always be there. To be said with the first request that a client really has: some start
    /// a server only to look at it, and then another.
    pub fn keep_ready(&self) {
        if self.is_warm.swap(true, Ordering::Relaxed) {
            return;
        }
        self.start_minimum(&self.registry.catalogue());
    }

    /// The tool files are others: those that are gone need no workers, those that are new or changed may always have some.
    pub fn changed(&self, catalogue: &Catalogue) {
        self.pools.close_without(catalogue);
        self.one_shots.keep_those_of(catalogue);
        self.built_ins.keep_those_of(catalogue);
        if self.is_warm.load(Ordering::Relaxed) {
            self.start_minimum(catalogue);
        }
    }

    fn start_minimum(&self, catalogue: &Catalogue) {
        let wanted = catalogue
            .files
            .iter()
            .filter(|entry| entry.serving().has_workers() && entry.settings.min_workers.value > 0);
        wanted.filter(|entry| entry.broken().is_none()).for_each(|entry| self.pools.keep_ready(entry));
    }

    /// Makes a call. Never fails: whatever happens is in the outcome. Dropping the future cancels the call.
    pub async fn call(self: &Arc<Self>, mut request: CallRequest) -> Outcome {
        let began = Instant::now();
        self.keep_ready();
        let call_id = format!("{}-{}", self.run, self.next.fetch_add(1, Ordering::Relaxed));
        let found = self.find_asked(&request.tool).await;
        let name = found.as_ref().map_or_else(|_| request.tool.clone(), |tool| tool.name.clone());
        // The validator wants a Value. Moved into one, large arguments are not copied.
        let arguments = Value::Object(std::mem::take(&mut request.arguments));
        let settled = match found.and_then(|tool| Ok((prepare(&tool, arguments)?, tool))) {
            Ok((kwargs, tool)) => self.execute(tool, kwargs, &call_id, request).await,
            Err(fault) => Settled { ended: Err(fault), metadata: Metadata::default() },
        };
        let tool = name;
        if let Err(fault) = &settled.ended {
            tracing::info!(call_id, tool, code = %fault.code, message = fault.message, "call failed");
        }
        Outcome { call_id, tool, ended: settled.ended, latency: began.elapsed(), metadata: settled.metadata }
    }

    /// The tool of that name; one that may be an executable's that is being asked is waited for.
    async fn find_asked(&self, name: &str) -> Result<Arc<Tool>, Fault> {
        match self.find(name) {
            // What it says now may be something else.
            Ok(tool) if tool.entry.file.status == Status::Unasked => {
                self.registry.asked().await;
                self.find(name)
            }
            Err(fault) if fault.code == Code::ToolNotFound && self.registry.asking() != Asking::NotStarted => {
                self.registry.asked().await;
                self.find(name)
            }
            found => found,
        }
    }

    /// The tool of that name, as its file is now.
    fn find(&self, name: &str) -> Result<Arc<Tool>, Fault> {
        self.registry.find(name).map_err(|missing| match missing {
            NotFound::Broken(path, reason) => broken_fault(name, &path, &reason),
            NotFound::Unknown { near, advice } => not_found_fault(name, near, &advice),
        })
    }

    async fn execute(
        self: &Arc<Self>,
        tool: Arc<Tool>,
        kwargs: Box<RawValue>,
        call_id: &str,
        request: CallRequest,
    ) -> Settled {
        // Only a version that never answered may yet turn out not to start.
        let spare = (!Registry::is_known_good(&tool.entry)).then(|| kwargs.clone());
        let settled = self.attempt(&tool, kwargs, call_id, &request).await;
        match (spare, &settled.ended) {
            (Some(kwargs), Err(fault)) if did_not_start(&settled, fault) => {
                let other = self.fall_back(&tool, fault.message.clone(), &kwargs).await;
                match other {
                    Some((other, kwargs)) => self.attempt(&other, kwargs, call_id, &request).await,
                    None => settled,
                }
            }
            _ => settled,
        }
    }

    /// Another version of a tool whose worker did not start, and the arguments as that one takes them.
    async fn fall_back(
        self: &Arc<Self>,
        tool: &Arc<Tool>,
        reason: String,
        kwargs: &RawValue,
    ) -> Option<(Arc<Tool>, Box<RawValue>)> {
        let (registry, failed, name) = (Arc::clone(&self.registry), Arc::clone(tool), tool.name.clone());
        // Files are read anew for this, which may take a while.
        let look = move || {
            registry.failed(&failed.entry, &reason);
            registry.find(&name).ok()
        };
        let other = tokio::task::spawn_blocking(look).await.ok()??;
        if other.entry.version == tool.entry.version {
            return None;
        }
        let arguments = serde_json::from_str(kwargs.get()).ok()?;
        let kwargs = prepare(&other, arguments).ok()?;
        Some((other, kwargs))
    }

    async fn attempt(
        self: &Arc<Self>,
        tool: &Arc<Tool>,
        kwargs: Box<RawValue>,
        call_id: &str,
        request: &CallRequest,
    ) -> Settled {
        let timeout = request.timeout.unwrap_or(tool.settings.timeout.value);
        // Who waits for it has so much time left, and no more.
        let timeout = request.at_most.map_or(timeout, |most| timeout.min(most));
        let host = tool.entry.settings.host_access.value.then(|| host::access(self, tool, request));
        let listener = Arc::clone(&request.listener);
        let nested = !request.chain.is_empty();
        let prepared = Prepared { call_id: call_id.to_owned(), kwargs, timeout, nested, listener, host };
        let mut settled = match tool.entry.serving() {
            Serving::EachCall => self.one_shots.call(tool, prepared).await,
            Serving::Inside => self.built_ins.call(tool, prepared).await,
            Serving::Shim | Serving::Itself | Serving::Program(_) => self.pools.call(tool, prepared).await,
        };
        if settled.metadata.worker.is_some() {
            self.registry.answered(&tool.entry);
        }
        settled.metadata.stale = tool.entry.stale.as_ref().map(|stale| stale.reason.clone());
        let ended = settled.ended.and_then(|raw| readable::check(&tool.name, raw));
        settled.ended = ended.and_then(|raw| results::check(tool, raw));
        settled
    }
}

/// Whether a call failed because no worker could be started for it, for a reason that may lie in this version.
fn did_not_start(settled: &Settled, fault: &Fault) -> bool {
    settled.metadata.worker.is_none() && matches!(fault.code, Code::StartupFailed | Code::EnvironmentFailed)
}

/// Everything that can be said of a call before anybody runs it, and its arguments as they will be sent.
fn prepare(tool: &Tool, mut arguments: Value) -> Result<Box<RawValue>, Fault> {
    if let Some(reason) = tool.entry.broken() {
        return Err(broken_fault(&tool.name, &tool.entry.file.path, &reason));
    }
    if tool.settings.validate.value {
        validate::arguments(tool, &mut arguments)?;
    }
    to_raw_value(&arguments).map_err(|error| {
        Fault::new(Code::InvalidParams, format!("the arguments of {} are not JSON: {error}", tool.name))
    })
}

fn broken_fault(name: &str, path: &std::path::Path, reason: &str) -> Fault {
    let is_python = path.extension().is_some_and(|end| end == "py");
    let code = if is_python { Code::StartupFailed } else { Code::CommandNotFound };
    Fault::new(code, format!("{name} cannot be called: {} is broken: {reason}", path.display()))
}

fn not_found_fault(name: &str, near: Vec<String>, advice: &str) -> Fault {
    let details = Details { near, ..Details::default() };
    Fault::new(Code::ToolNotFound, format!("there is no tool {name}; {advice}")).with(details)
}

/// Arguments as every face gives them.
pub type Arguments = Map<String, Value>;
