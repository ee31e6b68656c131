//! The key of a shared hostler: clients meet at it only if the one could act for the other.

use std::io;
use std::os::unix::fs::MetadataExt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::config::Environment;
use crate::process::{own_confinement, own_inheritance};

/// The build of this program: its version, and the file that it was started from.
pub fn build() -> io::Result<String> {
    #[cfg(target_os = "linux")]
    let program = std::fs::metadata("/proc/self/exe")?;
    #[cfg(not(target_os = "linux"))]
    let program = std::fs::metadata(std::env::current_exe()?)?;
    let (changed, part) = (program.mtime(), program.mtime_nsec());
    Ok(format!("{} {:x}.{part:x}.{:x}.{:x}", env!("CARGO_PKG_VERSION"), changed, program.size(), program.ino()))
}

/// Variables that decide which certificates built-in tools believe. The library that verifies them reads them of the process.
pub(super) const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The key of this process: a hash of its build, of what it may reach, and of what all that it starts inherits.
pub fn own_key(environment: &Environment) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    add(&build()?);
    for (name, value) in own_confinement()?.into_iter().chain(own_inheritance()?) {
        add(name);
        add(&value);
    }
    for name in CERTIFICATES {
        add(&environment.raw(name).unwrap_or_default().to_string_lossy());
    }
    Ok(HEXLOWER.encode(&hash.finalize()[..8]))
}
