//! Goes on with what hostlers that are gone had begun.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::Runtime;
use crate::call::{CallRequest, Caller, Resumed, lost};
use crate::config::call_site::CallSite;
use crate::journal::{CallRow, Journal, ToRun};
use crate::outcome::{Cancelled, Canceller, Code, Fault};
use crate::protocol::TraceContext;
use crate::telemetry::unix_ms;
use crate::threads::blocking;

/// The delay of the first look: what a dead hostler left running is ended before.
const FIRST: Duration = Duration::from_secs(1);
/// The pause between looks.
const AGAIN: Duration = Duration::from_secs(30);
/// How many calls a process takes from a queue at once: others may have the rest.
const QUEUED: usize = 32;
/// The longest pause before a retry (specification 003).
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Runtime {
    /// Looks for spools of hostlers that are gone, now and from time to time, as long as the runtime is there.
    pub(crate) fn recover(self: &Arc<Self>) {
        let Some(journal) = self.journal.clone() else { return };
        journal.will_recover();
        tokio::spawn(end_those_asked(Arc::downgrade(self), journal.asked_to_end()));
        self.take_queued(Arc::clone(&journal));
        let runtime = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(FIRST).await;
            while let Some(runtime) = runtime.upgrade() {
                runtime.look(&journal).await;
                runtime.find_unknown(&journal).await;
                drop(runtime);
                tokio::time::sleep(AGAIN).await;
            }
        });
    }

    /// Makes calls that others enqueue, as long as the runtime is there.
    fn take_queued(self: &Arc<Self>, journal: Arc<Journal>) {
        let Some(queue) = journal.queue() else { return };
        let (runtime, room) = (Arc::downgrade(self), Arc::clone(&self.background.room));
        tokio::spawn(async move {
            while let Ok(one) = room.acquire().await {
                let at_most = room.available_permits().min(QUEUED - 1) + 1;
                drop(one);
                let taken = journal.take_queued(&queue, u64::try_from(at_most).unwrap_or(1)).await.unwrap_or_default();
                if runtime.strong_count() == 0 {
                    break;
                }
                let is_empty = taken.is_empty();
                go_on_with(&runtime, &room, taken).await;
                if is_empty {
                    queue.changed().await;
                }
            }
        });
    }

    /// Goes on with calls that were handed to this process by an answer that was lost. One that has only just ended is not among them: it
    /// would have ended in the store at the second look.
    async fn find_unknown(self: &Arc<Self>, journal: &Journal) {
        if !journal.was_in_doubt() {
            return;
        }
        let (Ok(first), Ok(second)) = (self.unknown(journal).await, self.unknown(journal).await) else {
            return journal.doubt();
        };
        let both = second.into_iter().filter(|row| first.iter().any(|before| before.id == row.id));
        let lost: Vec<ToRun> =
            both.map(|row| ToRun { id: row.id, retry_count: row.retry_count, retry_at: row.retry_at }).collect();
        if !lost.is_empty() {
            tracing::info!(count = lost.len(), "calls that were taken from the store without its answer go on");
        }
        let (runtime, room) = (Arc::downgrade(self), Arc::clone(&self.background.room));
        tokio::spawn(async move { go_on_with(&runtime, &room, lost).await });
    }

    async fn unknown(&self, journal: &Journal) -> Result<Vec<CallRow>, String> {
        let mut rows = journal.not_begun().await?;
        let taken = self.background.taken.lock();
        rows.retain(|row| self.watch.handle(&row.id).is_none() && !taken.contains(&row.id));
        Ok(rows)
    }

    async fn look(self: &Arc<Self>, journal: &Arc<Journal>) {
        let journal = Arc::clone(journal);
        let Ok(looking) = blocking(move || journal.recover()) else { return };
        let recovered = looking.await;
        if let Some(error) = &recovered.trouble {
            tracing::warn!(%error, "not all calls of hostlers that are gone are recovered");
        }
        if recovered.ended > 0 || !recovered.to_run.is_empty() {
            let (ended, to_run) = (recovered.ended, recovered.to_run.len());
            tracing::info!(ended, to_run, "calls of a hostler that is gone were recovered");
        }
        let (runtime, room) = (Arc::downgrade(self), Arc::clone(&self.background.room));
        tokio::spawn(async move { go_on_with(&runtime, &room, recovered.to_run).await });
    }
}

/// Ends calls as other hostlers ask.
async fn end_those_asked(runtime: Weak<Runtime>, mut asked: watch::Receiver<Vec<String>>) {
    while asked.changed().await.is_ok() {
        let Some(runtime) = runtime.upgrade() else { return };
        for id in asked.borrow_and_update().iter() {
            runtime.watch.cancel(id, Cancelled::by(Canceller::Operator));
        }
    }
}

