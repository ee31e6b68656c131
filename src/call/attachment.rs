//! Whether a call's client waits for it, or it goes on alone. That is settled when it ends: a client that is told of a task has one
//! whose result is kept.

use std::sync::atomic::{AtomicU8, Ordering};

const ATTACHED: u8 = 0;
const DETACHED: u8 = 1;
/// It ends with its client: it can go on alone no more.
const ENDS: u8 = 2;

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

    /// From now on it goes on without its client. False if it ends already, or did so before.
    pub fn detach(&self) -> bool {
        self.0.compare_exchange(ATTACHED, DETACHED, Ordering::AcqRel, Ordering::Acquire).is_ok()
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
        assert!(!call.settle() && !call.detach() && !call.is_detached());
        let call = Attachment::new(false);
        assert!(call.detach() && !call.detach() && call.settle() && call.is_detached());
        let call = Attachment::new(true);
        call.attach();
        assert!(!call.is_detached() && !call.settle());
    }
}
