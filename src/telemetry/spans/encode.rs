//! Spans as an `ExportTraceServiceRequest` of OTLP 1.x, whose field numbers never change. Each span is written as its call ends, into
//! the batch that will be sent: what a call costs here is paid by its client.

use super::{Span, Value};

/// Kinds of fields on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

const KIND_INTERNAL: u64 = 1;
const KIND_SERVER: u64 = 2;
const STATUS_ERROR: u64 = 2;
const SCOPE: &str = "hostler";
/// The most bytes of a resource's attributes. One that does not fit is left out whole.
const MOST_RESOURCE: usize = 64 << 10;

/// A message that is being written.
struct Message<'a>(&'a mut Vec<u8>);

/// The bytes for the length of a message that is not known before it is written. Readers take lengths with leading zeros.
const LENGTH: usize = 3;

impl Message<'_> {
    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.starts(field, value.len());
        self.0.extend_from_slice(value);
    }

    fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn id(&mut self, field: u64, hex: &str) {
        let mut id = [0; 16];
        let id = &mut id[..hex.len() / 2];
        if data_encoding::HEXLOWER.decode_mut(hex.as_bytes(), id).is_ok() {
            self.bytes(field, id);
        }
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A message of less than 2 MB within this one.
    fn within(&mut self, field: u64, write: impl FnOnce(&mut Message<'_>)) {
        self.varint(field << 3 | BYTES);
        let start = self.0.len() + LENGTH;
        self.0.extend_from_slice(&[0; LENGTH]);
        write(&mut Message(self.0));
        let length = self.0.len() - start;
        debug_assert!(length < 1 << 21, "{length} bytes");
        let sevenths = [0x80, 0x80, 0].into_iter().zip([0, 7, 14]);
        for (byte, (more, shift)) in self.0[start - LENGTH..start].iter_mut().zip(sevenths) {
            *byte = more | u8::try_from(length >> shift & 0x7f).unwrap_or_default();
        }
    }

    fn attribute(&mut self, field: u64, name: &str, value: &Value<'_>) {
        self.within(field, |pair| {
            pair.text(1, name);
            pair.within(2, |out| match value {
                Value::String(text) => out.text(1, text),
                Value::Bool(is_set) => out.number(2, u64::from(*is_set)),
                Value::Int(value) => out.number(3, value.cast_unsigned()),
                Value::Double(value) => out.fixed(4, value.to_bits()),
            });
        });
    }

    /// Announces a field of that many bytes.
    fn starts(&mut self, field: u64, length: usize) {
        self.varint(field << 3 | BYTES);
        self.varint(length as u64);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}

/// Adds a span to a batch.
pub fn add(batch: &mut Vec<u8>, span: &Span<'_>) {
    Message(batch).within(2, |out| {
        out.id(1, span.trace);
        out.id(2, span.id);
        if let Some(state) = span.state {
            out.text(3, state);
        }
        if let Some(parent) = span.parent {
            out.id(4, parent);
        }
        out.text(5, span.name);
        out.number(6, if span.is_server { KIND_SERVER } else { KIND_INTERNAL });
        out.fixed(7, span.began);
        out.fixed(8, span.ended);
        for (name, value) in span.attributes {
            out.attribute(9, name, value);
        }
        if let Some(error) = span.error {
            out.within(15, |status| {
                status.text(2, error);
                status.number(3, STATUS_ERROR);
            });
        }
    });
}

/// The request that exports a batch.
pub fn request(resource: &[(String, String)], batch: &[u8]) -> Vec<u8> {
    let of_resource = message(|out| {
        out.within(1, |out| {
            let mut room = MOST_RESOURCE;
            for (name, value) in resource {
                if let Some(left) = room.checked_sub(name.len() + value.len()) {
                    room = left;
                    out.attribute(1, name, &Value::String(value));
                }
            }
        });
    });
    let scope = message(|out| {
        out.within(1, |out| {
            out.text(1, SCOPE);
            out.text(2, env!("CARGO_PKG_VERSION"));
        });
    });
    let of_scope = message(|out| out.starts(2, scope.len() + batch.len()));
    let all = of_resource.len() + of_scope.len() + scope.len() + batch.len();
    let mut request = Vec::with_capacity(all + 16);
    Message(&mut request).starts(1, all);
    for part in [&of_resource, &of_scope, &scope, batch] {
        request.extend_from_slice(part);
    }
    request
}

fn message(write: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Message(&mut out));
    out
}
