//! How records are written: as bytes with a checksum.
//!
//! ```text
//! record = MAGIC u32 · length u32 · crc32 u32 · body        numbers are little-endian
//! body   = kind u8 · field*
//! field  = tag u8 · length varint · bytes                   text is UTF-8, numbers have no leading zeros
//! ```
//!
//! Kinds and tags that this version does not know are skipped, so that an older hostler can read a newer one's spool. A tag never
//! gets another meaning. What a field leaves out is empty, zero or false.

use super::record::{Accepted, Cancelling, Detached, Dispatched, Finished, Id, Printed, Record, Retrying, Waiting};

/// Where a record begins: after a damaged one, the next is found by it.
const MAGIC: [u8; 4] = [0xb7, b'h', b'j', 0x1a];
/// Magic, length and checksum.
const HEAD: usize = 12;
/// No record is longer: a request of a client has 128 MB at most.
const LONGEST: usize = 1 << 30;

impl Record<'_> {
    /// Appends it to a buffer.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        self.body(&mut Fields(out));
        let body = &out[start + HEAD..];
        let (length, crc) = (u32::try_from(body.len()).unwrap_or(u32::MAX), crc32fast::hash(body));
        let head = &mut out[start..start + HEAD];
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..].copy_from_slice(&crc.to_le_bytes());
    }

    fn body(&self, fields: &mut Fields<'_>) {
        match self {
            Self::Accepted(one) => {
                fields.begin(1, &one.id, one.at_ms);
                fields.text(3, one.tool);
                fields.bytes(4, one.version);
                fields.text(5, one.arguments);
                fields.text(6, one.effects);
                fields.text(7, one.level);
                fields.number(8, u64::from(one.background));
                fields.number(9, one.session);
                fields.option(10, one.client);
                one.tags.iter().for_each(|tag| fields.bytes(11, tag.as_bytes()));
                fields.option(12, one.traceparent);
                fields.option(13, one.key);
                fields.number(14, one.timeout_ms);
                fields.number(15, one.max_retries);
                fields.option(16, one.workspace);
                fields.number(17, u64::from(one.has_secrets));
            }
            Self::Dispatched(one) => {
                fields.begin(2, &one.id, one.at_ms);
                fields.number(3, one.attempt);
                fields.number(4, one.pid);
                fields.number(5, one.process_started);
            }
            Self::Finished(one) => {
                fields.begin(3, &one.id, one.at_ms);
                fields.text(3, one.state);
                fields.option(4, one.code);
                fields.option(5, one.fault);
                fields.option(6, one.result);
                fields.option(7, one.arguments);
                fields.option(8, one.output);
                fields.number(9, one.duration_us);
                fields.number(10, one.attempt);
                fields.number(11, one.pid);
                fields.option(12, one.cancelled);
                fields.option(13, one.metadata);
                fields.number(14, u64::from(one.keeps_arguments));
                fields.option(15, one.workspace);
            }
            Self::Retrying(one) => {
                fields.begin(4, &one.id, one.at_ms);
                fields.number(3, one.retry);
                fields.number(4, one.retry_at_ms);
                fields.text(5, one.fault);
            }
            Self::Cancelling(one) => {
                fields.begin(5, &one.id, one.at_ms);
                fields.text(3, one.by);
            }
            Self::Printed(one) => {
                fields.begin(6, &one.id, one.at_ms);
                fields.text(3, one.stream);
                fields.text(4, one.text);
            }
            Self::Detached(one) => {
                fields.begin(7, &one.id, one.at_ms);
                fields.option(3, one.workspace);
            }
            Self::Waiting(one) => fields.begin(8, &one.id, one.at_ms),
        }
    }
}

/// Writes the fields of a body.
struct Fields<'b>(&'b mut Vec<u8>);

