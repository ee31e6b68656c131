//! Any bytes at all: reading a header never panics, and a block is what the PEP's reference expression says it is.

#![no_main]

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use hostler::bench::{blocks, decode, read_header as read};
use libfuzzer_sys::fuzz_target;
use regex::Regex;

static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$").expect("the PEP's expression")
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode(bytes) else { return };
    let found: Vec<(&str, &str)> = blocks(&text).iter().map(|block| (block.kind, block.content)).collect();
    let matches = REFERENCE.captures_iter(&text);
    let expected: Vec<(&str, &str)> =
        matches.filter_map(|found| Some((found.name("type")?.as_str(), found.name("content")?.as_str()))).collect();
    assert_eq!(found, expected);
    let _ = read(&text, &Arc::new(PathBuf::from("fuzzed.py")));
});
