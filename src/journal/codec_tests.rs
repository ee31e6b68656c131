use proptest::prelude::*;

use super::*;

fn accepted<'a>(id: u8, arguments: &'a str, tags: Vec<&'a str>) -> Record<'a> {
    Record::Accepted(Accepted {
        id: [id; 16],
        at_ms: 1_764_000_000_000,
        tool: "brave.search",
        version: b"v",
        arguments,
        effects: "once",
        level: "kept",
        background: true,
        session: 3,
        client: Some(""),
        tags,
        timeout_ms: 300_000,
        ..Accepted::default()
    })
}

fn finished(id: u8) -> Record<'static> {
    Record::Finished(Finished { id: [id; 16], state: "complete", duration_us: 17, attempt: 1, ..Finished::default() })
}

fn written(records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        record.write(&mut bytes);
    }
    bytes
}

/// The records, the damaged stretches, and the bytes that were read.
fn all(bytes: &[u8]) -> (Vec<Option<Record<'_>>>, usize, usize) {
    let (mut records, mut damaged, mut at) = (Vec::new(), 0, 0);
    loop {
        match read(&bytes[at..], true) {
            Found::Record(record, length) => {
                records.push(record);
                at += length;
            }
            Found::Damaged(length) => {
                damaged += 1;
                at += length;
            }
            Found::End => return (records, damaged, at),
        }
    }
}

#[test]
fn what_is_written_is_read() {
    let records = [
        accepted(1, r#"{"q":"a"}"#, vec!["prompt:1", ""]),
        Record::Dispatched(Dispatched { id: [1; 16], at_ms: 1, attempt: 2, pid: 0x1_0000, process_started: u64::MAX }),
        Record::Retrying(Retrying { id: [1; 16], retry: 1, retry_at_ms: 2, fault: "{}", ..Retrying::default() }),
        Record::Cancelling(Cancelling { id: [1; 16], by: "the operator", ..Cancelling::default() }),
        Record::Detached(Detached { id: [1; 16], at_ms: 9, workspace: Some("{}") }),
        Record::Waiting(Waiting { id: [1; 16], at_ms: 10 }),
        Record::Printed(Printed { id: [1; 16], stream: "stdout", text: "x\n", ..Printed::default() }),
        Record::Finished(Finished { code: Some("BUSY"), fault: Some(""), ..Finished::default() }),
        finished(1),
    ];
    let bytes = written(&records);
    let (read, damaged, end) = all(&bytes);
    assert_eq!((read.len(), damaged, end), (9, 0, bytes.len()));
    assert!(read.into_iter().map(Option::unwrap).eq(records));
}

#[test]
fn kinds_and_fields_of_later_versions_are_skipped() {
    let mut bytes = written(&[finished(1)]);
    let frame = |body: &[u8]| {
        let mut record = MAGIC.to_vec();
        record.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        record.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
        record.extend_from_slice(body);
        record
    };
    bytes.extend(frame(&[200, 1, 2, 3]));
    let mut later = written(&[finished(2)])[HEAD..].to_vec();
    later.extend_from_slice(&[99, 3, b'n', b'e', b'w']);
    bytes.extend(frame(&later));
    let (read, damaged, _) = all(&bytes);
    assert_eq!((read, damaged), (vec![Some(finished(1)), None, Some(finished(2))], 0));
}

/// A spool of the first version of this format. What it holds must be read by all later ones.
#[test]
fn the_first_versions_bytes_are_read() {
    const BYTES: &str = "b7686a1a21000000055e86df030110070707070707070707070707070707070202e8030308636f6d706c657465";
    let mut own = Vec::new();
    Record::Finished(Finished { id: [7; 16], at_ms: 1000, state: "complete", ..Finished::default() }).write(&mut own);
    let bytes = data_encoding::HEXLOWER.decode(BYTES.as_bytes()).unwrap();
    assert_eq!(own, bytes);
}

proptest! {
    #[test]
    fn a_torn_tail_loses_the_last_record_alone(cut in 0_usize..400, arguments in ".{0,60}") {
        let first = written(&[accepted(1, &arguments, vec!["a"])]);
        let whole = written(&[accepted(1, &arguments, vec!["a"]), finished(1)]);
        let cut = cut.min(whole.len());
        prop_assert!(!matches!(super::read(&whole[..cut], false), Found::Damaged(_)), "the rest may follow");
        let (read, damaged, end) = all(&whole[..cut]);
        prop_assert_eq!(damaged, 0);
        let complete = usize::from(cut >= first.len()) + usize::from(cut >= whole.len());
        prop_assert_eq!(read.len(), complete);
        prop_assert_eq!(end, [0, first.len(), whole.len()][complete]);
    }

    #[test]
    fn a_flipped_bit_costs_one_record(place in 0_usize..10_000, bit in 0_u8..8) {
        let mut bytes = written(&[accepted(1, "{}", vec![]), accepted(2, "{}", vec![]), finished(2), finished(1)]);
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        let (read, _, _) = all(&bytes);
        prop_assert_eq!(read.len(), 3);
    }

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (_, _, end) = all(&bytes);
        prop_assert!(end <= bytes.len());
    }
}
