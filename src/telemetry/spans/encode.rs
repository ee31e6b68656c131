//! Spans as an `ExportTraceServiceRequest` of OTLP 1.x, whose field numbers never change.

use super::{Span, Value};

/// Kinds of fields on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

const KIND_INTERNAL: u64 = 1;
const KIND_SERVER: u64 = 2;
const STATUS_ERROR: u64 = 2;
const SCOPE: &str = "hostler";

/// The request that exports these spans.
pub fn request(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let of_resource = message(|out| {
        for (name, value) in resource {
            bytes(out, 1, &attribute(name, &Value::String(value.clone())));
        }
    });
    let scope = message(|out| {
        bytes(out, 1, SCOPE.as_bytes());
        bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
    });
    let of_scope = message(|out| {
        bytes(out, 1, &scope);
        for span in spans {
            bytes(out, 2, &encoded(span));
        }
    });
    let spans_of_resource = message(|out| {
        bytes(out, 1, &of_resource);
        bytes(out, 2, &of_scope);
    });
    message(|out| bytes(out, 1, &spans_of_resource))
}

fn encoded(span: &Span) -> Vec<u8> {
    message(|out| {
        id(out, 1, &span.trace);
        id(out, 2, &span.id);
        if let Some(state) = &span.state {
            bytes(out, 3, state.as_bytes());
        }
        if let Some(parent) = &span.parent {
            id(out, 4, parent);
        }
        bytes(out, 5, span.name.as_bytes());
        number(out, 6, if span.is_server { KIND_SERVER } else { KIND_INTERNAL });
        fixed(out, 7, span.began);
        fixed(out, 8, span.ended);
        for (name, value) in &span.attributes {
            bytes(out, 9, &attribute(name, value));
        }
        if let Some(error) = &span.error {
            let status = message(|out| {
                bytes(out, 2, error.as_bytes());
                number(out, 3, STATUS_ERROR);
            });
            bytes(out, 15, &status);
        }
    })
}

fn attribute(name: &str, value: &Value) -> Vec<u8> {
    let value = message(|out| match value {
        Value::String(text) => bytes(out, 1, text.as_bytes()),
        Value::Bool(is_set) => number(out, 2, u64::from(*is_set)),
        Value::Int(value) => number(out, 3, value.cast_unsigned()),
        Value::Double(value) => fixed(out, 4, value.to_bits()),
    });
    message(|out| {
        bytes(out, 1, name.as_bytes());
        bytes(out, 2, &value);
    })
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn id(out: &mut Vec<u8>, field: u64, hex: &str) {
    bytes(out, field, &data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap_or_default());
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | VARINT);
    varint(out, value);
}

fn fixed(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}
