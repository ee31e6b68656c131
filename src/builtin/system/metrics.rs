//! `system_metrics_snapshot`

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, Disks, MINIMUM_CPU_UPDATE_INTERVAL, MemoryRefreshKind, RefreshKind, System};

use crate::builtin::{About, Builtin, Call};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

pub(super) struct Snapshot;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Metrics {
    /// The processors.
    cpu: Cpu,
    /// Main memory, in bytes.
    memory: Memory,
    /// Mounted file systems.
    disks: Vec<Disk>,
    /// Graphics processors, if their driver answers.
    gpus: Vec<Gpu>,
    /// Uptime in seconds.
    uptime_s: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Cpu {
    /// The number of processors.
    count: usize,
    /// Use of all of them over the last fifth of a second, in percent.
    used_percent: f32,
    /// Load averages over 1, 5 and 15 minutes.
    load: [f64; 3],
}

#[derive(Debug, Serialize, JsonSchema)]
struct Memory {
    total: u64,
    used: u64,
    /// Memory that programs can get without swapping.
    available: u64,
    swap_total: u64,
    swap_used: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Disk {
    /// The mount point.
    path: String,
    /// In bytes.
    total: u64,
    /// In bytes.
    available: u64,
    /// The type of file system.
    file_system: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Gpu {
    name: String,
    /// In percent.
    used_percent: f32,
    /// In bytes.
    memory_total: u64,
    /// In bytes.
    memory_used: u64,
    /// In degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

impl Builtin for Snapshot {
    type Params = Nothing;
    type Answer = Metrics;

    fn about(&self) -> About {
        About::new(
            "system_metrics_snapshot",
            "Return the load of the machine: processors, memory, disks, graphics processors.",
        )
        .reads("read_only", Risk::Low)
        .timeout(Duration::from_secs(20))
    }

    async fn call(&self, _nothing: Nothing, call: Call) -> Result<Metrics, Fault> {
        let (gpus, metrics) = tokio::join!(gpus(&call), measured(&call));
        Ok(Metrics { gpus, ..metrics? })
    }
}

async fn measured(call: &Call) -> Result<Metrics, Fault> {
    let wanted = || RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing().with_usage());
    let mut system = System::new_with_specifics(wanted().with_memory(MemoryRefreshKind::everything()))
        .map_err(|error| unavailable(&error))?;
    // CPU use is measured between two refreshes.
    tokio::time::sleep(MINIMUM_CPU_UPDATE_INTERVAL).await;
    // A network disk may be slow.
    call.blocking(move |_| {
        system.refresh_specifics(wanted());
        let load = System::load_average().map_err(|error| unavailable(&error))?;
        let cpu = Cpu {
            count: system.cpus().len(),
            used_percent: system.global_cpu_usage(),
            load: [load.one, load.five, load.fifteen],
        };
        let memory = Memory {
            total: system.total_memory(),
            used: system.used_memory(),
            available: system.available_memory(),
            swap_total: system.total_swap(),
            swap_used: system.used_swap(),
        };
        let disk = |disk: &sysinfo::Disk| Disk {
            path: disk.mount_point().display().to_string(),
            total: disk.total_space(),
            available: disk.available_space(),
            file_system: disk.file_system().to_string_lossy().into_owned(),
        };
        let disks = Disks::new_with_refreshed_list().map(|disks| disks.iter().map(disk).collect()).unwrap_or_default();
        Ok(Metrics { cpu, memory, disks, gpus: Vec::new(), uptime_s: System::uptime().unwrap_or_default() })
    })
    .await
}

/// The system does not provide its figures.
pub(super) fn unavailable(error: &sysinfo::Error) -> Fault {
    Fault::new(Code::SystemError, format!("this system does not provide its metrics: {error}"))
}

const QUERY: [&str; 2] =
    ["--query-gpu=name,utilization.gpu,memory.total,memory.used,temperature.gpu", "--format=csv,noheader,nounits"];

/// The output of NVIDIA's driver program, where it is installed.
async fn gpus(call: &Call) -> Vec<Gpu> {
    let printed = call.output_of("nvidia-smi", &QUERY, Duration::from_secs(5), 1 << 16).await;
    read_gpus(&printed.unwrap_or_default())
}

/// One line per processor; single numbers may be unknown.
pub(super) fn read_gpus(printed: &str) -> Vec<Gpu> {
    let gpu = |line: &str| {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        let [name, used, total, taken, temperature] = words[..] else { return None };
        let bytes = |text: &str| text.parse::<u64>().unwrap_or_default() << 20;
        Some(Gpu {
            name: name.to_owned(),
            used_percent: used.parse().unwrap_or_default(),
            memory_total: bytes(total),
            memory_used: bytes(taken),
            temperature: temperature.parse().ok(),
        })
    };
    printed.lines().filter_map(gpu).collect()
}
