//! Files that the system makes when they are read, as those below `/proc`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// More than most of them have.
const USUAL: usize = 4096;

/// The bytes of a file whose size is not known before it is read. With room for all of it, that takes four system calls; the standard
/// library begins with 32 bytes.
pub(super) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL);
    // Of a file alone, the size would be asked for.
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as text.
pub(super) fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(io::Error::other)
}