/// Runs calls that are this process's now, so many at once. Returns when the last has its turn.
async fn go_on_with(runtime: &Weak<Runtime>, room: &Arc<Semaphore>, calls: Vec<ToRun>) {
    if let Some(runtime) = runtime.upgrade() {
        runtime.background.taken.lock().extend(calls.iter().map(|call| call.id.clone()));
    }
    for call in calls {
        let Ok(place) = Arc::clone(room).acquire_owned().await else { return };
        tokio::spawn(go_on(Weak::clone(runtime), call, place));
    }
}

/// Runs a call again, under its own id. As long as it cannot be begun, such as while its folder's configuration is invalid, it waits and
/// leaves its place to others.
async fn go_on(runtime: Weak<Runtime>, call: ToRun, place: OwnedSemaphorePermit) {
    let pause = call.retry_at.map_or(0, |at| at.saturating_sub(unix_ms()));
    // The clock may have been set back.
    tokio::time::sleep(Duration::from_millis(pause).min(LONGEST_PAUSE)).await;
    let (mut place, mut is_said) = (Some(place), false);
    while let Some(strong) = runtime.upgrade() {
        let Err(fault) = strong.begin_again(&call).await else { break };
        if !std::mem::replace(&mut is_said, true) {
            tracing::warn!(call = call.id, %fault, "a recovered call cannot be begun yet");
        }
        let room = Arc::clone(&strong.background.room);
        drop((strong, place.take()));
        tokio::time::sleep(AGAIN).await;
        place = room.acquire_owned().await.ok();
    }
    let running = runtime.upgrade().and_then(|runtime| runtime.watch.handle(&call.id));
    if let Some(running) = running {
        running.outcome().await;
    }
    if let Some(runtime) = runtime.upgrade() {
        runtime.background.taken.lock().remove(&call.id);
    }
}

impl Runtime {
    /// Begins a call again, unless somebody has ended it meanwhile. Says why it cannot be begun.
    async fn begin_again(&self, call: &ToRun) -> Result<(), Fault> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let unread = || Fault::new(Code::SystemError, "the store of calls cannot be read");
        let id = call.id.clone();
        let row = journal.read(move |store| store.call(&id).ok()).await.ok_or_else(unread)?;
        // Its store was set aside meanwhile.
        let Some(row) = row else { return Ok(()) };
        let site = self.background.site(row.workspace.as_deref());
        let begins = journal.begins(&call.id).await.map_err(|why| Fault::new(Code::SystemError, why))?;
        match (begins, wanted(&row, &site, journal.is_shared())) {
            (true, Ok(request)) => return self.background.start(site, request).await.map(drop),
            (true, Err(fault)) => journal.never_begun(&row, &fault),
            // The call is this one's still, and its key another call's.
            (false, _) if journal.is_own(&row) && row.state.is_some_and(|state| !state.is_final()) => {
                journal.never_begun(&row, &lost());
            }
            (false, _) => {}
        }
        Ok(())
    }
}

/// What is to be run, or why nothing is.
fn wanted(row: &CallRow, site: &CallSite, is_shared: bool) -> Result<CallRequest, Fault> {
    if let Some(why) = &row.cancelled {
        return Err(Fault::new(Code::Cancelled, format!("the call of {} was cancelled: {why}", row.tool_name)));
    }
    match site.stranger().filter(|_| is_shared) {
        Some(folder) => Err(foreign(row, &folder)),
        None => request(row),
    }
}

/// Whoever can write to the database could have files of their own run.
fn foreign(row: &CallRow, folder: &Path) -> Fault {
    let message = format!(
        "the call of {} was not begun: its folder {} belongs to another user. Enqueue it with a folder of the user who runs hostler",
        row.tool_name,
        folder.display()
    );
    Fault::new(Code::PermissionDenied, message)
}

fn request(row: &CallRow) -> Result<CallRequest, Fault> {
    let unreadable = || Fault::new(Code::InvalidParams, format!("the arguments of {} cannot be read", row.tool_name));
    let arguments = serde_json::from_str(row.request.as_deref().unwrap_or("{}")).map_err(|_| unreadable())?;
    let trace = row.traceparent.as_deref().and_then(|parent| TraceContext::read(parent, None));
    let caller = Caller { client: row.client.clone(), tags: row.tags.clone(), trace, ..Caller::default() };
    Ok(CallRequest {
        caller: Arc::new(caller),
        timeout: Some(Duration::from_millis(row.timeout_ms)).filter(|limit| !limit.is_zero()),
        max_retries: u32::try_from(row.max_retries).ok(),
        resumed: Some(Resumed {
            id: row.id.clone(),
            attempts: row.attempt,
            retries: row.retry_count,
            tries: row.tries.clone(),
        }),
        ..CallRequest::new(row.tool_name.clone(), arguments)
    })
}
