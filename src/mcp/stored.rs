//! Results that are too large for one message, kept for the session that they were made in: it reads them by their addresses.
//!
//! A stored result is a file without a name, so no other process can open it, and the system frees it when the session ends, however
//! that happens. All that one call leaves is in one file. Texts are divided into parts of which each fits into one message.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rmcp::model::{Resource, ResourceContents};

use crate::config::Environment;
use crate::config::environment::cache;

/// What one session may keep, in bytes and in results. Beyond it, the oldest results are forgotten.
const MAX_BYTES: u64 = 1 << 30;
const MAX_RESULTS: usize = 64;

/// The results of one session.
pub(super) struct StoredResults {
    /// Where files are made: in the first that can be written.
    folders: Vec<PathBuf>,
    /// Locked only briefly.
    kept: Mutex<VecDeque<Stored>>,
}

/// A text or the base64 of a file, to be stored.
pub(super) struct Body<'a> {
    /// Its address.
    pub uri: String,
    pub text: &'a str,
    pub is_base64: bool,
    pub mime_type: &'a str,
    /// Its name in lists.
    pub name: &'a str,
}

/// What one call left.
struct Stored {
    file: File,
    entries: Vec<Entry>,
    bytes: u64,
}

/// One text in a file.
struct Entry {
    uri: String,
    /// Where it begins in the file.
    start: u64,
    parts: Vec<Range<usize>>,
    is_base64: bool,
    mime_type: String,
}

/// Texts whose links are known, and which are not stored yet.
pub(super) struct Planned<'a> {
    texts: Vec<&'a str>,
    entries: Vec<Entry>,
    bytes: u64,
}

impl<'a> Planned<'a> {
    pub fn new() -> Self {
        Self { texts: Vec::new(), entries: Vec::new(), bytes: 0 }
    }

    /// Adds a text, and returns the links to its parts. `most` is the length that the text of one part may take in a message.
    pub fn add(&mut self, body: Body<'a>, most: usize) -> Vec<Resource> {
        let parts = if body.is_base64 { of_base64(body.text, most) } else { of_text(body.text, most) };
        let links = parts.iter().enumerate().map(|(index, part)| link(index, parts.len(), part, &body)).collect();
        let Body { uri, text, is_base64, mime_type, .. } = body;
        self.entries.push(Entry { uri, start: self.bytes, parts, is_base64, mime_type: mime_type.to_owned() });
        self.texts.push(text);
        self.bytes += text.len() as u64;
        links
    }
}

/// What is found under an address.
pub(super) enum Found {
    Contents(ResourceContents),
    /// The file cannot be read.
    Failed(io::Error),
}

