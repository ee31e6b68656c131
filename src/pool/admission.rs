//! Admission for calls that use no pooled worker: they share the limit on running calls, and queue for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::actor::Message;
use super::broker::PoolId;
use super::broker_handle::BrokerHandle;

/// The queue of one tool file whose calls run outside a pool.
pub struct AdmissionQueue {
    shared: Arc<BrokerHandle>,
    id: PoolId,
    waiting: AtomicUsize,
    /// Held by the next caller; the others wait behind it in order.
    looks: Mutex<UnboundedReceiver<Message>>,
}

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// The number of waiting calls.
    pub waiting: usize,
    /// Whether the limit of all tools together is reached.
    pub overall: bool,
}

/// A permit to run, released on drop.
pub struct RunPermit(Arc<AdmissionQueue>);

impl AdmissionQueue {
    /// An empty queue.
    pub fn new(shared: Arc<BrokerHandle>) -> Arc<Self> {
        let (way, looks) = unbounded_channel();
        let id = shared.join(way);
        Arc::new(Self { shared, id, waiting: AtomicUsize::new(0), looks: Mutex::new(looks) })
    }

    /// Waits for a permit, in order of arrival. Dropping the future leaves the queue.
    pub async fn permit(self: &Arc<Self>, max_queue: usize) -> Result<RunPermit, Full> {
        if self.waiting.load(Ordering::Relaxed) == 0 && self.take() {
            return Ok(RunPermit(Arc::clone(self)));
        }
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting >= max_queue.max(1) {
            return Err(Full { waiting, overall: false });
        }
        if let Some(overall) = self.shared.full_of_waiting() {
            // This caller requested a permit above; withdraw the request if no one waits.
            self.count(waiting);
            return Err(Full { waiting: overall, overall: true });
        }
        let _waits = Waiting::begin(self);
        let mut looks = self.looks.lock().await;
        while !self.take() {
            // The channel stays open as long as this queue is registered.
            looks.recv().await;
        }
        Ok(RunPermit(Arc::clone(self)))
    }

    /// A permit for a call that had one before it asked its client: however long the queue is.
    pub async fn permit_again(self: &Arc<Self>) -> RunPermit {
        let _waits = Waiting::begin(self);
        let mut looks = self.looks.lock().await;
        while !self.take() {
            looks.recv().await;
        }
        RunPermit(Arc::clone(self))
    }

    /// Parks a call that asks its client, if one more may.
    pub fn park(&self, is_outer: bool) -> bool {
        self.shared.broker.lock().park(self.id, is_outer)
    }

    /// A parked call goes on, or has ended.
    pub fn unpark(&self, is_outer: bool) {
        self.shared.broker.lock().unpark(self.id, is_outer);
    }

    /// How many calls may ask at once.
    pub fn most_parked(&self) -> usize {
        self.shared.broker.lock().caps().parked()
    }

    fn take(&self) -> bool {
        self.shared.broker.lock().take_run_permit(self.id)
    }
}

impl Drop for AdmissionQueue {
    fn drop(&mut self) {
        self.shared.leave(self.id);
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.0.shared.return_run_permit(self.0.id);
    }
}

/// Counts as waiting until it has its permit or is dropped.
struct Waiting<'a>(&'a AdmissionQueue);

impl<'a> Waiting<'a> {
    fn begin(queue: &'a AdmissionQueue) -> Self {
        queue.count(queue.waiting.fetch_add(1, Ordering::Relaxed) + 1);
        Self(queue)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let left = self.0.waiting.fetch_sub(1, Ordering::Relaxed) - 1;
        self.0.count(left);
    }
}

impl AdmissionQueue {
    fn count(&self, waiting: usize) {
        self.shared.waits(self.id, waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Caps;

    fn queues(running: usize) -> (Arc<BrokerHandle>, [Arc<AdmissionQueue>; 2]) {
        let shared = Arc::new(BrokerHandle::new(Caps { running, waiting: 3, ..Caps::default() }));
        let queues = [AdmissionQueue::new(Arc::clone(&shared)), AdmissionQueue::new(Arc::clone(&shared))];
        (shared, queues)
    }

    /// Fails instead of hanging.
    async fn soon<T>(what: impl Future<Output = T>) -> T {
        tokio::time::timeout(std::time::Duration::from_secs(5), what).await.expect("a permit within the time limit")
    }

    #[tokio::test(start_paused = true)]
    async fn the_running_limit_holds_and_the_next_waiter_gets_the_permit() {
        let (shared, [one, two]) = queues(1);
        let permit = one.permit(9).await.unwrap();
        let waits = tokio::spawn({
            let two = Arc::clone(&two);
            async move { two.permit(9).await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert_eq!((shared.usage().running, shared.usage().waiting), (1, 1));
        drop(permit);
        assert!(soon(waits).await.unwrap());
        assert_eq!((shared.usage().running, shared.usage().waiting), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_are_served_in_order() {
        let (_, [one, _]) = queues(1);
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let begins = |number: u32| {
            let (one, order) = (Arc::clone(&one), Arc::clone(&order));
            async move {
                let permit = one.permit(9).await;
                order.lock().push(number);
                permit.map(drop)
            }
        };
        let permit = one.permit(9).await.unwrap();
        let waits = tokio::spawn(begins(1));
        tokio::task::yield_now().await;
        drop(permit);
        assert!(soon(begins(2)).await.is_ok());
        assert!(soon(waits).await.unwrap().is_ok());
        assert_eq!(*order.lock(), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_waiter_blocks_no_one() {
        let (shared, [one, two]) = queues(1);
        let permit = one.permit(9).await.unwrap();
        let waits = tokio::spawn({
            let one = Arc::clone(&one);
            async move { one.permit(9).await.is_ok() }
        });
        tokio::task::yield_now().await;
        waits.abort();
        let _ = waits.await;
        drop(permit);
        assert!(soon(two.permit(9)).await.is_ok());
        assert_eq!((shared.usage().running, shared.usage().waiting), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_refuses_calls() {
        let (_, [one, two]) = queues(1);
        let _turn = one.permit(9).await.unwrap();
        let wait = |queue: &Arc<AdmissionQueue>| {
            tokio::spawn({
                let queue = Arc::clone(queue);
                async move { queue.permit(2).await.map(drop) }
            })
        };
        let _waiting = [wait(&one), wait(&one), wait(&two)];
        tokio::task::yield_now().await;
        assert_eq!(soon(one.permit(2)).await.err(), Some(Full { waiting: 2, overall: false }));
        assert_eq!(soon(two.permit(2)).await.err(), Some(Full { waiting: 3, overall: true }));
    }

    #[tokio::test(start_paused = true)]
    async fn no_permit_is_kept_for_a_refused_call() {
        let (shared, [one, two]) = queues(1);
        let permit = one.permit(9).await.unwrap();
        let wait = || {
            let one = Arc::clone(&one);
            tokio::spawn(async move { one.permit(9).await.map(drop) })
        };
        let waiting = [wait(), wait(), wait()];
        tokio::task::yield_now().await;
        assert_eq!(soon(two.permit(9)).await.err(), Some(Full { waiting: 3, overall: true }));
        drop(permit);
        for one in waiting {
            assert!(soon(one).await.unwrap().is_ok());
        }
        assert_eq!((shared.usage().running, shared.usage().waiting), (0, 0));
    }
}
