//! Goes on with what hostlers that are gone had begun.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::Runtime;
use crate::call::{CallRequest, Caller, Resumed};
use crate::journal::{CallRow, Journal};
use crate::outcome::{Cancelled, Canceller};
use crate::protocol::TraceContext;
use crate::telemetry::unix_ms;
use crate::threads::blocking;

/// The delay of the first look: what a dead hostler left running is ended before.
const FIRST: Duration = Duration::from_secs(1);
/// The pause between looks.
const AGAIN: Duration = Duration::from_secs(30);
/// How many calls of a queue a process has at once: others may have the rest.
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
                drop(runtime);
                tokio::time::sleep(AGAIN).await;
            }
        });
    }

    /// Makes calls that others enqueue, as long as the runtime is there.
    fn take_queued(self: &Arc<Self>, journal: Arc<Journal>) {
        let Some(queue) = journal.queue() else { return };
        let runtime = Arc::downgrade(self);
        tokio::spawn(async move {
            let room = Arc::new(Semaphore::new(QUEUED));
            while let Ok(one) = Arc::clone(&room).acquire_owned().await {
                let at_most = room.available_permits() + 1;
                drop(one);
                let taken = journal.take_queued(&queue, u64::try_from(at_most).unwrap_or(1)).await;
                if runtime.strong_count() == 0 {
                    break;
                }
                match taken {
                    Ok(rows) if !rows.is_empty() => {
                        for row in rows {
                            let (runtime, one) = (Weak::clone(&runtime), Arc::clone(&room).try_acquire_owned());
                            tokio::spawn(async move {
                                let id = row.id.clone();
                                go_on(Weak::clone(&runtime), row).await;
                                let running = runtime.upgrade().and_then(|runtime| runtime.watch.handle(&id));
                                if let Some(running) = running {
                                    running.outcome().await;
                                }
                                drop(one);
                            });
                        }
                    }
                    _ => queue.changed().await,
                }
            }
        });
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
        for row in recovered.to_run {
            tokio::spawn(go_on(Arc::downgrade(self), row));
        }
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

/// Runs a call again, under its own id. As long as it cannot be begun, such as while its folder's configuration is invalid, it waits.
async fn go_on(runtime: Weak<Runtime>, row: CallRow) {
    let pause = row.retry_at.map_or(0, |at| at.saturating_sub(unix_ms()));
    // The clock may have been set back.
    tokio::time::sleep(Duration::from_millis(pause).min(LONGEST_PAUSE)).await;
    let mut is_said = false;
    while let Some(runtime) = runtime.upgrade() {
        if let Some(journal) = &runtime.journal
            && let Some(why) = journal.call(&row.id).await.and_then(|row| row.cancelled)
        {
            return journal.never_begun(&row, &why);
        }
        let site = runtime.background.site(row.workspace.as_deref());
        let Err(fault) = runtime.background.start(site, request(&row)).await else { return };
        if !std::mem::replace(&mut is_said, true) {
            tracing::warn!(call = row.id, %fault, "a recovered call cannot be begun yet");
        }
        drop(runtime);
        tokio::time::sleep(AGAIN).await;
    }
}

fn request(row: &CallRow) -> CallRequest {
    let arguments = row.request.as_deref().and_then(|request| serde_json::from_str(request).ok());
    let trace = row.traceparent.as_deref().and_then(|parent| TraceContext::read(parent, None));
    let caller = Caller { client: row.client.clone(), tags: row.tags.clone(), trace, ..Caller::default() };
    CallRequest {
        caller: Arc::new(caller),
        timeout: Some(Duration::from_millis(row.timeout_ms)).filter(|limit| !limit.is_zero()),
        max_retries: u32::try_from(row.max_retries).ok(),
        resumed: Some(Resumed { id: row.id.clone(), attempts: row.attempt, retries: row.retry_count }),
        ..CallRequest::new(row.tool_name.clone(), arguments.unwrap_or_default())
    }
}
