//! What a process and everything below it use of memory and processor time, looked at ten times a second against limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::table::{processor_time_below, resident, thread_times};
use crate::outcome::Missing;

/// How much a process and everything below it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageLimits {
    /// Resident memory, in bytes.
    pub memory: Option<usize>,
    /// Processor time of a call.
    pub processor: Option<Duration>,
}

/// More than a limit allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// Of memory, in bytes.
    Memory {
        /// What it held.
        held: usize,
        /// The limit.
        limit: usize,
    },
    /// Of processor time.
    Processor {
        /// What a call used.
        used: Duration,
        /// The limit.
        limit: Duration,
    },
}

impl Excess {
    /// It as the middle of a sentence about a tool: `held 300 MB of memory and its limit is 256 MB`.
    pub fn said(self) -> String {
        match self {
            Self::Memory { held, limit } => {
                format!("held {} MB of memory and its limit is {} MB", held / 1_000_000, limit / 1_000_000)
            }
            Self::Processor { used, limit } => {
                let limit = humantime::format_duration(limit);
                format!("used {:.1}s of processor time and its limit is {limit}", used.as_secs_f64())
            }
        }
    }
}

impl From<Excess> for Missing {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Memory { .. } => Self::Memory,
            Excess::Processor { .. } => Self::ProcessorTime,
        }
    }
}

/// How many calls a process was sent, and how many it has answered.
#[derive(Debug, Default)]
pub struct CallCount {
    sent: AtomicU64,
    answered: AtomicU64,
}

impl CallCount {
    /// The only call of a process.
    pub fn of_one() -> Arc<Self> {
        let count = Arc::new(Self::default());
        count.sends();
        count
    }

    /// It is sent a call.
    pub fn sends(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// It has answered one.
    pub fn has_answer(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// How many are answered, if one is not.
    fn running(&self) -> Option<u64> {
        let answered = self.answered.load(Ordering::Relaxed);
        (self.sent.load(Ordering::Relaxed) > answered).then_some(answered)
    }
}

/// The time between two looks. A tool fills about a gigabyte of memory in a second.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until a process exceeds a limit; forever without one. Where it runs `at_once` more than one call, the processor time of each is
/// that of its thread, which has the call's name.
pub async fn exceeded(pid: u32, limits: UsageLimits, calls: Arc<CallCount>, at_once: usize) -> Excess {
    if limits == UsageLimits::default() {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut one, mut several) = (OneCall::default(), SeveralCalls::default());
    loop {
        ticks.tick().await;
        if let Some(limit) = limits.memory
            && let Some(held) = resident(pid).filter(|held| *held > limit)
        {
            return Excess::Memory { held, limit };
        }
        let Some(limit) = limits.processor else { continue };
        let used = match (at_once, calls.running()) {
            (1, None) => {
                one = OneCall::default();
                continue;
            }
            (1, Some(answered)) => processor_time_below(pid).map(|time| one.used(answered, time)),
            (_, None) => continue,
            (_, Some(_)) => several.most_used(thread_times(pid, THREAD)),
        };
        if let Some(used) = used.filter(|used| *used > limit) {
            return Excess::Processor { used, limit };
        }
    }
}

/// How the names of threads begin that run a call.
const THREAD: &str = "call:";

/// The processor time of a process that runs one call at a time. A call begins where the one before it was answered.
#[derive(Debug, Default)]
struct OneCall(Option<(u64, Duration)>);

impl OneCall {
    /// What the running call has used since it was first seen, with `answered` calls before it and this time of the process.
    fn used(&mut self, answered: u64, time: Duration) -> Duration {
        match self.0 {
            Some((before, begin)) if before == answered => time.saturating_sub(begin),
            _ => {
                self.0 = Some((answered, time));
                Duration::ZERO
            }
        }
    }
}

/// The processor time of the threads of calls, by their names.
#[derive(Debug, Default)]
struct SeveralCalls(HashMap<String, Duration>);

impl SeveralCalls {
    /// The most that one of them has used since it was first seen. A thread runs one call after the other.
    fn most_used(&mut self, threads: Vec<(String, Duration)>) -> Option<Duration> {
        self.0.retain(|name, _| threads.iter().any(|(running, _)| running == name));
        let used = |(name, time): (String, Duration)| time.saturating_sub(*self.0.entry(name).or_insert(time));
        threads.into_iter().map(used).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_call_begins_at_nothing() {
        let mut one = OneCall::default();
        let used: Vec<u64> = [(0, 7), (0, 9), (1, 10), (1, 14), (3, 15)]
            .map(|(answered, time)| one.used(answered, SECOND * time).as_secs())
            .into();
        assert_eq!(used, [0, 2, 0, 4, 0]);
    }

    #[test]
    fn a_thread_counts_from_the_beginning_of_its_call() {
        let mut several = SeveralCalls::default();
        let mut most = |threads: &[(&str, u32)]| {
            let threads = threads.iter().map(|(name, time)| ((*name).to_owned(), SECOND * *time)).collect();
            several.most_used(threads).map(|used| used.as_secs())
        };
        assert_eq!(most(&[("call:1", 5), ("call:2", 0)]), Some(0));
        assert_eq!(most(&[("call:1", 6), ("call:2", 3)]), Some(3));
        assert_eq!(most(&[("call:3", 9), ("call:2", 4)]), Some(4), "the first thread runs another call");
        assert_eq!(most(&[]), None);
    }

    #[test]
    fn a_call_runs_until_it_is_answered() {
        let calls = CallCount::default();
        assert_eq!(calls.running(), None);
        calls.sends();
        calls.sends();
        calls.has_answer();
        assert_eq!(calls.running(), Some(1));
        calls.has_answer();
        assert_eq!(calls.running(), None);
    }
}
