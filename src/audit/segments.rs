//! The files of the log.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::record::Record;

/// The longest line that is a record: what decides a call has limits.
pub const LONGEST: u64 = 1 << 20;

/// The file that begins with this record.
pub fn file(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.jsonl"))
}

/// The first record of every file, in their order.
pub fn all(folder: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl")).filter(|name| name.len() == 20);
        found.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

/// Opens one to add to it, and makes it if it is missing. What is added goes to its end, whoever else adds.
pub fn open(folder: &Path, first: u64) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let opened = options.open(file(folder, first))?;
    let is_file = opened.metadata()?.is_file();
    is_file.then_some(opened).ok_or_else(|| io::Error::other("it is not a file"))
}

/// A line of one, without its end.
pub enum Line {
    /// A record.
    Record(Vec<u8>, Box<Record>),
    /// Something else.
    Other,
    /// One without an end.
    Torn,
}

/// The lines of one, from its beginning.
pub fn lines(file: File) -> impl Iterator<Item = io::Result<Line>> {
    let mut reader = BufReader::new(file);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match reader.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Err(error) => Some(Err(error)),
            Ok(0) => None,
            Ok(_) => Some(Ok(parsed(line))),
        }
    })
}

fn parsed(mut line: Vec<u8>) -> Line {
    if line.pop() != Some(b'\n') {
        return Line::Torn;
    }
    match serde_json::from_slice(&line) {
        Ok(record) => Line::Record(line, Box::new(record)),
        Err(_) => Line::Other,
    }
}
