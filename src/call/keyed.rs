//! A request with an idempotency key, held against what the journal knows of it: one of a day makes the call, the others get its
//! outcome, whichever hostler of the person they come to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use super::handle::{CallHandle, RunningCall};
use super::service::CallService;
use crate::journal::{CallEnd, CallRow, Claimed, Journal, Keyed, State, difference, digest};
use crate::outcome::{Code, Fault, Outcome};
use crate::process::edge;

/// The first and the longest pause before the store is asked again for the end of a call that another process makes.
const LOOK: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// What becomes of a request with a key.
pub(super) enum Ruling {
    /// It is the first: the call is made.
    Make,
    /// The outcome of the first.
    Known(Box<Outcome>),
}

/// Decides what becomes of a request. Waits for the first, if that is under way, until this moment.
pub(super) async fn rule(
    service: &CallService,
    journal: &Journal,
    running: &RunningCall,
    (tool, key, until): (&str, &str, Option<Instant>),
    arguments: &RawValue,
) -> Result<Ruling, Fault> {
    let own: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    let asked = Keyed { tool: tool.to_owned(), key: key.to_owned(), digest: digest(&own), call: running.id.clone() };
    let mut pause = LOOK[0];
    let mut elsewhere: Option<CallEnd> = None;
    loop {
        // Not cancelled half-way: the key would stay taken without a call.
        let claimed = journal.claim_key(asked.clone()).await.map_err(|why| {
            Fault::new(Code::ResourceExhausted, format!("{why}; a call with an idempotency key needs the journal"))
        })?;
        let (call, row) = match claimed {
            Claimed::First => {
                edge("key.claimed");
                return Ok(Ruling::Make);
            }
            Claimed::Known { is_same: false, row, call } => return Err(differs(key, &call, row.as_deref(), &own)),
            Claimed::Known { call, row, .. } => (call, row),
        };
        if let Some(row) = row.filter(|row| row.state.is_some_and(State::is_final)) {
            return Ok(Ruling::Known(Box::new(row.outcome())));
        }
        let first = service.watch.handle(&call);
        let ended = async {
            if let Some(first) = &first {
                return Some(first.outcome().await);
            }
            match elsewhere.as_mut().filter(|end| end.is_of(&call)) {
                Some(end) => end.may_have_come(pause).await,
                // Looks once more: it may have ended before.
                None => elsewhere = Some(journal.end_of(&call)),
            }
            None
        };
        let ended = running.cancellation.or(tool, within(until, ended)).await?;
        // One that was not begun has given its key back.
        let is_made =
            |outcome: &Arc<Outcome>| outcome.ended.is_ok() || first.as_ref().is_some_and(CallHandle::was_sent);
        match ended {
            None => return Err(still_runs(tool, key, &call)),
            Some(Some(outcome)) if is_made(&outcome) => return Ok(Ruling::Known(Box::new((*outcome).clone()))),
            Some(_) => pause = (pause * 2).min(LOOK[1]),
        }
    }
}

/// `None` if that does not end until this moment.
async fn within<T>(until: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => tokio::time::timeout_at(until.into(), work).await.ok(),
        None => Some(work.await),
    }
}

fn still_runs(tool: &str, key: &str, call: &str) -> Fault {
    let message = format!(
        "the call {call} of {tool}, which has the idempotency key {key:?}, has not ended within the time limit of this one; ask again \
         with the key"
    );
    Fault::new(Code::ToolTimeout, message)
}

fn differs(key: &str, call: &str, first: Option<&CallRow>, second: &Value) -> Fault {
    let first = first.and_then(|row| row.request.as_deref()).and_then(|request| serde_json::from_str(request).ok());
    let names = first.map(|first: Value| difference(&first, second)).unwrap_or_default();
    let names = if names.is_empty() { String::new() } else { format!(" (they differ in {})", names.join(", ")) };
    let message = format!(
        "the idempotency key {key:?} belongs to the call {call} with other arguments{names}; use another key for another call"
    );
    Fault::new(Code::InvalidParams, message)
}

impl RunningCall {
    /// Its key may be used again if it was never sent to its tool.
    pub(super) async fn gives_key_back(&self, journal: &Journal, tool: &str, key: Option<&str>) {
        if let Some(key) = key.filter(|_| !self.was_sent()) {
            journal.free_key(tool.to_owned(), key.to_owned(), self.id.clone()).await;
        }
    }
}
