//! The machine: its load, its logs, and, here, whether a program runs (`check_process_health`).

mod logs;
mod metrics;

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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::logs::{Params, last_lines};
    use super::metrics::read_gpus;
    use crate::builtin::testing::Bench;
    use crate::outcome::Code;

    fn bench() -> Bench {
        Bench::of(|tools, _| super::add(tools))
    }

    #[tokio::test]
    async fn a_snapshot_describes_this_machine() {
        let found = bench().call("system_metrics_snapshot", json!({})).await.unwrap();
        let processors = std::thread::available_parallelism().unwrap().get();
        assert!(found["cpu"]["count"].as_u64().unwrap() >= processors as u64, "{found}");
        let memory = |key: &str| found["memory"][key].as_u64().unwrap();
        assert!(memory("total") > 1 << 26 && memory("available") <= memory("total") && memory("used") > 0, "{found}");
        assert!(
            found["uptime_s"].as_u64().unwrap() > 0 && found["cpu"]["load"].as_array().unwrap().len() == 3,
            "{found}"
        );
    }

    #[test]
    fn the_output_of_a_graphics_driver_is_parsed() {
        let found = read_gpus("NVIDIA A100, 37, 40960, 1024, 41\nOdd, [N/A], 1, [N/A], [N/A]\nnonsense\n");
        let found = serde_json::to_value(found).unwrap();
        let expected = json!([
            {"name": "NVIDIA A100", "used_percent": 37.0, "memory_total": 42_949_672_960_u64, "memory_used": 1_073_741_824, "temperature": 41.0},
            {"name": "Odd", "used_percent": 0.0, "memory_total": 1_048_576, "memory_used": 0}
        ]);
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_program_that_runs_is_found_and_another_is_not() {
        let bench = bench();
        let own = std::process::id();
        let found = bench.call("check_process_health", json!({"pid": own})).await.unwrap();
        assert_eq!((&found["running"], &found["processes"][0]["pid"]), (&json!(true), &json!(own)));
        assert!(found["processes"][0]["memory"].as_u64().unwrap() > 0, "{found}");
        let none: Value = bench.call("check_process_health", json!({"name": "no-such-program"})).await.unwrap();
        assert_eq!(none, json!({"running": false, "processes": [], "total": 0}));
        bench.fails("check_process_health", json!({}), Code::InvalidParams, "`name`").await;
    }

    #[tokio::test]
    async fn the_last_matching_lines_are_returned() {
        let wanted =
            |lines, text: Option<&str>| Params { lines, since: "1h".to_owned(), text: text.map(str::to_owned) };
        assert_eq!(last_lines("a\nb\nc\n", &wanted(2, None)), ["b", "c"]);
        assert_eq!(last_lines("ab\nb\ncb\nd\n", &wanted(2, Some("b"))), ["b", "cb"]);
        bench().fails("read_system_logs", json!({"since": "yesterday"}), Code::InvalidParams, "yesterday").await;
    }
}
