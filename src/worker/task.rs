//! A worker's task after hello: it carries out orders, notices the death at once, and reads the remaining output.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::death::{Broke, Death};
use super::events::{Control, EventSender, WorkerEvent};
use super::stack::Stack;
use super::stderr::Tail;
use crate::process::{
    CallCount, Child, Excess, Exit, FirstInput, Grace, PipeEnd, Tracked, UsageLimits, exceeded, keeper, stop,
};
use crate::protocol::HelloReply;

/// How long a launcher may outlive its interpreter.
const LAUNCHER_GRACE: Duration = Duration::from_secs(1);
/// How long a process that left the group may keep a dead worker's pipes open.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long a launcher has to end what it has started elsewhere.
const TO_PASS_ON: Duration = Duration::from_millis(400);
/// How long a worker may live after closing its standard output.
const SILENT_GRACE: Duration = Duration::from_millis(500);

/// The signals that a worker handles. Any other would kill it or have side effects: Node starts a debugger on
/// `SIGUSR1`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signals {
    pub interruption: Interruption,
    /// It prints its stack on `SIGUSR2`.
    pub stack: bool,
}

impl Signals {
    /// A worker without signal handlers.
    pub const NONE: Self = Self { interruption: Interruption::End, stack: false };
}

/// How to interrupt a running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// By `SIGUSR1`, on which the worker reads its input.
    Nudge,
    /// Only by the `cancel` frame.
    Message,
    /// By stopping the worker with `SIGTERM`.
    End,
}

impl Interruption {
    /// For a worker that runs this many calls: with more than one, stopping it would end the others too.
    pub fn of(hello: &HelloReply, concurrency: usize) -> Self {
        if hello.is_nudged() { Self::Nudge } else { Self::of_unnudged(hello, concurrency) }
    }

    fn of_unnudged(hello: &HelloReply, concurrency: usize) -> Self {
        if hello.cancels() || concurrency > 1 { Self::Message } else { Self::End }
    }

    /// The same for one that gets no signals. One that reads its input on a signal alone does not see a message.
    pub fn without_signals(hello: &HelloReply, concurrency: usize) -> Self {
        if hello.is_nudged() && concurrency == 1 { Self::End } else { Self::of_unnudged(hello, concurrency) }
    }
}

/// What stands between hostler and a worker's interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// Nothing: it is the process that hostler started.
    Nothing,
    /// `uv run`.
    Uv,
    /// Another program that started it below itself.
    Launcher,
    /// A program that had it started elsewhere, as in a container, and has to end it.
    Elsewhere,
}

/// What lives as long as the process.
pub(super) struct WorkerTask {
    pub child: Child,
    pub interpreter: Tracked,
    /// What started it.
    pub between: Between,
    /// Whether it has no shim that tells of `os._exit`.
    pub is_bare: bool,
    pub signals: Signals,
    pub orders: mpsc::UnboundedReceiver<Control>,
    pub reader: JoinHandle<()>,
    pub stderr: JoinHandle<()>,
    pub events: EventSender,
    pub tail: Arc<Mutex<Tail>>,
    /// The stack that its interpreter printed as it died.
    pub stack: Arc<Mutex<Stack>>,
    /// How much it may use.
    pub limits: UsageLimits,
    /// How many calls it was sent and has answered.
    pub calls: Arc<CallCount>,
    /// How many it runs at once.
    pub concurrency: usize,
    /// Its standard input and output, if a launcher holds them open too.
    pub held: [Option<PipeEnd>; 2],
    /// Its standard input, while it may end before it reads its first call.
    pub first_input: Option<FirstInput>,
    /// Notified when it closed its standard input and there is something to read.
    pub deaf: Arc<Notify>,
    /// Notified when it has sent too many requests without reading the answers.
    pub overwhelmed: Arc<Notify>,
    /// Why it was stopped, if its end of the pipes was wrong.
    pub broke: Option<Broke>,
}

/// Waits until the interpreter has closed one of its pipes, which the launcher may still hold open.
async fn closed([input, output]: [Option<PipeEnd>; 2], interpreter: u32) {
    let one = async |end: Option<PipeEnd>| match end {
        Some(end) => end.closed_by(interpreter).await,
        None => std::future::pending().await,
    };
    tokio::select! {
        () = one(input) => {}
        () = one(output) => {}
    }
}

impl WorkerTask {
    /// Runs until the process is dead, then reports its death.
    pub(super) async fn live(mut self) {
        let (exit, excess) = self.within_limits().await;
        keeper::unless_over().await;
        self.child.clean_up();
        // A tool that called setsid has left the group and must not survive.
        self.interpreter.signal(Signal::KILL);
        let _ = timeout(LAST_WORDS, &mut self.reader).await;
        let _ = timeout(LAST_WORDS, &mut self.stderr).await;
        self.reader.abort();
        self.stderr.abort();
        let stderr = self.tail.lock().text();
        let stack = self.stack.lock().clone();
        let broke = self.broke;
        let peak_memory = self.child.peak_memory();
        // One that answers without reading has begun, too.
        let read_nothing = !self.calls.has_answered() && self.first_input.as_ref().is_some_and(FirstInput::is_unread);
        self.events.send(WorkerEvent::Died(Death {
            exit: self.real_exit(exit, &stack),
            status: exit.code().filter(|_| self.between != Between::Nothing && self.is_bare),
            stderr,
            stack,
            excess,
            peak_memory,
            broke,
            read_nothing,
        }));
    }

