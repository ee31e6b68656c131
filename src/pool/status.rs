//! The actor's reports: decisions to the log, status to callers.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::actor::{Actor, WorkerProcess};
use super::event::{Decision, Need, WhyStart, WhyStop};
use super::machine::{Resting, WorkerView};
use crate::outcome::milliseconds;
use crate::process::{processor_time, resident};

impl Actor {
    /// The pool's status.
    pub(super) fn status(&self) -> PoolStatus {
        let view = self.machine.view(self.now());
        let workers = view.workers.iter().map(|view| self.worker_status(view)).collect();
        self.tally.status(workers, view.waiting, view.resting.map(|resting| words(&resting)))
    }

    fn worker_status(&self, view: &WorkerView) -> WorkerStatus {
        let pid = self.workers.get(&view.worker).and_then(WorkerProcess::pid);
        let running = self.machine.begun(view.worker).filter_map(|call| self.calls.get(&call));
        let running: Vec<&str> = running.map(|open| open.job.function.as_str()).collect();
        WorkerStatus {
            state: view.state.word().into(),
            pid,
            uptime_s: view.uptime.as_secs(),
            calls: view.calls,
            running: (!running.is_empty()).then(|| running.join(", ")),
            holds: view.holds,
            cpu_s: pid.and_then(processor_time),
            rss: pid.and_then(resident),
        }
    }

    /// Logs a decision of the machine with its reason.
    pub(super) fn tell(&mut self, decision: Decision) {
        let file = self.file.display();
        match decision {
            Decision::Start(_, why) => tracing::info!(%file, why = start_reason(why), "starting a worker"),
            Decision::Stop(_, why) => {
                tracing::info!(%file, why = stop_reason(why), "stopping a worker");
                self.why_stop = Some(stop_reason(why));
            }
            Decision::Recycle(_, why) => tracing::info!(%file, why = stop_reason(why), "replacing a worker"),
            Decision::Rest { deaths, pause } => {
                tracing::warn!(%file, deaths, ?pause, "workers died in a row; the next start is delayed");
            }
            Decision::Refuse { deaths, pause } => {
                tracing::warn!(%file, deaths, ?pause, "workers died in a row; calls are refused for a while");
            }
            Decision::Try => tracing::info!(%file, "trying one call after workers died in a row"),
            Decision::Recovered => tracing::info!(%file, "calls are answered again"),
            Decision::Repeat(call) => {
                let call = self.calls.get(&call).map(|open| open.job.call_id.as_str());
                tracing::info!(%file, call, "repeating an idempotent call whose worker died");
            }
            Decision::BeginsLarge { worker, held } => {
                let pid = self.workers.get(&worker).and_then(WorkerProcess::pid);
                tracing::warn!(%file, pid, held, "{BEGINS_LARGE}");
            }
            Decision::NoWorkerPermit => {
                tracing::info!(%file, "a worker is needed and the limit is reached; waiting for one to exit");
            }
        }
    }
}

const BEGINS_LARGE: &str = "a worker exceeds max_rss before its first call, so each is replaced after a call: raise max_rss, or import less in the file";

fn start_reason(why: WhyStart) -> &'static str {
    match why {
        WhyStart::Call => "a call waits and there is no worker",
        WhyStart::Queue { .. } => "calls wait too long",
        WhyStart::Minimum => "min_workers",
        WhyStart::Successor(_) => "its predecessor is about to stop",
    }
}

fn stop_reason(why: WhyStop) -> &'static str {
    match why {
        WhyStop::Idle => "idle for idle_timeout",
        WhyStop::Evicted(Need::WorkerPermit) => "evicted for a worker of another tool",
        WhyStop::Evicted(Need::Memory) => "evicted: all workers together exceeded max_memory under [limits]",
        WhyStop::Calls => "reached max_calls",
        WhyStop::Lifetime => "reached max_lifetime",
        WhyStop::Memory => "exceeded max_rss",
        WhyStop::Stuck => "a call ignored its interruption",
        WhyStop::Interrupted => "its call was interrupted",
        WhyStop::Surplus => "more workers than max_workers after a parked call went on",
        WhyStop::Closing => "the pool is closing",
    }
}

