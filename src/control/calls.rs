//! Methods about calls: starting one and coming back to it, looking at all.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::client::{Client, NAME};
use super::refusals::{forbidden, not_found};
use super::started::{Chunk, Collected, StartedCall};
use super::table::{Answer, Entry, Scope, Table};
use super::text::Json;
use crate::call::{CallFilter, CallInfo, CallRequest, Caller};
use crate::outcome::{Cancelled, Canceller};
use crate::protocol::TraceContext;

const CANCEL: Entry = Entry {
    name: "calls.cancel",
    scope: Scope::Call,
    session: false,
    about: "Cancels a running call. Calls of other connections need the scope `operate`.",
};

pub(super) fn enter(table: &mut impl Table) {
    let about = "Starts a call and answers at once with its id. The call ends with its connection. With `can_ask` the tool's questions \
                 come as requests `client.elicit`.";
    table.enter(Entry { name: "calls.start", scope: Scope::Call, session: true, about }, start);
    let about = "Waits for the end of a call that this connection started, and answers with its outcome; with `null` if it goes on \
                 after `timeout_ms`.";
    table.enter(Entry { name: "calls.wait", scope: Scope::Call, session: true, about }, wait);
    let about = "The output of a call that this connection started, from the chunk `from` on. With `wait_ms` it waits for the next.";
    table.enter(Entry { name: "calls.output", scope: Scope::Call, session: true, about }, output);
    let about = "A call of any session that runs, or is one of the last 1,000, without its result.";
    table.enter(Entry { name: "calls.get", scope: Scope::Observe, session: false, about }, get);
    let about = "The calls of all sessions that run, and the last 1,000, newest first.";
    table.enter(Entry { name: "calls.list", scope: Scope::Observe, session: false, about }, list);
    table.enter(CANCEL, cancel);
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
    /// While a call with this key runs, another joins it.
    #[serde(default)]
    key: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    tags: Vec<String>,
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

async fn start(client: Arc<Client>, params: Start) -> Answer<Begun> {
    let Start { tool, arguments, timeout_ms, key, tags, can_ask, traceparent, tracestate } = params;
    let session = client.session()?;
    session.service().registry.asked_for(&tool).await;
    let trace = traceparent.and_then(|parent| TraceContext::read(&parent, tracestate.as_deref()));
    let caller = Caller { client: Some(NAME.to_owned()), tags, trace, ..Caller::default() };
    let collected = Arc::<Collected>::default();
    let request = CallRequest {
        caller: Arc::new(caller),
        key,
        client: client.person(can_ask)?,
        at_most: timeout_ms.map(Duration::from_millis),
        listener: Arc::clone(&collected) as _,
        ..CallRequest::new(tool, arguments)
    };
    let call = StartedCall { handle: session.start(request), collected };
    let id = call.handle.id().to_owned();
    client.started.add(call);
    Ok(Begun { call: id })
}

fn unknown(call: &str) -> jsonrpsee::types::ErrorObjectOwned {
    not_found(format!("this connection has started no call {call}, or it ended long ago"))
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
    let started = client.started.get(&params.call).ok_or_else(|| unknown(&params.call))?;
    let outcome = started.handle.outcome();
    let outcome = match params.timeout_ms {
        None => Some(outcome.await),
        Some(limit) => timeout(Duration::from_millis(limit), outcome).await.ok(),
    };
    Json::of(&outcome.as_deref())
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
    let started = client.started.get(&params.call).ok_or_else(|| unknown(&params.call))?;
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
    let found = client.control().runtime().watch.call(&params.call);
    found.ok_or_else(|| not_found(format!("there is no call {}; list them with `calls.list`", params.call)))
}

async fn list(client: Arc<Client>, params: CallFilter) -> Answer<Vec<CallInfo>> {
    Ok(client.control().runtime().watch.calls(&params))
}

async fn cancel(client: Arc<Client>, params: One) -> Answer<bool> {
    if client.started.get(&params.call).is_none() && client.scope() < Scope::Operate {
        return Err(forbidden(&CANCEL, Scope::Operate));
    }
    let watch = &client.control().runtime().watch;
    if watch.cancel(&params.call, Cancelled::by(Canceller::Operator)) {
        return Ok(true);
    }
    match watch.call(&params.call) {
        Some(_) => Ok(false),
        None => Err(not_found(format!("there is no call {}; list them with `calls.list`", params.call))),
    }
}
