//! What exists once a process, and the workspaces in it.
//!
//! A [`Runtime`] holds the pools of workers and what they share. A [`Workspace`] is one effective configuration with its
//! catalogue; any number of them live in one runtime, and their sessions share a worker only where it would be the same
//! worker anyway (`executor::PoolKey`).

mod workspace;

use std::sync::Arc;

pub use workspace::Workspace;

use crate::config::Config;
use crate::executor::{PoolStore, caps};
use crate::pool::BrokerHandle;

/// The workers of a process, and the limits that hold for all of them together.
pub struct Runtime {
    pub(crate) pools: Arc<PoolStore>,
}

impl Runtime {
    /// With the `[limits]` of a configuration: those of single workspaces in it do not count.
    pub fn new(config: &Config) -> Arc<Self> {
        Arc::new(Self { pools: PoolStore::new(Arc::new(BrokerHandle::new(caps(config)))) })
    }
}
