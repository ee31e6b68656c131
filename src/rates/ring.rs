//! A file with the latest calls of one count, for all processes of a person. Whoever looks at it or adds to it holds their lock.
//!
//! A header says how many slots there are. A slot has the number of a call and its time, so that one write counts a call, and one read of
//! the next slot shows whether others have. The slots that were read are kept in memory.
//!
//! Times are milliseconds since the boot, which nobody can set. Those of another boot are translated by the wall clock when they are read;
//! what would lie in the future was made just now.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::CountError;
use super::window::Recent;
use crate::process::Moment;

const MAGIC: [u8; 8] = *b"hostler1";
/// The length of the header, and of a slot, in bytes.
const SLOT: u64 = 32;
/// A slot, or the header, as it is in the file.
type Bytes = [u8; 32];
/// The fewest slots.
const LEAST: u64 = 128;
/// How long a file is kept without a call.
const OLD: Duration = Duration::from_hours(48);

/// An open file, and what was read of it.
#[derive(Debug)]
pub(super) struct Ring {
    path: PathBuf,
    file: File,
    room: u64,
    /// The number of the next call.
    next: u64,
    recent: Recent,
}

/// A counted call.
#[derive(Debug, Clone, Copy)]
struct Slot {
    number: u64,
    made: Moment,
}

/// What stands in the slot of the next call.
enum Next {
    /// None of the latest.
    Nothing,
    /// That call.
    Call(Slot),
    /// Others have gone all the way round.
    Round,
    /// Another file is in the place of this one.
    Moved,
}

/// The number in the slot of the next call if another file is in the place of this one. Calls have lower ones.
const MOVED: u64 = u64::MAX / 2;

impl Ring {
    /// The file at this path, with room for this many calls. It is made if it is not there, or cannot be read.
    pub fn open(path: &Path, most: usize, now: Moment) -> Result<Self, CountError> {
        let mut ring = match Self::read(path, now) {
            Ok((ring, true)) => ring,
            // Translated once, so that a call does not stay young for as long as the wall clock is behind.
            Ok((mut ring, false)) => {
                ring.renew(ring.room, now)?;
                ring
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(path, LEAST, &[])?,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!("{} cannot be read; its rate is counted anew", path.display());
                Self::make(path, LEAST, &[])?
            }
            Err(source) => return Err(CountError::of(path, source)),
        };
        ring.make_room(most, now)?;
        Ok(ring)
    }

    /// Reads what others have counted, and makes room for this many calls.
    pub fn look(&mut self, most: usize, now: Moment) -> Result<&Recent, CountError> {
        loop {
            match self.next().map_err(|source| CountError::of(&self.path, source))? {
                Next::Nothing => break,
                Next::Call(slot) => {
                    self.recent.add(slot.since_boot(now));
                    self.next += 1;
                }
                Next::Round | Next::Moved => *self = Self::open(&self.path, most, now)?,
            }
        }
        self.make_room(most, now)?;
        Ok(&self.recent)
    }

    /// Counts a call. Whoever calls this has looked.
    pub fn add(&mut self, made: Moment) -> Result<(), CountError> {
        let slot = Slot { number: self.next, made };
        self.file.write_all_at(&slot.to_bytes(), self.place()).map_err(|source| CountError::of(&self.path, source))?;
        self.recent.add(made.since_boot);
        self.next += 1;
        Ok(())
    }

