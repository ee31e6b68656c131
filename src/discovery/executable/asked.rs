//! Which programs are asked for their schema: running one that was never written for hostler may do anything.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use memchr::memmem::Finder;

use super::super::{Kind, Status, ToolFile};
use crate::config::Config;
use crate::config::origin::Diagnosis;

/// One of these is in every program that answers `--schema`: by itself, or with hostler's library for Node. The word `hostler` alone is
/// also in scripts that call hostler.
const WORDS: [&[u8]; 2] = [b"schema", b"hostler-worker"];
const LONGEST: usize = WORDS[1].len();
/// How much of a program is searched, in bytes.
const MOST: u64 = 64 << 20;
const STEP: usize = 64 << 10;
/// Larger manifests are not read.
const MOST_OF_MANIFEST: u64 = 1 << 20;

/// Whether the text or the strings of a program contain one of the words. One that cannot be read, which may still be executed,
/// counts as if it did not.
pub(super) fn may_answer(path: &Path) -> bool {
    let (Ok(file), finders) = (File::open(path), WORDS.map(Finder::new)) else { return false };
    let mut file = file.take(MOST);
    let mut buffer = vec![0; STEP];
    // What remains of the step before, so that a word is found across two of them.
    let mut kept = 0;
    loop {
        match file.read(&mut buffer[kept..]) {
            Ok(0) => return false,
            Ok(count) => {
                let end = kept + count;
                if finders.iter().any(|finder| finder.find(&buffer[..end]).is_some()) {
                    return true;
                }
                kept = end.min(LONGEST - 1);
                buffer.copy_within(end - kept..end, 0);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

/// Whether a manifest is beside a program, which describes it as a tool: `report.sh.json` or `report.json`, an object with its arguments.
pub fn has_manifest(path: &Path) -> bool {
    const KEYS: [&str; 5] = ["parameters", "input_schema", "inputSchema", "function", "tools"];
    let mut whole = path.as_os_str().to_owned();
    whole.push(".json");
    let describes_a_tool = |place: &Path| {
        let file = File::open(place).ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()))?;
        let mut text = Vec::new();
        file.take(MOST_OF_MANIFEST).read_to_end(&mut text).ok()?;
        let manifest: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&text).ok()?;
        Some(KEYS.iter().any(|key| manifest.contains_key(*key)))
    };
    [Path::new(&whole), &path.with_extension("json")].into_iter().any(|place| describes_a_tool(place) == Some(true))
}

impl ToolFile {
    /// Decides by the configuration whether an executable is asked for its schema, and thereby served.
    pub fn decide_asking(&mut self, config: &Config) {
        if self.kind != Kind::Executable || matches!(self.status, Status::Broken { .. } | Status::Missing { .. }) {
            return;
        }
        let setting = config.packs.get(&self.pack).and_then(|pack| pack.ask.as_ref());
        match setting.map(|ask| ask.value) {
            Some(false) => {
                let what = "`ask = false` is set for it, so it is not run to ask for its schema";
                self.status = Status::NotAsked { reason: Diagnosis::new(what, "remove `ask` to serve it") };
                self.functions.clear();
            }
            Some(true) => self.mark_unasked(),
            None if config.asks_all_beside(&self.path) => self.mark_unasked(),
            None => {}
        }
    }

    fn mark_unasked(&mut self) {
        if self.not_asked().is_some() {
            self.status = Status::Unasked;
        }
    }
}

/// Why a program without these words is not asked.
pub(super) fn not_asked(pack: &str) -> Status {
    let what = "it was not run with `--schema`, because its text contains neither `schema` nor `hostler-worker`, and no \
                manifest is beside it";
    let fix = format!("if it is a tool, set `ask = true` under [tool.{pack}] in hostler.toml");
    Status::NotAsked { reason: Diagnosis::new(what, fix) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_describes_a_tool() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.sh");
        for (name, text, expected) in [
            ("report.json", r#"{"name": "report", "parameters": {}}"#, true),
            ("report.sh.json", r#"{"type": "function", "function": {}}"#, true),
            ("report.json", r#"{"rows": []}"#, false),
            ("report.json", "[1]", false),
            ("other.json", r#"{"parameters": {}}"#, false),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
            assert_eq!(has_manifest(&path), expected, "{name} {text}");
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        std::fs::create_dir(folder.path().join("report.json")).unwrap();
        assert!(!has_manifest(&path));
    }

    #[test]
    fn the_word_is_found_wherever_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        for place in [0, 1, STEP - 6, STEP - 3, STEP - 1, STEP, 3 * STEP + 5] {
            let mut text = vec![b'x'; place];
            text.extend(b"--schema".iter().skip(2));
            text.extend(vec![b'y'; 100]);
            std::fs::write(&path, &text).unwrap();
            assert!(may_answer(&path), "{place}");
            std::fs::write(&path, String::from_utf8(text).unwrap().replace("schema", "schem-")).unwrap();
            assert!(!may_answer(&path), "{place}");
            std::fs::write(&path, format!("{}hostler-worker.mjs{}", "x".repeat(place), "y".repeat(STEP))).unwrap();
            assert!(may_answer(&path), "{place}");
        }
        assert!(!may_answer(folder.path()), "a folder");
        assert!(!may_answer(&folder.path().join("none")));
    }
}
