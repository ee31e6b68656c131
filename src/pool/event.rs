//! Everything that goes into the pool's state machine and everything that comes out of it.

use std::time::Duration;

/// Time as the machine knows it: how long since an epoch of the driver's choosing.
pub type Moment = Duration;

/// A call, for as long as the pool knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A worker. Never used twice, so late news of a dead worker cannot touch its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Somebody wants a call made.
    Submit {
        /// The call.
        call: CallId,
        /// How long it may run, from the moment it is the worker's first.
        timeout: Duration,
    },
    /// The caller wants it no more.
    Cancel(CallId),
    /// A worker said hello.
    Ready(WorkerId),
    /// A worker did not come to life.
    StartFailed {
        /// The worker.
        worker: WorkerId,
        /// Whether the file itself is why, so that the next start will most likely fail too.
        by_itself: bool,
    },
    /// A worker answered a call.
    Answered {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
        /// Whether the answer is that the call was cancelled.
        cancelled: bool,
    },
    /// A worker's process is gone.
    Died(WorkerId),
    /// Time has passed; [`super::Machine::next_timer`] said when to come.
    Timer,
    /// Take no more calls, finish those there are, then leave.
    Close,
    /// Answer everything that is left and kill.
    End,
}

/// What the driver is to do, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Start a worker under this id.
    Start(WorkerId),
    /// Write the call to the worker.
    Send {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
    },
    /// Tell the worker never to begin a call it holds.
    Withdraw {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
    },
    /// Interrupt the call the worker is running.
    Interrupt {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
    },
    /// Make the worker look at its input again: a signal that came just before a system call interrupts nothing.
    Nudge(WorkerId),
    /// Ask the worker where it is.
    TakeStack(WorkerId),
    /// End the worker.
    Stop {
        /// The worker.
        worker: WorkerId,
        /// How.
        manner: Manner,
    },
    /// Answer the caller. Every submitted call gets exactly one.
    Finish {
        /// The call.
        call: CallId,
        /// How it ended.
        verdict: Verdict,
    },
    /// The pool was closed and nothing is left in it.
    Empty,
}

/// How a worker is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It is not needed: let it finish its exit handlers.
    Retire,
    /// It is stuck or in the way.
    Kill,
}

/// How a call ended, as far as the pool can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The worker answered.
    Answered(WorkerId),
    /// The worker died while it ran the call.
    Died(WorkerId),
    /// No worker could be started.
    StartFailed(WorkerId),
    /// Starts failed time and again, so that none is tried for a while.
    StillFailing {
        /// How many in a row.
        times: u32,
        /// When one is tried again.
        retry_after: Duration,
    },
    /// It ran past its time.
    TimedOut {
        /// The worker it ran in.
        worker: WorkerId,
        /// Whether the worker had to be stopped (it obeyed an interruption otherwise).
        stopped: bool,
    },
    /// The caller withdrew it.
    Cancelled,
    /// Too many calls wait already.
    Busy {
        /// How many wait.
        waiting: usize,
        /// When a place is likely free.
        retry_after: Duration,
    },
    /// The pool is closing.
    ShuttingDown,
}

/// The pool's limits.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Workers alive at once.
    pub max_workers: usize,
    /// Calls waiting at once (those written to a worker not counted).
    pub max_queue: usize,
    /// Calls a worker may hold, the running one included.
    pub write_ahead: usize,
    /// How long an idle worker stays; for ever when none.
    pub idle: Option<Duration>,
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
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_workers: 1,
            max_queue: 256,
            write_ahead: 8,
            idle: Some(Duration::from_mins(10)),
            stack_grace: Duration::from_millis(150),
            cancel_grace: Duration::from_millis(500),
            nudge_every: Duration::from_millis(100),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
        }
    }
}
