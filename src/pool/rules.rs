//! The limits of one pool.

use std::time::Duration;

/// The pool's limits.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Workers that are there from the first call of anything on, and stay.
    pub min_workers: usize,
    /// Workers that take calls at once. Each may have a predecessor that makes its last ones.
    pub max_workers: usize,
    /// Calls a worker runs at once.
    pub concurrency: usize,
    /// Calls waiting at once (those written to a worker not counted).
    pub max_queue: usize,
    /// Calls an only worker may hold that runs one at a time, the running one included. Where there may be several,
    /// nothing is written ahead: a call that waits behind another in one worker cannot go to the next.
    pub write_ahead: usize,
    /// How long a call waits before another worker is started for it.
    pub grow_after: Duration,
    /// How long a worker must have been idle to leave for one more of another tool.
    pub spare_after: Duration,
    /// How long a worker with a call that obeys nothing may take to show that its others get on.
    pub ping_grace: Duration,
    /// How long an idle worker stays; for ever when none.
    pub idle: Option<Duration>,
    /// A worker that made this many calls is replaced.
    pub max_calls: Option<u64>,
    /// One that served for so long is replaced.
    pub max_lifetime: Option<Duration>,
    /// One that holds more bytes than this after a call is replaced.
    pub max_rss: Option<usize>,
    /// How long a stuck worker has to print its stack.
    pub stack_grace: Duration,
    /// How long an interrupted call has to end.
    pub cancel_grace: Duration,
    /// How often the interruption is repeated meanwhile.
    pub nudge_every: Duration,
    /// How long no start is tried after the second failure in a row; twice as long after each further one. After the
    /// first the next call tries again at once.
    pub first_pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// How long no worker is started after the second death in a row; twice as long after each further one.
    pub first_rest: Duration,
    /// So many deaths in a row, without one answer between them, and calls are refused for a while.
    pub breaker: u32,
    /// A worker that served for so long did not die of what killed the one before.
    pub steady: Duration,
    /// Pauses of different pools differ by it.
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
