//! Changes of the list of offered files. Files come and go without hostler, so their list is examined again and again, once a client
//! has asked for it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::Resource;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::reading::on_thread;
use super::session::McpSession;
use super::subscription::{MAX_UNREAD, list_changed};
use super::{files, message};
use crate::registry::RoleKind;
use crate::telemetry::spawn;

/// How often the list is examined.
const LOOK: Duration = Duration::from_secs(1);
/// The part of the time that examining may take: one in this many.
const SHARE: u32 = 50;

/// A list of files: another one where some were added or removed, the same where their contents changed.
pub(super) type Listed = [u8; 32];

/// What a session was sent of offered files.
#[derive(Default)]
pub(super) struct Offered {
    listed: Option<Listed>,
    is_watched: bool,
}

pub(super) fn digest(files: &[Resource]) -> Listed {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.uri.as_bytes());
        digest.update([0]);
    }
    digest.finalize().into()
}

/// The list as one listener knows it.
pub(super) struct FileList {
    session: Weak<McpSession>,
    known: Option<Listed>,
    next: Instant,
}

impl FileList {
    /// Changes since the session's last list.
    pub fn new(session: &Arc<McpSession>) -> Self {
        let known = session.offered().lock().listed;
        Self { session: Arc::downgrade(session), known, next: Instant::now() + LOOK }
    }

    /// Waits until files were added or removed, without being in a list of the session already; `None` if the session is
    /// over.
    pub async fn changed(&mut self) -> Option<()> {
        loop {
            tokio::time::sleep_until(self.next).await;
            self.next = Instant::now() + LOOK;
            let session = self.session.upgrade()?;
            // Another configuration may offer files again.
            let Some(offered) = session.service().config().mcp.resources.clone() else { continue };
            if session.outbox().waiting() > MAX_UNREAD {
                continue;
            }
            let begun = Instant::now();
            let Ok(now) = on_thread(move || Ok(digest(&files::list(&offered)))).await else { continue };
            self.next = self.next.max(Instant::now() + begun.elapsed() * SHARE);
            let listed = session.offered().lock().listed;
            let is_changed = self.known.replace(now).or(listed).is_some_and(|known| known != now);
            if is_changed && listed != Some(now) {
                return Some(());
            }
        }
    }
}

impl McpSession {
    /// Notes what a list contained. Sessions with a handshake hear of its changes unasked.
    pub(super) fn note_listed(self: &Arc<Self>, listed: Listed, is_unasked: bool) {
        let mut offered = self.offered().lock();
        offered.listed = Some(listed);
        if !is_unasked || std::mem::replace(&mut offered.is_watched, true) {
            return;
        }
        drop(offered);
        let (mut list, session) = (FileList::new(self), Arc::downgrade(self));
        spawn(async move {
            while list.changed().await.is_some() {
                let Some(session) = session.upgrade() else { return };
                session.outbox().send(&message::notification(list_changed(RoleKind::Resource), json!({})));
            }
        });
    }
}
