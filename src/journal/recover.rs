//! Recovery: goes on with the spools of processes that are gone. Blocks; it runs on a thread.

use std::path::Path;
use std::time::Duration;

use super::place::{Claim, Left, PlaceError};
use super::plan::{INTERRUPTED, Plan, plan};
use super::reader::Reader;
use super::state::State;
use super::store::{CallRow, Change, LazyStore, StoreError};
use crate::outcome::{Attempt, Code};
use crate::process::{edge, end_stray};
use crate::telemetry::unix_ms;

/// How long a process that a dead hostler left has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// No machine's boot.
const ELSEWHERE: &str = "elsewhere";

/// What was done.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Calls that are to be run, with their new count of retries. They belong to this process now.
    pub to_run: Vec<ToRun>,
    /// Calls that have ended with this.
    pub ended: usize,
    /// Why some are left to the next look.
    pub trouble: Option<RecoveryError>,
}

/// A call that is to be run. What else is known of it is read when its turn comes: there may be many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToRun {
    /// Its id.
    pub id: String,
    /// Which retry it will be; 0 if it was not begun.
    pub retry_count: u64,
    /// When, in milliseconds since 1970; at once if that is not said.
    pub retry_at: Option<u64>,
}

/// Why calls are not recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The store says so.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Spools cannot be looked at.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

/// Recovers every spool that no process holds, as the process of this claim in this boot. What one of them lacks does not keep the
/// others from it.
pub fn recover(own: &Claim, boot: &str, store: &LazyStore) -> Recovered {
    let mut recovered = Recovered::default();
    let others = own.others().map_err(|source| RecoveryError::Place(failed(&own.folder, source)));
    let others = others.unwrap_or_else(|error| {
        recovered.trouble = Some(error);
        Vec::new()
    });
    for lock in others {
        let done = one(own, &lock, boot, store, &mut recovered);
        recovered.trouble = done.err().or(recovered.trouble.take());
    }
    if store.address().may_exist() {
        let done = gone(own, boot, store, &mut recovered);
        recovered.trouble = done.err().or(recovered.trouble.take());
    }
    recovered
}

fn failed(path: &Path, source: std::io::Error) -> PlaceError {
    PlaceError::System { path: path.to_owned(), source }
}

/// Recovers the spool of a lock, if no process holds it.
fn one(
    own: &Claim,
    lock: &Path,
    boot: &str,
    store: &LazyStore,
    recovered: &mut Recovered,
) -> Result<(), RecoveryError> {
    let Some(claim) = own.place.adopt(lock).map_err(|source| failed(lock, source))? else { return Ok(()) };
    if !bring(&claim, store)? {
        return Ok(());
    }
    edge("recovery.after-import");
    settle(own, (&claim.name, true), boot, store, recovered)?;
    edge("recovery.after-plan");
    // Its files are all there is of it until the store is on the disk.
    if store.with(|store| store.synced())? {
        store.with(|store| store.forget(&claim.name))?;
        edge("recovery.before-clearing");
        claim.clear();
    }
    Ok(())
}

/// Recovers the calls of spools whose files are gone altogether.
fn gone(own: &Claim, boot: &str, store: &LazyStore, recovered: &mut Recovered) -> Result<(), RecoveryError> {
    // What is in the spool of another machine is not known here: as after a loss of power.
    let boot = if store.address().is_shared() { ELSEWHERE } else { boot };
    for name in store.with(|store| store.open_spools())? {
        // Asked after the store: whoever begins a spool makes its files first.
        if name != own.name && own.place.left(&name).map_err(|source| failed(&own.folder, source))? == Left::Nothing {
            settle(own, (&name, false), boot, store, recovered)?;
        }
    }
    Ok(())
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
            Ok(None) => return Ok(true),
            Err(error) => {
                tracing::warn!(spool = claim.name, folder = %claim.folder.display(), %error, "a spool is left as it is");
                return Ok(false);
            }
        }
    }
}

/// Decides what becomes of the calls of a spool that had not ended. Its process certainly is gone, or has not shown itself for long.
fn settle(
    own: &Claim,
    (spool, is_gone): (&str, bool),
    boot: &str,
    store: &LazyStore,
    recovered: &mut Recovered,
) -> Result<(), StoreError> {
    loop {
        let open = store.with(|store| store.open_calls(spool))?;
        if open.is_empty() {
            return Ok(());
        }
        for row in open.iter().filter(|row| row.boot_id.as_deref() == Some(boot)) {
            end_process_of(row);
        }
        drop(open);
        if hand_over(own, (spool, is_gone), boot, store, recovered)? == 0 {
            return Ok(());
        }
    }
}

/// Decides what becomes of the next calls of a spool. Returns how many those were.
fn hand_over(
    own: &Claim,
    (spool, is_gone): (&str, bool),
    boot: &str,
    store: &LazyStore,
    recovered: &mut Recovered,
) -> Result<usize, StoreError> {
    let (mut to_run, mut ended) = (Vec::new(), 0);
    // From here on they are this process's: if it dies, the next one decides anew.
    let count = store.with(|store| {
        store.take_over(spool, &own.name, is_gone, &mut |row| {
            let change = decided(row, boot);
            if change.row.state.is_some_and(State::is_final) {
                ended += 1;
            } else {
                let retry_count = change.row.retry_count.max(row.retry_count);
                to_run.push(ToRun { id: row.id.clone(), retry_count, retry_at: row.retry_at });
            }
            change
        })
    })?;
    recovered.to_run.append(&mut to_run);
    recovered.ended += ended;
    Ok(count)
}

/// What becomes of a call.
fn decided(row: &CallRow, boot: &str) -> Change {
    let plan = plan(row, boot);
    let changed =
        CallRow { id: row.id.clone(), state: Some(plan.state(row.state)), updated_at: unix_ms(), ..CallRow::default() };
    let mut change = Change { row: changed, keeps_request: true, ..Change::default() };
    let fault = match plan {
        Plan::Run { retry_count } => {
            change.row.retry_count = retry_count;
            change.row.retry_at = row.retry_at;
            if retry_count > row.retry_count {
                change.row.tries = vec![Attempt { code: Code::ShuttingDown, message: INTERRUPTED.to_owned() }];
            }
            return change;
        }
        Plan::Fail { fault, gives_key_back } => {
            change.frees_key = gives_key_back;
            fault
        }
        Plan::Cancel(fault) => fault,
    };
    change.row.code = Some(fault.code.word().to_owned());
    change.row.fault = serde_json::to_string(&fault).ok();
    change.row.error = Some(fault.message);
    // What a tool's secrets are is not known any more, so they cannot be taken out.
    change.keeps_request = !row.has_secrets;
    change
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
