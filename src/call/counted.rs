//! How many calls of a workspace have ended, and how.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::policy::Calls;

/// Calls that have ended.
#[derive(Debug, Default)]
pub(super) struct Counted {
    ended: AtomicU64,
    failed: AtomicU64,
    denied: AtomicU64,
}

impl Counted {
    /// One more. A denied one has not failed.
    pub fn add(&self, is_denied: bool, has_fault: bool) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        if is_denied {
            self.denied.fetch_add(1, Ordering::Relaxed);
        } else if has_fault {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn so_far(&self) -> Calls {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Calls { ended: read(&self.ended), failed: read(&self.failed), denied: read(&self.denied) }
    }
}
