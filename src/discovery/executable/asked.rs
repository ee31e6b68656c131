//! Which programs are asked for their schema: running one that was never written for hostler may do anything.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use memchr::memmem::Finder;

use super::super::{Kind, Status, ToolFile};
use crate::config::origin::Diagnosis;

/// What a program says that answers `--schema`.
const WORD: &[u8] = b"schema";
/// How much of a program is searched for the word, in bytes.
const MOST: u64 = 64 << 20;
const STEP: usize = 64 << 10;

/// Whether the text or the strings of a program contain the word `schema`. One that cannot be read, which may still be executed,
/// counts as if it did not.
pub(super) fn mentions_schema(path: &Path) -> bool {
    let (Ok(file), finder) = (File::open(path), Finder::new(WORD)) else { return false };
    let mut file = file.take(MOST);
    let mut buffer = vec![0; STEP];
    // What remains of the step before, so that the word is found across two of them.
    let mut kept = 0;
    loop {
        match file.read(&mut buffer[kept..]) {
            Ok(0) => return false,
            Ok(count) => {
                let end = kept + count;
                if finder.find(&buffer[..end]).is_some() {
                    return true;
                }
                kept = end.min(WORD.len() - 1);
                buffer.copy_within(end - kept..end, 0);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

impl ToolFile {
    /// Decides whether an executable is asked for its schema, and thereby served. `told` is what the operator says about it, `is_meant`
    /// whether all programs of its folder are tools.
    pub fn decide_asking(&mut self, told: Option<bool>, is_meant: bool) {
        if self.kind != Kind::Executable {
            return;
        }
        match told {
            Some(false) if !matches!(self.status, Status::Broken { .. } | Status::Missing { .. }) => {
                let what = "`ask = false` is set for it, so it is not run to ask for its schema";
                self.status = Status::NotAsked { reason: Diagnosis::new(what, "remove `ask` to serve it") };
            }
            Some(true) => self.be_asked(),
            None if is_meant => self.be_asked(),
            _ => {}
        }
    }

    fn be_asked(&mut self) {
        if matches!(self.status, Status::NotAsked { .. }) {
            self.status = Status::Unasked;
        }
    }
}

/// Why a program is not asked that does not mention a schema.
pub(super) fn not_asked(pack: &str) -> Status {
    let what = "the program is not asked for its schema, since nothing in it says `schema`";
    let fix = format!("if it is a tool, set `ask = true` under [tool.{pack}] in hostler.toml");
    Status::NotAsked { reason: Diagnosis::new(what, fix) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_found_wherever_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        for place in [0, 1, STEP - 6, STEP - 3, STEP - 1, STEP, 3 * STEP + 5] {
            let mut text = vec![b'x'; place];
            text.extend(b"--schema".iter().skip(2));
            text.extend(vec![b'y'; 100]);
            std::fs::write(&path, &text).unwrap();
            assert!(mentions_schema(&path), "{place}");
            std::fs::write(&path, String::from_utf8(text).unwrap().replace("schema", "schem-")).unwrap();
            assert!(!mentions_schema(&path), "{place}");
        }
        assert!(!mentions_schema(folder.path()), "a folder");
        assert!(!mentions_schema(&folder.path().join("none")));
    }
}
