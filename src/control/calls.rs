//! Methods about calls: starting one and coming back to it, looking at all.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::client::{Client, NAME, context};
use super::history;
use super::refusals::{elsewhere, forbidden, not_found, of_fault};
use super::started::{Chunk, Collected, StartedCall};
use super::table::{Answer, Entry, Scope, Table};
use super::text::Json;
use crate::call::{CallFilter, CallHandle, CallInfo, CallRequest, Caller};
use crate::config::call_site::CallSite;
use crate::journal::State;
use crate::outcome::{Cancelled, Canceller, Outcome};
use crate::protocol::TraceContext;
use crate::secrets::REMOVED;

const CANCEL: Entry = Entry {
    name: "calls.cancel",
    scope: Scope::Call,
    session: false,
    about: "Cancels a running call. Calls of other connections need the scope `operate`.",
};

pub(super) fn enter(table: &mut impl Table) {
    let about = "Starts a call and answers at once with its id. The call ends with its connection, unless it is a `background` call. With `can_ask` the tool's questions \
                 come as requests `client.elicit`.";
    table.enter_traced(Entry { name: "calls.start", scope: Scope::Call, session: true, about }, start);
    let about = "Waits for the end of a call that this connection started, or of a background call, and answers with its outcome; with \
                 `null` if it goes on after `timeout_ms`.";
    table.enter(Entry { name: "calls.wait", scope: Scope::Call, session: false, about }, wait);
    let about = "The output of a call that this connection started, or of a background call, from the chunk `from` on. With `wait_ms` it waits for the next.";
    table.enter(Entry { name: "calls.output", scope: Scope::Call, session: false, about }, output);
    let about = "A call of any session, while it runs and as long as the journal keeps it.";
    table.enter(Entry { name: "calls.get", scope: Scope::Observe, session: false, about }, get);
    let about = "The calls of all sessions: those that run, then those that the journal keeps, newest first.";
    table.enter(Entry { name: "calls.list", scope: Scope::Observe, session: false, about }, list);
    table.enter(CANCEL, cancel);
    let about = "Makes a call that has ended again, as a background call in the folder of the first, and answers with its id. Its \
                 arguments must have been kept.";
    table.enter(Entry { name: "calls.retry", scope: Scope::Call, session: false, about }, retry);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The tool's name.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// The limit of the call in milliseconds; that of the tool applies if it is shorter.
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// For a day, all calls with this key are one.
    #[serde(default)]
    key: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    tags: Vec<String>,
    /// Whether it goes on when this connection ends, and is gone on with if hostler dies. The answer comes once that is certain.
    #[serde(default)]
    background: bool,
    /// How often it is tried again after a fault that may not come again; by default three times if its tool is `pure` or
    /// `idempotent`, and never if not.
    #[serde(default)]
    max_retries: Option<u32>,
    /// Whether there is a person who answers `client.elicit`.
    #[serde(default)]
    can_ask: bool,
    /// The span that it belongs to (W3C trace context).
    #[serde(default)]
    traceparent: Option<String>,
    /// The `tracestate` of that.
    #[serde(default)]
    tracestate: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Begun {
    /// The id of the call.
    call: String,
}

async fn start(client: Arc<Client>, trace: Option<TraceContext>, params: Start) -> Answer<Begun> {
    let Start { tool, arguments, timeout_ms, key, tags, background, max_retries, can_ask, traceparent, tracestate } =
        params;
    let session = client.session()?;
    session.service().registry.asked_for(&tool).await;
    let trace = context(traceparent.as_deref(), tracestate.as_deref(), trace);
    let is_served = trace.is_some();
    let caller = Caller { client: Some(NAME.to_owned()), tags, trace, ..Caller::default() };
    let collected = Arc::<Collected>::default();
    let request = CallRequest {
        caller: Arc::new(caller),
        key,
        needs_journal: true,
        client: client.person(can_ask)?,
        at_most: timeout_ms.map(Duration::from_millis),
        max_retries,
        listener: Arc::clone(&collected) as _,
        is_served,
        ..CallRequest::new(tool, arguments)
    };
    let handle = if background {
        let site = CallSite::of(&session.service().config());
        let begun = client.control().runtime().background.start(site, request).await;
        let begun = begun.map_err(|fault| of_fault(&fault))?;
        let Some(handle) = begun.handle else { return Ok(Begun { call: begun.id }) };
        handle
    } else {
        session.start(request)
    };
    let call = Arc::new(StartedCall { handle, collected });
    let id = call.handle.id().to_owned();
    if background {
        client.control().background.add(Arc::clone(&call));
    }
    client.started.add(call);
    Ok(Begun { call: id })
}

fn unknown(call: &str) -> jsonrpsee::types::ErrorObjectOwned {
    not_found(format!("this connection has started no call {call}, or it ended long ago"))
}

/// A call that this connection started, or a background call of any.
fn started(client: &Client, id: &str) -> Option<Arc<StartedCall>> {
    client.started.get(id).or_else(|| client.control().background.get(id))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// The id of the call.
    call: String,
    /// How long to wait, in milliseconds; until the end if left out.
    #[serde(default)]
    timeout_ms: Option<u64>,
}

async fn wait(client: Arc<Client>, params: Wait) -> Answer<Json> {
    let outcome = outcome_of(&client, &params.call);
    let outcome = match params.timeout_ms {
        None => Some(outcome.await?),
        Some(limit) => timeout(Duration::from_millis(limit), outcome).await.ok().transpose()?,
    };
    Json::of(&outcome.as_deref())
}

/// Of a call that this connection started, or of a background call, wherever that runs.
async fn outcome_of(client: &Arc<Client>, id: &str) -> Answer<Arc<Outcome>> {
    if let Some(started) = started(client, id) {
        return Ok(started.handle.outcome().await);
    }
    let running = client.control().runtime().watch.handle(id).filter(CallHandle::is_background);
    if let Some(handle) = running {
        return Ok(handle.outcome().await);
    }
    history::outcome(client.control(), id).await.map(Arc::new).ok_or_else(|| unknown(id))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reading {
    /// The id of the call.
    call: String,
    /// The number of the first chunk; `next` of the answer before.
    #[serde(default)]
    from: u64,
    /// How long to wait for a chunk if there is none, in milliseconds.
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Output {
    chunks: Vec<Chunk>,
    /// How many chunks before these were dropped because nothing asked for them in time.
    lost: u64,
    /// The number of the next chunk.
    next: u64,
    /// Whether the call has ended: no chunk follows.
    ended: bool,
}

async fn output(client: Arc<Client>, params: Reading) -> Answer<Output> {
    let started = started(&client, &params.call).ok_or_else(|| unknown(&params.call))?;
    let has_more = started.collected.reaches(params.from);
    let _ = timeout(Duration::from_millis(params.wait_ms), has_more).await;
    let (chunks, lost, next, ended) = started.collected.since(params.from);
    Ok(Output { chunks, lost, next, ended })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// The id of the call.
    call: String,
}

async fn get(client: Arc<Client>, params: One) -> Answer<CallInfo> {
    let seen = client.control().runtime().watch.call(&params.call);
    // What was kept of one that has ended says more.
    let kept = match &seen {
        Some(call) if call.state.is_open() => None,
        _ => history::call(client.control(), &params.call)
            .await
            .filter(|row| row.state.is_some_and(State::is_final) || seen.is_none()),
    };
    let found = match kept {
        Some(row) => Some(history::read_page(client.control(), row).await),
        None => seen,
    };
    found.ok_or_else(|| not_found(format!("there is no call {}; list them with `calls.list`", params.call)))
}

async fn list(client: Arc<Client>, params: CallFilter) -> Answer<Vec<CallInfo>> {
    let seen = client.control().runtime().watch.calls(&CallFilter { limit: None, states: None, ..params.clone() });
    // In whatever state: the store may not know yet that one has ended.
    let known: HashSet<String> = seen.iter().map(|call| call.call_id.clone()).collect();
    let wanted = |call: &CallInfo| params.states.as_ref().is_none_or(|states| states.contains(&call.state));
    let seen: Vec<CallInfo> = seen.into_iter().filter(wanted).collect();
    let kept = history::calls(client.control(), &params).await;
    let mut calls = seen;
    calls.extend(kept.into_iter().filter(|call| !known.contains(&call.call_id)).map(in_a_list));
    // Those that run first, then the newest.
    calls.sort_by_key(|call| (!call.state.is_open(), Reverse(call.started_ms)));
    calls.truncate(params.limit.unwrap_or(history::USUAL).min(history::MOST));
    Ok(calls)
}

/// A list has arguments only of calls that failed.
fn in_a_list(call: CallInfo) -> CallInfo {
    let arguments = call.arguments.filter(|_| call.error.is_some());
    CallInfo { arguments, ..call }
}

async fn cancel(client: Arc<Client>, params: One) -> Answer<bool> {
    let is_own = || client.started.get(&params.call).is_some();
    let is_background =
        || client.control().runtime().watch.handle(&params.call).is_some_and(|call| call.is_background());
    if !is_own() && !is_background() && client.scope() < Scope::Operate {
        return Err(forbidden(&CANCEL, Scope::Operate));
    }
    let watch = &client.control().runtime().watch;
    if watch.cancel(&params.call, Cancelled::by(Canceller::Operator)) {
        return Ok(true);
    }
    if watch.call(&params.call).is_some() {
        return Ok(false);
    }
    match history::call(client.control(), &params.call).await {
        Some(row) if row.state.is_some_and(State::is_final) => Ok(false),
        Some(_) if ask_end(&client, &params.call).await => Ok(true),
        Some(_) => Err(elsewhere(&params.call)),
        None => Err(not_found(format!("there is no call {}; list them with `calls.list`", params.call))),
    }
}

async fn ask_end(client: &Arc<Client>, call: &str) -> bool {
    let why = Cancelled::by(Canceller::Operator).to_string();
    match client.control().runtime().journal.clone() {
        Some(journal) => journal.ask_end(call, why).await,
        None => false,
    }
}

async fn retry(client: Arc<Client>, params: One) -> Answer<Begun> {
    let unknown = || not_found(format!("there is no call {}; list them with `calls.list`", params.call));
    let row = history::call(client.control(), &params.call).await.ok_or_else(unknown)?;
    if !row.state.is_some_and(State::is_final) {
        return Err(not_found(format!("the call {} has not ended", params.call)));
    }
    let arguments = row.request.as_deref().and_then(|request| serde_json::from_str(request).ok());
    let arguments = arguments.ok_or_else(|| {
        not_found(format!("the arguments of the call {} were not kept; see `bodies` under [journal]", params.call))
    })?;
    if row.has_secrets && row.request.as_deref().is_some_and(|request| request.contains(REMOVED)) {
        let why = "a secret was taken out of them";
        return Err(not_found(format!(
            "the arguments of the call {} were not kept as they were: {why}; call the tool anew",
            params.call
        )));
    }
    let background = &client.control().runtime().background;
    let caller = Caller { client: Some(NAME.to_owned()), tags: row.tags, ..Caller::default() };
    let timeout = Some(Duration::from_millis(row.timeout_ms)).filter(|limit| !limit.is_zero());
    let request = CallRequest { caller: Arc::new(caller), timeout, ..CallRequest::new(row.tool_name, arguments) };
    let site = background.site(row.workspace.as_deref());
    let begun = background.start(site, request).await.map_err(|fault| of_fault(&fault))?;
    Ok(Begun { call: begun.id })
}
