//! The files of the log.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::head::Head;
use super::key::{self, Key};
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
        // A number that no log reaches has no next one.
        found.extend(number.and_then(|number| number.parse::<u64>().ok()).filter(|number| *number < u64::MAX / 2));
    }
    found.sort_unstable();
    Ok(found)
}

/// Opens a file to read it. A pipe in its place would be waited for.
pub fn read(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let is_file = file.metadata()?.is_file();
    is_file.then_some(file).ok_or_else(|| io::Error::other(format!("{} is not a file", path.display())))
}

/// Opens one to add to it, and makes it if it is missing. What is added goes to its end, also while another process adds.
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
    /// Something else, of this length with its end.
    Other(u64),
    /// One without an end, of this length.
    Torn(u64),
}

impl Line {
    /// Its length with its end, in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Record(line, _) => line.len() as u64 + 1,
            Self::Other(length) | Self::Torn(length) => *length,
        }
    }
}

/// The lines of one, from its beginning.
pub fn lines(file: impl Read) -> impl Iterator<Item = io::Result<Line>> {
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
    let length = line.len() as u64;
    if line.pop() != Some(b'\n') {
        return Line::Torn(length);
    }
    match serde_json::from_slice(&line) {
        Ok(record) => Line::Record(line, Box::new(record)),
        Err(_) => Line::Other(length),
    }
}

/// The files between two records: what is written later is not looked at.
pub struct Snapshot {
    /// Each file with the number of its first record, and its length.
    pub files: Vec<(u64, File, u64)>,
    /// The head; none if it is missing or damaged.
    pub head: Option<Head>,
    /// The public keys that are there: of the next checkpoint, and of the one after it.
    pub keys: [Option<String>; 2],
}

impl Snapshot {
    pub fn of(folder: &Path) -> io::Result<Self> {
        let open = |first: u64| {
            let file = read(&file(folder, first))?;
            let length = file.metadata()?.len();
            Ok((first, file, length))
        };
        let head = match read(&Head::file(folder)) {
            Ok(file) => Head::read(&file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // A damaged one counts as missing.
        let public = |file: PathBuf| Key::read(&file).ok().flatten().as_ref().map(Key::public);
        Ok(Self {
            files: all(folder)?.into_iter().map(open).collect::<io::Result<_>>()?,
            head,
            keys: [public(key::current(folder)), public(key::coming(folder))],
        })
    }
}
