//! Locks by which processes of a person take turns. One ends with its holder, also if that is killed.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often a lock that another process holds is tried at once: it is held for some microseconds.
const TRIES: u32 = 200;

/// Opens the file of a lock, which is made if it is missing. It cannot be read: a process that can read a file can lock it, also from
/// within a sandbox.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o200);
    let lock = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    // One of an earlier version could be read.
    lock.set_permissions(Permissions::from_mode(0o200))?;
    Ok(lock)
}

/// Takes the lock; `WouldBlock` if another process keeps it.
pub fn hold(lock: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::hint::spin_loop(),
            result => return Ok(result?),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Gives it back.
pub fn release(lock: &File) {
    let _ = flock(lock, FlockOperation::Unlock);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_holds_it_and_it_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let (one, other) = (open_lock(&path).unwrap(), open_lock(&path).unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o200);
        hold(&one).unwrap();
        assert_eq!(hold(&other).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        release(&one);
        hold(&other).unwrap();
    }
}
