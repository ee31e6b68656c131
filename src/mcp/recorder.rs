//! Keeps the record of a session as it goes, and restores a session from what a killed process left.

use std::collections::hash_map::Entry;
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
use super::session::{LISTS, McpSession};
use super::subscription::list_changed;
use crate::outcome::{Code, Fault, Metadata, Outcome};
use crate::process::{Outbox, Writer};

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

    /// A request is about to be processed.
    pub fn begin(&self, id: &RequestId, method: &str, line: &[u8]) {
        let mut state = self.state.lock();
        // Else it is repeated from the record.
        if state.repeated.contains(id) {
            return;
        }
        let Entry::Vacant(open) = state.slots.entry(id.clone()) else { return };
        let mut record = self.record.lock();
        if KEPT.contains(&method) {
            record.keep(line);
        }
        let mut text = [0; LONGEST_TEXT];
        if let Some(slot) = short_text(id, method, &mut text).and_then(|text| record.begin(text)) {
            open.insert(slot);
        }
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

    /// What was read was processed up to this beginning of a line.
    pub fn processed(&self, read: usize, tail: &[u8], is_cut: bool) {
        self.record.lock().processed(read, tail, is_cut);
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

/// What the record knows a request by; `None` if that is too long for it.
fn short_text<'a>(id: &RequestId, method: &str, room: &'a mut [u8; LONGEST_TEXT]) -> Option<&'a str> {
    let mut rest = &mut room[..];
    serde_json::to_writer(&mut rest, id).ok()?;
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
        let was_mid_line = record.writes();
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
    /// Continues the session of a process that was killed. Returns bytes that it had read and not begun to process.
    pub fn restore(self: &Arc<Self>) -> (Vec<u8>, Option<Cut>) {
        let Some(recorder) = self.recorder() else { return (Vec::new(), None) };
        let (left, open) = recorder.record.lock().take_over();
        let Left { state, begun, unread, is_cut, is_mid_line, is_new } = left;
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
            for list in LISTS {
                self.outbox().send(&message::notification(list_changed(list), json!({})));
            }
        }
        tracing::info!(session = self.id(), lost = unanswered.len(), "a session goes on after its shared hostler died");
        // The beginning of a line that is cut is none of those that were begun.
        (if is_cut.is_some() { unread } else { unbegun(&unread, &begun) }, is_cut)
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
        if method != "tools/call" {
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

/// Whole lines whose requests were begun are left out.
fn unbegun(bytes: &[u8], begun: &HashSet<String>) -> Vec<u8> {
    let is_begun = |line: &[u8]| match message::parse(line) {
        Incoming::Request { id, method, .. } => begun.contains(&format!("{}\t{method}", json!(id))),
        // Notifications may have been processed; none of them is missed.
        _ => line.ends_with(b"\n"),
    };
    bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_begun(line)).flatten().copied().collect()
}
