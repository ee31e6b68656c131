//! Frames from host to worker. Each function gives one whole line, newline included.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{HELLO_ID, VERSION, WireError};

/// The parameters of `hello`.
#[derive(Debug, Clone, Serialize)]
pub struct Hello<'a> {
    /// The protocol version the host speaks.
    pub protocol: u32,
    /// The pack this worker serves.
    pub pack: &'a str,
    /// The names of the secrets the file declared.
    pub secrets: &'a [String],
    /// What the worker may ask of the host: `call`, `tools`, `config`, `llm`.
    pub host: &'a [&'a str],
    /// How many calls it is to run at once, where that is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// The types that it shall describe when it has nothing else to do: names by the side they stand on.
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
        Self { protocol: VERSION, pack, secrets, host, concurrency: None, describe: None }
    }

    /// The same, for a worker that is to run so many calls at once.
    #[must_use]
    pub fn running(self, concurrency: usize) -> Self {
        Self { concurrency: Some(concurrency).filter(|calls| *calls > 1), ..self }
    }

    /// The same, with types to describe.
    #[must_use]
    pub fn describing(self, describe: Option<&'a RawValue>) -> Self {
        Self { describe, ..self }
    }
}

/// Everything that one `call` request carries.
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
}

impl CallFrame<'_> {
    /// The request as a line. Written by hand because it is on the way of every call: the pieces are already JSON.
    pub fn frame(&self) -> Vec<u8> {
        let pieces = self.kwargs.get().len() + self.config.get().len() + self.secrets.get().len();
        let mut out = Vec::with_capacity(pieces + self.function.len() + self.call_id.len() + 192);
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(self.id.to_string().as_bytes());
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
        out.extend_from_slice(self.deadline_ms.to_string().as_bytes());
        out.extend_from_slice(b",\"trace\":null,\"tags\":{}}}}\n");
        out
    }
}

/// Withdraws a call by its request id.
pub fn cancel_frame(id: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {
        id: u64,
    }
    line(&Request { jsonrpc: "2.0", id: None, method: "cancel", params: &Params { id } })
}

/// Asks a worker that runs several calls for a sign of life.
pub fn ping_frame(id: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {}
    line(&Request { jsonrpc: "2.0", id: Some(id), method: "ping", params: &Params {} })
}

/// Asks the worker to finish and leave.
pub fn shutdown_frame() -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {}
    line(&Request { jsonrpc: "2.0", id: None, method: "shutdown", params: &Params {} })
}

/// Answers a request that the worker made. `id` is the worker's own, as it stood in its request.
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

/// Serialises to one line. The types here have string keys and finite numbers, so this cannot fail;
/// if it ever did, an empty line is what every worker ignores.
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
        out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
    }
}

/// JSON text on one line. A line break in valid JSON stands only between tokens, so a space is as good.
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
    fn hello_asks_for_several_calls_at_once_only_where_they_are_wanted() {
        let hello = |concurrency| String::from_utf8(Hello::new("a", &[], &[]).running(concurrency).frame()).unwrap();
        assert!(hello(4).contains("\"concurrency\":4"));
        assert!(!hello(1).contains("concurrency"));
    }

    #[test]
    fn a_call_is_one_line_of_valid_json_whatever_its_pieces_hold() {
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
        };
        let frame = call.frame();
        assert_eq!(frame.iter().position(|byte| *byte == b'\n'), Some(frame.len() - 1));
        let value: serde_json::Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(value["params"]["kwargs"]["a"], "x\ny");
        assert_eq!(value["params"]["function"], "se\"arch");
        assert_eq!(value["params"]["call"]["deadline_ms"], 30_000);
        assert_eq!(value["id"], 7);
    }
}
