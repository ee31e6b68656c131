//! What the lists show: workers and calls as rows of cells.

use crate::call::CallInfo;
use crate::cli::calls::{took, word};
use crate::cli::events::short;
use crate::control::Status;

/// A row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it is about, the same in the next look.
    pub key: String,
    pub cells: Vec<String>,
    pub kind: Kind,
}

/// How a row looks, and what can be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Busy,
    Idle,
    Failed,
}

pub const WORKERS: [&str; 7] = ["worker", "state", "pid", "calls", "cpu", "memory", "tool file"];
pub const CALLS: [&str; 6] = ["call", "state", "took", "tool", "client", ""];

/// The workers of every pool, and each pool that has none.
pub fn workers(status: &Status) -> Vec<Row> {
    let mut rows = Vec::new();
    for pool in &status.pools {
        for worker in &pool.pool.workers {
            let is_busy = worker.state == "busy";
            let pid = worker.pid.map(|pid| pid.to_string()).unwrap_or_default();
            rows.push(Row {
                key: format!("{}\n{pid}", pool.source),
                cells: vec![
                    worker.running.clone().unwrap_or_else(|| "-".to_owned()),
                    worker.state.to_string(),
                    pid,
                    worker.calls.to_string(),
                    worker.cpu_s.map_or_else(|| "-".to_owned(), |time| format!("{time:.1} s")),
                    memory(worker.rss),
                    pool.source.clone(),
                ],
                kind: if is_busy { Kind::Busy } else { Kind::Idle },
            });
        }
        if pool.pool.workers.is_empty() {
            let why = pool.pool.resting.as_ref();
            let state = if why.is_some() { "paused" } else { "none" };
            let mut cells = vec![String::new(); WORKERS.len()];
            (cells[0], cells[1], cells[3]) = ("-".to_owned(), state.to_owned(), pool.pool.calls.to_string());
            cells[6].clone_from(&pool.source);
            let kind = if why.is_some() { Kind::Failed } else { Kind::Idle };
            rows.push(Row { key: format!("{}\n", pool.source), cells, kind });
        }
    }
    rows
}

/// The calls, those that run first.
pub fn calls(calls: &[CallInfo]) -> Vec<Row> {
    let (running, ended): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.state.is_open());
    running.into_iter().chain(ended).map(row).collect()
}

fn row(call: &CallInfo) -> Row {
    let error = call.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
    let kind = match (&error, call.state.is_open()) {
        (Some(_), _) => Kind::Failed,
        (None, true) => Kind::Busy,
        (None, false) => Kind::Idle,
    };
    let client = call.client.clone().unwrap_or_else(|| "-".to_owned());
    let id = short(&call.call_id).to_owned();
    let cells =
        vec![id, word(call.state), took(call.duration_ms), call.tool.clone(), client, error.unwrap_or_default()];
    Row { key: call.call_id.clone(), cells, kind }
}

pub fn memory(bytes: Option<usize>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{} MB", bytes / 1_000_000))
}