    /// Whether the file is still there.
    pub fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    /// Removes the file if nothing was counted in it for longer than any window, by its own time and by the clock. That of an earlier boot is kept.
    pub fn remove_if_old(path: &Path, now: Moment) {
        let modified = std::fs::metadata(path).and_then(|found| found.modified()).ok();
        let is_old = modified.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > OLD);
        if is_old
            && let Ok((ring, true)) = Self::read(path, now)
            && ring.recent.is_older_than(OLD, now.since_boot)
            && ring.mark_moved().is_ok()
        {
            let _ = std::fs::remove_file(path);
        }
    }

    /// A file with these calls, in place of what is there.
    fn make(path: &Path, room: u64, calls: &[Moment]) -> Result<Self, CountError> {
        let mut header: Bytes = [0; 32];
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&room.to_le_bytes());
        let mut bytes = header.to_vec();
        let mut recent = Recent::with_room(usize::try_from(room).unwrap_or(usize::MAX));
        for (number, made) in (0..).zip(calls) {
            bytes.extend_from_slice(&Slot { number, made: *made }.to_bytes());
            recent.add(made.since_boot);
        }
        let made = whole_file(path, &bytes, SLOT + room * SLOT);
        let file = made.map_err(|source| CountError::of(path, source))?;
        Ok(Self { path: path.to_owned(), file, room, next: calls.len() as u64, recent })
    }

    /// What is in the file, and whether all of it is of this boot.
    fn read(path: &Path, now: Moment) -> io::Result<(Self, bool)> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let length = file.metadata()?.len();
        let room = (length / SLOT).checked_sub(1).filter(|room| *room > 0).ok_or_else(broken)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        let (parts, rest) = bytes.as_chunks::<32>();
        let is_whole = rest.is_empty() && parts[0][..8] == MAGIC && parts[0][8..16] == room.to_le_bytes();
        if !is_whole {
            return Err(broken());
        }
        let mut slots: Vec<Slot> = parts[1..].iter().filter_map(Slot::of).filter(|slot| slot.number < MOVED).collect();
        slots.sort_unstable_by_key(|slot| slot.number);
        let next = slots.last().map_or(0, |last| last.number + 1);
        let mut recent = Recent::with_room(usize::try_from(room).unwrap_or(usize::MAX));
        for slot in &slots {
            recent.add(slot.since_boot(now));
        }
        let ring = Self { path: path.to_owned(), file, room, next, recent };
        // Who wrote that it has moved died before it had.
        if matches!(ring.next()?, Next::Moved) {
            ring.file.write_all_at(&[0; 32], ring.place())?;
        }
        let is_of_this_boot = slots.iter().all(|slot| slot.made.boot == now.boot);
        Ok((ring, is_of_this_boot))
    }

    fn make_room(&mut self, most: usize, now: Moment) -> Result<(), CountError> {
        let most = most as u64;
        if self.room < most { self.renew(most.next_power_of_two(), now) } else { Ok(()) }
    }

    /// Puts another file with the same calls in place of this one.
    fn renew(&mut self, room: u64, now: Moment) -> Result<(), CountError> {
        // Others look at the new one from here on; should this process die before that is there, they find the old one again.
        self.mark_moved().map_err(|source| CountError::of(&self.path, source))?;
        let wall = |time: i64| now.wall.saturating_sub(now.since_boot.saturating_sub(time));
        let calls = self.recent.times().map(|time| Moment { boot: now.boot, since_boot: time, wall: wall(time) });
        *self = Self::make(&self.path, room, &calls.collect::<Vec<_>>())?;
        Ok(())
    }

    fn mark_moved(&self) -> io::Result<()> {
        let slot = Slot { number: MOVED, made: Moment::default() };
        self.file.write_all_at(&slot.to_bytes(), self.place())
    }

    fn next(&self) -> io::Result<Next> {
        let mut bytes: Bytes = [0; 32];
        self.file.read_exact_at(&mut bytes, self.place())?;
        Ok(match Slot::of(&bytes) {
            Some(slot) if slot.number == MOVED => Next::Moved,
            Some(slot) if slot.number == self.next => Next::Call(slot),
            Some(slot) if slot.number > self.next && slot.number < MOVED => Next::Round,
            _ => Next::Nothing,
        })
    }

    fn place(&self) -> u64 {
        SLOT + self.next % self.room * SLOT
    }
}

impl Slot {
    /// `None` if nothing was written there.
    fn of(bytes: &Bytes) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let [number, boot, since_boot, wall] = *words else { return None };
        let [since_boot, wall] = [since_boot, wall].map(i64::from_le_bytes);
        let made = Moment { boot: u64::from_le_bytes(boot), since_boot, wall };
        u64::from_le_bytes(number).checked_sub(1).map(|number| Self { number, made })
    }

    fn to_bytes(self) -> Bytes {
        let Moment { boot, since_boot, wall } = self.made;
        let mut bytes: Bytes = [0; 32];
        bytes[..8].copy_from_slice(&(self.number + 1).to_le_bytes());
        bytes[8..16].copy_from_slice(&boot.to_le_bytes());
        bytes[16..24].copy_from_slice(&since_boot.to_le_bytes());
        bytes[24..].copy_from_slice(&wall.to_le_bytes());
        bytes
    }

    /// When it was, in terms of this boot.
    fn since_boot(&self, now: Moment) -> i64 {
        if self.made.boot == now.boot {
            return self.made.since_boot;
        }
        now.since_boot.saturating_sub(now.wall.saturating_sub(self.made.wall).max(0))
    }
}

/// Puts a file with these first bytes and this length in place, so that nobody finds half of it.
fn whole_file(path: &Path, bytes: &[u8], length: u64) -> io::Result<File> {
    let fresh = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(&fresh)?;
    file.write_all_at(bytes, 0)?;
    file.set_len(length)?;
    std::fs::rename(&fresh, path)?;
    Ok(file)
}
