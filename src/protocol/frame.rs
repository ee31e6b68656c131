//! Frames from host to worker. Each function returns one whole line with its newline.

use data_encoding::HEXLOWER;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{HELLO_ID, TraceContext, VERSION, WireError};

/// The parameters of `hello`.
#[derive(Debug, Clone, Serialize)]
pub struct Hello<'a> {
    /// The host's protocol version.
    pub protocol: u32,
    /// The pack that this worker serves.
    pub pack: &'a str,
    /// The names of the file's declared secrets.
    pub secrets: &'a [String],
    /// The requests that the worker may send: `call`, `tools`, `config`, `llm`.
    pub host: &'a [&'a str],
    /// The number of calls to run at once, if it is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// Whether the file is served as one program, in place of its functions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub program: bool,
    /// The types to describe when idle: names, grouped by direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub describe: Option<&'a RawValue>,
}

impl Hello<'_> {
    /// The request as a line.
    pub fn frame(&self) -> Vec<u8> {
        line(&Request { jsonrpc: "2.0", id: Some(HELLO_ID), method: "hello", params: self })
    }
}

impl<'a> Hello<'a> {
    /// A hello for a pack.
    pub fn new(pack: &'a str, secrets: &'a [String], host: &'a [&'a str]) -> Self {
        Self { protocol: VERSION, pack, secrets, host, concurrency: None, program: false, describe: None }
    }

    /// The same, for a worker that runs this many calls at once.
    #[must_use]
    pub fn running(self, concurrency: usize) -> Self {
        Self { concurrency: Some(concurrency).filter(|calls| *calls > 1), ..self }
    }

    /// The same, for a worker that runs its file as a program.
    #[must_use]
    pub fn of_program(self, program: bool) -> Self {
        Self { program, ..self }
    }

    /// The same, with types to describe.
    #[must_use]
    pub fn describing(self, describe: Option<&'a RawValue>) -> Self {
        Self { describe, ..self }
    }
}

/// The parts of a `call` request.
#[derive(Debug, Clone, Copy)]
pub struct CallFrame<'a> {
    /// The request id, unique within the worker.
    pub id: u64,
    /// The function's name.
    pub function: &'a str,
    /// The arguments, a JSON object.
    pub kwargs: &'a RawValue,
    /// The tool's configuration, a JSON object.
    pub config: &'a RawValue,
    /// The declared secrets that are set, a JSON object.
    pub secrets: &'a RawValue,
    /// The call's id.
    pub call_id: &'a str,
    /// Milliseconds left when the frame is written.
    pub deadline_ms: u64,
    /// The call's own span and its trace.
    pub trace: Option<&'a TraceContext>,
    /// The caller's tags.
    pub tags: &'a [String],
    /// The caller's session, which workers see in hexadecimal.
    pub session: u64,
}

impl CallFrame<'_> {
    /// The request as a line. Written by hand for speed: the parts are already JSON.
    pub fn frame(&self) -> Vec<u8> {
        let pieces = self.kwargs.get().len() + self.config.get().len() + self.secrets.get().len();
        let mut out = Vec::with_capacity(pieces + self.function.len() + self.call_id.len() + 192);
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        push_json(&mut out, self.id);
        out.extend_from_slice(b",\"method\":\"call\",\"params\":{\"function\":");
        push_string(&mut out, self.function);
        for (name, value) in [("kwargs", self.kwargs), ("config", self.config), ("secrets", self.secrets)] {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            push_one_line(&mut out, value.get());
        }
        out.extend_from_slice(b",\"call\":{\"id\":");
        push_string(&mut out, self.call_id);
        out.extend_from_slice(b",\"deadline_ms\":");
        push_json(&mut out, self.deadline_ms);
        out.extend_from_slice(b",\"trace\":");
        match self.trace {
            Some(trace) => push_string(&mut out, trace.traceparent()),
            None => out.extend_from_slice(b"null"),
        }
        if let Some(state) = self.trace.and_then(TraceContext::tracestate) {
            out.extend_from_slice(b",\"tracestate\":");
            push_string(&mut out, state);
        }
        out.extend_from_slice(b",\"tags\":[");
        for (place, tag) in self.tags.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            push_string(&mut out, tag);
        }
        out.extend_from_slice(b"],\"session\":\"");
        let mut digits = [0; 16];
        HEXLOWER.encode_mut(&self.session.to_be_bytes(), &mut digits);
        out.extend_from_slice(&digits);
        out.extend_from_slice(b"\"}}}\n");
        out
    }
}

