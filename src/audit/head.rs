//! Where the log ends: what the next record continues. A line of a fixed length, written whole.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::record::{Hash, no_hash};

/// The end of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The number of the next record.
    pub next: u64,
    /// The hash of the last one.
    pub hash: Hash,
    /// The number of the first record in the last file.
    pub segment: u64,
    /// How long that file is, in bytes.
    pub length: u64,
    /// When it was begun, in milliseconds since 1970.
    pub began_ms: u64,
    /// The number after the last checkpoint.
    pub signed: u64,
    /// When that was made, likewise.
    pub signed_ms: u64,
    /// The public key that signs the next one.
    pub key: String,
}

/// The length of the line.
const LENGTH: usize = 64 + 64 + 6 * 20 + 8;

impl Head {
    /// Before the first record.
    pub fn new() -> Self {
        Self { next: 0, hash: no_hash(), segment: 0, length: 0, began_ms: 0, signed: 0, signed_ms: 0, key: no_hash() }
    }

    /// The file of it.
    pub fn file(folder: &Path) -> PathBuf {
        folder.join("head")
    }

    /// Opens the file, which is made if it is missing.
    pub fn open(folder: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options.open(Self::file(folder))
    }

    /// Reads it; `None` if it is empty or has something else.
    pub fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; LENGTH];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(std::str::from_utf8(&bytes).ok().and_then(Self::parse)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let parts: Vec<&str> = line.strip_suffix('\n')?.split(' ').collect();
        let [hash, key, next, segment, length, began_ms, signed, signed_ms] = parts.as_slice() else { return None };
        Some(Self {
            next: next.parse().ok()?,
            hash: (*hash).to_owned(),
            segment: segment.parse().ok()?,
            length: length.parse().ok()?,
            began_ms: began_ms.parse().ok()?,
            signed: signed.parse().ok()?,
            signed_ms: signed_ms.parse().ok()?,
            key: (*key).to_owned(),
        })
    }

    /// Puts it there.
    pub fn write(&self, file: &File) -> io::Result<()> {
        let Self { next, hash, segment, length, began_ms, signed, signed_ms, key } = self;
        let numbers = format!("{next:020} {segment:020} {length:020} {began_ms:020} {signed:020} {signed_ms:020}");
        file.write_all_at(format!("{hash} {key} {numbers}\n").as_bytes(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = Head::open(folder.path()).unwrap();
        assert_eq!(Head::read(&file).unwrap(), None);
        let head = Head { next: 7, length: u64::MAX, signed_ms: 3, ..Head::new() };
        head.write(&file).unwrap();
        assert_eq!((Head::read(&file).unwrap(), file.metadata().unwrap().len()), (Some(head), LENGTH as u64));
        file.write_all_at(b"x", 70).unwrap();
        Head { key: "é".into(), ..Head::new() }.write(&file).unwrap();
        assert_eq!(Head::read(&file).unwrap(), None, "not a line of it");
    }
}