impl StoredResults {
    /// The files are made in the cache, or where temporary files belong if that cannot be written.
    pub fn new(environment: &Environment) -> Self {
        let temporary = environment.absolute_path("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
        Self { folders: vec![cache(environment).join("results"), temporary], kept: Mutex::default() }
    }

    /// Stores what one call leaves.
    pub fn keep(&self, planned: Planned<'_>) -> io::Result<()> {
        let Planned { texts, entries, bytes } = planned;
        let mut file = self.nameless_file()?;
        texts.into_iter().try_for_each(|text| file.write_all(text.as_bytes()))?;
        let mut kept = self.kept.lock();
        kept.push_back(Stored { file, entries, bytes });
        while kept.len() > 1 && (kept.len() > MAX_RESULTS || kept.iter().map(|one| one.bytes).sum::<u64>() > MAX_BYTES)
        {
            kept.pop_front();
        }
        Ok(())
    }

    /// Reads what is stored under an address; `None` if nothing is.
    pub fn read(&self, uri: &str) -> Option<Found> {
        let (base, part) = uri.split_once("?part=").unwrap_or((uri, "1"));
        let part = part.parse::<usize>().ok()?.checked_sub(1)?;
        let kept = self.kept.lock();
        let mut entries = kept.iter().flat_map(|stored| stored.entries.iter().map(move |entry| (stored, entry)));
        let (stored, entry) = entries.find(|(_, entry)| entry.uri == base)?;
        if uri != part_uri(base, part, entry.parts.len()) {
            return None;
        }
        let place = entry.parts.get(part)?.clone();
        let mut bytes = vec![0; place.len()];
        let read = stored.file.read_exact_at(&mut bytes, entry.start + place.start as u64);
        let text = read.and_then(|()| String::from_utf8(bytes).map_err(io::Error::other));
        Some(match text {
            Ok(text) if entry.is_base64 => {
                Found::Contents(ResourceContents::blob(text, uri).with_mime_type(&entry.mime_type))
            }
            Ok(text) => Found::Contents(ResourceContents::text(text, uri).with_mime_type(&entry.mime_type)),
            Err(error) => Found::Failed(error),
        })
    }

    /// A file that only this process can reach.
    fn nameless_file(&self) -> io::Result<File> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!(".hostler-result-{}-{number}", std::process::id());
        let make = |folder: &PathBuf| {
            fs::create_dir_all(folder)?;
            let path = folder.join(&name);
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            fs::remove_file(&path)?;
            Ok(file)
        };
        let mut files = self.folders.iter().map(make);
        let first = files.next().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
        first.or_else(|error| files.find_map(Result::ok).ok_or(error))
    }
}

fn part_uri(base: &str, index: usize, parts: usize) -> String {
    if parts == 1 { base.to_owned() } else { format!("{base}?part={}", index + 1) }
}

fn link(index: usize, parts: usize, part: &Range<usize>, body: &Body<'_>) -> Resource {
    let name = if parts == 1 { body.name.to_owned() } else { format!("{}, part {} of {parts}", body.name, index + 1) };
    let size = if body.is_base64 { part.len() / 4 * 3 } else { part.len() };
    Resource::new(part_uri(&body.uri, index, parts), name).with_mime_type(body.mime_type).with_size(size as u64)
}

/// Parts of base64 that can be decoded one by one.
fn of_base64(text: &str, most: usize) -> Vec<Range<usize>> {
    let step = (most / 4 * 4).max(4);
    (0..text.len()).step_by(step).map(|start| start..text.len().min(start + step)).collect()
}

/// Parts of a text that take at most `most` bytes as JSON. Each has at least one character.
fn of_text(text: &str, most: usize) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut length) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        let own = encoded_length(character);
        if length + own > most && at > start {
            parts.push(start..at);
            (start, length) = (at, 0);
        }
        length += own;
    }
    parts.push(start..text.len());
    parts
}

