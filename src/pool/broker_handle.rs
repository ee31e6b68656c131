//! What the actors of all pools share: the broker, a clock, and a channel to each other.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::actor::Message;
use super::broker::{Caps, PoolId, ResourceBroker, Wakeup};
use super::event::Event;
use crate::outcome::Code;
use crate::process::Barrier;

/// Hears of the workers of all pools. Must not block.
pub trait WorkerObserver: Send + Sync {
    /// A worker is being started: its environment is built, for example.
    fn starting(&self, file: &Path, text: &str);
    /// A worker said hello.
    fn started(&self, file: &Path, pid: u32);
    /// A worker did not start.
    fn failed(&self, file: &Path, code: Code);
    /// A worker exited. `why` is the reason for which hostler stopped it.
    fn exited(&self, file: &Path, pid: Option<u32>, how: &str, why: Option<&str>);
}

/// The handle to the broker of one supervisor's pools.
pub struct BrokerHandle {
    /// Locked for one step of one pool, which takes about a microsecond and waits for nothing.
    pub(super) broker: Mutex<ResourceBroker>,
    /// Locked only to look up or to change an entry.
    mailboxes: Mutex<HashMap<PoolId, UnboundedSender<Message>>>,
    next: AtomicU64,
    /// Whether all workers together have a memory limit.
    limits_memory: AtomicBool,
    observer: OnceLock<Weak<dyn WorkerObserver>>,
    /// What comes before every write to a worker.
    pub(super) barrier: OnceLock<Arc<dyn Barrier>>,
    pub(super) epoch: Instant,
}

/// The use of the shared resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Usage {
    /// Running calls.
    pub running: usize,
    /// The limit on running calls.
    pub max_concurrent_calls: usize,
    /// Queued calls.
    pub waiting: usize,
    /// The limit on queued calls.
    pub max_queue: usize,
    /// Live workers.
    pub workers: usize,
    /// The limit on workers.
    pub max_workers: usize,
    /// The limit on the memory of all workers, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<usize>,
}

impl BrokerHandle {
    /// A broker without pools.
    pub fn new(caps: Caps) -> Self {
        Self {
            limits_memory: AtomicBool::new(caps.memory.is_some()),
            broker: Mutex::new(ResourceBroker::new(caps)),
            mailboxes: Mutex::default(),
            next: AtomicU64::new(1),
            observer: OnceLock::new(),
            barrier: OnceLock::new(),
            epoch: Instant::now(),
        }
    }

    /// Sets what comes before every write to a worker, once.
    pub fn write_behind(&self, barrier: Arc<dyn Barrier>) {
        let _ = self.barrier.set(barrier);
    }

    /// Sets who hears of workers, once.
    pub fn observe(&self, observer: Weak<dyn WorkerObserver>) {
        let _ = self.observer.set(observer);
    }

    pub(super) fn observer(&self) -> Option<Arc<dyn WorkerObserver>> {
        self.observer.get().and_then(Weak::upgrade)
    }

    /// Puts other limits in force.
    pub fn limit(&self, caps: Caps) {
        self.limits_memory.store(caps.memory.is_some(), Ordering::Relaxed);
        let wakeups = {
            let mut broker = self.broker.lock();
            broker.limit(caps);
            broker.take_wakeups()
        };
        self.deliver(wakeups);
    }

    pub(super) fn limits_memory(&self) -> bool {
        self.limits_memory.load(Ordering::Relaxed)
    }

    /// The current use.
    pub fn usage(&self) -> Usage {
        let broker = self.broker.lock();
        let caps = broker.caps();
        Usage {
            running: broker.running(),
            max_concurrent_calls: caps.running,
            waiting: broker.waiting(),
            max_queue: caps.waiting,
            workers: broker.alive(),
            max_workers: caps.workers,
            max_memory: caps.memory,
        }
    }

    pub(super) fn join(&self, mailbox: UnboundedSender<Message>) -> PoolId {
        let id = PoolId(self.next.fetch_add(1, Ordering::Relaxed));
        self.mailboxes.lock().insert(id, mailbox);
        id
    }

    pub(super) fn leave(&self, pool: PoolId) {
        self.mailboxes.lock().remove(&pool);
        let wakeups = {
            let mut broker = self.broker.lock();
            broker.forget(pool);
            broker.take_wakeups()
        };
        self.deliver(wakeups);
    }

    /// A call without a worker has ended.
    pub(super) fn return_run_permit(&self, pool: PoolId) {
        let wakeups = {
            let mut broker = self.broker.lock();
            broker.return_run_permit(pool);
            broker.take_wakeups()
        };
        self.deliver(wakeups);
    }

    /// Reports the number of waiting calls. If there are none, a permit reserved for them goes to another pool.
    pub(super) fn waits(&self, pool: PoolId, waiting: usize) {
        let wakeups = {
            let mut broker = self.broker.lock();
            broker.count_waiting(pool, waiting);
            if waiting == 0 {
                broker.wants_no_run_permit(pool);
            }
            broker.take_wakeups()
        };
        self.deliver(wakeups);
    }

    /// The number of waiting calls, if the queue is full.
    pub(super) fn full_of_waiting(&self) -> Option<usize> {
        let broker = self.broker.lock();
        broker.is_full_of_waiting().then(|| broker.waiting())
    }

    pub(super) fn deliver(&self, wakeups: Vec<Wakeup>) {
        if wakeups.is_empty() {
            return;
        }
        let mailboxes = self.mailboxes.lock();
        for wakeup in wakeups {
            let (pool, event) = match wakeup {
                Wakeup::PermitReady(pool) => (pool, Event::PermitReady),
                Wakeup::Evict(pool, worker, need) => (pool, Event::Evict(worker, need)),
            };
            if let Some(mailbox) = mailboxes.get(&pool) {
                // An actor that is ending reads no more messages.
                let _ = mailbox.send(Message::Event(event));
            }
        }
    }
}

impl std::fmt::Debug for BrokerHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.usage().fmt(formatter)
    }
}
