//! Subscriptions to single resources. What a client hears of: changed bytes of an offered file, and for a function a new version of
//! its tool file. What a function would return is not known without calling it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::json;

use super::lifecycle::Rules;
use super::reading::on_thread;
use super::resources::not_found;
use super::session::McpSession;
use super::subscription::MAX_UNREAD;
use super::{files, message};
use crate::telemetry::spawn;

/// How often watched resources are examined.
const LOOK: Duration = Duration::from_millis(500);
/// Subscriptions of one session or request.
const MOST: usize = 1024;

/// The notification that a resource has changed.
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// The parameters of `resources/subscribe` and `resources/unsubscribe`.
#[derive(Deserialize)]
pub(super) struct WatchParams {
    uri: String,
}

/// The state of a resource; `None` if it is not there.
type Stamp = Option<[u8; 32]>;

/// The subscriptions of a session until 2025-11-25.
#[derive(Default)]
pub(super) struct Subscribed {
    stamps: BTreeMap<String, Stamp>,
    /// Those that are being made, by number.
    pending: BTreeMap<u64, String>,
    last: u64,
    is_watched: bool,
}

/// A subscription that is being made, unless the client has withdrawn it meanwhile.
struct Pending {
    session: Arc<McpSession>,
    number: u64,
}

impl Pending {
    fn new(session: &Arc<McpSession>, uri: &str) -> Self {
        let mut subscribed = session.subscribed().lock();
        subscribed.last += 1;
        let number = subscribed.last;
        subscribed.pending.insert(number, uri.to_owned());
        Self { session: Arc::clone(session), number }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.session.subscribed().lock().pending.remove(&self.number);
    }
}

/// Resources that one listener watches.
pub(super) struct Watch(BTreeMap<String, Stamp>);

impl Watch {
    pub async fn new(session: &Arc<McpSession>, uris: Vec<String>) -> Self {
        let mut stamps = session.stamps(uris.into_iter().take(MOST).collect()).await;
        stamps.retain(|_, stamp| stamp.is_some());
        Self(stamps)
    }

    /// The resources that are watched: those that are there. `None` without any.
    pub fn watched(&self) -> Option<Vec<String>> {
        (!self.0.is_empty()).then(|| self.0.keys().cloned().collect())
    }

    /// Waits for changes; for ever if nothing is watched.
    pub async fn next(&mut self, session: &Arc<McpSession>) -> Vec<String> {
        loop {
            if self.0.is_empty() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LOOK).await;
            if session.outbox().waiting() > MAX_UNREAD {
                continue;
            }
            // What cannot be examined now is examined next time.
            let now = session.stamps(self.0.keys().cloned().collect()).await;
            let is_new = |(uri, stamp): (String, Stamp)| {
                let known = self.0.insert(uri.clone(), stamp);
                (known != Some(stamp)).then_some(uri)
            };
            let changed: Vec<String> = now.into_iter().filter_map(is_new).collect();
            if !changed.is_empty() {
                return changed;
            }
        }
    }
}

impl McpSession {
    /// Answers `resources/subscribe`.
    pub(super) fn subscribe_to(self: &Arc<Self>, id: &RequestId, params: WatchParams) -> Result<(), ErrorData> {
        let WatchParams { uri } = params;
        let (own, pending) = (id.clone(), Pending::new(self, &uri));
        self.answer_later(id, async move {
            let session = &pending.session;
            let Some((uri, Some(stamp))) = session.stamps(vec![uri.clone()]).await.pop_first() else {
                return Err(not_found(Rules::Legacy, &uri));
            };
            let mut subscribed = session.subscribed().lock();
            if !subscribed.pending.contains_key(&pending.number) {
                return Ok(message::result(&own, json!({})));
            }
            if subscribed.stamps.len() >= MOST && !subscribed.stamps.contains_key(&uri) {
                let what = format!("this session watches {MOST} resources, which is the limit; unsubscribe from some");
                return Err(ErrorData::invalid_params(what, Some(json!({ "uri": uri }))));
            }
            subscribed.stamps.insert(uri, Some(stamp));
            if !std::mem::replace(&mut subscribed.is_watched, true) {
                spawn(watch(Arc::downgrade(session)));
            }
            drop(subscribed);
            Ok(message::result(&own, json!({})))
        })
    }

    /// Answers `resources/unsubscribe`.
    pub(super) fn unsubscribe_from(&self, id: &RequestId, params: &WatchParams) {
        let mut subscribed = self.subscribed().lock();
        subscribed.stamps.remove(&params.uri);
        subscribed.pending.retain(|_, uri| *uri != params.uri);
        drop(subscribed);
        self.reply(id, &message::result(id, json!({})));
    }

    /// The state of resources, by address.
    async fn stamps(&self, uris: Vec<String>) -> BTreeMap<String, Stamp> {
        let (files, functions): (Vec<String>, Vec<String>) = uris.into_iter().partition(|uri| files::is_one(uri));
        let version = |uri: &String| self.resource_of(uri).map(|resource| resource.entry.version);
        let mut stamps: BTreeMap<String, Stamp> =
            functions.into_iter().map(|uri| (uri.clone(), version(&uri))).collect();
        if let (false, Some(offered)) = (files.is_empty(), self.service().config().mcp.resources.clone()) {
            let read = on_thread(move || {
                Ok(files.into_iter().map(|uri| (uri.clone(), files::stamp(&offered, &uri))).collect::<Vec<_>>())
            });
            stamps.extend(read.await.unwrap_or_default());
        }
        stamps
    }
}

/// Watches the resources of a session until it has no subscriptions, or is over.
async fn watch(session: std::sync::Weak<McpSession>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(session) = session.upgrade() else { return };
        if session.outbox().waiting() > MAX_UNREAD {
            continue;
        }
        let uris: Vec<String> = {
            let mut subscribed = session.subscribed().lock();
            subscribed.is_watched = !subscribed.stamps.is_empty();
            if !subscribed.is_watched {
                return;
            }
            subscribed.stamps.keys().cloned().collect()
        };
        for (uri, now) in session.stamps(uris).await {
            let mut subscribed = session.subscribed().lock();
            let is_changed = subscribed.stamps.get_mut(&uri).is_some_and(|known| std::mem::replace(known, now) != now);
            drop(subscribed);
            if is_changed {
                session.outbox().send(&message::notification(UPDATED, json!({ "uri": uri })));
            }
        }
    }
}
