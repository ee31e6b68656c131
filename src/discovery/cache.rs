//! What was read in earlier runs, kept in a file for each set of tool folders.
//!
//! The file is a line that says who wrote it, and a line for each tool file: a check of what follows, what the file looked
//! like, its path, and [`super::stored`] JSON. Whatever is not exactly as it should be is not there: tool files are
//! then read, and the file is written anew. Only time is lost with it.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;

use std::fs;
use std::hash::Hasher;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::ToolFile;
use super::stamp::Stamp;
use super::stored::{self, FORMAT};
use super::unsaved::Unsaved;

/// Where catalogues are kept.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// Who may believe what it reads there.
    writer: String,
}

impl Cache {
    /// Below the cache of this program. `None` when the program cannot be told from its other builds.
    pub fn below(cache: &Path) -> Option<Self> {
        let program = std::env::current_exe().ok().and_then(|path| Stamp::of(&path))?;
        let writer = format!("{} {program:?}", env!("CARGO_PKG_VERSION"));
        Some(Self::written_by(&cache.join("catalogue"), &writer))
    }

    pub(super) fn written_by(folder: &Path, writer: &str) -> Self {
        Self { folder: folder.to_owned(), writer: writer.to_owned() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn first_line(&self) -> String {
        format!("hostler catalogue {FORMAT} by {}\n", self.writer)
    }

    /// The file for these tool folders, whatever the directory they are named from.
    pub(super) fn place(&self, folders: &[PathBuf]) -> PathBuf {
        let mut hash = Sha256::new();
        for folder in folders {
            let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            hash.update(whole.as_os_str().as_encoded_bytes());
            hash.update([0]);
        }
        self.folder.join(HEXLOWER.encode(&hash.finalize()[..12]))
    }

    /// What is known of the tool files of these folders.
    pub(super) fn load(&self, folders: &[PathBuf]) -> Known {
        let place = self.place(folders);
        let known = read_regular(&place).and_then(|text| {
            Known::of(text, &self.first_line()).ok_or_else(|| io::Error::other("another build wrote it, or none"))
        });
        known.unwrap_or_else(|error| {
            tracing::debug!(place = %place.display(), %error, "no catalogue of an earlier run");
            Known::default()
        })
    }

    /// What is to be written for these folders, once there is time.
    pub(super) fn unsaved(&self, folders: &[PathBuf], lines: impl Iterator<Item = String>) -> Unsaved {
        let text = std::iter::once(self.first_line()).chain(lines).collect();
        Unsaved::new(self.place(folders), text)
    }
}

/// Opening a pipe would wait for somebody to write, so what lies there is looked at first.
pub(super) fn read_regular(place: &Path) -> io::Result<String> {
    if !fs::metadata(place)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    fs::read_to_string(place)
}

/// Lines of an earlier run, by the path they are about.
#[derive(Debug, Default)]
pub(super) struct Known {
    text: String,
    lines: HashMap<PathBuf, Range<usize>>,
}

impl Known {
    fn of(text: String, first_line: &str) -> Option<Self> {
        let mut start = first_line.len();
        let mut lines = HashMap::new();
        for line in text.strip_prefix(first_line)?.split_inclusive('\n') {
            let range = start..start + line.len();
            start = range.end;
            if let Some(path) = line.split('\t').nth(2) {
                lines.insert(PathBuf::from(path), range);
            }
        }
        Some(Self { text, lines })
    }

    /// The file at a path and the place of its line, if it was read when it looked as it does now.
    pub(super) fn file(&self, path: &Path, stamp: Stamp) -> Option<(ToolFile, Range<usize>)> {
        let place = self.lines.get(path)?;
        let (sum, rest) = self.text[place.clone()].strip_suffix('\n')?.split_once('\t')?;
        let mut columns = rest.splitn(3, '\t');
        let (seen, _path, json) = (columns.next()?, columns.next()?, columns.next()?);
        if seen != columns_of(stamp) || sum != check(rest) {
            return None;
        }
        Some((stored::from_json(path, json)?, place.clone()))
    }

    pub(super) fn text(&self, place: Range<usize>) -> &str {
        &self.text[place]
    }
}

/// A file as a line. None for what cannot stand on one.
pub(super) fn line(file: &ToolFile, stamp: Stamp) -> Option<String> {
    let path = file.path.to_str().filter(|path| !path.contains(['\t', '\n']))?;
    let rest = format!("{}\t{path}\t{}", columns_of(stamp), stored::to_json(file)?);
    Some(format!("{}\t{rest}\n", check(&rest)))
}

fn columns_of(stamp: Stamp) -> String {
    serde_json::to_string(&stamp).unwrap_or_default()
}

/// Against disks and half-written files, not against people: they own the program too. Quick, since all is checked.
pub(super) fn check(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}
