//! Admission for calls that need no worker of a pool: they count among the running ones like all others, and wait with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::actor::Message;
use super::broker::PoolId;
use super::shared::Shared;

/// The calls of one tool file that is run once for each.
pub struct AdmissionQueue {
    shared: Arc<Shared>,
    id: PoolId,
    waiting: AtomicUsize,
    /// Held by the one that is next; the others wait behind it in their order.
    looks: Mutex<UnboundedReceiver<Message>>,
}

/// Too many calls wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// How many.
    pub waiting: usize,
    /// Whether that is the limit of all tools together.
    pub overall: bool,
}

/// Leave to run, until it is dropped.
pub struct RunPermit(Arc<AdmissionQueue>);

impl AdmissionQueue {
    /// Nobody runs yet.
    pub fn new(shared: Arc<Shared>) -> Arc<Self> {
        let (way, looks) = unbounded_channel();
        let id = shared.join(way);
        Arc::new(Self { shared, id, waiting: AtomicUsize::new(0), looks: Mutex::new(looks) })
    }

    /// Waits for a permit, behind those that asked before. Dropping the future gives up the place.
    pub async fn permit(self: &Arc<Self>, max_queue: usize) -> Result<RunPermit, Full> {
        if self.waiting.load(Ordering::Relaxed) == 0 && self.take() {
            return Ok(RunPermit(Arc::clone(self)));
        }
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting >= max_queue.max(1) {
            return Err(Full { waiting, overall: false });
        }
        if let Some(overall) = self.shared.full_of_waiting() {
            // It asked for a permit above. None is to be kept for it where nobody waits.
            self.count(waiting);
            return Err(Full { waiting: overall, overall: true });
        }
        let _waits = Waits::begin(self);
        let mut looks = self.looks.lock().await;
        while !self.take() {
            // The way stays open for as long as this queue is known.
            looks.recv().await;
        }
        Ok(RunPermit(Arc::clone(self)))
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

/// Counted as waiting, until it has its permit or waits no more.
struct Waits<'a>(&'a AdmissionQueue);

impl<'a> Waits<'a> {
    fn begin(queue: &'a AdmissionQueue) -> Self {
        queue.count(queue.waiting.fetch_add(1, Ordering::Relaxed) + 1);
        Self(queue)
    }
}

impl Drop for Waits<'_> {
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

    fn queues(running: usize) -> (Arc<Shared>, [Arc<AdmissionQueue>; 2]) {
        let shared = Arc::new(Shared::new(Caps { running, waiting: 3, ..Caps::default() }));
        let queues = [AdmissionQueue::new(Arc::clone(&shared)), AdmissionQueue::new(Arc::clone(&shared))];
        (shared, queues)
    }

    /// Whoever would wait for ever fails, and does not hang.
    async fn soon<T>(what: impl Future<Output = T>) -> T {
        tokio::time::timeout(std::time::Duration::from_secs(5), what).await.expect("it has its permit")
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_run_than_may_and_whoever_waits_gets_the_next_turn() {
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
    async fn nobody_overtakes_one_that_waits() {
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
    async fn who_waits_no_more_holds_up_nobody() {
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
    async fn too_many_are_refused() {
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
    async fn no_turn_is_kept_for_one_that_was_refused() {
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
