//! Checkpoints that are made a little later, so that a burst of records has one; at the end of the process, at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::threads::Unfinished;

/// The checkpoints of a process.
#[derive(Debug, Clone, Default)]
pub struct Signing {
    unfinished: Unfinished,
    /// Whether the process ends. Locked only to look.
    end: Arc<(Mutex<bool>, Condvar)>,
}

impl Signing {
    /// Does it on a thread after this time, or when the process ends.
    pub(crate) fn after(&self, due: Duration, sign: impl FnOnce() + Send + 'static) {
        let end = Arc::clone(&self.end);
        self.unfinished.start(move || {
            let until = Instant::now() + due;
            let mut is_ending = end.0.lock();
            while !*is_ending && !end.1.wait_until(&mut is_ending, until).timed_out() {}
            drop(is_ending);
            sign();
        });
    }

    /// Makes those that are still to be made, and waits for them for at most this long.
    pub async fn end(&self, limit: Duration) {
        *self.end.0.lock() = true;
        self.end.1.notify_all();
        self.unfinished.ended(limit).await;
    }
}
