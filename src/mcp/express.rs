//! The express lane: warm `tools/call` requests of an open session, taken from the line before rmcp reads it.
//!
//! rmcp tries a request against every type it could be, spawns several tasks for it and builds its result as values: well
//! over half of what hostler spends on a warm call. A call that looks as calls do is read once here and its result passed
//! on as the text it came in, so that integers stay exact. Whatever looks different in any way, and everything that is no
//! call, goes to rmcp; so do all requests of sessions without a handshake, whose rules for metadata are rmcp's to keep.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rmcp::model::{ProtocolVersion, RequestId, RequestMetaObject};
use rmcp::service::{Peer, RoleServer};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::face::Face;
use super::outbox::Outbox;
use super::reply;

/// The method stands this near to the beginning of a message in every client there is.
const NEAR: usize = 128;

pub(super) struct Express {
    face: Arc<Face>,
    outbox: Outbox,
    /// The client, once its session is open.
    peer: OnceLock<Peer<RoleServer>>,
    /// Calls under way. Held only to add, to look up or to remove one.
    running: Mutex<HashMap<RequestId, AbortHandle>>,
    ended: Notify,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: RequestId,
    #[serde(borrow)]
    method: Cow<'a, str>,
    params: CallParams,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallParams {
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
    #[serde(rename = "_meta", default)]
    meta: Option<RequestMetaObject>,
}

#[derive(Deserialize)]
struct CancelLine {
    params: CancelParams,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelParams {
    request_id: RequestId,
}

impl Express {
    pub fn new(face: Arc<Face>, outbox: Outbox) -> Arc<Self> {
        Arc::new(Self { face, outbox, peer: OnceLock::new(), running: Mutex::default(), ended: Notify::new() })
    }

    /// The session is open: from here on calls may be taken.
    pub fn open(&self, peer: Peer<RoleServer>) {
        let _ = self.peer.set(peer);
    }

    /// Takes a line, or says that it is rmcp's.
    pub fn take(self: &Arc<Self>, line: &[u8]) -> bool {
        let near = &line[..line.len().min(NEAR)];
        let says = |word: &[u8]| near.windows(word.len()).any(|window| window == word);
        if says(b"\"tools/call\"") {
            self.take_call(line)
        } else if says(b"\"notifications/cancelled\"") {
            self.take_cancel(line)
        } else {
            false
        }
    }

    /// Waits until no call is under way.
    pub async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.running.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn take_call(self: &Arc<Self>, line: &[u8]) -> bool {
        let Some(peer) = self.peer.get().filter(|peer| has_handshake(peer)) else { return false };
        let Ok(call) = serde_json::from_slice::<CallLine<'_>>(line) else { return false };
        let meta = call.params.meta.unwrap_or_default();
        if call.method != "tools/call" || call.jsonrpc != "2.0" || meta.protocol_version().is_some() {
            return false;
        }
        let mut running = self.running.lock();
        if running.contains_key(&call.id) {
            return false;
        }
        let (request, hearing) =
            self.face.request(call.params.name, call.params.arguments.unwrap_or_default(), &meta, peer);
        let (this, id) = (Arc::clone(self), call.id.clone());
        // The lock is held until the call stands in the table, so that its end cannot come before.
        let task = tokio::spawn(async move {
            let outcome = this.face.call(request, hearing).await;
            let _ = this.outbox.send(reply::line(&id, outcome));
            this.running.lock().remove(&id);
            this.ended.notify_waiters();
        });
        running.insert(call.id, task.abort_handle());
        true
    }

    fn take_cancel(&self, line: &[u8]) -> bool {
        let Ok(cancel) = serde_json::from_slice::<CancelLine>(line) else { return false };
        let Some(call) = self.running.lock().remove(&cancel.params.request_id) else { return false };
        // The call goes with its future; the client reads no answer.
        call.abort();
        self.ended.notify_waiters();
        true
    }
}

/// Whether the session was opened by `initialize`, at a revision that has it.
fn has_handshake(peer: &Peer<RoleServer>) -> bool {
    peer.peer_info().is_some_and(|info| info.protocol_version.as_str() < ProtocolVersion::V_2026_07_28.as_str())
}
