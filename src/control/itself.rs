//! Methods about this hostler as a whole.

use std::sync::Arc;
use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;

use super::client::Client;
use super::face::{About, Wish};
use super::pages::TICKET_LIFE;
use super::refusals::{internal, no_http};
use super::status::{Health, Status, Version};
use super::table::{Answer, Entry, Nothing, Scope, Table};
use crate::call::AllMetrics;
use crate::process::resident_alone;

pub(super) fn enter(table: &mut impl Table) {
    let about = "hostler's version, its build and its process.";
    table.enter(Entry { name: "version", scope: Scope::Observe, session: false, about }, version);
    let about = "Whether new sessions are accepted, and how much is under way.";
    table.enter(Entry { name: "health", scope: Scope::Observe, session: false, about }, health);
    let about = "Everything that `hostler status` shows.";
    table.enter(Entry { name: "status", scope: Scope::Observe, session: false, about }, status);
    let about = "Counts of all tools together and of each: executions, their ends and times, what runs and what waits.";
    table.enter(Entry { name: "metrics.tools", scope: Scope::Observe, session: false, about }, metrics);
    let about = "The same as the text that Prometheus reads.";
    table.enter(Entry { name: "metrics.text", scope: Scope::Observe, session: false, about }, metrics_text);
    let about = "The address of the page for people, which is valid once and for a minute. The shared hostler serves it from now on.";
    table.enter(Entry { name: "page.open", scope: Scope::Operate, session: false, about }, page);
    let about = "Ends hostler now; running calls have half a second.";
    table.enter(Entry { name: "stop", scope: Scope::Operate, session: false, about }, stop);
    let about = "Accepts no new session, and ends hostler with the last one.";
    table.enter(Entry { name: "drain", scope: Scope::Operate, session: false, about }, drain);
}

fn own_version(client: &Client) -> Version {
    let About { build, key, .. } = client.control().about().clone();
    Version { number: env!("CARGO_PKG_VERSION").to_owned(), build, key, pid: std::process::id() }
}

async fn version(client: Arc<Client>, _: Nothing) -> Answer<Version> {
    Ok(own_version(&client))
}

async fn health(client: Arc<Client>, _: Nothing) -> Answer<Health> {
    let control = client.control();
    let sessions = control.runtime().sessions.list();
    let running = sessions.iter().map(|session| session.running).sum();
    Ok(Health { accepting: !control.is_draining(), sessions: sessions.len(), running })
}

async fn status(client: Arc<Client>, _: Nothing) -> Answer<Status> {
    let control = client.control();
    Ok(Status {
        version: own_version(&client),
        up_s: control.since.elapsed().as_secs(),
        draining: control.is_draining(),
        http: control.address().map(|address| format!("http://{address}")),
        log: control.about().log.clone(),
        rss: resident_alone(std::process::id()),
        usage: control.runtime().pools.broker.usage(),
        sessions: control.runtime().sessions.list(),
        pools: control.runtime().pools.shared().await,
        tools: control.runtime().watch.metrics().await,
    })
}

async fn metrics(client: Arc<Client>, _: Nothing) -> Answer<AllMetrics> {
    Ok(client.control().runtime().watch.all_metrics().await)
}

async fn metrics_text(client: Arc<Client>, _: Nothing) -> Answer<String> {
    Ok(client.control().runtime().watch.prometheus().await)
}

/// The page, opened for one browser.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Page {
    /// Its address. The part after `#` is the ticket, which no request line has.
    url: String,
    /// How long the ticket is valid, in seconds.
    valid_s: u64,
}

async fn page(client: Arc<Client>, _: Nothing) -> Answer<Page> {
    let control = client.control();
    let address = control.served().await.ok_or_else(no_http)?;
    let ticket = control.pages.ticket(Instant::now()).map_err(|error| internal(&error))?;
    Ok(Page { url: format!("http://{address}/#ticket={ticket}"), valid_s: TICKET_LIFE.as_secs() })
}

async fn stop(client: Arc<Client>, _: Nothing) -> Answer<bool> {
    client.control().wish(Wish::Stop);
    Ok(true)
}

async fn drain(client: Arc<Client>, _: Nothing) -> Answer<bool> {
    client.control().wish(Wish::Drain);
    Ok(true)
}
