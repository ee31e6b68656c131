//! A file with the times of the latest calls, for all processes of a person.
//!
//! A header, and behind it a ring of times, each 8 bytes. A lock on the file covers the look and the count. A call is counted by one
//! write of the header, after that of its time, and before the call goes on: a process that is killed between them has made no call.
//!
//! Times are milliseconds since the boot, which nobody can set. After another boot they are translated by the wall clock, once; what
//! would lie in the future then was made just now.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FlockOperation, flock};

use super::CountError;
use crate::process::Moment;

const MAGIC: [u8; 8] = *b"hostler1";
/// The length of the header, in bytes.
const HEADER: u64 = 64;
/// The same as an array has it.
type HeaderBytes = [u8; 64];
/// The length of a time, an `i64`.
const TIME: u64 = 8;
/// The smallest ring.
const LEAST: u64 = 64;
/// How long a lock that another process holds is left alone before the next look.
const PAUSE: Duration = Duration::from_millis(1);

/// The file, opened when it is needed.
#[derive(Debug)]
pub(super) struct RingFile {
    path: PathBuf,
    /// Locked while it is looked at: a lock on the file keeps out other processes, not other threads.
    file: Mutex<Option<File>>,
}

/// Removes the files of a folder in which nothing was counted for longer than any window.
pub(super) fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Ok(file) = File::open(&path) else { continue };
        let modified = file.metadata().ok().filter(std::fs::Metadata::is_file).and_then(|found| found.modified().ok());
        let is_old = modified.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > OLD);
        // Who counts in it just now has it locked; who counts next sees that it is gone.
        if is_old && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// How long a file is kept without a call.
const OLD: Duration = Duration::from_hours(48);

/// The first bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    /// The boot of the times, and what the wall clock was ahead of them.
    boot: [u8; 16],
    ahead: i64,
    /// Where the ring is, and how many times it has room for.
    start: u64,
    room: u64,
    /// How many calls were ever counted.
    count: u64,
}

/// The file, locked.
pub(super) struct OpenRing<'a> {
    path: &'a PathBuf,
    file: MutexGuard<'a, Option<File>>,
    header: Header,
}

impl RingFile {
    /// The file at this path.
    pub fn at(path: PathBuf) -> Self {
        Self { path, file: Mutex::new(None) }
    }

