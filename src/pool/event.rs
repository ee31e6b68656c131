//! Everything that goes into the pool's state machine and everything that comes out of it.

use std::time::Duration;

/// Time as the machine knows it: how long since an epoch of the driver's choosing.
pub type Moment = Duration;

/// A call, for as long as the pool knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A worker. Never used twice, so late events of a dead worker cannot touch its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Somebody wants a call made.
    Submit(CallSpec),
    /// The caller wants it no more.
    Cancel(CallId),
    /// A worker said hello.
    Ready(WorkerId),
    /// A worker did not come to task.
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
    Died {
        /// The worker.
        worker: WorkerId,
        /// Whether its call would die again: it was stopped at a limit.
        of_a_limit: bool,
    },
    /// A worker that was pinged is not held up.
    Pong(WorkerId),
    /// What a worker holds, in bytes.
    Measured {
        /// The worker.
        worker: WorkerId,
        /// Its memory, in bytes.
        held: usize,
    },
    /// Others need what the worker takes up: let it go if it is idle.
    Evict(WorkerId, Need),
    /// Something that was waited for may be there.
    Look,
    /// Have as many workers as there should always be.
    Warm,
    /// Time has passed; `Machine::next_timer` said when to come.
    Timer,
    /// Take no more calls, finish those there are, then leave.
    Close,
    /// Answer everything that is left and kill.
    End,
}

/// What all pools together have too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A place for another pool's worker.
    WorkerPermit,
    /// Memory: all workers together hold more than they may.
    Memory,
}

/// A call that somebody wants made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSpec {
    /// The call.
    pub call: CallId,
    /// How long it may run, from the moment its worker begins it.
    pub timeout: Duration,
    /// Whether it may be made a second time should its worker die of it.
    pub repeatable: bool,
    /// Whether a running call waits for it: it takes no permit of its own and goes before the others.
    pub nested: bool,
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
    /// Ask the worker where it is in a call.
    TakeStack {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
    },
    /// Ask the worker for a sign of task; what answers is what begins its calls.
    Ping(WorkerId),
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
    /// Log what was decided and why.
    Tell(Decision),
    /// The pool was closed and nothing is left in it.
    Empty,
}

/// A decision of the machine, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A worker is started.
    Start(WorkerId, WhyStart),
    /// A worker is to leave.
    Stop(WorkerId, WhyStop),
    /// A worker has reached a limit of its task; a successor is started first, where there is a worker permit for one.
    Recycle(WorkerId, WhyStop),
    /// Workers died in a row: none is started for a while.
    Rest {
        /// How many.
        deaths: u32,
        /// For how long.
        pause: Duration,
    },
    /// So many died that calls are refused for a while.
    Refuse {
        /// How many.
        deaths: u32,
        /// For how long.
        pause: Duration,
    },
    /// The while is over: the next call is tried alone.
    Try,
    /// The trial went well.
    Recovered,
    /// A call is made again, since it does no harm.
    Repeat(CallId),
    /// Workers of this file hold more than one may, already before their first call.
    BeginsLarge {
        /// The worker that was seen to.
        worker: WorkerId,
        /// Its memory, in bytes.
        held: usize,
    },
    /// A worker was wanted and all worker permits are taken.
    NoWorkerPermit,
}

/// Why a worker is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyStart {
    /// A call waits and no worker is there.
    Call,
    /// Calls wait longer than they should.
    Queue {
        /// How many.
        waiting: usize,
    },
    /// There should always be some.
    Minimum,
    /// Another is about to leave.
    Successor(WorkerId),
}

/// Why a worker leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyStop {
    /// Nobody called for long enough.
    Idle,
    /// All together need what it takes up.
    Evicted(Need),
    /// It made as many calls as it may.
    Calls,
    /// It lived as long as it may.
    Lifetime,
    /// It holds more memory than it should after a call.
    Memory,
    /// A call of it obeys no interruption.
    Stuck,
    /// The pool is closing.
    Closing,
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
    /// Its worker was stopped because of a call beside it.
    HeldUp,
    /// The caller withdrew it.
    Cancelled,
    /// Too many calls wait already.
    Busy {
        /// How many wait, for this pool or for all.
        waiting: usize,
        /// Whether that is the limit of all pools together.
        overall: bool,
        /// When a place is likely free.
        retry_after: Duration,
    },
    /// So many workers died in a row that none is tried for a while.
    Broken {
        /// How many.
        times: u32,
        /// When one is tried again.
        retry_after: Duration,
    },
    /// The pool is closing.
    ShuttingDown,
}
