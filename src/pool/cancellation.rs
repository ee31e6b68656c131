//! A wish to end a call, heard by whatever runs it.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::outcome::{Cancelled, Fault};

/// Shared between who may cancel a call and what runs it. The first reason counts.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<State>);

#[derive(Debug, Default)]
struct State {
    why: OnceLock<Cancelled>,
    notify: Notify,
}

impl Cancellation {
    /// Cancels the call; `false` when it was cancelled before.
    pub fn cancel(&self, why: Cancelled) -> bool {
        let is_first = self.0.why.set(why).is_ok();
        self.0.notify.notify_waiters();
        is_first
    }

    /// Why the call was cancelled, if it was.
    pub fn why(&self) -> Option<&Cancelled> {
        self.0.why.get()
    }

    /// Waits until the call is cancelled.
    pub async fn cancelled(&self) -> &Cancelled {
        loop {
            let notified = self.0.notify.notified();
            if let Some(why) = self.0.why.get() {
                return why;
            }
            notified.await;
        }
    }

    /// Gives up waiting for `work` when the call is cancelled.
    pub async fn or<T>(&self, tool: &str, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            why = self.cancelled() => Err(why.fault(tool)),
        }
    }
}
