//! The machine: its load, its logs, and, here, whether a program runs (`check_process_health`).

mod logs;
mod metrics;
#[cfg(test)]
mod tests;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};

use self::metrics::unavailable;
use super::{About, Builtin, Builtins, Call, Unregistered};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

pub(super) fn add(tools: &mut Builtins) -> Result<(), Unregistered> {
    tools.register(metrics::Snapshot)?;
    tools.register(Health)?;
    tools.register(logs::Logs)
}

struct Health;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// Part of the program's name, such as `postgres`.
    #[serde(default)]
    pub name: Option<String>,
    /// Its process id.
    #[serde(default)]
    pub pid: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    /// Whether any process matches.
    running: bool,
    /// The matching processes, at most a hundred.
    processes: Vec<One>,
    /// The number of matching processes.
    total: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct One {
    pid: u32,
    /// The program's name, without its arguments, which may be private.
    name: String,
    /// `run`, `sleep`, `zombie` …
    state: String,
    /// CPU use in percent of one processor, over the last fifth of a second.
    cpu_percent: f32,
    /// Memory in bytes.
    memory: u64,
    /// Its age in seconds.
    uptime_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
}

const MOST: usize = 100;

impl Builtin for Health {
    type Params = Params;
    type Answer = Found;

    fn about(&self) -> About {
        About::new("check_process_health", "Check whether a program is running, by part of its name or by process id.")
            .reads("read_only", Risk::Low)
            .timeout(Duration::from_secs(20))
    }

    async fn call(&self, params: Params, call: Call) -> Result<Found, Fault> {
        if params.name.as_deref().is_none_or(str::is_empty) && params.pid.is_none() {
            return Err(Fault::new(Code::InvalidParams, "pass the `name` of a program, or a `pid`"));
        }
        let mut system = call.blocking(|_| Ok(refreshed(System::new().map_err(|error| unavailable(&error))?))).await?;
        // CPU use is measured between two refreshes.
        tokio::time::sleep(MINIMUM_CPU_UPDATE_INTERVAL).await;
        system = call.blocking(move |_| Ok(refreshed(system))).await?;
        let mut processes: Vec<One> =
            system.processes().values().filter(|process| matches(process, &params)).map(one).collect();
        processes.sort_by_key(|process| process.pid);
        let total = processes.len();
        processes.truncate(MOST);
        Ok(Found { running: total > 0, processes, total })
    }
}

fn refreshed(mut system: System) -> System {
    let what = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    system
}

fn matches(process: &Process, params: &Params) -> bool {
    let by_name = |name: &String| process.name().to_string_lossy().to_lowercase().contains(&name.to_lowercase());
    params.pid.is_none_or(|pid| process.pid() == Pid::from_u32(pid)) && params.name.as_ref().is_none_or(by_name)
}

fn one(process: &Process) -> One {
    One {
        pid: process.pid().as_u32(),
        name: process.name().to_string_lossy().into_owned(),
        state: process.status().to_string().to_lowercase(),
        cpu_percent: process.cpu_usage(),
        memory: process.memory(),
        uptime_s: process.run_time(),
        parent: process.parent().map(Pid::as_u32),
    }
}
