//! Notifications that the list of tools, resources or prompts has changed: unrequested in sessions with a handshake, through
//! `subscriptions/listen` since 2026-07-28.

use std::sync::Arc;

use rmcp::model::{RequestId, SubscriptionFilter};
use serde_json::json;
use tokio::sync::watch;

use super::message;
use super::offered::FileList;
use super::session::McpSession;
use super::watched::{UPDATED, Watch};
use crate::process::Outbox;
use crate::registry::RoleKind;
use crate::telemetry::spawn;

/// Unread bytes beyond which changes are announced later.
pub(super) const MAX_UNREAD: usize = 64 << 10;

/// The notification that a list has changed.
pub(super) const fn list_changed(list: RoleKind) -> &'static str {
    match list {
        RoleKind::Tool => "notifications/tools/list_changed",
        RoleKind::Resource => "notifications/resources/list_changed",
        RoleKind::Prompt => "notifications/prompts/list_changed",
    }
}

/// The key of a subscription's id in `_meta`.
const ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The changes for one listener.
pub(super) struct Changes {
    announced: watch::Receiver<u64>,
    /// The revision that the client has seen or heard of.
    known: u64,
    outbox: Outbox,
    /// Whether the session is over.
    over: watch::Receiver<bool>,
}

impl Changes {
    /// Changes since a revision.
    pub fn new(announced: watch::Receiver<u64>, known: u64, outbox: Outbox, over: watch::Receiver<bool>) -> Self {
        Self { announced, known, outbox, over }
    }

    /// Waits until there is a change and the client reads. Several changes count as one.
    /// `None` once the session is over.
    pub async fn next(&mut self) -> Option<()> {
        let Self { announced, known, outbox, over } = self;
        let heard = async {
            announced.wait_for(|revision| *revision > *known).await.ok()?;
            if outbox.waiting() > MAX_UNREAD {
                outbox.caught_up().await;
            }
            *known = *announced.borrow();
            Some(())
        };
        tokio::select! {
            heard = heard => heard,
            _ = over.wait_for(|over| *over) => None,
        }
    }
}

/// Announces changes until the session is over.
pub(super) fn tell_unasked(list: RoleKind, outbox: Outbox, mut changes: Changes) {
    spawn(async move {
        while changes.next().await.is_some() {
            outbox.send(&message::notification(list_changed(list), json!({})));
        }
    });
}

/// Processes `subscriptions/listen`: acknowledged at once, answered when the session ends.
pub(super) async fn listen(session: Arc<McpSession>, id: RequestId, requested: SubscriptionFilter) {
    let outbox = session.outbox();
    let mut accepted = requested.supported_by(&session.about().capabilities);
    let mut watch = Watch::new(&session, accepted.resource_subscriptions.take().unwrap_or_default()).await;
    accepted.resource_subscriptions = watch.watched();
    let meta = json!({ID_KEY: id});
    let acknowledged = json!({"notifications": accepted, "_meta": meta});
    outbox.send(&message::notification("notifications/subscriptions/acknowledged", acknowledged));
    let is_asked_for = |list: RoleKind| match list {
        RoleKind::Tool => accepted.tools_list_changed,
        RoleKind::Resource => accepted.resources_list_changed,
        RoleKind::Prompt => accepted.prompts_list_changed,
    };
    let mut files = FileList::new(&session);
    let mut has_files = is_asked_for(RoleKind::Resource) == Some(true);
    let [mut tools, mut resources, mut prompts] = RoleKind::ALL.map(|list| session.changes(list));
    loop {
        let (list, changed) = tokio::select! {
            uris = watch.next(&session) => {
                for uri in uris {
                    outbox.send(&message::notification(UPDATED, json!({"uri": uri, "_meta": meta})));
                }
                continue;
            }
            changed = files.changed(), if has_files => {
                has_files = changed.is_some();
                if !has_files {
                    continue;
                }
                (RoleKind::Resource, changed)
            }
            changed = tools.next() => (RoleKind::Tool, changed),
            changed = resources.next() => (RoleKind::Resource, changed),
            changed = prompts.next() => (RoleKind::Prompt, changed),
        };
        if changed.is_none() {
            break;
        }
        if is_asked_for(list) == Some(true) {
            outbox.send(&message::notification(list_changed(list), json!({"_meta": meta})));
        }
    }
    let meta = json!({ID_KEY: id, "io.modelcontextprotocol/serverInfo": session.about().server_info});
    session.reply(&id, &message::result(&id, json!({"resultType": "complete", "_meta": meta})));
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::time::{Duration, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_hears_once_of_all_changes_when_it_does() {
        let (ours, mut client) = tokio::io::duplex(16);
        let outbox = Outbox::new(Box::new(ours));
        let (counter, (over, is_over)) = (watch::Sender::new(0_u64), watch::channel(false));
        let mut changes = Changes::new(counter.subscribe(), 0, outbox.clone(), is_over);
        outbox.send(&vec![b'x'; MAX_UNREAD + 100]);
        let a_while = Duration::from_hours(1);
        for _ in 0..1000 {
            counter.send_modify(|count| *count += 1);
            assert!(timeout(a_while, changes.next()).await.is_err(), "nothing is added to what it does not read");
        }
        let mut read = vec![0; MAX_UNREAD + 100];
        let (heard, read) = tokio::join!(changes.next(), client.read_exact(&mut read));
        assert!(heard.is_some() && read.is_ok());
        assert!(timeout(a_while, changes.next()).await.is_err(), "it was all of them");
        over.send_replace(true);
        assert!(changes.next().await.is_none());
    }
}
