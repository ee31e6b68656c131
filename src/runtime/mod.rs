//! What exists once per process, and the workspaces in it.
//!
//! A [`Runtime`] holds the pools of workers and what they share. A [`Workspace`] is one effective configuration with its
//! catalogue. A runtime has any number of workspaces; their sessions share a worker only if both would start an
//! identical one (`executor::PoolKey`).

mod workspace;

use std::sync::Arc;

pub use workspace::Workspace;

use crate::config::Config;
use crate::executor::{PoolStore, caps};
use crate::pool::BrokerHandle;

/// The workers of a process, and the limits on all of them together.
pub struct Runtime {
    pub(crate) pools: Arc<PoolStore>,
}

impl Runtime {
    /// A runtime with the `[limits]` of this configuration; those of its workspaces are ignored.
    pub fn new(config: &Config) -> Arc<Self> {
        Arc::new(Self { pools: PoolStore::new(Arc::new(BrokerHandle::new(caps(config)))) })
    }
}
