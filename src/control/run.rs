//! `calls.run`: a call with what happens during it, on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::client::{Client, NAME};
use super::message::{self, EVENT, Event, RUN, RunParams};
use super::table::{Answer, Entry, Scope, Table};
use super::text::Json;
use crate::call::{CallRequest, Caller};
use crate::pool::{Listener, NoopListener};
use crate::process::Outbox;
use crate::protocol::{ProgressNote, TraceContext};
use crate::words::plural;

/// Output that is not read in time beyond this many bytes is left out.
const MOST_UNREAD: usize = 32 << 20;

pub(super) fn enter(table: &mut impl Table) {
    let about = "Runs a tool to its end and answers with the outcome. Notifications `calls.event` say what happens before that, and \
                 with `can_ask` the tool's questions come as requests `client.elicit`. Closing the connection cancels the call.";
    table.enter_traced(Entry { name: RUN, scope: Scope::Call, session: true, about }, run);
}

async fn run(client: Arc<Client>, trace: Option<TraceContext>, params: RunParams) -> Answer<Json> {
    let session = client.session()?;
    session.service().registry.asked_for(&params.tool).await;
    let relay = client.outbox().map(|outbox| Arc::new(Relay { outbox: outbox.clone(), lost: AtomicUsize::new(0) }));
    let listener = relay.clone().map_or_else(|| Arc::new(NoopListener) as Arc<dyn Listener>, |relay| relay as _);
    let is_served = trace.is_some();
    let of_variable = |name: &str| session.service().config().environment.text(name).map(str::to_owned);
    let trace = trace.or_else(|| TraceContext::of_variables(of_variable));
    let caller = Arc::new(Caller { client: Some(NAME.to_owned()), trace, ..Caller::default() });
    let request = CallRequest {
        caller,
        listener,
        client: client.person(params.can_ask)?,
        key: params.key,
        needs_journal: true,
        is_served,
        ..CallRequest::new(params.tool, params.arguments)
    };
    let outcome = session.call(request).await;
    if let Some(relay) = relay {
        relay.end();
    }
    Json::of(&*outcome)
}

/// Passes on what happens during a call.
struct Relay {
    outbox: Outbox,
    /// Texts that were not sent because earlier ones are unread.
    lost: AtomicUsize,
}

impl Relay {
    /// Says what was left out at last.
    fn end(&self) {
        if let Some(text) = self.gap() {
            self.send(Event::Output { stream: "stderr".to_owned(), text });
        }
    }

    fn gap(&self) -> Option<String> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then(|| format!("[{} of output not read in time]\n", plural(lost, "piece")))
    }

    fn send(&self, event: Event) {
        self.outbox.send(&message::notification(EVENT, event));
    }
}

impl Listener for Relay {
    fn note(&self, text: &str) {
        self.send(Event::Note { text: text.to_owned() });
    }

    fn goes_on(&self) {
        self.send(Event::GoesOn);
    }

    fn progress(&self, note: &ProgressNote) {
        if self.outbox.waiting() < MOST_UNREAD {
            self.send(Event::Progress(note.clone()));
        }
    }

    fn output(&self, stream: &str, text: &str) {
        if self.outbox.waiting() + text.len() > MOST_UNREAD {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let text = self.gap().unwrap_or_default() + text;
        self.send(Event::Output { stream: stream.to_owned(), text });
    }
}
