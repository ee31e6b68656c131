//! Any text at all: reading a command never panics, and words that a shell is given in quotes come back as they are.

#![no_main]

use hostler::bench::commands;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = commands(text);
    if let Ok(quoted) = shlex::try_quote(text) {
        let found = commands(&format!("echo {quoted}")).expect("a quoted word is a word");
        assert_eq!(found.words, [["echo".to_owned(), text.to_owned()]]);
    }
});
