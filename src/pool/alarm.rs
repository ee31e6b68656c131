//! The pool's timer.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer for the whole pool. It only moves earlier: ringing early is harmless, and cheaper than a reset per call.
pub(super) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    armed: Option<Instant>,
}

impl Alarm {
    pub fn new() -> Self {
        Self { sleep: Box::pin(sleep_until(Instant::now())), armed: None }
    }

    pub fn arm(&mut self, at: Option<Instant>) {
        let Some(at) = at else { return };
        if self.armed.is_none_or(|armed| at < armed) {
            self.sleep.as_mut().reset(at);
            self.armed = Some(at);
        }
    }

    pub fn disarm(&mut self) {
        self.armed = None;
    }

    pub async fn rings(&mut self) {
        match self.armed {
            Some(_) => self.sleep.as_mut().await,
            None => std::future::pending().await,
        }
    }
}
