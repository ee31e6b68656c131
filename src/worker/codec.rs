//! Translates between frames and lines, in protocol v1 or the bare protocol. Callers see frames only.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::events::WorkerEvent;
use crate::protocol::{
    self, BareLine, CallFrame, Incoming, OutputNote, WireError, bare_call, cancel_frame, ping_frame, recall_frame,
    reply_frame, session_ended_frame, shutdown_frame,
};

/// The codec of one worker. Its writer and its reader share it.
#[derive(Debug, Clone)]
pub enum Codec {
    /// Protocol v1.
    V1,
    /// The bare protocol. Its lines name no call, so their meaning depends on the last call written.
    Bare(Asked),
}

/// The unanswered call of a bare worker. Locked only briefly.
#[derive(Debug, Clone, Default)]
pub struct Asked(Arc<Mutex<Option<u64>>>);

impl Asked {
    fn set(&self, call: u64) {
        *self.0.lock() = Some(call);
    }

    fn take(&self) -> Option<u64> {
        self.0.lock().take()
    }
}

impl Codec {
    /// The bare protocol, without a call.
    pub fn bare() -> Self {
        Self::Bare(Asked::default())
    }

    /// A call as bytes.
    pub(super) fn call(&self, call: &CallFrame<'_>) -> Vec<u8> {
        match self {
            Self::V1 => call.frame(),
            Self::Bare(asked) => {
                asked.set(call.id);
                bare_call(call)
            }
        }
    }

    /// A cancellation, if the codec has one.
    pub(super) fn cancel(&self, call: u64) -> Option<Vec<u8>> {
        self.in_v1(|| cancel_frame(call))
    }

    /// A recall, if the codec has one.
    pub(super) fn recall(&self, call: u64) -> Option<Vec<u8>> {
        self.in_v1(|| recall_frame(call))
    }

    /// The end of a session, if the codec has one.
    pub(super) fn session_ended(&self, session: u64) -> Option<Vec<u8>> {
        self.in_v1(|| session_ended_frame(session))
    }

    /// A ping, if the codec has one.
    pub(super) fn ping(&self, id: u64) -> Option<Vec<u8>> {
        self.in_v1(|| ping_frame(id))
    }

    /// A request to exit. A bare worker sees the end of its input instead.
    pub(super) fn shutdown(&self) -> Option<Vec<u8>> {
        self.in_v1(shutdown_frame)
    }

    /// An answer to the worker's request.
    pub(super) fn reply(&self, id: &RawValue, answer: Result<&RawValue, &WireError>) -> Option<Vec<u8>> {
        self.in_v1(|| reply_frame(id, answer))
    }

    fn in_v1(&self, frame: impl FnOnce() -> Vec<u8>) -> Option<Vec<u8>> {
        matches!(self, Self::V1).then(frame)
    }

    /// The call that an overlong line answers, from its beginning.
    pub(super) fn answers(&self, beginning: &[u8]) -> Option<u64> {
        match self {
            Self::V1 => protocol::peek_id(beginning),
            Self::Bare(asked) => protocol::may_be_answer(beginning).then(|| asked.take()).flatten(),
        }
    }

    /// Parses a line without its newline.
    pub(super) fn interpret(&self, line: &[u8]) -> Option<WorkerEvent> {
        match self {
            Self::V1 => interpret_v1(line),
            Self::Bare(asked) => interpret_bare(line, asked),
        }
    }
}

fn interpret_v1(line: &[u8]) -> Option<WorkerEvent> {
    if line.is_empty() {
        return None;
    }
    match protocol::parse(line) {
        Ok(frame) => Some(WorkerEvent::Frame(frame)),
        Err(error) if let Some(id) = protocol::id_of_answer(line) => {
            Some(WorkerEvent::Frame(protocol::invalid_answer(id, &error)))
        }
        Err(error) => {
            let beginning = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
            tracing::warn!(target: "tool", %error, line = beginning, "a worker wrote a line that is not a frame");
            None
        }
    }
}

fn interpret_bare(line: &[u8], asked: &Asked) -> Option<WorkerEvent> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match protocol::parse_bare(line) {
        BareLine::Answer(answer) => {
            let call = asked.take();
            if call.is_none() {
                // The content may be a secret of the previous call.
                tracing::warn!(bytes = line.len(), "dropped an answer of a bare worker without a call");
            }
            call.map(|id| WorkerEvent::Frame(Incoming::Reply { id, answer }))
        }
        BareLine::Output => {
            let text = String::from_utf8_lossy(line).into_owned() + "\n";
            Some(WorkerEvent::Frame(Incoming::Output(OutputNote { id: None, stream: "stdout".to_owned(), text })))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(codec: &Codec, id: u64) -> String {
        let (kwargs, none) = (RawValue::from_string("{\"a\":1}".to_owned()).unwrap(), "{}".to_owned());
        let none = RawValue::from_string(none).unwrap();
        let call = CallFrame {
            id,
            function: "f",
            kwargs: &kwargs,
            config: &none,
            secrets: &none,
            call_id: "c",
            deadline_ms: 1,
            trace: None,
            tags: &[],
            session: 7,
        };
        String::from_utf8(codec.call(&call)).unwrap()
    }

    fn heard(codec: &Codec, line: &str) -> String {
        match codec.interpret(line.as_bytes()) {
            Some(WorkerEvent::Frame(Incoming::Reply { id, answer: Ok(result) })) => format!("{id}={}", result.get()),
            Some(WorkerEvent::Frame(Incoming::Output(note))) => format!("printed {:?}", note.text),
            Some(other) => format!("{other:?}"),
            None => "nothing".to_owned(),
        }
    }

    #[test]
    fn a_bare_answer_belongs_to_the_last_call_and_counts_once() {
        let bare = Codec::bare();
        let answer = r#"{"result":5,"error":null}"#;
        assert_eq!(heard(&bare, answer), "nothing", "no call is running");
        assert_eq!(ask(&bare, 7), "{\"function\":\"f\",\"kwargs\":{\"a\":1},\"config\":{},\"secrets\":{}}\n");
        assert_eq!(heard(&bare, "working on it"), "printed \"working on it\\n\"");
        assert_eq!(heard(&bare, ""), "printed \"\\n\"");
        assert_eq!(heard(&bare.clone(), &format!("{answer}\r")), "7=5", "reader and writer share the codec");
        assert_eq!(heard(&bare, answer), "nothing", "already answered");
    }

    #[test]
    fn a_bare_worker_receives_calls_only() {
        let (bare, none) = (Codec::bare(), RawValue::NULL);
        assert_eq!(
            (bare.cancel(1), bare.ping(0), bare.shutdown(), bare.reply(none, Ok(none))),
            (None, None, None, None)
        );
        let v1 = Codec::V1;
        assert!(v1.cancel(1).is_some() && v1.ping(0).is_some() && v1.shutdown().is_some());
    }

    #[test]
    fn an_overlong_bare_answer_belongs_to_the_running_call() {
        let bare = Codec::bare();
        let _ = ask(&bare, 3);
        assert_eq!(bare.answers(b"xxxxxxxx"), None, "that is output");
        assert_eq!(bare.answers(b"{\"result\":\"xxxx"), Some(3));
        assert_eq!(bare.answers(b"{\"result\":\"xxxx"), None);
    }
}
