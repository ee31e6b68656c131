//! The key of a shared hostler: clients meet at it only if the one could act for the other.

use std::io;
use std::os::unix::fs::MetadataExt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::process::own_confinement;

/// The build of this program: its version, and the file that it was started from.
pub fn build() -> io::Result<String> {
    #[cfg(target_os = "linux")]
    let program = std::fs::metadata("/proc/self/exe")?;
    #[cfg(not(target_os = "linux"))]
    let program = std::fs::metadata(std::env::current_exe()?)?;
    let (changed, part) = (program.mtime(), program.mtime_nsec());
    Ok(format!("{} {:x}.{part:x}.{:x}.{:x}", env!("CARGO_PKG_VERSION"), changed, program.size(), program.ino()))
}

/// The key of this process: a hash of its build and of what it may reach.
pub fn own_key() -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    add(&build()?);
    for (name, value) in own_confinement()? {
        add(name);
        add(&value);
    }
    Ok(HEXLOWER.encode(&hash.finalize()[..8]))
}
