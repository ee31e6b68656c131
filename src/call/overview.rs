//! The status of hostler as a whole, and the refresh of its tools.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{CallCounts, CallService};
use crate::executor::Status;
use crate::registry::SchemaProgress;
use crate::threads::blocking_or_here;

/// A snapshot of hostler.
#[derive(Debug, Clone, Serialize)]
pub struct Overview {
    /// Tools that can be called.
    pub tools: usize,
    /// Tool files that cannot be served.
    pub broken: usize,
    /// Tool files whose processes reach all that their user reaches.
    pub unwalled: usize,
    /// Progress of describing executables.
    pub asking: SchemaProgress,
    /// Calls that have ended.
    pub calls: CallCounts,
    /// Running calls and workers.
    #[serde(flatten)]
    pub status: Status,
}

/// The result of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refreshed {
    /// Tools that can be called.
    pub tools: usize,
}

impl fmt::Display for Refreshed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tools refreshed. {} tools available.", self.tools)
    }
}

impl CallService {
    /// The current status.
    pub async fn status(&self) -> Overview {
        let status = self.pools.status().await;
        let catalogue = self.registry.catalogue();
        Overview {
            tools: catalogue.ready().count(),
            broken: catalogue.files.iter().filter(|entry| entry.broken().is_some()).count(),
            unwalled: catalogue.files.iter().filter(|entry| entry.is_unwalled()).count(),
            asking: self.registry.asking(),
            calls: self.counts(),
            status,
        }
    }

    /// Reads all tool files again and describes every executable again. Running calls are not affected.
    pub async fn refresh(&self) -> Refreshed {
        let registry = Arc::clone(&self.registry);
        // Reads files, which can block.
        blocking_or_here(move || registry.forget_answers()).await;
        self.registry.asked().await;
        Refreshed { tools: self.registry.catalogue().ready().count() }
    }
}
