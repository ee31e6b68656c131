//! `events.subscribe`: what happens in this hostler, as it happens.

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::client::Client;
use super::table::{Entry, Names, Notifies, Scope, Table};
use crate::call::{EventFilter, Subscription};

pub(super) fn enter(table: &mut impl Table) {
    let about = "Notifies of events from now on, as `events.event`: those that match every given member. A reader that is too slow \
                 loses the oldest, and an event `lost` with a `count` stands in their place.";
    let entry = Entry { name: "events.subscribe", scope: Scope::Observe, session: false, about };
    let names = Names { notification: "events.event", end: "events.unsubscribe" };
    table.subscription(entry, names, subscribe);
}

fn subscribe(client: &Client, filter: EventFilter) -> Subscription {
    client.control().runtime().watch.subscribe(filter)
}

impl Notifies for Subscription {
    async fn next(&mut self) -> Option<Vec<Box<RawValue>>> {
        let batch = self.next().await?;
        let lost =
            (batch.lost > 0).then(|| to_raw_value(&json!({"event": "lost", "count": batch.lost})).ok()).flatten();
        let events = batch.events.iter().map(|event| (**event).to_owned());
        Some(lost.into_iter().chain(events).collect())
    }
}
