//! Calls of earlier hostlers, and of others: what the store has.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::face::Control;
use crate::call::{CallDetails, CallError, CallFilter, CallInfo, CallState};
use crate::config::call_site::CallSite;
use crate::environment::lock_file;
use crate::journal::{CallRow, KeptSources, Place, RowFilter, State};
use crate::outcome::{Fault, Metadata, Outcome};
use crate::telemetry::unix_ms;
use crate::threads::blocking_or_here;

/// The most calls of the store that one answer has, and how many by default.
pub(super) const MOST: usize = 10_000;
pub(super) const USUAL: usize = 1000;
/// How often the store is read for the end of a call that another process runs.
const LOOK: Duration = Duration::from_millis(200);
/// How long a call may not be in the store yet.
const PATIENCE: Duration = Duration::from_secs(1);
/// A process whose calls run and that has shown no sign of life for longer is stale (specification 003).
const STALE_MS: u64 = 60_000;

fn place(control: &Control) -> Option<Place> {
    control.runtime().journal.as_ref().map(|journal| journal.place().clone())
}

/// A call of the store.
pub(super) async fn call(control: &Arc<Control>, id: &str) -> Option<CallRow> {
    let runtime = control.runtime();
    runtime.watch.kept(runtime.journal.as_deref()?, id).await
}

/// Its page.
pub(super) async fn read_page(control: &Arc<Control>, row: CallRow) -> CallInfo {
    let Some(place) = place(control) else { return info(&row) };
    blocking_or_here(move || page(&row, &place.sources())).await
}

/// Calls of the store, newest first.
pub(super) async fn calls(control: &Arc<Control>, filter: &CallFilter) -> Vec<CallInfo> {
    let wanted = RowFilter {
        id: filter.call.clone(),
        tool: filter.tool.clone(),
        tag: filter.tag.clone(),
        states: stored(filter),
        limit: filter.limit.unwrap_or(USUAL).min(MOST),
    };
    // Sessions are numbered anew by each hostler.
    if filter.session.is_some() {
        return Vec::new();
    }
    let Some(journal) = &control.runtime().journal else { return Vec::new() };
    let rows = journal.read(move |store| store.calls(&wanted).ok()).await.unwrap_or_default();
    rows.iter().map(info).collect()
}

/// The outcome of a background call that this process does not run, once it has one. `None` if there is no such call.
pub(super) async fn outcome(control: &Arc<Control>, id: &str) -> Option<Outcome> {
    // What another process has just begun may not be in the store yet.
    let mut patience = PATIENCE;
    let mut end = control.runtime().journal.as_ref()?.end_of(id);
    loop {
        match call(control, id).await {
            Some(row) if !row.background => return None,
            Some(row) if row.state.is_some_and(State::is_final) => return Some(row.outcome()),
            // What failed before was reading.
            Some(_) => patience = PATIENCE,
            None => patience = patience.checked_sub(LOOK)?,
        }
        end.may_have_come(LOOK).await;
    }
}

/// A call of the store as reports show it.
pub fn info(row: &CallRow) -> CallInfo {
    let state = match row.state {
        Some(State::Created | State::Orphaned) => CallState::Queued,
        Some(State::WaitingApproval) => CallState::WaitingApproval,
        Some(State::Running) if is_stale(row) => CallState::Stale,
        Some(State::Running) => CallState::Running,
        Some(State::Stale) => CallState::Stale,
        Some(State::Complete) => CallState::Complete,
        Some(State::Cancelled) => CallState::Cancelled,
        Some(State::Failed) => CallState::Failed,
        Some(State::Denied) => CallState::Denied,
        Some(State::Error) | None => CallState::Error,
    };
    let is_over = row.state.is_some_and(State::is_final);
    let end = if is_over { row.updated_at } else { unix_ms() };
    #[expect(clippy::cast_precision_loss, reason = "a time in milliseconds")]
    let since = end.saturating_sub(row.created_at) as f64;
    #[expect(clippy::cast_precision_loss, reason = "a time in microseconds")]
    let duration_ms = row.duration_us.map_or(since, |time| time as f64 / 1000.0);
    let error = row.error.clone().map(|message| CallError { code: row.code(), message });
    CallInfo {
        call_id: row.id.clone(),
        tool: row.tool_name.clone(),
        session: row.session,
        client: row.client.clone(),
        tags: row.tags.clone(),
        trace: row.traceparent.clone(),
        state,
        started_ms: row.created_at,
        duration_ms,
        error,
        arguments: row.request.clone(),
        background: row.background,
        result: row.response.as_deref().and_then(|result| serde_json::from_str(result).ok()),
        output: row.output.clone(),
        attempts: row.attempt,
        retry_at_ms: row.retry_at,
        details: None,
    }
}

/// The same with all that is written down of it.
pub fn page(row: &CallRow, sources: &KeptSources) -> CallInfo {
    let fault: Option<Fault> = row.fault.as_deref().and_then(|fault| serde_json::from_str(fault).ok());
    let fault = fault.map(|fault| fault.details).unwrap_or_default();
    let tries = if fault.attempts.is_empty() { &row.tries } else { &fault.attempts };
    let metadata: Option<Metadata> = row.metadata.as_deref().and_then(|metadata| serde_json::from_str(metadata).ok());
    let time = |of: fn(&Metadata) -> f64| metadata.as_ref().map(of);
    let site = row.workspace.as_deref().map(|written| CallSite::read(Some(written), &Arc::default()));
    let config = site.as_ref().and_then(|site| site.options().config.as_deref());
    let text = |path: &Path| path.display().to_string();
    let source = sources.of(&row.tool_version, row.created_at);
    let details = CallDetails {
        version: Some(row.tool_version.clone()).filter(|version| !version.is_empty()),
        effects: row.effects.clone(),
        journal: row.level.clone(),
        folder: site.as_ref().map(|site| text(site.directory())),
        config: config.map(text),
        lock: source.as_ref().filter(|kept| kept.has_lock).map(|kept| text(&lock_file(&kept.folder.join(&kept.name)))),
        source: source.map(|kept| text(&kept.folder)),
        timeout_ms: row.timeout_ms,
        max_retries: row.max_retries,
        sent_ms: row.started_at,
        process: row.pid,
        queue_ms: time(|times| times.queue_ms),
        start_ms: time(|times| times.start_ms),
        run_ms: time(|times| times.run_ms),
        asked_ms: metadata.as_ref().and_then(|times| times.asked_ms),
        stack: fault.traceback,
        stderr: fault.stderr,
        tries: tries.iter().map(|attempt| format!("{}: {}", attempt.code, attempt.message)).collect(),
    };
    CallInfo { details: Some(Box::new(details)), ..info(row) }
}

fn is_stale(row: &CallRow) -> bool {
    row.last_heartbeat.is_some_and(|beat| unix_ms().saturating_sub(beat) > STALE_MS)
}

/// The states in which the store has calls that a filter names. None for all.
pub fn stored(filter: &CallFilter) -> Vec<State> {
    filter.states.iter().flatten().flat_map(|state| states(*state)).copied().collect()
}

fn states(state: CallState) -> &'static [State] {
    match state {
        CallState::Queued => &[State::Created, State::Orphaned],
        CallState::WaitingApproval => &[State::WaitingApproval],
        CallState::Running | CallState::Asking | CallState::Stale => &[State::Running, State::Stale],
        CallState::Complete => &[State::Complete],
        CallState::Error => &[State::Error],
        CallState::Failed => &[State::Failed],
        CallState::Cancelled => &[State::Cancelled],
        CallState::Denied => &[State::Denied],
    }
}
