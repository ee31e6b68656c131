//! The express lane: warm `tools/call` requests of an open session, taken from the line before rmcp reads it.
//!
//! rmcp tries a request against every type it could be, spawns several tasks for it and builds its result as values: well
//! over half of what hostler spends on a warm call. A call that looks as calls do is read once here and its result passed
//! on as the text it came in, so that integers stay exact. Whatever looks different in any way, and everything that is no
//! call, goes to rmcp, whose errors are then the only ones.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rmcp::model::{ProtocolVersion, RequestId, RequestMetaObject};
use rmcp::service::{Peer, RoleServer};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::face::Face;
use super::outbox::Outbox;
use super::reply::{self, Kind};

/// The method stands this near to the beginning of a message in every client there is.
const NEAR: usize = 128;

pub(super) struct Express {
    face: Arc<Face>,
    outbox: Outbox,
    /// The client, once its session is open.
    session: OnceLock<Session>,
    /// Calls under way. Held only to add, to look up or to remove one.
    running: Mutex<HashMap<RequestId, AbortHandle>>,
    ended: Notify,
}

struct Session {
    peer: Peer<RoleServer>,
    opened: Opened,
}

/// How a session came to be, which decides what each of its requests must carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// By `initialize`, at a revision that has it: requests need no metadata.
    ByHandshake,
    /// By a request that said all there is to say, as every request after it must.
    Inline,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: RequestId,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(deserialize_with = "by_name")]
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
        Arc::new(Self { face, outbox, session: OnceLock::new(), running: Mutex::default(), ended: Notify::new() })
    }

    /// The session is open: from here on calls may be taken.
    pub fn open(&self, peer: Peer<RoleServer>) {
        let opened = match peer.peer_info() {
            None => Opened::Inline,
            Some(info) if info.protocol_version.as_str() < MODERN.as_str() => Opened::ByHandshake,
            // Nobody should ask for it; what rmcp makes of it is rmcp's affair.
            Some(_) => return,
        };
        let _ = self.session.set(Session { peer, opened });
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
        let Some(session) = self.session.get() else { return false };
        let Ok(call) = serde_json::from_slice::<CallLine<'_>>(line) else { return false };
        let meta = call.params.meta.unwrap_or_default();
        if call.method != "tools/call" || call.jsonrpc != "2.0" {
            return false;
        }
        let Some(kind) = session.opened.allows(&meta) else { return false };
        let mut running = self.running.lock();
        if running.contains_key(&call.id) {
            return false;
        }
        let (request, hearing) =
            self.face.request(call.params.name, call.params.arguments.unwrap_or_default(), &meta, &session.peer);
        let (this, id) = (Arc::clone(self), call.id.clone());
        // The lock is held until the call stands in the table, so that its end cannot come before.
        let task = tokio::spawn(async move {
            // Boxed: the future of a call is large, and spawning copies a task several times.
            let outcome = Box::pin(this.face.call(request, hearing)).await;
            let _ = this.outbox.send(reply::line(&id, outcome, kind, this.face.wears_envelope()));
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

/// Parameters by name only: of a list serde would take a struct's fields in their order.
fn by_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CallParams, D::Error> {
    struct ByName;
    impl<'de> Visitor<'de> for ByName {
        type Value = CallParams;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CallParams, A::Error> {
            CallParams::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(ByName)
}

/// The first revision without a handshake.
const MODERN: ProtocolVersion = ProtocolVersion::V_2026_07_28;

impl Opened {
    /// What kind of result a request with this metadata gets. `None` when it lacks what it must carry, or names a
    /// revision that is not its session's: such a request is rmcp's to judge.
    fn allows(self, meta: &RequestMetaObject) -> Option<Kind> {
        match (self, meta.protocol_version()) {
            (Self::ByHandshake, None) => Some(Kind::Plain),
            (Self::Inline, Some(version)) => {
                (version == MODERN && meta.missing_required_keys(&MODERN).is_empty()).then_some(Kind::Complete)
            }
            _ => None,
        }
    }
}
