//! What a worker's tasks tell its owner, and what the owner tells them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::death::Death;
use super::stack::Stack;
use super::writer::LinkWriter;
use crate::process::Grace;
use crate::protocol::Incoming;

/// Something that came from a worker.
#[derive(Debug)]
pub enum WorkerEvent {
    /// A frame.
    Frame(Incoming),
    /// A frame over the limit; dropped while it was read.
    Oversized {
        /// The call it answered, when its beginning told.
        id: Option<u64>,
        /// How long it was, in bytes.
        bytes: usize,
    },
    /// Text on its standard error.
    Stderr(String),
    /// A structured log line on its standard error.
    Log(LogLine),
    /// Its process is gone, and this was the last of its events.
    Died(Death),
}

/// A JSON line that the tool logged.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// `debug`, `info`, `warning`, `error`.
    pub level: String,
    /// The text.
    pub message: String,
    /// Everything else the line held.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// Where events goes. The owner tags it with the worker it belongs to.
#[derive(Clone)]
pub struct EventSender {
    send: Arc<dyn Fn(WorkerEvent) + Send + Sync>,
    flow: Arc<Backpressure>,
}

/// How much events its owner has not looked at yet. A worker that talks faster than it is listened to waits in its pipe.
#[derive(Debug, Default)]
pub struct Backpressure {
    open: AtomicUsize,
    taken: Notify,
}

/// Pieces of events, each of some kilobytes at most but for results.
const MOST_OPEN: usize = 256;

impl EventSender {
    /// A way to an owner, who says of each piece that it has been looked at.
    pub fn new(send: impl Fn(WorkerEvent) + Send + Sync + 'static, flow: Arc<Backpressure>) -> Self {
        Self { send: Arc::new(send), flow }
    }

    /// Tells something.
    pub fn send(&self, events: WorkerEvent) {
        self.flow.open.fetch_add(1, Ordering::Relaxed);
        (self.send)(events);
    }

    /// Waits until there is room for more.
    pub async fn room(&self) {
        loop {
            let mut taken = std::pin::pin!(self.flow.taken.notified());
            // Heard from here on, so that nothing is missed between the look and the wait.
            taken.as_mut().enable();
            if self.flow.open.load(Ordering::Relaxed) < MOST_OPEN {
                return;
            }
            taken.await;
        }
    }
}

impl Backpressure {
    /// A piece of events has been looked at.
    pub fn took(&self) {
        if self.open.fetch_sub(1, Ordering::Relaxed) == MOST_OPEN {
            self.taken.notify_waiters();
        }
    }
}

/// An order to the worker's task task.
#[derive(Debug, Clone, Copy)]
pub enum Control {
    /// Ask for the Python stack on standard error: where several calls run, of the thread that makes this one.
    TakeStack {
        /// The call's number, if there may be others beside it.
        call: Option<u64>,
    },
    /// Make it look at its standard input, where a cancellation waits.
    Interrupt,
    /// End it.
    Stop(Grace),
}

/// A live worker, as its owner holds it. Dropping it ends the worker without grace.
#[derive(Debug)]
pub struct WorkerHandle {
    /// The process id of the interpreter.
    pub pid: u32,
    /// The way to its standard input.
    pub writer: LinkWriter,
    /// Orders.
    pub control: mpsc::UnboundedSender<Control>,
    /// Where it was stuck, once it was asked.
    pub stack: Arc<Mutex<Stack>>,
}
