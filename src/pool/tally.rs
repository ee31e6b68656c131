//! What a pool remembers of its calls and workers, for people who look.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::outcome::milliseconds;

/// So many runs are looked at for the usual times.
const RECENT: usize = 256;

/// A pool as it stands, for faces.
#[derive(Debug, Clone, Serialize)]
pub struct PoolStatus {
    /// Its workers, oldest first.
    pub workers: Vec<WorkerStatus>,
    /// Calls that no worker has yet.
    pub waiting: usize,
    /// Calls that ended.
    pub calls: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// Half of the recent runs took no longer, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Nineteen of twenty took no longer.
    pub p95_ms: Option<f64>,
    /// Why no worker is started, if none is.
    pub resting: Option<String>,
    /// How the last worker that left did so.
    pub last_exit: Option<LastExit>,
}

/// One worker of a pool.
#[derive(Debug, Clone, Serialize)]
pub struct WorkerStatus {
    /// `starting`, `idle`, `busy`, `draining` or `leaving`.
    pub state: &'static str,
    /// The process id of its interpreter, once that has said hello.
    pub pid: Option<u32>,
    /// Seconds since its hello.
    pub uptime_s: u64,
    /// Calls it has answered.
    pub calls: u64,
    /// The function it runs.
    pub running: Option<String>,
    /// Calls it holds, those not begun included.
    pub holds: usize,
    /// Seconds of processor time it has used.
    pub cpu_s: Option<f64>,
    /// What it and its children hold, in bytes.
    pub rss: Option<usize>,
}

/// How a worker left.
#[derive(Debug, Clone, Serialize)]
pub struct LastExit {
    /// Its process id.
    pub pid: u32,
    /// Its exit code or signal, in words.
    pub how: String,
    /// Why it was told to go; none when it died by itself.
    pub why: Option<&'static str>,
    /// Seconds ago.
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
        self.last_exit = Some((LastExit { pid, how, why, ago_s: 0 }, Instant::now()));
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

/// The least that so many percent do not exceed.
fn share(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let place = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_times_are_of_the_recent_runs() {
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
