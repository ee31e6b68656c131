//! Turns of calls that need no worker of a pool: by tool file, among all that run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::advice;
use super::pooled::Prepared;
use crate::config::Config;
use crate::discovery::SourceId;
use crate::outcome::{Fault, Metadata, milliseconds};
use crate::pool::{Lane, Settled, Shared, Turn, busy};
use crate::registry::{Catalogue, Tool};

/// When a caller that found no place may try again: nobody knows how long the calls before it take.
const AGAIN: Duration = Duration::from_millis(100);

/// The lanes of everything that is not pooled.
pub(super) struct Turns {
    shared: Arc<Shared>,
    /// Held only to look one up.
    lanes: Mutex<HashMap<SourceId, Arc<Lane>>>,
}

impl Turns {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, lanes: Mutex::default() }
    }

    /// Does the work of a call when it is its turn, and says how long both took.
    pub async fn settled<W: Future<Output = Settled>>(
        &self,
        tool: &Tool,
        prepared: Prepared,
        config: &Config,
        work: impl FnOnce(Prepared) -> W,
    ) -> Settled {
        let (came, timeout) = (Instant::now(), prepared.timeout);
        let cancellation = prepared.cancellation.clone();
        let turn = cancellation.or(&tool.name, self.turn(tool, &prepared)).await.and_then(|turn| turn);
        let queue_ms = milliseconds(came.elapsed());
        let began = Instant::now();
        let mut settled = match turn {
            Ok(turn) => {
                let _turn = turn;
                let ended = cancellation.or(&tool.name, work(prepared)).await;
                ended.unwrap_or_else(|fault| Settled { ended: Err(fault), metadata: Metadata::default() })
            }
            Err(fault) => return Settled { ended: Err(fault), metadata: Metadata { queue_ms, ..Metadata::default() } },
        };
        settled.metadata.queue_ms = queue_ms;
        settled.metadata.run_ms = milliseconds(began.elapsed());
        if let Err(fault) = &mut settled.ended {
            advice::complete(fault, tool, timeout, config);
        }
        settled
    }

    /// Waits until a call may run. One that a running call makes needs no turn: its caller holds one.
    async fn turn(&self, tool: &Tool, prepared: &Prepared) -> Result<Option<Turn>, Fault> {
        if prepared.nested {
            return Ok(None);
        }
        let turn = self.lane(tool).turn(tool.entry.settings.max_queue.value).await;
        turn.map(Some).map_err(|full| busy(&tool.name, full, AGAIN))
    }

    /// Forgets the lanes of tool files that are gone.
    pub fn keep_those_of(&self, catalogue: &Catalogue) {
        let there: HashSet<SourceId> = catalogue.files.iter().map(|entry| entry.file.source()).collect();
        self.lanes.lock().retain(|source, _| there.contains(source));
    }

    fn lane(&self, tool: &Tool) -> Arc<Lane> {
        let mut lanes = self.lanes.lock();
        let fresh = || Lane::new(Arc::clone(&self.shared));
        Arc::clone(lanes.entry(tool.entry.file.source()).or_insert_with(fresh))
    }
}
