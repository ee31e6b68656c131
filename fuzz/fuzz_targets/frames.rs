//! Any bytes at all: reading a worker's line never panics, and the fast path takes a line for what the slow one does and
//! what it plainly says.

#![no_main]

use std::collections::BTreeMap;

use hostler::bench::{Incoming, parse_frame as parse, peek_id};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

/// What nearly every line begins with. Chance alone hardly ever writes it.
const USUAL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";

fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n') {
        hold(line);
        hold(&[USUAL, line].concat());
        hold(&[USUAL, b"7,\"result\":", line, b"}"].concat());
    }
});

fn hold(line: &[u8]) {
    let said = |line: &[u8]| parse(line).ok().map(|frame| format!("{frame:?}"));
    // A blank before the line keeps it off the fast path.
    assert_eq!(said(line), said(&[b" ", line].concat()));
    let peeked = peek_id(line);
    let Ok(Incoming::Reply { id, answer }) = parse(line) else { return };
    assert!(peeked.is_none_or(|peeked| peeked == id));
    // Members that hostler ignores may hold any bytes.
    let (Ok(result), Ok(text)) = (answer, str::from_utf8(line)) else { return };
    let plainly: BTreeMap<String, &RawValue> = serde_json::from_str(text).expect("a frame is an object");
    assert_eq!(plainly["id"].get(), id.to_string());
    assert_eq!(plainly["result"].get(), result.get());
}