    /// Locks the file, and gives it room for this many times.
    pub fn open(&self, most: usize, now: Moment, patience: Duration) -> Result<OpenRing<'_>, CountError> {
        let late = Instant::now() + patience;
        let mut file = self.file.try_lock_until(late).ok_or(CountError::Busy)?;
        loop {
            self.lock(&mut file, late)?;
            if file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|found| found.nlink() > 0)) {
                break;
            }
            // It was removed: others count in another one.
            *file = None;
        }
        let header = Header { boot: now.boot, ahead: now.wall - now.since_boot, start: HEADER, room: 0, count: 0 };
        let mut ring = OpenRing { path: &self.path, file, header };
        ring.read()?;
        if ring.header.boot != now.boot || ring.header.room < most as u64 {
            ring.renew(most as u64, now)?;
        }
        Ok(ring)
    }

    fn lock(&self, file: &mut Option<File>, late: Instant) -> Result<(), CountError> {
        let failed = |source| CountError::System { path: self.path.clone(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let file = match file {
            Some(file) => file,
            none => none.insert(options.open(&self.path).map_err(failed)?),
        };
        loop {
            match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) if Instant::now() < late => {
                    std::thread::sleep(PAUSE);
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => return Err(CountError::Busy),
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

impl OpenRing<'_> {
    /// The time of the newest call but so many; 1 for the newest.
    pub fn newest(&self, number: usize) -> Result<Option<i64>, CountError> {
        let number = number as u64;
        match self.header.count.checked_sub(number).filter(|_| number <= self.header.room) {
            None => Ok(None),
            Some(index) => self.time(index).map(Some),
        }
    }

    /// Counts a call.
    pub fn add(&mut self, now: Moment) -> Result<(), CountError> {
        self.write(self.place(self.header.count), &now.since_boot.to_le_bytes())?;
        self.header.count = self.header.count.saturating_add(1);
        self.header.ahead = now.wall - now.since_boot;
        self.write(0, &self.header.to_bytes())
    }

    fn read(&mut self) -> Result<(), CountError> {
        let mut bytes: HeaderBytes = [0; 64];
        let length = self.file().metadata().map_err(|source| self.failed(source))?.len();
        if length == 0 {
            return Ok(());
        }
        let whole = self.file().read_exact_at(&mut bytes, 0).ok().and_then(|()| Header::of(&bytes, length));
        if let Some(header) = whole {
            self.header = header;
        } else {
            tracing::warn!("{} cannot be read; its rate is counted anew", self.path.display());
        }
        Ok(())
    }

    /// Writes the times that count into a ring with more room, or in terms of this boot. The one in force is replaced by the last write.
    fn renew(&mut self, most: u64, now: Moment) -> Result<(), CountError> {
        let old = self.header;
        let kept = old.count.min(old.room);
        let room = most.next_power_of_two().max(LEAST).max(old.room);
        let behind = old.start + old.room * TIME;
        let start = if old.start >= HEADER + room * TIME { HEADER } else { behind };
        let mut times = Vec::new();
        for index in old.count - kept..old.count {
            let time = self.time(index)?;
            let is_same = old.boot == now.boot;
            let age = if is_same { 0 } else { now.wall.saturating_sub(time.saturating_add(old.ahead)).max(0) };
            times.extend_from_slice(&if is_same { time } else { now.since_boot.saturating_sub(age) }.to_le_bytes());
        }
        self.write(start, &times)?;
        // A header is whole only in a file that has all of its ring.
        let failed = |source| CountError::System { path: self.path.clone(), source };
        let length = self.file().metadata().map_err(failed)?.len();
        self.file().set_len(length.max(start + room * TIME)).map_err(failed)?;
        self.header = Header { boot: now.boot, ahead: now.wall - now.since_boot, start, room, count: kept };
        self.write(0, &self.header.to_bytes())
    }

    fn time(&self, index: u64) -> Result<i64, CountError> {
        let mut bytes = [0; 8];
        self.file().read_exact_at(&mut bytes, self.place(index)).map_err(|source| self.failed(source))?;
        Ok(i64::from_le_bytes(bytes))
    }

    fn place(&self, index: u64) -> u64 {
        self.header.start + index % self.header.room.max(1) * TIME
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), CountError> {
        self.file().write_all_at(bytes, at).map_err(|source| self.failed(source))
    }

    #[expect(clippy::expect_used, reason = "it is opened before this is made")]
    fn file(&self) -> &File {
        self.file.as_ref().expect("it is open")
    }

    fn failed(&self, source: io::Error) -> CountError {
        CountError::System { path: self.path.clone(), source }
    }
}

impl Drop for OpenRing<'_> {
    fn drop(&mut self) {
        if let Some(file) = &*self.file {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

impl Header {
    fn of(bytes: &HeaderBytes, length: u64) -> Option<Self> {
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let header = Self {
            boot: bytes[8..24].try_into().ok()?,
            ahead: number(24)?.cast_signed(),
            start: number(32)?,
            room: number(40)?,
            count: number(48)?,
        };
        let end = header.room.checked_mul(TIME)?.checked_add(header.start)?;
        (bytes[..8] == MAGIC && header.start >= HEADER && header.room > 0 && end <= length).then_some(header)
    }

    fn to_bytes(self) -> HeaderBytes {
        let mut bytes: HeaderBytes = [0; 64];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.boot);
        bytes[24..32].copy_from_slice(&self.ahead.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.start.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.room.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }
}
