//! What the loops of all pools share: the broker, a clock, and a way to each other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::actor::Message;
use super::broker::{Caps, PoolId, ResourceBroker, Wakeup};
use super::event::Event;

/// What pools that live together share. One of it belongs to each supervisor.
pub struct Shared {
    /// Held for a step of one pool, which takes a microsecond and waits for nothing.
    pub(super) broker: Mutex<ResourceBroker>,
    /// Held only to look or to change it.
    ways: Mutex<HashMap<PoolId, UnboundedSender<Message>>>,
    next: AtomicU64,
    pub(super) epoch: Instant,
}

/// How much of what pools share is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Usage {
    /// Calls running.
    pub running: usize,
    /// How many may.
    pub max_concurrent_calls: usize,
    /// Calls waiting.
    pub waiting: usize,
    /// How many may.
    pub max_queue: usize,
    /// Workers alive.
    pub workers: usize,
    /// How many may be.
    pub max_workers: usize,
}

impl Shared {
    /// No pools yet.
    pub fn new(caps: Caps) -> Self {
        Self {
            broker: Mutex::new(ResourceBroker::new(caps)),
            ways: Mutex::default(),
            next: AtomicU64::new(1),
            epoch: Instant::now(),
        }
    }

    /// How much of it is in use.
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
        }
    }

    pub(super) fn join(&self, way: UnboundedSender<Message>) -> PoolId {
        let id = PoolId(self.next.fetch_add(1, Ordering::Relaxed));
        self.ways.lock().insert(id, way);
        id
    }

    pub(super) fn leave(&self, pool: PoolId) {
        self.ways.lock().remove(&pool);
        let wakeups = {
            let mut broker = self.broker.lock();
            broker.forget(pool);
            broker.take_wakeups()
        };
        self.deliver(wakeups);
    }

    /// A call that needs no worker is over.
    pub(super) fn return_run_permit(&self, pool: PoolId) {
        let wakeups = {
            let mut broker = self.broker.lock();
            broker.return_run_permit(pool);
            broker.take_wakeups()
        };
        self.deliver(wakeups);
    }

    /// So many wait there. Where none does, a permit that was kept for one goes to another pool.
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

    /// How many wait, if no more may.
    pub(super) fn full_of_waiting(&self) -> Option<usize> {
        let broker = self.broker.lock();
        broker.is_full_of_waiting().then(|| broker.waiting())
    }

    pub(super) fn deliver(&self, wakeups: Vec<Wakeup>) {
        if wakeups.is_empty() {
            return;
        }
        let ways = self.ways.lock();
        for wakeup in wakeups {
            let (pool, event) = match wakeup {
                Wakeup::Look(pool) => (pool, Event::Look),
                Wakeup::Evict(pool, worker, need) => (pool, Event::Evict(worker, need)),
            };
            if let Some(way) = ways.get(&pool) {
                // A loop that is ending looks at nothing any more.
                let _ = way.send(Message::Heard(event));
            }
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.usage().fmt(formatter)
    }
}
