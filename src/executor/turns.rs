//! Turns of calls that need no worker of a pool: by tool file, among all that run.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::pooled::Prepared;
use crate::outcome::Fault;
use crate::pool::{Lane, Shared, Turn, busy};
use crate::registry::{Catalogue, Tool};

/// When a caller that found no place may try again: nobody knows how long the calls before it take.
const AGAIN: Duration = Duration::from_millis(100);

/// The lanes of everything that is not pooled.
pub(super) struct Turns {
    shared: Arc<Shared>,
    /// Held only to look one up.
    lanes: Mutex<HashMap<PathBuf, Arc<Lane>>>,
}

impl Turns {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, lanes: Mutex::default() }
    }

    /// Waits until a call may run. One that a running call makes needs no turn: its caller holds one.
    pub async fn turn(&self, tool: &Tool, prepared: &Prepared) -> Result<Option<Turn>, Fault> {
        if prepared.nested {
            return Ok(None);
        }
        let turn = self.lane(tool).turn(tool.entry.settings.max_queue.value).await;
        turn.map(Some).map_err(|full| busy(&tool.name, full, AGAIN))
    }

    /// Forgets the lanes of tool files that are gone.
    pub fn keep_those_of(&self, catalogue: &Catalogue) {
        let is_there = |path: &PathBuf| catalogue.files.iter().any(|entry| entry.file.path == *path);
        self.lanes.lock().retain(|path, _| is_there(path));
    }

    fn lane(&self, tool: &Tool) -> Arc<Lane> {
        let mut lanes = self.lanes.lock();
        let fresh = || Lane::new(Arc::clone(&self.shared));
        Arc::clone(lanes.entry(tool.entry.file.path.clone()).or_insert_with(fresh))
    }
}