impl Fields<'_> {
    fn begin(&mut self, kind: u8, id: &Id, at_ms: u64) {
        self.0.push(kind);
        self.bytes(1, id);
        self.number(2, at_ms);
    }

    fn bytes(&mut self, tag: u8, value: &[u8]) {
        self.0.push(tag);
        let mut length = value.len();
        while length >= 0x80 {
            self.0.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
            length >>= 7;
        }
        self.0.push(u8::try_from(length).unwrap_or_default());
        self.0.extend_from_slice(value);
    }

    fn text(&mut self, tag: u8, value: &str) {
        if !value.is_empty() {
            self.bytes(tag, value.as_bytes());
        }
    }

    fn option(&mut self, tag: u8, value: Option<&str>) {
        if let Some(value) = value {
            self.bytes(tag, value.as_bytes());
        }
    }

    fn number(&mut self, tag: u8, value: u64) {
        let length = 8 - value.leading_zeros() as usize / 8;
        if length > 0 {
            self.bytes(tag, &value.to_le_bytes()[..length]);
        }
    }
}

/// What stands at a place in a spool.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is made")]
#[derive(Debug, PartialEq)]
pub enum Found<'a> {
    /// A record, and where it ends. `None` for one of a kind that this version does not know.
    Record(Option<Record<'a>>, usize),
    /// Bytes that are no record, and where the next one begins, or the end.
    Damaged(usize),
    /// The beginning of a record, or nothing: what follows is not written yet, or never was.
    End,
}

/// Reads what stands at the beginning of these bytes. `is_whole` says that nothing will follow them: a record that seems to be longer
/// is damaged if another one begins behind it.
pub fn read(bytes: &[u8], is_whole: bool) -> Found<'_> {
    let next = || bytes.windows(4).skip(1).position(|four| four == MAGIC).map(|place| place + 1);
    match framed(bytes) {
        Framed::Body(body) => Found::Record(parse(body), HEAD + body.len()),
        Framed::Short if is_whole => next().map_or(Found::End, Found::Damaged),
        Framed::Short => Found::End,
        Framed::Other => Found::Damaged(next().unwrap_or(bytes.len())),
    }
}

enum Framed<'a> {
    Body(&'a [u8]),
    Short,
    Other,
}

fn framed(bytes: &[u8]) -> Framed<'_> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
        let seen = bytes.len().min(4);
        return if bytes[..seen] == MAGIC[..seen] { Framed::Short } else { Framed::Other };
    };
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(4) as usize;
    if head[..4] != MAGIC || length > LONGEST {
        return Framed::Other;
    }
    match rest.get(..length) {
        Some(body) if crc32fast::hash(body) == number(8) => Framed::Body(body),
        Some(_) => Framed::Other,
        None => Framed::Short,
    }
}

/// A field of a body.
struct Field<'a> {
    tag: u8,
    value: &'a [u8],
}

impl<'a> Field<'a> {
    fn text(&self) -> Option<&'a str> {
        std::str::from_utf8(self.value).ok()
    }

    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        let length = self.value.len().min(8);
        bytes[..length].copy_from_slice(&self.value[..length]);
        u64::from_le_bytes(bytes)
    }
}

/// The next field, and the bytes behind it.
fn field(bytes: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (&tag, mut rest) = bytes.split_first()?;
    let (mut length, mut shift) = (0_usize, 0_u32);
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        length |= usize::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    let (value, rest) = rest.split_at_checked(length)?;
    Some((Field { tag, value }, rest))
}

/// A body that its checksum confirms. `None` if it is of an unknown kind, or not what this version writes.
fn parse(body: &[u8]) -> Option<Record<'_>> {
    let (&kind, mut rest) = body.split_first()?;
    let mut record = match kind {
        1 => Record::Accepted(Accepted::default()),
        2 => Record::Dispatched(Dispatched::default()),
        3 => Record::Finished(Finished::default()),
        4 => Record::Retrying(Retrying::default()),
        5 => Record::Cancelling(Cancelling::default()),
        6 => Record::Printed(Printed::default()),
        7 => Record::Detached(Detached::default()),
        8 => Record::Waiting(Waiting::default()),
        _ => return None,
    };
    while !rest.is_empty() {
        let (field, after) = field(rest)?;
        rest = after;
        record.take(&field)?;
    }
    Some(record)
}

