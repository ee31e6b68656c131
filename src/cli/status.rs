//! The status of a running hostler as text: written to standard error on SIGUSR1, and shown by `hostler dev`.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::style;
use crate::call::{CallService, Overview};
use crate::executor::FileStatus;
use crate::pool::{Usage, WorkerStatus};
use crate::registry::SchemaProgress;
use crate::telemetry;
use crate::words::plural;

/// Writes the status to standard error on every SIGUSR1.
pub(super) fn on_signal(service: &Arc<CallService>) {
    let service = Arc::downgrade(service);
    let Ok(mut asked) = signal(SignalKind::user_defined1()) else { return };
    tokio::spawn(async move {
        while asked.recv().await.is_some() {
            let Some(service) = service.upgrade() else { return };
            telemetry::say(&format!("{}\n", as_text(&service.status().await)));
        }
    });
}

/// A line of shared limits, one for each pool, one for each worker.
pub(super) fn as_text(overview: &Overview) -> String {
    let (status, usage) = (&overview.status, &overview.status.usage);
    let (broken, unwalled, asking) = (broken(overview.broken), unwalled(overview.unwalled), asking(overview.asking));
    let tools = format!("{}{broken}{unwalled}{asking}\n", plural(overview.tools, "tool"));
    let calls = &overview.calls;
    let shared = format!(
        "{}; ended {}, {} failed, {} cancelled\n",
        usage_line(usage),
        plural(calls.ended, "call"),
        calls.failed,
        calls.cancelled
    );
    let mut text = tools + &shared;
    let mut rows: Vec<Vec<String>> = Vec::new();
    if !status.pools.is_empty() {
        rows.push(row(["tool file", "state", "pid", "up", "calls", "failed", "p50", "p95", "cpu", "memory", ""]));
    }
    for pool in &status.pools {
        rows.push(pool_row(pool));
        rows.extend(pool.pool.workers.iter().map(worker_row));
    }
    text.push_str(&style::table(&rows, None));
    text
}

/// What runs and waits, and the limits.
pub(super) fn usage_line(usage: &Usage) -> String {
    format!(
        "running {} of {}, waiting {} of {}, workers {} of {}",
        usage.running, usage.max_concurrent_calls, usage.waiting, usage.max_queue, usage.workers, usage.max_workers
    )
}

fn broken(files: usize) -> String {
    if files == 0 { String::new() } else { format!(", {}", plural(files, "broken file")) }
}

fn unwalled(files: usize) -> String {
    if files == 0 { String::new() } else { format!(", {} without a sandbox", plural(files, "file")) }
}

/// How many executables have not been asked yet.
fn asking(state: SchemaProgress) -> String {
    match state {
        SchemaProgress::NotStarted | SchemaProgress::Complete => String::new(),
        SchemaProgress::InProgress(left) => format!("; {} not asked yet", plural(left, "executable")),
        SchemaProgress::Failed => "; executables are no longer asked, a fault of hostler: restart it".to_owned(),
    }
}

fn pool_row(file: &FileStatus) -> Vec<String> {
    let pool = &file.pool;
    let mut remarks = Vec::new();
    if !file.current {
        remarks.push("an older version, finishing".to_owned());
    }
    remarks.extend(pool.resting.clone());
    if let Some(exit) = &pool.last_exit {
        let why = exit.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        remarks.push(format!("{} ended {} s ago by {}{why}", exit.pid, exit.ago_s, exit.how));
    }
    let time = |time: Option<f64>| time.map(|time| format!("{time:.1} ms")).unwrap_or_default();
    let (calls, failures) = (pool.calls.to_string(), pool.failures.to_string());
    let (waiting, remarks) = (format!("{} waiting", pool.waiting), remarks.join("; "));
    let (p50, p95) = (time(pool.p50_ms), time(pool.p95_ms));
    row([&file.pack, &waiting, "", "", &calls, &failures, &p50, &p95, "", "", &remarks])
}

fn worker_row(worker: &WorkerStatus) -> Vec<String> {
    let running = worker.running.as_ref().map(|function| format!("in {function}, holds {}", worker.holds));
    let pid = worker.pid.map(|pid| pid.to_string()).unwrap_or_default();
    let memory = worker.rss.map(|bytes| format!("{} MB", bytes / 1_000_000)).unwrap_or_default();
    let cpu = worker.cpu_s.map(|time| format!("{time:.1} s")).unwrap_or_default();
    let (up, calls, running) =
        (format!("{} s", worker.uptime_s), worker.calls.to_string(), running.unwrap_or_default());
    row(["  worker", &worker.state, &pid, &up, &calls, "", "", "", &cpu, &memory, &running])
}

fn row(cells: [&str; 11]) -> Vec<String> {
    cells.map(str::to_owned).into()
}
