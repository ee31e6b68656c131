//! Admission of calls that use no pooled worker: queues per tool file, under the common limit on running calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::pooled::Invocation;
use super::seat::Seat;
use super::{advice, blocked};
use crate::discovery::SourceId;
use crate::outcome::{Fault, Metadata, milliseconds};
use crate::pool::{AdmissionQueue, BrokerHandle, RunPermit, Settled, busy};
use crate::registry::{Catalogue, Tool};

/// The retry hint for a full queue; the duration of earlier calls is unknown.
const AGAIN: Duration = Duration::from_millis(100);

/// The queues of all tool files without a pool.
pub(super) struct Admission {
    shared: Arc<BrokerHandle>,
    /// Locked only to look up a queue.
    queues: Mutex<HashMap<SourceId, Arc<AdmissionQueue>>>,
}

impl Admission {
    pub fn new(shared: Arc<BrokerHandle>) -> Self {
        Self { shared, queues: Mutex::default() }
    }

    /// Runs a call once it has a permit, and records both durations.
    pub async fn settled<W: Future<Output = Settled>>(
        &self,
        tool: &Tool,
        invocation: Invocation,
        work: impl FnOnce(Invocation, Arc<Seat>) -> W,
    ) -> Settled {
        let (asked, timeout) = (Instant::now(), invocation.timeout);
        let (cancellation, host) = (invocation.cancellation.clone(), invocation.host.clone());
        if let Some(host) = &host {
            host.starts();
        }
        let permit = cancellation.or(&tool.name, self.permit(tool, &invocation)).await.and_then(|permit| permit);
        let queue_ms = milliseconds(asked.elapsed());
        let began = Instant::now();
        let mut settled = match permit {
            Ok(permit) => {
                if let Some(host) = &host {
                    if let Err(fault) = host.dispatches_at_once() {
                        return Settled { ended: Err(fault), metadata: Metadata { queue_ms, ..Metadata::default() } };
                    }
                    host.begins();
                }
                let seat = Seat::new(self.queue(tool), permit, timeout);
                // Held here, whatever becomes of the other reference: the permit is the call's until its end.
                let ended = cancellation.or(&tool.name, work(invocation, Arc::clone(&seat))).await;
                drop(seat);
                ended.unwrap_or_else(|fault| Settled { ended: Err(fault), metadata: Metadata::default() })
            }
            Err(fault) => return Settled { ended: Err(fault), metadata: Metadata { queue_ms, ..Metadata::default() } },
        };
        settled.metadata.queue_ms = queue_ms;
        settled.metadata.run_ms = milliseconds(began.elapsed());
        if let Err(fault) = &mut settled.ended {
            advice::complete(fault, tool, timeout, &tool.entry.config);
            Box::pin(blocked::complete(fault, &tool.entry)).await;
        }
        settled
    }

    /// Waits until a call may run. A nested call needs no permit: its caller holds one.
    async fn permit(&self, tool: &Tool, invocation: &Invocation) -> Result<Option<RunPermit>, Fault> {
        if invocation.nested {
            return Ok(None);
        }
        let permit = self.queue(tool).permit(tool.entry.settings.max_queue.value).await;
        permit.map(Some).map_err(|full| busy(&tool.name, full, AGAIN))
    }

    /// Removes the queues of deleted tool files.
    pub fn keep_those_of(&self, catalogue: &Catalogue) {
        let there: HashSet<SourceId> = catalogue.files.iter().map(|entry| entry.file.source()).collect();
        self.queues.lock().retain(|source, _| there.contains(source));
    }

    fn queue(&self, tool: &Tool) -> Arc<AdmissionQueue> {
        let mut queues = self.queues.lock();
        let fresh = || AdmissionQueue::new(Arc::clone(&self.shared));
        Arc::clone(queues.entry(tool.entry.file.source()).or_insert_with(fresh))
    }
}
