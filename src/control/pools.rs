//! Methods about the pools of workers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::message::ToolParams;
use super::refusals::{not_found, of_fault};
use super::table::{Answer, Entry, Scope, Table};
use crate::executor::SharedStatus;

pub(super) fn enter(table: &mut impl Table) {
    let about = "The pools with their workers, of all tool files or of one.";
    table.enter(Entry { name: "pool.status", scope: Scope::Observe, session: false, about }, status);
    let about =
        "Lets the workers of a tool file, or of all, finish their calls and end. The next call starts new ones.";
    table.enter(Entry { name: "pool.drain", scope: Scope::Operate, session: false, about }, drain);
    let about = "The same, and starts the minimum of new ones at once.";
    table.enter(Entry { name: "pool.restart", scope: Scope::Operate, session: false, about }, restart);
    let about = "Builds the environment of a tool's file, and starts the minimum of its workers.";
    table.enter(Entry { name: "pool.warm", scope: Scope::Operate, session: true, about }, warm);
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Which {
    /// The `source` of a pool, which is its tool file; all if left out.
    source: Option<String>,
}

async fn status(client: Arc<Client>, params: Which) -> Answer<Vec<SharedStatus>> {
    let mut pools = client.control().runtime().pools.shared().await;
    pools.retain(|pool| params.source.as_ref().is_none_or(|source| *source == pool.source));
    Ok(pools)
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Drained {
    /// How many pools.
    pools: usize,
}

async fn drain(client: Arc<Client>, params: Which) -> Answer<Drained> {
    let pools = client.control().runtime().pools.drain(params.source.as_deref());
    match params.source {
        Some(source) if pools == 0 => {
            Err(not_found(format!("no workers of {source} run; list them with `pool.status`")))
        }
        _ => Ok(Drained { pools }),
    }
}

async fn restart(client: Arc<Client>, params: Which) -> Answer<Drained> {
    let drained = drain(Arc::clone(&client), params).await?;
    for service in client.control().runtime().watch.services() {
        service.start_minimum_again();
    }
    Ok(drained)
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Warmed {
    /// Whether the environment was built now; otherwise it was there.
    built: bool,
}

async fn warm(client: Arc<Client>, params: ToolParams) -> Answer<Warmed> {
    let tool = super::tools::find(&client, &params.tool).await?;
    let service = client.service()?;
    let lease = service.pools.warm(&tool.entry, &|_| {}).await.map_err(|fault| of_fault(&fault))?;
    if tool.entry.serving().has_workers() {
        service.pools.keep_ready(&tool.entry);
    }
    Ok(Warmed { built: lease.built })
}
