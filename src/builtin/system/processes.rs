//! `check_process_health`

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};

use super::metrics::silent;
use crate::builtin::{About, Builtin, Call};
use crate::config::declared_policy::Risk;
use crate::config::tool::Effects;
use crate::outcome::{Code, Fault};

pub(super) struct Health;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// A part of the program's name, such as `postgres`.
    #[serde(default)]
    pub name: Option<String>,
    /// Its process id.
    #[serde(default)]
    pub pid: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    /// Whether one runs.
    running: bool,
    /// Those that do, at most a hundred.
    processes: Vec<One>,
    /// How many do.
    total: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct One {
    pid: u32,
    /// The program's name. What it was called with may be private, and is not told.
    name: String,
    /// `run`, `sleep`, `zombie` …
    state: String,
    /// In percent of one processor, in the last fifth of a second.
    cpu_percent: f32,
    /// In bytes.
    memory: u64,
    /// For how many seconds it has run.
    uptime_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
}

const MOST: usize = 100;

impl Builtin for Health {
    type Params = Wanted;
    type Answer = Found;

    fn about(&self) -> About {
        About::new(
            "check_process_health",
            "Say whether a program runs, by a part of its name or its process id, and how it does.",
        )
        .effects(Effects::Pure)
        .risk("read_only", Risk::Low)
        .timeout(Duration::from_secs(20))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Found, Fault> {
        if wanted.name.as_deref().is_none_or(str::is_empty) && wanted.pid.is_none() {
            return Err(Fault::new(Code::InvalidParams, "give the `name` of a program, or a `pid`"));
        }
        let mut system = call.blocking(|_| Ok(looked(System::new().map_err(|error| silent(&error))?))).await?;
        // Use is what happens between two looks.
        tokio::time::sleep(MINIMUM_CPU_UPDATE_INTERVAL).await;
        system = call.blocking(move |_| Ok(looked(system))).await?;
        let mut processes: Vec<One> =
            system.processes().values().filter(|process| is_meant(process, &wanted)).map(one).collect();
        processes.sort_by_key(|process| process.pid);
        let total = processes.len();
        processes.truncate(MOST);
        Ok(Found { running: total > 0, processes, total })
    }
}

fn looked(mut system: System) -> System {
    let what = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    system
}

fn is_meant(process: &Process, wanted: &Wanted) -> bool {
    let by_name = |name: &String| process.name().to_string_lossy().to_lowercase().contains(&name.to_lowercase());
    wanted.pid.is_none_or(|pid| process.pid() == Pid::from_u32(pid)) && wanted.name.as_ref().is_none_or(by_name)
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
