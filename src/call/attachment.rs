//! Whether a call's client waits for it, or it goes on alone. That is settled when it ends: a client that is told of a task has one
//! whose result is kept.

use std::sync::atomic::{AtomicU8, Ordering};

const ATTACHED: u8 = 0;
const DETACHED: u8 = 1;
/// It ends with its client: it can go on alone no more.
const ENDS: u8 = 2;

/// Since when a call goes on without its client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Since {
    /// It had its client.
    Now,
    /// Another of its clients had, with the same idempotency key.
    Before,
}

/// Whether a client waits for a call.
pub(super) struct Attachment(AtomicU8);

impl Attachment {
    /// That of a new call.
    pub fn new(is_detached: bool) -> Self {
        Self(AtomicU8::new(if is_detached { DETACHED } else { ATTACHED }))
    }

    /// Whether it goes on without its client.
    pub fn is_detached(&self) -> bool {
        self.0.load(Ordering::Acquire) == DETACHED
    }

    /// From now on it goes on without its client. `None` if it ends already.
    pub fn detach(&self) -> Option<Since> {
        match self.0.compare_exchange(ATTACHED, DETACHED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(Since::Now),
            Err(DETACHED) => Some(Since::Before),
            Err(_) => None,
        }
    }

    /// It does not after all.
    pub fn attach(&self) {
        let _ = self.0.compare_exchange(DETACHED, ATTACHED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// It ends. Returns whether that is without its client.
    pub fn settle(&self) -> bool {
        self.0.compare_exchange(ATTACHED, ENDS, Ordering::AcqRel, Ordering::Acquire) == Err(DETACHED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_ends_goes_on_alone_no_more() {
        let call = Attachment::new(false);
        assert!(!call.settle() && call.detach().is_none() && !call.is_detached());
        let call = Attachment::new(false);
        assert_eq!([call.detach(), call.detach()], [Some(Since::Now), Some(Since::Before)]);
        assert!(call.settle() && call.is_detached());
        assert_eq!(call.detach(), Some(Since::Before), "its result is kept");
        let call = Attachment::new(true);
        call.attach();
        assert!(!call.is_detached() && !call.settle());
    }
}
