//! What a loop tells about itself: its decisions to the log, its state to whoever asks.

use super::actor::{Actor, Held};
use super::event::{Decision, Need, WhyStart, WhyStop};
use super::machine::{Resting, WorkerView};
use super::tally::{PoolStatus, WorkerStatus};
use crate::process::{processor_time, resident};

impl Actor {
    /// How the pool stands.
    pub(super) fn status(&self) -> PoolStatus {
        let view = self.machine.view(self.now());
        let workers = view.workers.iter().map(|view| self.worker_status(view)).collect();
        self.tally.status(workers, view.waiting, view.resting.map(|resting| words(&resting)))
    }

    fn worker_status(&self, view: &WorkerView) -> WorkerStatus {
        let pid = self.workers.get(&view.worker).and_then(Held::pid);
        let running = self.machine.begun(view.worker).filter_map(|call| self.calls.get(&call));
        let running: Vec<&str> = running.map(|open| open.job.function.as_str()).collect();
        WorkerStatus {
            state: view.state.word(),
            pid,
            uptime_s: view.uptime.as_secs(),
            calls: view.calls,
            running: (!running.is_empty()).then(|| running.join(", ")),
            holds: view.holds,
            cpu_s: pid.and_then(processor_time),
            rss: pid.and_then(resident),
        }
    }

    /// Every decision of the machine is told with its reason.
    pub(super) fn tell(&mut self, decision: Decision) {
        let file = self.file.display();
        match decision {
            Decision::Start(_, why) => tracing::info!(%file, why = start_reason(why), "starting a worker"),
            Decision::Stop(_, why) => {
                tracing::info!(%file, why = stop_reason(why), "a worker leaves");
                self.why_stop = Some(stop_reason(why));
            }
            Decision::Recycle(_, why) => tracing::info!(%file, why = stop_reason(why), "a worker is to be replaced"),
            Decision::Rest { deaths, pause } => {
                tracing::warn!(%file, deaths, ?pause, "workers died in a row; the next one waits a little");
            }
            Decision::Refuse { deaths, pause } => {
                tracing::warn!(%file, deaths, ?pause, "workers died in a row; calls are refused for a while");
            }
            Decision::Try => tracing::info!(%file, "trying one call after workers died in a row"),
            Decision::Recovered => tracing::info!(%file, "a call was answered again"),
            Decision::Repeat(call) => {
                let call = self.calls.get(&call).map(|open| open.job.call_id.as_str());
                tracing::info!(%file, call, "a call whose worker died is made once more: it does no harm");
            }
            Decision::BeginsLarge { worker, held } => {
                let pid = self.workers.get(&worker).and_then(Held::pid);
                tracing::warn!(%file, pid, held, "{BEGINS_LARGE}");
            }
            Decision::NoSeat => {
                tracing::info!(%file, "a worker is wanted and as many are alive as may be; waiting for one to leave");
            }
        }
    }
}

const BEGINS_LARGE: &str = "a worker holds more than max_rss says before its first call, so each is replaced after a call: raise max_rss, or let the file import less";

fn start_reason(why: WhyStart) -> &'static str {
    match why {
        WhyStart::Call => "a call waits and none is there",
        WhyStart::Queue { .. } => "calls wait longer than they should",
        WhyStart::Minimum => "min_workers",
        WhyStart::Successor(_) => "another is about to leave",
    }
}

fn stop_reason(why: WhyStop) -> &'static str {
    match why {
        WhyStop::Idle => "nobody called for as long as idle_timeout says",
        WhyStop::Evicted(Need::Seat) => "another tool needed its place",
        WhyStop::Evicted(Need::Memory) => "all workers together held more than max_memory under [limits] says",
        WhyStop::Calls => "it made as many calls as max_calls says",
        WhyStop::Lifetime => "it lived as long as max_lifetime says",
        WhyStop::Memory => "it held more memory than max_rss says",
        WhyStop::Stuck => "a call did not end",
        WhyStop::Closing => "no more calls come",
    }
}

fn words(resting: &Resting) -> String {
    let Resting { failures, deaths, left, refuses } = *resting;
    let left = left.as_millis();
    let (many, what) = if failures > 0 { (failures, "starts failed") } else { (deaths, "workers died") };
    let until = if refuses || failures > 0 { "calls are refused" } else { "calls wait" };
    format!("{many} {what} in a row; {until} for another {left} ms")
}

impl Held {
    /// The process id of a worker that has said hello.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Starting(_) => None,
            Self::Live(handle) => Some(handle.pid),
            Self::Leaving(pid, ..) => Some(*pid),
        }
    }

    /// Why it was told to go.
    pub(super) fn why(&self) -> Option<&'static str> {
        match self {
            Self::Leaving(_, why, _) => Some(why),
            _ => None,
        }
    }
}
