//! hostler as a whole: how it stands, and the tools looked at anew.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{CallCounts, CallService};
use crate::executor::Status;
use crate::registry::Asking;

/// hostler at a moment.
#[derive(Debug, Clone, Serialize)]
pub struct Overview {
    /// How many tools can be called.
    pub tools: usize,
    /// How many tool files cannot be served.
    pub broken: usize,
    /// How far executables have been asked what they are.
    pub asking: Asking,
    /// Calls that ended.
    pub calls: CallCounts,
    /// Running calls and workers.
    #[serde(flatten)]
    pub status: Status,
}

/// That all tools were looked at anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refreshed {
    /// How many can be called.
    pub tools: usize,
}

impl fmt::Display for Refreshed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tools refreshed. {} tools available.", self.tools)
    }
}

impl CallService {
    /// How everything stands.
    pub async fn status(&self) -> Overview {
        let status = self.pools.status().await;
        let catalogue = self.registry.catalogue();
        Overview {
            tools: catalogue.ready().count(),
            broken: catalogue.files.iter().filter(|entry| entry.broken().is_some()).count(),
            asking: self.registry.asking(),
            calls: self.counts(),
            status,
        }
    }

    /// Reads all tool files anew and asks every executable again. Calls that run notice nothing.
    pub async fn refresh(&self) -> Refreshed {
        let registry = Arc::clone(&self.registry);
        // Files are read for it, which may take a while.
        let _ = tokio::task::spawn_blocking(move || registry.forget_answers()).await;
        self.registry.asked().await;
        Refreshed { tools: self.registry.catalogue().ready().count() }
    }
}
