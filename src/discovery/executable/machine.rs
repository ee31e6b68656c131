//! Whether a file can be run here, by its first bytes. The system would hand whatever it does not know to a shell.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What an ELF header says of the machine is in so many bytes.
const HEADER: usize = 20;

/// Why it cannot be run, and what to do.
pub(super) fn hindrance(path: &Path) -> Option<String> {
    // What cannot be read may still be run.
    let begins = beginning(path)?;
    if begins.starts_with(b"#!") || is_mach_o(&begins) {
        return None;
    }
    if !begins.starts_with(b"\x7fELF") {
        let reason = "it is neither a program nor a script that begins with `#!`; write `#!/usr/bin/env python3` or the like as \
                      its first line, or take away its leave to be executed (`chmod -x`)";
        return Some(reason.to_owned());
    }
    let own = std::env::current_exe().ok().and_then(|own| beginning(&own))?;
    // The width of its words, their order, and the machine.
    let machine = |header: &[u8]| Some((header.get(4..6)?.to_vec(), header.get(18..HEADER)?.to_vec()));
    let is_foreign = machine(&begins) != machine(&own) && own.starts_with(b"\x7fELF");
    is_foreign.then(|| "it is a program for another machine; build it for this one".to_owned())
}

/// Whether a file names the program that it is to be run with.
pub(super) fn is_script(path: &Path) -> bool {
    beginning(path).is_some_and(|begins| begins.starts_with(b"#!"))
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(HEADER as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn is_mach_o(begins: &[u8]) -> bool {
    const MAGIC: [[u8; 4]; 4] =
        [[0xfe, 0xed, 0xfa, 0xcf], [0xcf, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe], [0xfe, 0xed, 0xfa, 0xce]];
    MAGIC.iter().any(|magic| begins.starts_with(magic))
}
