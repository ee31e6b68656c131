//! The limits of one pool.

use std::time::Duration;

/// The pool's limits.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Workers that start with the first call and stay.
    pub min_workers: usize,
    /// Workers that take calls at once. Each may have a draining predecessor.
    pub max_workers: usize,
    /// Calls that a worker runs at once.
    pub concurrency: usize,
    /// Calls queued at once, not counting those written to a worker.
    pub max_queue: usize,
    /// Calls that an only worker for one call at a time may hold, including the running one. With several workers
    /// nothing is written ahead: a call written to one worker cannot move to another.
    pub write_ahead: usize,
    /// How long a call waits before another worker is started for it.
    pub grow_after: Duration,
    /// How long a worker must be idle before it is evicted for another worker of a different tool.
    pub spare_after: Duration,
    /// How long a worker with a stuck call may take to answer a ping.
    pub ping_grace: Duration,
    /// How long an idle worker stays; `None` means forever.
    pub idle: Option<Duration>,
    /// A worker is replaced after this many calls.
    pub max_calls: Option<u64>,
    /// A worker is replaced after this time.
    pub max_lifetime: Option<Duration>,
    /// A worker is replaced if it holds more bytes than this after a call.
    pub max_rss: Option<usize>,
    /// How long a stuck worker has to print its stack.
    pub stack_grace: Duration,
    /// How long an interrupted call has to end.
    pub cancel_grace: Duration,
    /// The interval at which the interruption is repeated.
    pub nudge_every: Duration,
    /// The pause after the second failed start in a row, doubled after each further one. After the first, the next call
    /// retries at once.
    pub first_pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// The pause after the second death in a row, doubled after each further one.
    pub first_rest: Duration,
    /// Calls are refused for a while after this many deaths in a row without an answer.
    pub breaker: u32,
    /// A worker that served for this long does not count with the deaths before it.
    pub steady: Duration,
    /// Varies the pauses between pools.
    pub seed: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            min_workers: 0,
            max_workers: 1,
            concurrency: 1,
            max_queue: 256,
            write_ahead: 8,
            grow_after: Duration::from_millis(25),
            spare_after: Duration::from_secs(1),
            ping_grace: Duration::from_secs(2),
            idle: Some(Duration::from_mins(10)),
            max_calls: None,
            max_lifetime: None,
            max_rss: None,
            stack_grace: Duration::from_millis(150),
            cancel_grace: Duration::from_millis(500),
            nudge_every: Duration::from_millis(100),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            first_rest: Duration::from_millis(100),
            breaker: 5,
            steady: Duration::from_mins(1),
            seed: 0,
        }
    }
}
