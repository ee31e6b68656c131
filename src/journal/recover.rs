//! Recovery: goes on with the spools of processes that are gone. Blocks; it runs on a thread.

use std::collections::HashSet;
use std::time::Duration;

use super::place::Claim;
use super::plan::{Plan, plan};
use super::reader::Reader;
use super::state::State;
use super::store::{Batch, CallRow, Change, LazyStore, Store, StoreError};
use crate::process::{edge, end_stray};
use crate::telemetry::unix_ms;

/// How long a process that a dead hostler left has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// What was done.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Calls that are to be run, with their new count of retries. They belong to this process now.
    pub to_run: Vec<CallRow>,
    /// Calls that have ended with this.
    pub ended: usize,
}

/// Recovers every spool that no process holds, as the process of this claim in this boot.
pub fn recover(own: &Claim, boot: &str, store: &LazyStore) -> Result<Recovered, StoreError> {
    let abandoned = own.abandoned();
    let has_store = store.path().exists();
    let mut recovered = Recovered::default();
    if abandoned.is_empty() && !has_store {
        return Ok(recovered);
    }
    for claim in abandoned {
        if bring(&claim, store)? {
            edge("recovery.after-import");
            settle(own, &claim.name, boot, store, &mut recovered)?;
            edge("recovery.after-plan");
            store.with(|store| store.forget(&claim.name))?;
            edge("recovery.before-clearing");
            claim.clear();
        }
    }
    // Spools whose files are gone altogether.
    let held: HashSet<String> = own.place.held();
    for name in store.with(Store::open_spools)?.into_iter().filter(|name| !held.contains(name)) {
        settle(own, &name, boot, store, &mut recovered)?;
    }
    Ok(recovered)
}

/// Brings what is left of a spool to the store. Whether it was read to its end.
pub(super) fn bring(claim: &Claim, store: &LazyStore) -> Result<bool, StoreError> {
    let mut reader = Reader::at(store.with(|store| store.imported(&claim.name))?);
    loop {
        match reader.next(claim, None) {
            Ok(Some(read)) => {
                store.with(|store| store.import(&claim.name, &read.batch))?;
                if read.damaged > 0 {
                    tracing::warn!(
                        spool = claim.name,
                        places = read.damaged,
                        "a spool was damaged; the rest of it was read"
                    );
                }
            }
            Ok(None) => {
                store.with(Store::synced)?;
                return Ok(true);
            }
            Err(error) => {
                tracing::warn!(spool = claim.name, folder = %claim.folder.display(), %error, "a spool is left as it is");
                return Ok(false);
            }
        }
    }
}

/// Decides what becomes of the calls of a spool that had not ended.
fn settle(
    own: &Claim,
    spool: &str,
    boot: &str,
    store: &LazyStore,
    recovered: &mut Recovered,
) -> Result<(), StoreError> {
    let open = store.with(|store| store.open_calls(spool))?;
    for row in open.iter().filter(|row| row.boot_id.as_deref() == Some(boot)) {
        end_process_of(row);
    }
    let mut batch = Batch::default();
    for mut row in open {
        let plan = plan(&row, boot);
        let now = unix_ms();
        let changed =
            CallRow { id: row.id.clone(), state: Some(plan.state(row.state)), updated_at: now, ..CallRow::default() };
        let mut change = Change { row: changed, keeps_request: true, ..Change::default() };
        match plan {
            Plan::Run { retry_count } => {
                change.row.retry_count = retry_count;
                change.row.retry_at = row.retry_at;
                row.retry_count = retry_count;
                recovered.to_run.push(row);
            }
            Plan::Fail(fault) => {
                change.row.code = Some(fault.code.word().to_owned());
                change.row.fault = serde_json::to_string(&fault).ok();
                change.row.error = Some(fault.message);
                // What a tool's secrets are is not known any more, so they cannot be taken out.
                change.keeps_request = !row.has_secrets;
                recovered.ended += 1;
            }
            Plan::Cancel => recovered.ended += 1,
        }
        batch.calls.push(change);
    }
    // From here on they are this process's: if it dies, the next one decides anew.
    store.with(|store| {
        batch.at = store.imported(&own.name)?;
        store.import(&own.name, &batch)
    })
}

/// Ends what still runs a call: nothing may come of it that nobody hears of.
fn end_process_of(row: &CallRow) {
    if let (Some(State::Running), Some(pid), Some(started)) = (row.state, row.pid, row.process_started)
        && let Ok(pid) = u32::try_from(pid)
        && end_stray(pid, started, GRACE)
    {
        tracing::warn!(pid, call = row.id, "ended a process that a hostler which is gone left behind");
    }
}
