//! Keeps the record of a session as it goes, and restores a session from what a killed process left.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::RequestId;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::Cut;
use super::lifecycle::{Era, Rules};
use super::message::{self, Incoming};
use super::record::{LONGEST_TEXT, Left, Record, Slot};
use super::result::{self, Form};
use super::session::McpSession;
use super::subscription::list_changed;
use crate::outcome::{Code, Fault, Metadata, Outcome};
use crate::process::{Outbox, Writer};
use crate::registry::RoleKind;

/// The method of calls, whose answer is an outcome.
const CALL: &str = "tools/call";
/// Requests whose lines make a session what it is.
const KEPT: [&str; 5] =
    ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"];

/// What a session records of itself.
pub(super) struct Recorder {
    record: Arc<Mutex<Record>>,
    /// Locked only briefly.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: HashMap<RequestId, Slot>,
    /// Requests that were answered before this process served the session.
    repeated: HashSet<RequestId>,
}

impl Recorder {
    pub fn new(record: Record) -> Self {
        Self { record: Arc::new(Mutex::new(record)), state: Mutex::default() }
    }

    /// A stream that records what is written to it.
    pub fn output(&self, stream: Writer) -> Writer {
        Box::new(Recorded { stream, record: Arc::clone(&self.record) })
    }

    /// A request, which is the next line of the input, is about to be processed. Whether that could be recorded.
    pub fn begin(&self, id: &RequestId, method: &str, line: &[u8]) -> bool {
        let mut state = self.state.lock();
        // Else it is repeated from the record, or its id is that of an open one.
        if state.repeated.contains(id) || state.slots.contains_key(id) {
            return true;
        }
        let mut text = [0; LONGEST_TEXT];
        let Some(text) = short_text(id, method, &mut text) else { return false };
        let mut record = self.record.lock();
        if KEPT.contains(&method) && !record.keep(line) {
            let lines = record.state();
            record.replace(&in_force(&lines, |id| state.slots.contains_key(id)));
            if !record.keep(line) {
                tracing::warn!("a session has more subscriptions than survive an end of the shared hostler");
            }
        }
        record.begin(text).map(|slot| state.slots.insert(id.clone(), slot)).is_some()
    }

    /// Whether the answer to a request goes out: an answered one that is repeated has its answer.
    pub fn is_awaited(&self, id: &RequestId) -> bool {
        let repeated = &mut self.state.lock().repeated;
        repeated.is_empty() || !repeated.remove(id)
    }

    /// The answer to a request is queued, or none is awaited.
    pub fn answered(&self, id: &RequestId, outbox: &Outbox) {
        let Some(slot) = self.state.lock().slots.remove(id) else { return };
        let position = outbox.queued();
        self.record.lock().answered(slot, position);
    }

    /// The next line of the input, which is as long as this, was processed.
    pub fn taken(&self, length: usize) {
        self.record.lock().taken(length);
    }

    /// The whole lines among these bytes that were read are taken. What is left, or so much of a line that is too long, is kept.
    pub fn keep_rest(&self, read: usize, cut: Option<usize>) {
        self.record.lock().keep_rest(read, cut);
    }

    /// Reads bytes of the client to where they survive this process.
    pub async fn read(&self, mut input: impl AsyncRead + Unpin, into: &mut Vec<u8>) -> std::io::Result<usize> {
        std::future::poll_fn(|context| {
            let mut record = self.record.lock();
            let mut buffer = tokio::io::ReadBuf::new(record.input());
            ready!(Pin::new(&mut input).poll_read(context, &mut buffer))?;
            into.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(buffer.filled().len()))
        })
        .await
    }
}

/// Of the lines that were kept, those that still decide what the session is: the last of each kind, and open subscriptions.
fn in_force(lines: &[Vec<u8>], is_open: impl Fn(&RequestId) -> bool) -> Vec<&[u8]> {
    let mut seen = HashSet::new();
    let mut is_in_force = |line: &&[u8]| {
        let Incoming::Request { id, method, params } = message::parse(line) else { return false };
        match (&*method, params.and_then(|params| serde_json::from_str::<Watched>(params.get()).ok())) {
            ("subscriptions/listen", _) => is_open(&id),
            ("resources/subscribe", Some(Watched { uri })) => seen.insert(format!("uri {uri}")),
            ("resources/unsubscribe", Some(Watched { uri })) => {
                seen.insert(format!("uri {uri}"));
                false
            }
            _ => seen.insert(method.into_owned()),
        }
    };
    let mut lines: Vec<&[u8]> = lines.iter().rev().map(Vec::as_slice).filter(&mut is_in_force).collect();
    lines.reverse();
    lines
}

/// Parameters of a subscription to one resource.
#[derive(serde::Deserialize)]
struct Watched {
    uri: String,
}