fn words(resting: &Resting) -> String {
    let Resting { failures, deaths, left, refuses } = *resting;
    let left = left.as_millis();
    let (many, what) = if failures > 0 { (failures, "starts failed") } else { (deaths, "workers died") };
    let until = if refuses || failures > 0 { "calls are refused" } else { "calls wait" };
    format!("{many} {what} in a row; {until} for another {left} ms")
}

impl WorkerProcess {
    /// The process id of a worker that has said hello.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Starting(_) => None,
            Self::Live(handle) => Some(handle.pid),
            Self::Leaving(pid, ..) => Some(*pid),
        }
    }

    /// Why it was stopped.
    pub(super) fn why(&self) -> Option<&'static str> {
        match self {
            Self::Leaving(_, why, _) => Some(why),
            _ => None,
        }
    }
}

/// The number of recent runs in the percentiles.
const RECENT: usize = 256;

/// The status of a pool.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PoolStatus {
    /// Its workers, oldest first.
    pub workers: Vec<WorkerStatus>,
    /// Queued calls.
    pub waiting: usize,
    /// Calls that have ended.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// The median of recent runs, in milliseconds.
    pub p50_ms: Option<f64>,
    /// The 95th percentile of recent runs, in milliseconds.
    pub p95_ms: Option<f64>,
    /// Why no worker is started, during a pause.
    pub resting: Option<String>,
    /// How the last worker exited.
    pub last_exit: Option<LastExit>,
}

/// The status of one worker.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerStatus {
    /// `starting`, `idle`, `busy`, `draining` or `leaving`.
    pub state: Cow<'static, str>,
    /// The process id of its interpreter, once it has said hello.
    pub pid: Option<u32>,
    /// Seconds since its hello.
    pub uptime_s: u64,
    /// Calls it has answered.
    pub calls: u64,
    /// The function it runs.
    pub running: Option<String>,
    /// Calls it holds, including those not begun.
    pub holds: usize,
    /// Seconds of processor time it has used.
    pub cpu_s: Option<f64>,
    /// The memory of it and its children, in bytes.
    pub rss: Option<usize>,
}

/// How a worker exited.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastExit {
    /// Its process id.
    pub pid: u32,
    /// Its exit code or signal.
    pub how: String,
    /// Why hostler stopped it; `None` if it died by itself.
    pub why: Option<Cow<'static, str>>,
    /// Seconds since then.
    pub ago_s: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    calls: u64,
    failures: u64,
    runs: VecDeque<Duration>,
    last_exit: Option<(LastExit, Instant)>,
}

impl Tally {
    pub fn ended(&mut self, run: Option<Duration>, failed: bool) {
        self.calls += 1;
        self.failures += u64::from(failed);
        if let Some(run) = run {
            if self.runs.len() == RECENT {
                self.runs.pop_front();
            }
            self.runs.push_back(run);
        }
    }

    pub fn exited(&mut self, pid: u32, how: String, why: Option<&'static str>) {
        self.last_exit = Some((LastExit { pid, how, why: why.map(Cow::Borrowed), ago_s: 0 }, Instant::now()));
    }

    pub fn status(&self, workers: Vec<WorkerStatus>, waiting: usize, resting: Option<String>) -> PoolStatus {
        let mut runs: Vec<Duration> = self.runs.iter().copied().collect();
        runs.sort_unstable();
        let last_exit =
            self.last_exit.as_ref().map(|(exit, at)| LastExit { ago_s: at.elapsed().as_secs(), ..exit.clone() });
        PoolStatus {
            workers,
            waiting,
            calls: self.calls,
            failures: self.failures,
            p50_ms: share(&runs, 50).map(milliseconds),
            p95_ms: share(&runs, 95).map(milliseconds),
            resting,
            last_exit,
        }
    }
}

/// The smallest value that this percentage of the values does not exceed.
fn share(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let place = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_cover_recent_runs() {
        let mut tally = Tally::default();
        assert_eq!(tally.status(Vec::new(), 0, None).p50_ms, None);
        for milliseconds in 0..1000 {
            tally.ended(Some(Duration::from_millis(milliseconds)), milliseconds % 2 == 0);
        }
        tally.ended(None, true);
        let status = tally.status(Vec::new(), 0, None);
        assert_eq!((status.calls, status.failures), (1001, 501));
        assert_eq!((status.p50_ms, status.p95_ms), (Some(871.0), Some(987.0)));
    }
}