/// The length of a character in a JSON string.
pub(super) fn encoded_length(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        control if control < ' ' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn results() -> (tempfile::TempDir, StoredResults) {
        let folder = tempfile::tempdir().unwrap();
        let results = StoredResults { folders: vec![folder.path().join("results")], kept: Mutex::default() };
        (folder, results)
    }

    fn keep(results: &StoredResults, uri: &str, text: &str, most: usize) -> io::Result<Vec<Resource>> {
        let mut planned = Planned::new();
        let uri = uri.to_owned();
        let links = planned.add(Body { uri, text, is_base64: false, mime_type: "text/plain", name: "result" }, most);
        results.keep(planned).map(|()| links)
    }

    fn read(results: &StoredResults, uri: &str) -> Option<String> {
        match results.read(uri)? {
            Found::Contents(contents) => {
                let contents = json!(contents);
                let body = contents.get("text").or(contents.get("blob")).unwrap();
                Some(body.as_str().unwrap().to_owned())
            }
            Found::Failed(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_result_is_read_in_parts_and_leaves_no_file() {
        let (folder, results) = results();
        let whole = "ä\"b\n".repeat(100);
        let links = keep(&results, "hostler://calls/c/r", &whole, 64).unwrap();
        assert!(links.len() > 5 && links[0].uri == "hostler://calls/c/r?part=1", "{links:?}");
        let parts: String = links.iter().map(|link| read(&results, &link.uri).unwrap()).collect();
        assert_eq!(parts, whole);
        let found = fs::read_dir(folder.path().join("results")).unwrap().count();
        assert_eq!(found, 0, "the file has no name");
        let one = keep(&results, "hostler://calls/c/s", "short", 64).unwrap();
        assert_eq!((one.len(), read(&results, &one[0].uri).as_deref()), (1, Some("short")));
    }

    #[test]
    fn an_address_that_was_not_given_out_finds_nothing() {
        let (_folder, results) = results();
        let whole = "x".repeat(100);
        keep(&results, "hostler://calls/c/r", &whole, 60).unwrap();
        for uri in ["", "?part=1", "", "0", "3", "01", "-1", "+1", "1&x", "x"] {
            let uri = if uri.is_empty() || uri.starts_with('?') {
                format!("hostler://calls/d/r{uri}")
            } else {
                format!("hostler://calls/c/r?part={uri}")
            };
            assert!(results.read(&uri).is_none(), "{uri}");
        }
        assert!(results.read("hostler://calls/c/r").is_none(), "it has parts");
        assert!(results.read("hostler://calls/c/r?part=2").is_some());
        let (_other_folder, other) = self::results();
        assert!(other.read("hostler://calls/c/r?part=1").is_none(), "another session");
    }

    #[test]
    fn many_texts_of_one_call_are_one_result() {
        let (_folder, results) = results();
        let texts: Vec<String> = (0..2 * MAX_RESULTS).map(|number| format!("{number} ü").repeat(9)).collect();
        let mut planned = Planned::new();
        let links = texts.iter().enumerate().map(|(number, text)| {
            let uri = format!("hostler://calls/c/{number}");
            let links = planned.add(Body { uri, text, is_base64: false, mime_type: "text/plain", name: "result" }, 20);
            links.into_iter().map(|link| link.uri).collect()
        });
        let links: Vec<Vec<String>> = links.collect();
        results.keep(planned).unwrap();
        for (text, links) in texts.iter().zip(links) {
            let parts: String = links.iter().map(|uri| read(&results, uri).unwrap()).collect();
            assert_eq!(parts, *text);
        }
    }

    #[test]
    fn the_oldest_results_are_forgotten() {
        let (_folder, results) = results();
        for number in 0..=MAX_RESULTS {
            keep(&results, &format!("hostler://calls/{number}/r"), "x", 60).unwrap();
        }
        assert!(results.read("hostler://calls/0/r").is_none());
        assert!(results.read("hostler://calls/1/r").is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![PathBuf::from("/proc/no/such/folder"), folder.path().to_owned()];
        let results = StoredResults { folders, kept: Mutex::default() };
        let links = keep(&results, "hostler://calls/c/r", "x", 60).unwrap();
        assert_eq!(read(&results, &links[0].uri).as_deref(), Some("x"));
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_and_none_is_too_long(whole in "\\PC*|[\\x00-\\x1f\"\\\\a]*", most in 6_usize..40) {
            let parts = of_text(&whole, most);
            let joined: String = parts.iter().map(|part| &whole[part.clone()]).collect();
            prop_assert_eq!(&joined, &whole);
            for part in parts {
                prop_assert!(json!(&whole[part]).to_string().len() - 2 <= most);
            }
        }

        #[test]
        fn parts_of_base64_decode_one_by_one(bytes in proptest::collection::vec(any::<u8>(), 0..100), most in 4_usize..40) {
            let encoded = data_encoding::BASE64.encode(&bytes);
            let decoded: Vec<u8> = of_base64(&encoded, most).into_iter().flat_map(|part| {
                assert!(part.len() <= most);
                data_encoding::BASE64.decode(encoded[part].as_bytes()).unwrap()
            }).collect();
            prop_assert_eq!(decoded, bytes);
        }
    }
}