/// What the record knows a request by: its id and, of a call, its method. `None` if that is too long.
fn short_text<'a>(id: &RequestId, method: &str, room: &'a mut [u8; LONGEST_TEXT]) -> Option<&'a str> {
    let mut rest = &mut room[..];
    serde_json::to_writer(&mut rest, id).ok()?;
    let method = if method == CALL { CALL } else { "" };
    rest.write_all(b"\t").and_then(|()| rest.write_all(method.as_bytes())).ok()?;
    let length = LONGEST_TEXT - rest.len();
    std::str::from_utf8(&room[..length]).ok()
}

/// A stream whose written bytes are counted.
struct Recorded {
    stream: Writer,
    record: Arc<Mutex<Record>>,
}

impl AsyncWrite for Recorded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let Self { stream, record } = &mut *self;
        let mut record = record.lock();
        let was_mid_line = record.writes(bytes);
        let written = Pin::new(stream).poll_write(context, bytes);
        match &written {
            Poll::Ready(Ok(count)) => record.wrote(&bytes[..*count]),
            _ => record.wrote_nothing(was_mid_line),
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl McpSession {
    /// Continues the session of a process that was killed. Returns bytes that it had read and not taken.
    pub fn restore(self: &Arc<Self>) -> (Vec<u8>, Option<Cut>) {
        let Some(recorder) = self.recorder() else { return (Vec::new(), None) };
        let (left, open) = recorder.record.lock().take_over();
        let Left { state, unread, is_cut, is_mid_line, is_new } = left;
        let is_cut = is_cut.then_some(Cut::Killed);
        if is_new {
            return (unread, is_cut);
        }
        if is_mid_line {
            // The client reads one line that it cannot use, and all others.
            self.outbox().send(b"\n");
        }
        let mut unanswered = Vec::new();
        for (slot, text) in open {
            let Some((id, method)) = text.split_once('\t') else { continue };
            let Ok(id) = serde_json::from_str::<RequestId>(id) else { continue };
            recorder.state.lock().slots.insert(id.clone(), slot);
            unanswered.push((id, method.to_owned()));
        }
        self.repeat(recorder, &state, &mut unanswered);
        for (id, method) in &unanswered {
            self.reply(id, &self.lost(id, method));
        }
        if self.is_by_handshake() {
            // Files may have changed in between.
            for list in RoleKind::ALL {
                self.outbox().send(&message::notification(list_changed(list), json!({})));
            }
        }
        tracing::info!(session = self.id(), lost = unanswered.len(), "a session goes on after its shared hostler died");
        (unread, is_cut)
    }

    /// Processes the lines again that made the session; what was answered is not answered again.
    fn repeat(self: &Arc<Self>, recorder: &Recorder, lines: &[Vec<u8>], unanswered: &mut Vec<(RequestId, String)>) {
        for line in lines {
            let Incoming::Request { id, method, .. } = message::parse(line) else { continue };
            let is_open = unanswered.iter().any(|(open, _)| *open == id);
            if method == "subscriptions/listen" {
                if is_open {
                    unanswered.retain(|(open, _)| *open != id);
                    self.take(line);
                }
                continue;
            }
            if !is_open {
                recorder.state.lock().repeated.insert(id.clone());
            }
            unanswered.retain(|(open, _)| *open != id);
            self.take(line);
        }
    }

    /// The answer to a request whose process was killed.
    fn lost(&self, id: &RequestId, method: &str) -> Vec<u8> {
        if method != CALL {
            let text = "hostler was killed before it answered; repeat the request";
            return message::error(id, &ErrorData::internal_error(text, None));
        }
        let rules = if self.is_by_handshake() { Rules::Legacy } else { Rules::Modern };
        let text = "hostler was killed while this call ran, so it is not known what the call did; call it again only if it \
                    may run twice";
        let outcome = Outcome {
            call_id: String::new(),
            tool: String::new(),
            ended: Err(Fault::new(Code::OutcomeUnknown, text)),
            latency: Duration::ZERO,
            metadata: Metadata::default(),
        };
        let form = Form { rules, envelope: self.has_envelope(), is_promised: &|| false };
        result::line(id, &outcome, &outcome.metadata, &form)
    }

    fn is_by_handshake(&self) -> bool {
        matches!(self.era(), Era::Handshake { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_is_the_last_of_each_kind() {
        let line = |id: u64, method: &str, params: serde_json::Value| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().into_bytes()
        };
        let lines = [
            line(0, "initialize", json!({})),
            line(1, "resources/subscribe", json!({"uri": "a"})),
            line(2, "logging/setLevel", json!({"level": "info"})),
            line(3, "resources/subscribe", json!({"uri": "b"})),
            line(4, "subscriptions/listen", json!({})),
            line(5, "resources/unsubscribe", json!({"uri": "a"})),
            line(6, "logging/setLevel", json!({"level": "error"})),
            line(7, "subscriptions/listen", json!({})),
        ];
        let kept = in_force(&lines, |id| *id == RequestId::Number(7));
        assert_eq!(kept, [0, 3, 6, 7].map(|place: usize| lines[place].as_slice()));
    }
}
