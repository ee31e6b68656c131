//! What is counted per tool.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::outcome::{Code, Outcome};

/// The upper bounds of the histogram's buckets, in seconds.
pub(super) const BOUNDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
/// Tools that are counted each by itself. Further ones are counted together.
pub(super) const MOST_TOOLS: usize = 1000;
/// The name under which further tools are counted.
const OTHERS: &str = "(other tools)";
/// The name under which calls of names that no tool has are counted.
const UNKNOWN: &str = "(unknown tools)";

/// What is counted of a tool since hostler started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolMetrics {
    /// The tool's full name.
    pub tool: String,
    /// Ended calls.
    pub executions: u64,
    /// Those with a result.
    pub succeeded: u64,
    /// Those without one, except cancelled ones.
    pub failed: u64,
    /// Cancelled ones.
    pub cancelled: u64,
    /// Those without a result, by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// The time in the tool, of all calls that it began, in milliseconds.
    #[serde(default)]
    pub total_ms: f64,
    /// The mean of that.
    #[serde(default)]
    pub mean_ms: Option<f64>,
    /// When a call ended last, in milliseconds since 1970.
    #[serde(default)]
    pub last_ms: Option<u64>,
    /// How long calls have waited in the queue, in milliseconds.
    pub queue_ms: f64,
    /// Calls that waited for a worker to start.
    pub cold_starts: u64,
    /// Calls that run now.
    pub active: usize,
    /// Calls that wait now.
    pub queued: usize,
    /// The memory of the workers of its file in bytes, which the file's other tools share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
    /// The time in the tool.
    #[serde(skip)]
    pub(super) times: Times,
}

impl ToolMetrics {
    /// Its calls that have ended, run or wait.
    pub fn calls(&self) -> u64 {
        self.executions + (self.active + self.queued) as u64
    }

    /// Whether it was called, or is.
    pub fn is_called(&self) -> bool {
        self.calls() > 0
    }
}

/// A histogram of times.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Times {
    pub count: u64,
    /// In seconds.
    pub sum: f64,
    /// By the smallest bound that is not exceeded; the last has none.
    pub buckets: [u64; BOUNDS.len() + 1],
}

impl Times {
    pub fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.sum += seconds;
        self.buckets[BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len())] += 1;
    }
}

/// The counters of one tool.
#[derive(Debug)]
pub(super) struct Meter {
    pub name: Arc<str>,
    /// Locked only to count or to copy.
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    succeeded: u64,
    failures: BTreeMap<&'static str, u64>,
    times: Times,
    queue_ms: f64,
    cold: u64,
    last_ms: Option<u64>,
}

impl Meter {
    fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: Arc::from(name), tally: Mutex::default() })
    }

    /// Counts a call that has ended now. `has_begun` says whether its tool ran it.
    pub fn record(&self, outcome: &Outcome, has_begun: bool, now_ms: u64) {
        let metadata = &outcome.metadata;
        let mut tally = self.tally.lock();
        match &outcome.ended {
            Ok(_) => tally.succeeded += 1,
            Err(fault) => *tally.failures.entry(fault.code.word()).or_default() += 1,
        }
        if has_begun {
            tally.times.add(metadata.run_ms / 1e3);
            // A process for each call is no start that calls wait for.
            tally.cold += u64::from(metadata.cold && metadata.start_ms > 0.0);
        }
        tally.queue_ms += metadata.queue_ms;
        tally.last_ms = Some(now_ms);
    }

    pub fn metrics(&self) -> ToolMetrics {
        let tally = self.tally.lock();
        let all: u64 = tally.failures.values().sum();
        let cancelled = tally.failures.get(Code::Cancelled.word()).copied().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean_ms = (tally.times.count > 0).then(|| tally.times.sum * 1e3 / tally.times.count as f64);
        ToolMetrics {
            tool: self.name.to_string(),
            executions: tally.succeeded + all,
            succeeded: tally.succeeded,
            failed: all - cancelled,
            cancelled,
            failures: tally.failures.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect(),
            total_ms: tally.times.sum * 1e3,
            mean_ms,
            last_ms: tally.last_ms,
            queue_ms: tally.queue_ms,
            cold_starts: tally.cold,
            active: 0,
            queued: 0,
            memory: None,
            times: tally.times,
        }
    }
}

/// The counters of all tools that were called.
#[derive(Debug)]
pub(super) struct Meters {
    /// Locked only to look up, to add or to copy.
    tools: Mutex<HashMap<Arc<str>, Arc<Meter>>>,
    others: Arc<Meter>,
    pub unknown: Arc<Meter>,
}

impl Default for Meters {
    fn default() -> Self {
        Self { tools: Mutex::default(), others: Meter::new(OTHERS), unknown: Meter::new(UNKNOWN) }
    }
}

impl Meters {
    /// The counters of a tool.
    pub fn of(&self, tool: &str) -> Arc<Meter> {
        let mut tools = self.tools.lock();
        if let Some(meter) = tools.get(tool) {
            return Arc::clone(meter);
        }
        if tools.len() == MOST_TOOLS {
            return Arc::clone(&self.others);
        }
        let meter = Meter::new(tool);
        tools.insert(Arc::clone(&meter.name), Arc::clone(&meter));
        meter
    }

    /// Of every tool that was called, by name.
    pub fn all(&self) -> BTreeMap<String, ToolMetrics> {
        let tools: Vec<Arc<Meter>> = self.tools.lock().values().cloned().collect();
        let rest = [&self.others, &self.unknown].map(|meter| meter.metrics());
        let rest = rest.into_iter().filter(|metrics| metrics.executions > 0);
        tools.iter().map(|meter| meter.metrics()).chain(rest).map(|metrics| (metrics.tool.clone(), metrics)).collect()
    }
}

/// The counts of all tools together, and of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllMetrics {
    /// Ended calls.
    pub total_executions: u64,
    /// Those with a result.
    pub successful_executions: u64,
    /// Those without one, except cancelled ones.
    pub failed_executions: u64,
    /// Cancelled ones.
    pub cancelled_executions: u64,
    /// The mean time in the tool, in milliseconds; 0 before the first call.
    pub average_execution_time: f64,
    /// Calls that run now.
    pub active_tools: usize,
    /// Calls that wait now.
    pub queued_tools: usize,
    /// Every tool.
    pub tools: Vec<ToolMetrics>,
}

impl AllMetrics {
    /// Adds up the metrics of these tools.
    pub fn of(tools: Vec<ToolMetrics>) -> Self {
        let mut all = Self::default();
        let (mut count, mut sum) = (0, 0.0);
        for tool in &tools {
            all.total_executions += tool.executions;
            all.successful_executions += tool.succeeded;
            all.failed_executions += tool.failed;
            all.cancelled_executions += tool.cancelled;
            all.active_tools += tool.active;
            all.queued_tools += tool.queued;
            count += tool.times.count;
            sum += tool.times.sum;
        }
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean = if count == 0 { 0.0 } else { sum * 1e3 / count as f64 };
        Self { average_execution_time: mean, tools, ..all }
    }
}
