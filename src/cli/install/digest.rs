//! What tells a file from any other, read piece by piece: it may be larger than memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The size of a file, and its SHA-256.
pub(super) fn digest(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 16]);
    let (mut hash, mut size) = (Sha256::new(), 0);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
        size += read as u64;
    }
    Ok((size, HEXLOWER.encode(&hash.finalize())))
}
