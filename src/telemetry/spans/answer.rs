//! The answer of a collector: an `ExportTraceServiceResponse` of OTLP 1.x, of which it says what it did not take.

/// The most characters of a collector's message that the log has.
const LONGEST: usize = 200;

/// Spans that were not taken, though the request was.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    pub count: u64,
    /// Why, in the collector's words, fit for a log.
    pub message: String,
}

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// What an answer rejects. One that cannot be read rejects nothing.
pub fn rejected(answer: &[u8]) -> Rejected {
    let mut rejected = Rejected::default();
    let Some(Field::Bytes(partial)) = last(answer, 1) else { return rejected };
    if let Some(Field::Number(count)) = last(partial, 1) {
        rejected.count = count.cast_signed().max(0).cast_unsigned();
    }
    if let Some(Field::Bytes(message)) = last(partial, 2) {
        rejected.message = for_log(&String::from_utf8_lossy(message));
    }
    rejected
}

/// A foreign text, shortened and without control characters.
fn for_log(text: &str) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.trim().chars().map(printable).take(LONGEST).collect()
}

/// The last field with this number, which is the one that counts.
fn last(mut message: &[u8], wanted: u64) -> Option<Field<'_>> {
    let mut found = None;
    while !message.is_empty() {
        let (number, field) = field(&mut message)?;
        if number == wanted {
            found = Some(field);
        }
    }
    found
}

fn field<'a>(message: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let tag = varint(message)?;
    let field = match tag & 7 {
        0 => Field::Number(varint(message)?),
        1 => taken(message, 8).map(|_| Field::Other)?,
        2 => {
            let length = usize::try_from(varint(message)?).ok()?;
            Field::Bytes(taken(message, length)?)
        }
        5 => taken(message, 4).map(|_| Field::Other)?,
        _ => return None,
    };
    Some((tag >> 3, field))
}

fn taken<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (part, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(part)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let [byte] = *taken(message, 1)? else { return None };
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_rejected_is_read() {
        let message = "no\u{1b}[31m\n".to_owned() + &"x".repeat(300);
        let mut partial = vec![0x08, 0x85, 0x02, 0x12, 0xb4, 0x02];
        partial.extend_from_slice(message.as_bytes());
        let mut answer = vec![0x0a, 0xba, 0x02];
        answer.extend_from_slice(&partial);
        let Rejected { count, message } = rejected(&answer);
        assert_eq!((count, message.len()), (261, LONGEST));
        assert!(message.starts_with("no [31m xxx"), "{message}");
        for nothing in [&b""[..], b"\x0a\x00", b"{}", b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"] {
            assert_eq!(rejected(nothing), Rejected::default(), "{nothing:?}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_ignored(answer in proptest::collection::vec(any::<u8>(), 0..200)) {
            let Rejected { message, .. } = rejected(&answer);
            prop_assert!(message.chars().count() <= LONGEST && !message.contains(char::is_control));
        }
    }
}
