//! Methods about the sessions of this hostler.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::client::Client;
use super::refusals::not_found;
use super::table::{Answer, Entry, Nothing, Scope, Table};
use crate::runtime::SessionInfo;

pub(super) fn enter(table: &mut impl Table) {
    let about = "The sessions, with their clients, folders and calls.";
    table.enter(Entry { name: "sessions.list", scope: Scope::Observe, session: false, about }, list);
    let about = "Ends a session as a signal to its process would.";
    table.enter(Entry { name: "sessions.end", scope: Scope::Operate, session: false, about }, end);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionParams {
    /// Its number.
    session: u64,
}

async fn list(client: Arc<Client>, _: Nothing) -> Answer<Vec<SessionInfo>> {
    Ok(client.control().runtime().sessions.list())
}

async fn end(client: Arc<Client>, params: SessionParams) -> Answer<bool> {
    let SessionParams { session } = params;
    if client.control().runtime().sessions.end(session, "`sessions.end`") {
        return Ok(true);
    }
    Err(not_found(format!("there is no session {session}; list them with `sessions.list`")))
}
