//! Built-in tools: they run in hostler's own runtime, each in a task of its own, so that a panic fails only its call; or in a process, if they
//! have a sandbox.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;

use super::admission::Admission;
use super::apart;
use super::makers::usage_limits;
use super::pooled::Invocation;
use super::seat::Seat;
use super::walls::walls_of;
use crate::builtin::{Asks, Builtins, Call, LookUp};
use crate::config::Config;
use crate::outcome::{Code, Fault, Metadata};
use crate::pool::{BrokerHandle, Settled};
use crate::process::EnvFilter;
use crate::registry::{Catalogue, Tool};
use crate::secrets::Secrets;
use crate::telemetry::spawn;

/// The enabled built-in tools.
pub struct BuiltIns {
    /// Locked only to copy or replace the tools.
    tools: RwLock<Arc<Builtins>>,
    admission: Admission,
    env_filter: EnvFilter,
    secrets: Arc<Secrets>,
}

impl BuiltIns {
    /// An executor for these tools. Programs that they start do not inherit the variables in `env_filter`.
    pub fn new(tools: Builtins, shared: Arc<BrokerHandle>, env_filter: EnvFilter, secrets: Arc<Secrets>) -> Self {
        Self { tools: RwLock::new(Arc::new(tools)), admission: Admission::new(shared), env_filter, secrets }
    }

    /// Runs a call. Dropping the future cancels it.
    pub async fn call(&self, tool: &Tool, invocation: Invocation) -> Settled {
        // Those that it was accepted with, however long it waits.
        let tools = Arc::clone(&self.tools.read());
        let work = async |invocation, seat| Settled {
            ended: self.run(&tools, tool, invocation, seat).await,
            metadata: Metadata::default(),
        };
        self.admission.settled(tool, invocation, work).await
    }

    /// Calls that begin from here on are of these tools.
    pub fn replace(&self, tools: Builtins) {
        *self.tools.write() = Arc::new(tools);
    }

    /// Removes deleted tool files.
    pub fn keep_those_of(&self, catalogue: &Catalogue) {
        self.admission.keep_those_of(catalogue);
    }

    fn look_up(&self, config: &Arc<Config>) -> LookUp {
        let (config, secrets) = (Arc::clone(config), Arc::clone(&self.secrets));
        Arc::new(move |name| {
            let (name, config, secrets) = (name.to_owned(), Arc::clone(&config), Arc::clone(&secrets));
            Box::pin(async move {
                let found = secrets.read_live(&name, &config).await;
                found.map(|found| found.map(|value| value.to_string())).map_err(|error| error.fault_of(&name))
            })
        })
    }

    async fn run(
        &self,
        tools: &Builtins,
        tool: &Tool,
        invocation: Invocation,
        seat: Arc<Seat>,
    ) -> Result<Box<RawValue>, Fault> {
        if tool.entry.needs_process() {
            return apart::call(tool, invocation, &self.env_filter, &self.look_up(&tool.entry.config)).await;
        }
        let Invocation { call_id, kwargs, timeout, listener, host, trace, .. } = invocation;
        let max_output = tool.entry.config.limits.max_output.value.0;
        let secrets = self.look_up(&tool.entry.config);
        let (begun, env_filter) = (Instant::now(), self.env_filter.clone());
        let new_privileges = tool.entry.settings.new_privileges.value;
        let walls = walls_of(&tool.entry, self.env_filter.environment());
        let launcher = tool.entry.launcher(self.env_filter.environment());
        let asks = Some(Arc::clone(&seat) as Arc<dyn Asks>);
        let arguments = kwargs.clone();
        let call = Call {
            id: call_id,
            begun,
            timeout,
            max_output,
            new_privileges,
            walls,
            launcher,
            limits: usage_limits(&tool.entry),
            env_filter,
            secrets,
            listener,
            host,
            arguments,
            trace,
            asks,
        };
        let mut task = Aborts(spawn(tools.call(&tool.function().name, kwargs, call)));
        let late = || {
            let limit = humantime::format_duration(timeout);
            Fault::new(Code::ToolTimeout, format!("{} did not end within {limit} and was stopped", tool.name))
        };
        let ended = tokio::select! {
            ended = &mut task.0 => ended,
            () = seat.time_is_over() => return Err(late()),
        };
        ended.unwrap_or_else(|error| {
            let message = format!("{} failed inside hostler ({error}); please report this bug", tool.name);
            Err(Fault::new(Code::SystemError, message))
        })
    }
}

/// A task that is aborted on drop.
struct Aborts<T>(JoinHandle<T>);

impl<T> Drop for Aborts<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