    /// The exit of the launched process, derived from the launcher's.
    fn real_exit(&self, exit: Exit, stack: &Stack) -> Exit {
        // The shim tells of `os._exit`, so the status is the tool's own.
        if self.between != Between::Nothing && !stack.tells_exit() { exit.behind_launcher() } else { exit }
    }

    /// Runs until death or until a limit is exceeded.
    async fn within_limits(&mut self) -> (Exit, Option<Excess>) {
        let calls = Arc::clone(&self.calls);
        // A program may say that another process is the one that runs its calls. Below `uv run`, uv itself does not count.
        let is_below = self.between == Between::Uv || self.concurrency > 1;
        let root = if is_below { self.interpreter.pid() } else { self.child.program() };
        let exceeded = exceeded(root, self.limits, calls, self.concurrency);
        let excess = tokio::select! {
            exit = self.until_death() => return (exit, None),
            excess = exceeded => excess,
        };
        (self.stop(Grace::NONE).await, Some(excess))
    }

    async fn until_death(&mut self) -> Exit {
        let (deaf, overwhelmed) = (Arc::clone(&self.deaf), Arc::clone(&self.overwhelmed));
        let closed = closed(self.held, self.interpreter.pid());
        tokio::pin!(closed);
        loop {
            tokio::select! {
                () = &mut closed => return self.silent().await,
                () = self.interpreter.died() => break,
                exit = self.child.exited() => return exit,
                _ = &mut self.reader => return self.silent().await,
                () = deaf.notified() => return self.silent().await,
                () = overwhelmed.notified() => {
                    self.broke = Some(Broke::TooManyRequests);
                    return self.stop(Grace::NONE).await;
                }
                order = self.orders.recv() => match order {
                    Some(Control::TakeStack { .. }) if !self.signals.stack => {}
                    Some(Control::TakeStack { call: None }) => self.interpreter.signal(Signal::USR2),
                    Some(Control::TakeStack { call: Some(call) }) => {
                        // The shim names its threads like this. A call on none of them is async, on the main thread.
                        self.interpreter.signal_thread(&format!("call:{call}"), Signal::USR2);
                    }
                    Some(Control::Interrupt) => self.interrupt(),
                    Some(Control::Stop(grace, writer)) => {
                        self.child.remember();
                        // It ends when it has read all of its input.
                        self.first_input = None;
                        if let Some(writer) = writer.filter(|_| !grace.to_leave.is_zero()) {
                            writer.shutdown();
                        }
                        return self.stop(grace).await;
                    }
                    None => return self.stop(Grace::NONE).await,
                },
            }
        }
        timeout(LAUNCHER_GRACE, self.child.exited()).await.unwrap_or(Exit::Unknown)
    }

    /// Interrupts the running call as far as this worker supports it. A second interruption of a stopping worker has no
    /// effect.
    fn interrupt(&mut self) {
        match self.signals.interruption {
            Interruption::Nudge => self.interpreter.signal(Signal::USR1),
            Interruption::End => {
                self.signals.interruption = Interruption::Message;
                self.child.signal_group(Signal::TERM);
            }
            Interruption::Message => {}
        }
    }

    /// Runs the kill ladder; a harsher order replaces it.
    async fn stop(&mut self, mut grace: Grace) -> Exit {
        if self.between == Between::Elsewhere {
            // If the launcher is killed, what it has started elsewhere goes on.
            grace.to_obey = grace.to_obey.max(TO_PASS_ON);
        }
        loop {
            tokio::select! {
                exit = stop(&mut self.child, grace) => return exit,
                Some(Control::Stop(harsher, _)) = self.orders.recv() => grace = harsher,
            }
        }
    }

    /// A worker without standard output can never answer again, and one without standard input gets no call.
    async fn silent(&mut self) -> Exit {
        // A finished task must not be awaited again.
        if self.reader.is_finished() {
            self.reader = tokio::spawn(async {});
        }
        if let Ok(exit) = timeout(SILENT_GRACE, self.child.exited()).await {
            return exit;
        }
        self.broke = Some(Broke::HungUp);
        self.stop(Grace::NONE).await
    }
}

/// The memory available to all processes in bytes: the machine's, or the container's limit.
pub(super) fn installed() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = machine.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    let total = total.trim().parse::<usize>().ok()?.checked_mul(1024)?;
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let most = container.and_then(|text| text.trim().parse::<usize>().ok());
    Some(most.map_or(total, |most| most.min(total)))
}