impl<'a> Record<'a> {
    fn take(&mut self, field: &Field<'a>) -> Option<()> {
        let (id, at_ms) = match self {
            Self::Accepted(one) => (&mut one.id, &mut one.at_ms),
            Self::Dispatched(one) => (&mut one.id, &mut one.at_ms),
            Self::Finished(one) => (&mut one.id, &mut one.at_ms),
            Self::Retrying(one) => (&mut one.id, &mut one.at_ms),
            Self::Cancelling(one) => (&mut one.id, &mut one.at_ms),
            Self::Printed(one) => (&mut one.id, &mut one.at_ms),
            Self::Detached(one) => (&mut one.id, &mut one.at_ms),
            Self::Waiting(one) => (&mut one.id, &mut one.at_ms),
        };
        match field.tag {
            1 => *id = field.value.try_into().ok()?,
            2 => *at_ms = field.number(),
            _ => match self {
                Self::Accepted(one) => one.take(field)?,
                Self::Dispatched(one) => one.take(field),
                Self::Finished(one) => one.take(field)?,
                Self::Retrying(one) => match field.tag {
                    3 => one.retry = field.number(),
                    4 => one.retry_at_ms = field.number(),
                    5 => one.fault = field.text()?,
                    _ => {}
                },
                Self::Cancelling(one) if field.tag == 3 => one.by = field.text()?,
                Self::Detached(one) if field.tag == 3 => one.workspace = Some(field.text()?),
                Self::Cancelling(_) | Self::Detached(_) | Self::Waiting(_) => {}
                Self::Printed(one) => match field.tag {
                    3 => one.stream = field.text()?,
                    4 => one.text = field.text()?,
                    _ => {}
                },
            },
        }
        Some(())
    }
}

impl<'a> Accepted<'a> {
    fn take(&mut self, field: &Field<'a>) -> Option<()> {
        match field.tag {
            3 => self.tool = field.text()?,
            4 => self.version = field.value,
            5 => self.arguments = field.text()?,
            6 => self.effects = field.text()?,
            7 => self.level = field.text()?,
            8 => self.background = field.number() != 0,
            9 => self.session = field.number(),
            10 => self.client = Some(field.text()?),
            11 => self.tags.push(field.text()?),
            12 => self.traceparent = Some(field.text()?),
            13 => self.key = Some(field.text()?),
            14 => self.timeout_ms = field.number(),
            15 => self.max_retries = field.number(),
            16 => self.workspace = Some(field.text()?),
            17 => self.has_secrets = field.number() != 0,
            _ => {}
        }
        Some(())
    }
}

impl Dispatched {
    fn take(&mut self, field: &Field<'_>) {
        match field.tag {
            3 => self.attempt = field.number(),
            4 => self.pid = field.number(),
            5 => self.process_started = field.number(),
            _ => {}
        }
    }
}

impl<'a> Finished<'a> {
    fn take(&mut self, field: &Field<'a>) -> Option<()> {
        match field.tag {
            3 => self.state = field.text()?,
            4 => self.code = Some(field.text()?),
            5 => self.fault = Some(field.text()?),
            6 => self.result = Some(field.text()?),
            7 => self.arguments = Some(field.text()?),
            8 => self.output = Some(field.text()?),
            9 => self.duration_us = field.number(),
            10 => self.attempt = field.number(),
            11 => self.pid = field.number(),
            12 => self.cancelled = Some(field.text()?),
            13 => self.metadata = Some(field.text()?),
            14 => self.keeps_arguments = field.number() != 0,
            15 => self.workspace = Some(field.text()?),
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
