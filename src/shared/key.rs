//! The key of a shared hostler: clients meet at it only if the one could act for the other.

use std::borrow::Cow;
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
    let certificates = CERTIFICATES.map(|name| environment.raw(name).unwrap_or_default().to_string_lossy());
    Ok(hashed(std::iter::once(build()?.into()).chain(reach()?).chain(certificates)))
}

/// The same of what it may reach and hands on alone: what one such process has begun, another may go on with.
pub fn reach_key() -> io::Result<String> {
    reach().map(hashed)
}

fn reach<'a>() -> io::Result<impl Iterator<Item = Cow<'a, str>>> {
    let facts = own_confinement()?.into_iter().chain(own_inheritance()?);
    Ok(facts.flat_map(|(name, value)| [Cow::Borrowed(name), Cow::Owned(value)]))
}

fn hashed<'a>(texts: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(&*text);
    }
    HEXLOWER.encode(&hash.finalize()[..8])
}
