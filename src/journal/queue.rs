//! Calls that others have enqueued in a database that several machines share: `SELECT hostler.enqueue(…)`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::store::{ENQUEUED, PostgresStore, StoreAddress};

/// How long the thread waits for a notification before it looks whether it is over, and how often the queue is looked at without one.
const LOOK: Duration = Duration::from_secs(10);
/// The pause after the server could not be heard.
const AGAIN: Duration = Duration::from_secs(2);

/// The queue of a database, for a process that takes calls from it.
pub struct Queue {
    /// The packs and tools whose calls it takes; `*` stands for all.
    pub tools: Vec<String>,
    changed: Arc<Notify>,
    is_over: Arc<AtomicBool>,
}

impl Queue {
    /// Hears of new calls from now on. `None` if no calls are to be taken, or the store has no queue.
    pub fn open(address: &StoreAddress, tools: Vec<String>) -> Option<Self> {
        let StoreAddress::Server(server) = address.clone() else { return None };
        if tools.is_empty() {
            return None;
        }
        let queue = Self { tools, changed: Arc::default(), is_over: Arc::default() };
        let (changed, is_over) = (Arc::clone(&queue.changed), Arc::clone(&queue.is_over));
        let listen = move || {
            while !is_over.load(Ordering::Relaxed) {
                let heard = PostgresStore::open(&server).and_then(|mut store| {
                    store.listen(ENQUEUED, LOOK, |_| {
                        changed.notify_one();
                        !is_over.load(Ordering::Relaxed)
                    })
                });
                if let Err(error) = heard {
                    tracing::debug!(%error, "the queue of calls is not heard");
                    std::thread::sleep(AGAIN);
                }
            }
        };
        let thread = std::thread::Builder::new().name("journal-queue".to_owned()).spawn(listen);
        if let Err(error) = thread {
            tracing::warn!(%error, "the queue of calls is looked at from time to time only: there is no thread to listen");
        }
        Some(queue)
    }

    /// Waits until there may be new calls.
    pub async fn changed(&self) {
        let _ = tokio::time::timeout(LOOK, self.changed.notified()).await;
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
