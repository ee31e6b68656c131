//! What a process and everything below it use of memory and processor time, looked at ten times a second against limits.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::table::{Children, NamedThread, processor_time_below, resident, thread_times};
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
    /// The ids of those that it has not answered, where several run at once. Locked only to change or copy it.
    open: Option<Mutex<BTreeSet<u64>>>,
}

impl CallCount {
    /// The only call of a process.
    pub fn of_one() -> Arc<Self> {
        let count = Arc::new(Self::default());
        count.record_sent(0);
        count
    }

    /// None so far; with `at_once` more than one, their ids are known as well.
    pub fn new(at_once: usize) -> Self {
        Self { open: (at_once > 1).then(Mutex::default), ..Self::default() }
    }

    /// It was sent a call.
    pub fn record_sent(&self, id: u64) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        if let Some(open) = &self.open {
            open.lock().insert(id);
        }
    }

    /// It has answered one that it held.
    pub fn record_answer(&self, id: u64) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.close(id);
    }

    /// Whether it has answered any.
    pub fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed) > 0
    }

    /// It gave one back that it had not begun.
    pub fn record_return(&self, id: u64) {
        self.sent.fetch_sub(1, Ordering::Relaxed);
        self.close(id);
    }

    fn close(&self, id: u64) {
        if let Some(open) = &self.open {
            open.lock().remove(&id);
        }
    }

    /// Whether a call is not answered.
    fn is_open(&self, id: u64) -> bool {
        self.open.as_ref().is_some_and(|open| open.lock().contains(&id))
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
            (1, Some(answered)) => one.used(answered, |count| processor_time_below(pid, count)),
            (_, None) => continue,
            (_, Some(_)) => several.most_used(thread_times(pid), |id| calls.is_open(id)),
        };
        if let Some(used) = used.filter(|used| *used > limit) {
            return Excess::Processor { used, limit };
        }
    }
}

/// The processor time of a process that runs one call at a time. A call begins where the one before it was answered.
#[derive(Debug, Default)]
struct OneCall(Option<(u64, Duration)>);

impl OneCall {
    /// What the running call has used since it was first seen, with `answered` calls before it and this time of the process. What may be
    /// counted twice or not at all, because a child ends meanwhile, is in favour of the call.
    fn used(&mut self, answered: u64, time: impl FnOnce(Children) -> Option<Duration>) -> Option<Duration> {
        match self.0 {
            Some((before, begin)) if before == answered => Some(time(Children::Last)?.saturating_sub(begin)),
            _ => {
                self.0 = Some((answered, time(Children::First)?));
                Some(Duration::ZERO)
            }
        }
    }
}

/// The processor time of the threads of calls, by thread and name, since each was first seen.
#[derive(Debug, Default)]
struct SeveralCalls(HashMap<NamedThread, Duration>);

impl SeveralCalls {
    /// The most that an open call has used. A thread runs one call after the other, and threads that a call starts have its name, also
    /// once it has ended.
    fn most_used(&mut self, threads: Vec<(NamedThread, Duration)>, is_open: impl Fn(u64) -> bool) -> Option<Duration> {
        let mut used: HashMap<u64, Duration> = HashMap::new();
        let mut seen = HashMap::new();
        for (thread, time) in threads {
            let Some(call) = thread.call().filter(|call| is_open(*call)) else { continue };
            let begin = self.0.get(&thread).copied().unwrap_or(time);
            *used.entry(call).or_default() += time.saturating_sub(begin);
            seen.insert(thread, begin);
        }
        self.0 = seen;
        used.into_values().max()
    }
}

impl NamedThread {
    /// The call that its name says it runs.
    fn call(&self) -> Option<u64> {
        self.name.strip_prefix("call:")?.parse().ok()
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
            .map(|(answered, time)| one.used(answered, |_| Some(SECOND * time)).unwrap().as_secs())
            .into();
        assert_eq!(used, [0, 2, 0, 4, 0]);
    }

    #[test]
    fn a_thread_counts_from_the_beginning_of_its_call() {
        let mut several = SeveralCalls::default();
        let mut most = |threads: &[(u32, &str, u32)], open: &[u64]| {
            let time = |(thread, name, time): &(u32, &str, u32)| {
                (NamedThread { thread: *thread, name: (*name).to_owned() }, SECOND * *time)
            };
            several.most_used(threads.iter().map(time).collect(), |id| open.contains(&id)).map(|used| used.as_secs())
        };
        assert_eq!(most(&[(1, "call:1", 5), (2, "call:2", 0)], &[1, 2]), Some(0));
        assert_eq!(most(&[(1, "call:1", 6), (2, "call:2", 3)], &[1, 2]), Some(3));
        assert_eq!(most(&[(1, "call:3", 9), (2, "call:2", 4)], &[2, 3]), Some(4), "the first thread runs another call");
        assert_eq!(most(&[(2, "call:2", 5), (3, "call:2", 0)], &[2]), Some(5), "a thread that it has started");
        assert_eq!(most(&[(2, "call:2", 6), (3, "call:2", 3)], &[2]), Some(9), "counts with it");
        assert_eq!(most(&[(3, "call:2", 60), (2, "call:4", 8)], &[4]), Some(0), "but not once it has ended");
        assert_eq!(most(&[(1, "python", 99)], &[4]), None);
    }

    #[test]
    fn a_call_runs_until_it_is_answered() {
        let calls = CallCount::default();
        assert_eq!(calls.running(), None);
        calls.record_sent(0);
        calls.record_sent(0);
        calls.record_answer(0);
        assert_eq!(calls.running(), Some(1));
        calls.record_sent(0);
        calls.record_return(0);
        assert_eq!(calls.running(), Some(1), "the call that runs goes on");
        calls.record_answer(0);
        assert_eq!(calls.running(), None);
    }
}
