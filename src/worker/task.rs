//! A worker's task after hello: orders come in, death is noticed at once, and the last words are read to the end.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::death::Death;
use super::events::{Control, EventSender, WorkerEvent};
use super::stack::Stack;
use super::stderr::Tail;
use crate::process::{Child, Exit, Grace, PipeEnd, Tracked, keeper, resident, stop};
use crate::protocol::HelloReply;

/// How long a launcher may outlive its interpreter.
const LAUNCHER_GRACE: Duration = Duration::from_secs(1);
/// How long the pipes of a dead process may be held open by something that fled its group.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long a worker that closed its standard output may take to die of it.
const SILENT_GRACE: Duration = Duration::from_millis(500);

/// Which signals a worker knows what to do with. Any other would end it, or wake what nobody asked for: Node begins to listen
/// for a debugger on `SIGUSR1`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signals {
    pub interruption: Interruption,
    /// It prints its stack on `SIGUSR2`.
    pub stack: bool,
}

impl Signals {
    /// Of a worker that only reads and writes lines.
    pub const NONE: Self = Self { interruption: Interruption::End, stack: false };
}

/// How a running call of a worker is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// By `SIGUSR1`, on which it looks at its input.
    Nudge,
    /// Not beyond the `cancel` that was written.
    Message,
    /// By its end: it is asked with `SIGTERM`.
    End,
}

impl Interruption {
    /// Of a worker that runs so many calls at once: where that is more than one, the end of one would be that of others.
    pub fn of(hello: &HelloReply, concurrency: usize) -> Self {
        if hello.is_nudged() {
            Self::Nudge
        } else if hello.cancels() || concurrency > 1 {
            Self::Message
        } else {
            Self::End
        }
    }
}

/// Everything that lives as long as the process does.
pub(super) struct WorkerTask {
    pub child: Child,
    pub interpreter: Tracked,
    /// A launcher stands before it.
    pub is_launched: bool,
    pub signals: Signals,
    pub orders: mpsc::UnboundedReceiver<Control>,
    pub reader: JoinHandle<()>,
    pub stderr: JoinHandle<()>,
    pub events: EventSender,
    pub tail: Arc<Mutex<Tail>>,
    /// Where it was, when its interpreter said so as it died.
    pub stack: Arc<Mutex<Stack>>,
    /// The most memory it may hold, in bytes.
    pub memory_limit: Option<usize>,
    /// Its output, where a launcher holds that open too.
    pub output: Option<PipeEnd>,
    /// It closed its output and did not die of that.
    pub hung_up: bool,
}

/// Waits until the interpreter has closed its output behind its launcher's back.
async fn closed(output: Option<PipeEnd>, interpreter: u32) {
    match output {
        Some(output) => output.closed_by(interpreter).await,
        None => std::future::pending().await,
    }
}

impl WorkerTask {
    /// Lives until the process is dead, then tells so.
    pub(super) async fn live(mut self) {
        let (exit, excess) = self.within_memory().await;
        keeper::unless_over().await;
        self.child.clean_up();
        // A tool that called setsid has left the group, and is not to outlive it.
        self.interpreter.signal(Signal::KILL);
        let _ = timeout(LAST_WORDS, &mut self.reader).await;
        let _ = timeout(LAST_WORDS, &mut self.stderr).await;
        self.reader.abort();
        self.stderr.abort();
        let stderr = self.tail.lock().text();
        let stack = self.stack.lock().clone();
        let hung_up = self.hung_up;
        let peak_memory = self.child.peak_memory();
        self.events.send(WorkerEvent::Died(Death {
            exit: self.told(exit),
            stderr,
            stack,
            excess,
            peak_memory,
            hung_up,
        }));
    }

    /// A launcher's exit status speaks of the process it launched; without one it is what it is.
    fn told(&self, exit: Exit) -> Exit {
        if self.is_launched { exit.behind_launcher() } else { exit }
    }

    /// Lives until death, or until it holds more memory than it may.
    async fn within_memory(&mut self) -> (Exit, Option<Excess>) {
        let exceeded = exceeded(self.interpreter.pid(), self.memory_limit);
        let excess = tokio::select! {
            exit = self.until_death() => return (exit, None),
            excess = exceeded => excess,
        };
        (self.stop(Grace::NONE).await, Some(excess))
    }

    async fn until_death(&mut self) -> Exit {
        let closed = closed(self.output, self.interpreter.pid());
        tokio::pin!(closed);
        loop {
            tokio::select! {
                () = &mut closed => return self.silent().await,
                () = self.interpreter.died() => break,
                exit = self.child.exited() => return exit,
                _ = &mut self.reader => return self.silent().await,
                order = self.orders.recv() => match order {
                    Some(Control::TakeStack { .. }) if !self.signals.stack => {}
                    Some(Control::TakeStack { call: None }) => self.interpreter.signal(Signal::USR2),
                    Some(Control::TakeStack { call: Some(call) }) => {
                        // The shim names its threads so. A call on none of them is an async one, on the main thread.
                        self.interpreter.signal_thread(&format!("call:{call}"), Signal::USR2);
                    }
                    Some(Control::Interrupt) => self.interrupt(),
                    Some(Control::Stop(grace)) => return self.stop(grace).await,
                    None => return self.stop(Grace::NONE).await,
                },
            }
        }
        timeout(LAUNCHER_GRACE, self.child.exited()).await.unwrap_or(Exit::Unknown)
    }

    /// Ends the running call as far as this worker lets itself be told. A second wish says nothing new to one that is leaving.
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

    /// Climbs the kill ladder; a harsher order while climbing takes its place.
    async fn stop(&mut self, mut grace: Grace) -> Exit {
        loop {
            tokio::select! {
                exit = stop(&mut self.child, grace) => return exit,
                Some(Control::Stop(harsher)) = self.orders.recv() => grace = harsher,
            }
        }
    }

    /// A worker without standard output can never answer again.
    async fn silent(&mut self) -> Exit {
        // A task that was waited for must not be waited for again.
        if self.reader.is_finished() {
            self.reader = tokio::spawn(async {});
        }
        if let Ok(exit) = timeout(SILENT_GRACE, self.child.exited()).await {
            return exit;
        }
        self.hung_up = true;
        self.stop(Grace::NONE).await
    }
}

/// How often. A tool that fills memory fills about a gigabyte a second.
const LOOK: Duration = Duration::from_millis(100);

/// More memory than a worker may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// What it held, in bytes, its children included.
    pub held: usize,
    /// What it may hold.
    pub limit: usize,
}

/// The memory that there is for all processes, in bytes: the machine's, or what a container may have of it.
pub(super) fn installed() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = machine.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    let total = total.trim().parse::<usize>().ok()?.checked_mul(1024)?;
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let most = container.and_then(|text| text.trim().parse::<usize>().ok());
    Some(most.map_or(total, |most| most.min(total)))
}

/// Waits until a process holds more than its limit; for ever, where it has none.
pub(super) async fn exceeded(pid: u32, limit: Option<usize>) -> Excess {
    let Some(limit) = limit else { return std::future::pending().await };
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(held) = resident(pid).filter(|held| *held > limit) {
            return Excess { held, limit };
        }
    }
}