/// Cancels a call by its request id.
pub fn cancel_frame(id: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {
        id: u64,
    }
    line(&Request { jsonrpc: "2.0", id: None, method: "cancel", params: &Params { id } })
}

/// Asks for a call back that the worker has not begun.
pub fn recall_frame(id: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {
        id: u64,
    }
    line(&Request { jsonrpc: "2.0", id: None, method: "recall", params: &Params { id } })
}

/// Says that a session has ended, and no call of it follows.
pub fn session_ended_frame(session: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {
        session: String,
    }
    let params = Params { session: format!("{session:016x}") };
    line(&Request { jsonrpc: "2.0", id: None, method: "session_ended", params: &params })
}

/// Pings a worker that runs several calls.
pub fn ping_frame(id: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {}
    line(&Request { jsonrpc: "2.0", id: Some(id), method: "ping", params: &Params {} })
}

/// Asks the worker to finish its calls and exit.
pub fn shutdown_frame() -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {}
    line(&Request { jsonrpc: "2.0", id: None, method: "shutdown", params: &Params {} })
}

/// Answers a worker's request. `id` is the worker's own id, unchanged.
pub fn reply_frame(id: &RawValue, answer: Result<&RawValue, &WireError>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Reply<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a WireError>,
    }
    line(&Reply { jsonrpc: "2.0", id, result: answer.ok(), error: answer.err() })
}

#[derive(Serialize)]
struct Request<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'static str,
    params: &'a P,
}

/// Serializes to one line. The types have string keys and finite numbers, so this cannot fail; workers would ignore an
/// empty line.
fn line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = serde_json::to_vec(value).unwrap_or_default();
    out.push(b'\n');
    // A RawValue from outside may hold line breaks between its tokens.
    let end = out.len() - 1;
    for byte in &mut out[..end] {
        if *byte == b'\n' || *byte == b'\r' {
            *byte = b' ';
        }
    }
    out
}

pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        push_json(out, text);
    }
}

fn push_json(out: &mut Vec<u8>, value: impl Serialize) {
    // Numbers and strings can always be written to memory.
    let _ = serde_json::to_writer(out, &value);
}

/// JSON text on one line. In valid JSON, line breaks occur only between tokens, so a space is equivalent.
pub(super) fn push_one_line(out: &mut Vec<u8>, json: &str) {
    if json.bytes().any(|byte| byte == b'\n' || byte == b'\r') {
        out.extend(json.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }));
    } else {
        out.extend_from_slice(json.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_requests_concurrency_only_when_needed() {
        let hello = |concurrency| String::from_utf8(Hello::new("a", &[], &[]).running(concurrency).frame()).unwrap();
        assert!(hello(4).contains("\"concurrency\":4"));
        assert!(!hello(1).contains("concurrency"));
    }

    #[test]
    fn a_call_is_one_line_of_valid_json_whatever_its_parts_hold() {
        let kwargs = RawValue::from_string("{\n \"a\": \"x\\ny\"\r\n}".to_owned()).unwrap();
        let empty = RawValue::from_string("{}".to_owned()).unwrap();
        let call = CallFrame {
            id: 7,
            function: "se\"arch",
            kwargs: &kwargs,
            config: &empty,
            secrets: &empty,
            call_id: "c1",
            deadline_ms: 30_000,
            trace: None,
            tags: &[],
            session: 7,
        };
        let frame = call.frame();
        assert_eq!(frame.iter().position(|byte| *byte == b'\n'), Some(frame.len() - 1));
        let value: serde_json::Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(value["params"]["kwargs"]["a"], "x\ny");
        assert_eq!(value["params"]["function"], "se\"arch");
        assert_eq!(value["params"]["call"]["deadline_ms"], 30_000);
        assert_eq!(value["params"]["call"]["session"], "0000000000000007");
        assert_eq!(value["id"], 7);
    }
}
