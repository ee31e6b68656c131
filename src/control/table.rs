//! The methods as a table that is read twice: by the server that answers them, and by the document that describes them.

use std::sync::Arc;

use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, PendingSubscriptionSink, RpcModule};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::client::Client;
use super::refusals::{forbidden, invalid_params, no_way_back};
use crate::protocol::TraceContext;

/// The answer of a method.
pub(super) type Answer<T> = Result<T, ErrorObjectOwned>;

/// What a client may do. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look.
    Observe,
    /// Call tools.
    Call,
    /// End calls, workers, sessions and hostler itself.
    Operate,
}

impl Scope {
    /// Every scope, the smallest first.
    pub const ALL: [Self; 3] = [Self::Observe, Self::Call, Self::Operate];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Call => "call",
            Self::Operate => "operate",
        }
    }
}

/// A method, as people know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub name: &'static str,
    pub scope: Scope,
    /// Whether the connection must have a session, whose tools it sees.
    pub session: bool,
    pub about: &'static str,
}

/// Receives every method.
pub(super) trait Table {
    /// A method with parameters `P` and a result `R`.
    fn enter<P, R, F, Fut>(&mut self, entry: Entry, run: F)
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + Clone + JsonSchema + 'static,
        F: Fn(Arc<Client>, P) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Answer<R>> + Send + 'static,
    {
        self.enter_traced(entry, move |client, _, params| run(client, params));
    }

    /// The same, for a method that goes on with the trace of the request that carried its message.
    fn enter_traced<P, R, F, Fut>(&mut self, entry: Entry, run: F)
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + Clone + JsonSchema + 'static,
        F: Fn(Arc<Client>, Option<TraceContext>, P) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Answer<R>> + Send + 'static;

    /// A method that is answered by the id of a subscription, and notifications until another method ends it. `open` makes what
    /// gives the notifications.
    fn subscription<P, S>(&mut self, entry: Entry, names: Names, open: fn(&Client, P) -> S)
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        S: Notifies;
}

/// The names that a subscription needs besides its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    pub notification: &'static str,
    pub end: &'static str,
}

/// Gives the notifications of a subscription.
pub(super) trait Notifies: Send + 'static {
    /// The next ones; `None` after the last.
    fn next(&mut self) -> impl Future<Output = Option<Vec<Box<RawValue>>>> + Send;
}

/// The methods of one client.
pub(super) struct Server {
    pub module: RpcModule<Client>,
    /// A name that was entered twice.
    pub broken: Option<jsonrpsee::core::RegisterMethodError>,
}

impl Server {
    pub fn of(client: &Arc<Client>) -> Self {
        Self { module: RpcModule::from_arc(Arc::clone(client)), broken: None }
    }
}

impl Table for Server {
    fn enter_traced<P, R, F, Fut>(&mut self, entry: Entry, run: F)
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + Clone + JsonSchema + 'static,
        F: Fn(Arc<Client>, Option<TraceContext>, P) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Answer<R>> + Send + 'static,
    {
        let answer = move |params: Params<'static>, client: Arc<Client>, of_request: Extensions| {
            let run = run.clone();
            async move {
                if client.scope() < entry.scope {
                    return Err(forbidden(&entry, entry.scope));
                }
                run(client, of_request.get().cloned(), read(&params)?).await
            }
        };
        if let Err(error) = self.module.register_async_method(entry.name, answer) {
            self.broken = Some(error);
        }
    }

    fn subscription<P, S>(&mut self, entry: Entry, names: Names, open: fn(&Client, P) -> S)
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        S: Notifies,
    {
        let notify = move |params: Params<'static>,
                           asked: PendingSubscriptionSink,
                           client: Arc<Client>,
                           _: Extensions| async move {
            let params = if client.scope() < entry.scope {
                Err(forbidden(&entry, entry.scope))
            } else if client.outbox().is_none() {
                Err(no_way_back(&entry))
            } else {
                read(&params)
            };
            match params {
                Ok(params) => pass_on(open(&client, params), asked).await,
                Err(refusal) => asked.reject(refusal).await,
            }
        };
        let added = self.module.register_subscription(entry.name, names.notification, names.end, notify);
        if let Err(error) = added {
            self.broken = Some(error);
        }
    }
}

/// Sends the notifications of a subscription until its client ends it.
async fn pass_on(mut notifications: impl Notifies, asked: PendingSubscriptionSink) {
    let Ok(sink) = asked.accept().await else { return };
    loop {
        let next = tokio::select! {
            next = notifications.next() => next,
            () = sink.closed() => return,
        };
        let Some(next) = next else { return };
        for notification in next {
            // Waits for a slow reader: what it misses meanwhile is counted where the events are from.
            if sink.send(notification).await.is_err() {
                return;
            }
        }
    }
}

/// Parameters by name or by place. None are those of a method whose parameters may all be left out.
pub(super) fn read<P: DeserializeOwned>(params: &Params<'_>) -> Answer<P> {
    let text = params.as_str().filter(|text| *text != "null").unwrap_or("{}");
    serde_json::from_str(text).map_err(|error| invalid_params(&error))
}

/// No parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}
