//! Places among the connections: a client that has shown a token keeps its own, and strangers make room for each other.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The most connections at once. Further ones wait to be accepted.
const MOST: usize = 1024;
/// The most of them that have shown no token. Of more, the one that came first is closed.
const STRANGERS: usize = 128;

/// The places of a server.
pub struct Seats {
    room: Arc<Semaphore>,
    strangers: Arc<Mutex<Strangers>>,
}

/// In the order in which they came.
#[derive(Default)]
struct Strangers {
    last: u64,
    waiting: VecDeque<(u64, Arc<Notify>)>,
}

/// A place, as long as it is held.
pub struct Seat {
    number: u64,
    lost: Arc<Notify>,
    strangers: Arc<Mutex<Strangers>>,
    _permit: OwnedSemaphorePermit,
}

impl Seats {
    /// All free.
    pub fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(MOST)), strangers: Arc::default() }
    }

    /// A place for the next connection, once there is one.
    pub async fn next(&self) -> Option<Vacant> {
        let permit = Arc::clone(&self.room).acquire_owned().await.ok()?;
        Some(Vacant { permit, strangers: Arc::clone(&self.strangers) })
    }
}

/// A free place.
pub struct Vacant {
    permit: OwnedSemaphorePermit,
    strangers: Arc<Mutex<Strangers>>,
}

impl Vacant {
    /// Gives it to a stranger.
    pub fn take(self) -> Arc<Seat> {
        let lost = Arc::new(Notify::new());
        let mut strangers = self.strangers.lock();
        strangers.last += 1;
        let number = strangers.last;
        strangers.waiting.push_back((number, Arc::clone(&lost)));
        if strangers.waiting.len() > STRANGERS
            && let Some((_, first)) = strangers.waiting.pop_front()
        {
            first.notify_one();
        }
        drop(strangers);
        Arc::new(Seat { number, lost, strangers: self.strangers, _permit: self.permit })
    }
}

impl Seat {
    /// Its client has shown a token.
    pub fn keep(&self) {
        self.strangers.lock().waiting.retain(|(number, _)| *number != self.number);
    }

    /// Ends when the place is lost to another stranger.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.keep();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn strangers_lose_their_places_in_the_order_in_which_they_came() {
        let seats = Seats::new();
        let mut taken = Vec::new();
        for _ in 0..=STRANGERS + 2 {
            taken.push(seats.next().await.unwrap().take());
            taken[0].keep();
        }
        let lost: Vec<usize> = (0..taken.len()).filter(|at| taken[*at].lost().now_or_never().is_some()).collect();
        assert_eq!(lost, [1, 2], "the first has shown a token");
        drop(taken.split_off(3));
        let next = seats.next().await.unwrap().take();
        assert!(next.lost().now_or_never().is_none() && seats.strangers.lock().waiting.len() == 1);
    }

    #[tokio::test]
    async fn there_are_so_many_places() {
        let seats = Seats::new();
        let mut taken = Vec::new();
        for _ in 0..MOST {
            taken.push(seats.next().await.unwrap().take());
            taken.last().unwrap().keep();
        }
        tokio::task::yield_now().await;
        assert!(seats.next().now_or_never().is_none());
        taken.pop();
        assert!(seats.next().now_or_never().is_some());
    }
}
