//! The machine's events and effects.

use std::time::Duration;

use super::job::SessionId;

/// Time as the machine knows it: the duration since an epoch that the driver chooses.
pub type Moment = Duration;

/// A call, as long as the pool knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A worker. Ids are never reused, so a late event of a dead worker cannot reach its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

/// An input of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A call was submitted.
    Submit(CallSpec),
    /// The caller cancelled it.
    Cancel(CallId),
    /// A worker said hello.
    Ready(WorkerId),
    /// A worker did not start.
    StartFailed {
        /// The worker.
        worker: WorkerId,
        /// Whether the file itself is the cause, so that the next start will probably fail too.
        by_itself: bool,
    },
    /// A worker answered a call.
    Answered {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
        /// Whether the answer says that the call was cancelled.
        cancelled: bool,
    },
    /// A begun call asks its client.
    Park {
        /// The call.
        call: CallId,
        /// Whether it only waits for a call that asks. The limit counts those that ask.
        is_outer: bool,
    },
    /// The client has answered the call's questions.
    Unpark(CallId),
    /// A worker returned a recalled call that it has not begun.
    Returned {
        /// The worker.
        worker: WorkerId,
        /// The call.
        call: CallId,
    },
    /// A worker whose calls cannot be interrupted was asked to exit instead.
    Ends(WorkerId),
    /// A worker's process has exited.
    Died {
        /// The worker.
        worker: WorkerId,
        /// Whether a repeated call would die again: the worker was stopped at a limit.
        of_a_limit: bool,
    },
    /// A worker answered a ping.
    Pong(WorkerId),
    /// A worker's memory was measured.
    Measured { worker: WorkerId, held: usize },
    /// Another pool needs the worker's resources: stop it if it is idle.
    Evict(WorkerId, Need),
    /// A requested permit may be available.
    PermitReady,
    /// Start the minimum of workers, and keep it.
    Warm,
    /// Time has passed; `Machine::next_timer` gives the time of this event.
    Timer,
    /// Accept no more calls, finish the accepted ones, then stop the workers.
    Close,
    /// Answer all calls and kill the workers.
    End,
}

/// A resource that all pools share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A permit for another pool's worker.
    WorkerPermit,
    /// Memory: all workers together exceed the limit.
    Memory,
}

/// A submitted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSpec {
    /// The call.
    pub call: CallId,
    /// Whose it is.
    pub session: SessionId,
    /// Its time limit, counted from the moment its worker begins it.
    pub timeout: Duration,
    /// Whether it may be repeated if its worker dies during it.
    pub repeatable: bool,
    /// Whether a running call waits for it: it takes no run permit and goes before other calls.
    pub nested: bool,
    /// Whether it is only written to a worker that begins it at once: what was written may have begun, if hostler dies.
    pub begins_at_once: bool,
}

/// An output of the machine, to be carried out in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Start a worker with this id.
    Start(WorkerId),
    /// Write the call to the worker.
    Send { worker: WorkerId, call: CallId },
    /// Withdraw a call that the worker holds and has not begun.
    Withdraw { worker: WorkerId, call: CallId },
    /// Ask the worker to return a call that it has not begun.
    Recall { worker: WorkerId, call: CallId },
    /// Pass the client's answer to the call.
    Resume(CallId),
    /// Interrupt the call that the worker runs.
    Interrupt { worker: WorkerId, call: CallId },
    /// Make the worker read its input again: a signal just before a system call interrupts nothing.
    Nudge(WorkerId),
    /// Ask the worker for the stack of a call.
    TakeStack { worker: WorkerId, call: CallId },
    /// Ping the worker; the thread that begins its calls answers.
    Ping(WorkerId),
    /// Stop the worker.
    Stop { worker: WorkerId, mode: StopMode },
    /// Answer the caller, exactly once per submitted call.
    Finish { call: CallId, verdict: Verdict },
    /// Log a decision and its reason.
    Tell(Decision),
    /// The pool is closed and empty.
    Empty,
}

/// A decision of the machine, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A worker is started.
    Start(WorkerId, WhyStart),
    /// A worker is stopped.
    Stop(WorkerId, WhyStop),
    /// A worker has reached a limit. Its successor starts first, if a worker permit is free.
    Recycle(WorkerId, WhyStop),
    /// Workers died in a row: none is started for a while.
    Rest { deaths: u32, pause: Duration },
    /// Workers died so often in a row that calls are refused for a while.
    Refuse { deaths: u32, pause: Duration },
    /// The pause is over: the next call is tried alone.
    Try,
    /// The trial succeeded.
    Recovered,
    /// An idempotent call is repeated.
    Repeat(CallId),
    /// The file's workers exceed the memory limit before their first call.
    BeginsLarge { worker: WorkerId, held: usize },
    /// A worker is needed and all worker permits are taken.
    NoWorkerPermit,
}

/// Why a worker is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyStart {
    /// A call waits and there is no worker.
    Call,
    /// Calls wait too long.
    Queue { waiting: usize },
    /// The minimum of workers is not reached.
    Minimum,
    /// Its predecessor is about to stop.
    Successor(WorkerId),
}

/// Why a worker is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyStop {
    /// It was idle for the idle timeout.
    Idle,
    /// Another pool needs its resources.
    Evicted(Need),
    /// It has answered `max_calls` calls.
    Calls,
    /// It has reached `max_lifetime`.
    Lifetime,
    /// It exceeds `max_rss` after a call.
    Memory,
    /// One of its calls ignored the interruption.
    Stuck,
    /// Its call was interrupted, for which it had to be stopped.
    Interrupted,
    /// It was started while a call of another worker waited for its client, which goes on now.
    Surplus,
    /// The pool is closing.
    Closing,
}

/// How a worker is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Gracefully: its exit handlers run.
    Retire,
    /// Forcibly: it is stuck or its resources are needed now.
    Kill,
}

/// How a call ended, as far as the pool knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The worker answered.
    Answered(WorkerId),
    /// The worker died during the call.
    Died(WorkerId),
    /// No worker could be started.
    StartFailed(WorkerId),
    /// Starts failed repeatedly, so none is attempted for a while.
    StillFailing { times: u32, retry_after: Duration },
    /// It exceeded its time limit.
    TimedOut {
        /// Its worker.
        worker: WorkerId,
        /// Whether the worker was stopped; otherwise the call obeyed the interruption.
        stopped: bool,
    },
    /// Its worker was stopped because of another call.
    HeldUp,
    /// The caller cancelled it.
    Cancelled,
    /// The queue is full.
    Busy {
        /// Waiting calls, of this pool or of all.
        waiting: usize,
        /// Whether the limit of all tools together is reached.
        overall: bool,
        /// When capacity is likely free.
        retry_after: Duration,
    },
    /// Workers died so often in a row that none is started for a while.
    Broken { times: u32, retry_after: Duration },
    /// The pool is closing.
    ShuttingDown,
}
