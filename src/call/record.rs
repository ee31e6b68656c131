//! What is kept of every call that ended: a line of the log, and counts.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::layer::Layer;
use super::request::Caller;
use crate::outcome::{Code, Outcome};

/// Writes one line of the log for each call that ended without a result.
pub(super) struct LogLayer;

impl Layer for LogLayer {
    fn recorded(&self, caller: &Caller, outcome: &Outcome) {
        let (call_id, tool, session) = (&outcome.call_id, &outcome.tool, caller.session.0);
        let Err(fault) = &outcome.ended else {
            tracing::debug!(call_id, tool, session, "call ended");
            return;
        };
        let code = fault.code;
        if let Some(why) = &outcome.metadata.cancelled {
            tracing::info!(call_id, tool, session, %code, ended_by = %why, "call cancelled");
        } else {
            tracing::info!(call_id, tool, session, %code, message = fault.message, "call failed");
        }
    }
}

/// Calls that ended, since hostler started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCounts {
    /// All of them.
    pub ended: u64,
    /// Those without a result, cancelled ones not included.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
}

/// Counts calls that ended, each once, however many versions of its tool were tried.
#[derive(Debug, Default)]
pub(super) struct CountLayer {
    ended: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
}

impl CountLayer {
    pub fn counts(&self) -> CallCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CallCounts { ended: read(&self.ended), failed: read(&self.failed), cancelled: read(&self.cancelled) }
    }
}

impl Layer for CountLayer {
    fn recorded(&self, _: &Caller, outcome: &Outcome) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        match &outcome.ended {
            Ok(_) => return,
            Err(fault) if fault.code == Code::Cancelled => &self.cancelled,
            Err(_) => &self.failed,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}
