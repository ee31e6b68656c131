//! The place of a call that uses no pooled worker: its run permit and its clock. While the call asks its client, it has
//! neither.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::builtin::Asks;
use crate::pool::{AdmissionQueue, RunPermit};
use crate::worker::Waits;

pub(super) struct Seat {
    queue: Arc<AdmissionQueue>,
    /// A nested call needs no permit: its caller holds one.
    nested: bool,
    began: Instant,
    limit: Duration,
    /// Locked only briefly.
    state: Mutex<State>,
    /// Notified when the clock stops or goes on.
    changed: Notify,
}

#[derive(Default)]
struct State {
    permit: Option<RunPermit>,
    /// Open questions of this call, and of calls that it waits for.
    questions: usize,
    parked: Option<Parked>,
    /// How long the clock has stood still.
    stood: Duration,
}

struct Parked {
    since: Instant,
    is_outer: bool,
}

impl Seat {
    pub fn new(queue: Arc<AdmissionQueue>, permit: Option<RunPermit>, limit: Duration) -> Arc<Self> {
        let nested = permit.is_none();
        let state = Mutex::new(State { permit, ..State::default() });
        Arc::new(Self { queue, nested, began: Instant::now(), limit, state, changed: Notify::new() })
    }

    /// Completes when the call has run for its time, without the time in which it waited for its client.
    pub async fn time_is_over(&self) {
        loop {
            let changed = self.changed.notified();
            let until = {
                let state = self.state.lock();
                state.parked.is_none().then(|| self.began + self.limit + state.stood)
            };
            match until {
                Some(until) if Instant::now() >= until => return,
                Some(until) => drop(tokio::time::timeout_at(until, changed).await),
                None => changed.await,
            }
        }
    }

    fn park(&self, is_outer: bool) -> bool {
        let mut state = self.state.lock();
        if state.parked.is_none() {
            if !self.queue.park(is_outer) {
                return false;
            }
            state.parked = Some(Parked { since: Instant::now(), is_outer });
        }
        state.questions += 1;
        let permit = state.permit.take();
        drop(state);
        drop(permit);
        self.changed.notify_waiters();
        true
    }

    async fn resume(&self) {
        let must_wait = {
            let state = self.state.lock();
            state.questions == 0 && state.parked.is_some()
        };
        if !must_wait {
            return;
        }
        let permit = if self.nested { None } else { Some(self.queue.permit_again().await) };
        let mut state = self.state.lock();
        // Another question may have been asked meanwhile.
        if state.questions == 0
            && let Some(parked) = state.parked.take()
        {
            (state.permit, state.stood) = (permit, state.stood + parked.since.elapsed());
            self.queue.unpark(parked.is_outer);
            drop(state);
            self.changed.notify_waiters();
        }
    }
}

impl Asks for Seat {
    fn asks(&self) -> bool {
        self.park(false)
    }

    fn answered(&self) {
        let mut state = self.state.lock();
        state.questions = state.questions.saturating_sub(1);
    }

    fn goes_on(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.resume())
    }

    fn waits(self: Arc<Self>) -> Arc<dyn Waits> {
        self
    }

    fn most(&self) -> usize {
        self.queue.most_parked()
    }

    fn run_time(&self) -> Duration {
        let state = self.state.lock();
        let stands = state.parked.as_ref().map(|parked| parked.since.elapsed()).unwrap_or_default();
        self.began.elapsed().saturating_sub(state.stood + stands)
    }
}

impl Waits for Seat {
    fn inner_asks(&self) {
        // Calls that only wait are not limited.
        let _ = self.park(true);
    }

    fn inner_goes_on(&self) {
        self.answered();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(parked) = self.state.get_mut().parked.take() {
            self.queue.unpark(parked.is_outer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{BrokerHandle, Caps};

    fn queue(running: usize, workers: usize) -> Arc<AdmissionQueue> {
        let caps = Caps { running, workers, waiting: 8, ..Caps::default() };
        AdmissionQueue::new(Arc::new(BrokerHandle::new(caps)))
    }

    async fn seat(queue: &Arc<AdmissionQueue>) -> Arc<Seat> {
        let permit = queue.permit(8).await.unwrap();
        Seat::new(Arc::clone(queue), Some(permit), Duration::from_mins(1))
    }

    #[tokio::test]
    async fn a_call_that_asks_leaves_its_permit_to_others_and_takes_it_again() {
        let queue = queue(1, 8);
        let asking = seat(&queue).await;
        assert!(asking.asks());
        let other = tokio::time::timeout(Duration::from_secs(5), seat(&queue)).await.expect("a permit is free");
        asking.answered();
        let mut resumed = std::pin::pin!(asking.goes_on());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut resumed).await.is_err(), "the other call runs");
        drop(other);
        tokio::time::timeout(Duration::from_secs(5), resumed).await.expect("its permit");
        assert!(asking.state.lock().parked.is_none());
    }

    #[tokio::test]
    async fn only_a_quarter_may_ask_and_a_call_that_ends_leaves_its_place() {
        let queue = queue(8, 4);
        let (first, second) = (seat(&queue).await, seat(&queue).await);
        assert!(first.asks() && first.asks(), "two questions of one call");
        assert!(!second.asks());
        second.inner_asks();
        assert!(second.state.lock().parked.is_some(), "it waits for a call that asks");
        drop(first);
        assert!(seat(&queue).await.asks());
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_during_a_question() {
        let queue = queue(8, 8);
        let permit = queue.permit(8).await.unwrap();
        let seat = Seat::new(Arc::clone(&queue), Some(permit), Duration::ZERO);
        assert!(seat.asks());
        assert!(tokio::time::timeout(Duration::from_hours(1), seat.time_is_over()).await.is_err());
        seat.answered();
        seat.goes_on().await;
        seat.time_is_over().await;
    }
}
