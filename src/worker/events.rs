//! Messages between a worker's tasks and its owner.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::death::Death;
use super::stack::Stack;
use super::writer::LinkWriter;
use crate::process::Grace;
use crate::protocol::Incoming;

/// An event of a worker.
#[derive(Debug)]
pub enum WorkerEvent {
    /// A frame.
    Frame(Incoming),
    /// A frame above the size limit; dropped while it was read.
    Oversized {
        /// The call that it answers, if its beginning says so.
        id: Option<u64>,
        /// Its length in bytes.
        bytes: usize,
    },
    /// Text on its standard error.
    Stderr(String),
    /// A structured log line on its standard error.
    Log(LogLine),
    /// Its process has exited; its last event.
    Died(Death),
}

/// A JSON line that the tool logged.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// `debug`, `info`, `warning`, `error`.
    pub level: String,
    /// The message.
    pub message: String,
    /// All other members of the line.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// Receives events. The owner tags them with their worker.
#[derive(Clone)]
pub struct EventSender {
    send: Arc<dyn Fn(WorkerEvent) + Send + Sync>,
    flow: Arc<Backpressure>,
}

/// Counts the events that the owner has not processed. A worker that writes faster than its owner reads waits in its
/// pipe.
#[derive(Debug, Default)]
pub struct Backpressure {
    open: AtomicUsize,
    taken: Notify,
}

/// The most unprocessed events; each has at most some kilobytes, except results.
const MOST_OPEN: usize = 256;

impl EventSender {
    /// A channel to an owner that reports each processed event.
    pub fn new(send: impl Fn(WorkerEvent) + Send + Sync + 'static, flow: Arc<Backpressure>) -> Self {
        Self { send: Arc::new(send), flow }
    }

    /// Sends an event.
    pub fn send(&self, events: WorkerEvent) {
        self.flow.open.fetch_add(1, Ordering::Relaxed);
        (self.send)(events);
    }

    /// Waits until there is capacity.
    pub async fn room(&self) {
        loop {
            let mut taken = std::pin::pin!(self.flow.taken.notified());
            // Registered before the check, so that no notification is missed.
            taken.as_mut().enable();
            if self.flow.open.load(Ordering::Relaxed) < MOST_OPEN {
                return;
            }
            taken.await;
        }
    }
}

impl Backpressure {
    /// An event has been processed.
    pub fn took(&self) {
        if self.open.fetch_sub(1, Ordering::Relaxed) == MOST_OPEN {
            self.taken.notify_waiters();
        }
    }
}

/// An order to the worker's task.
#[derive(Debug)]
pub enum Control {
    /// Print the Python stack on stderr; with several calls, that of the call's thread.
    TakeStack {
        /// The call's number, if others may run beside it.
        call: Option<u64>,
    },
    /// Make the worker read its standard input, where a cancellation waits.
    Interrupt,
    /// Stop it. It may leave as soon as its standard input ends, and its children cannot be found after that: they are listed before
    /// this writer is dropped.
    Stop(Grace, Option<LinkWriter>),
}

/// A live worker, as its owner holds it. Dropping it kills the worker.
#[derive(Debug)]
pub struct WorkerHandle {
    /// The process id of the interpreter.
    pub pid: u32,
    /// When that process was started, in clock ticks since boot; 0 if the system does not show it.
    pub process_started: u64,
    /// Its standard input.
    pub writer: LinkWriter,
    /// Its order channel.
    pub control: mpsc::UnboundedSender<Control>,
    /// The stack it printed on request.
    pub stack: Arc<Mutex<Stack>>,
    /// Interrupting its call means asking it to exit.
    pub ends_by_interruption: bool,
    /// The sessions whose calls it was sent, by the numbers that it knows them by, if it keeps something for each until it hears of
    /// the session's end.
    pub sessions: Option<BTreeSet<u64>>,
}
