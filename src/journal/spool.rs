//! The spool of one process: records are appended to a buffer, and one write brings them to the file before what they announce
//! happens.
//!
//! What was written survives the process: it is the system's. What is `synced` survives the machine. Files are written in segments,
//! so that what the store has can go.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::place::Claim;
use super::record::Record;
use crate::process::{edge, is_broken};

/// What each segment begins with; the boot id follows.
pub const HEAD: &str = "hostler spool 1 ";
/// A segment that has more takes no more.
const SEGMENT: u64 = 8 << 20;
/// A buffer that has more is written at once.
const FULL: usize = 1 << 20;
/// What is kept for the time when the disk takes something again. Beyond it, records are dropped.
const MOST_UNWRITTEN: usize = 4 << 20;
/// So many full segments are held open for the next sync at most: one that comes later opens them again.
const MOST_HELD: usize = 8;
/// The pause after a failed write.
const PAUSE: Duration = Duration::from_secs(1);
/// The buffer that is kept between writes.
const KEPT: usize = 1 << 20;

/// A place in a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Segments are numbered from 1.
    pub segment: u64,
    /// Bytes from the beginning of its file.
    pub offset: u64,
}

/// The spool of this process.
pub struct Spool {
    claim: Claim,
    boot: String,
    /// Whether there is something to write. Read without the lock.
    is_dirty: AtomicBool,
    /// Locked to append and to write.
    state: Mutex<State>,
    /// Notified when something was written while its reader waits.
    written: Condvar,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    /// Up to where the file is written.
    at: Position,
    /// Segments that are full, if somebody may want them on the disk.
    full: Vec<File>,
    buffer: Vec<u8>,
    trouble: Option<Trouble>,
    /// Records that were dropped since it was last said.
    dropped: u64,
    is_awaited: bool,
    /// Somebody waits for the store.
    is_hurried: bool,
    is_over: bool,
    disk: Disk,
}

/// What is on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Disk {
    /// Not asked for so far.
    #[default]
    Unknown,
    /// Everything up to the last time, but a file was begun since.
    Content,
    /// That, and the names of all files.
    Names,
}

/// Why nothing is written.
#[derive(Debug, Clone)]
struct Trouble {
    what: String,
    again: Instant,
}

impl Spool {
    /// The spool of that name. Its first file is made by the first record.
    pub fn new(claim: Claim, boot: String) -> Self {
        Self { claim, boot, is_dirty: AtomicBool::new(false), state: Mutex::default(), written: Condvar::new() }
    }

    /// Where it lies, held by this process.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The boot in which it is written.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Appends a record to the buffer. It is written by the next [`Spool::pass`]. False if there is no room: then it is lost.
    pub fn append(&self, record: &Record<'_>) -> bool {
        let mut state = self.state.lock();
        if state.buffer.len() > FULL {
            // Nothing else may bring it to the file for a long time.
            let _ = self.flush(&mut state);
        }
        if state.buffer.len() > MOST_UNWRITTEN {
            state.dropped += 1;
            return false;
        }
        record.write(&mut state.buffer);
        self.is_dirty.store(true, Ordering::Release);
        true
    }

    /// Brings what was appended to the file. Says why that fails, and keeps it for later.
    pub fn pass(&self) -> Result<(), String> {
        if !self.is_dirty.load(Ordering::Acquire) {
            return Ok(());
        }
        self.flush(&mut self.state.lock())
    }

    fn flush(&self, state: &mut State) -> Result<(), String> {
        if let Some(trouble) = state.trouble.as_ref().filter(|trouble| Instant::now() < trouble.again) {
            return Err(trouble.what.clone());
        }
        if is_broken("written-before-said") && state.buffer.len() < 1 << 14 {
            return Ok(());
        }
        edge("spool.before-write");
        match self.write(state) {
            Ok(()) => {
                edge("spool.after-write");
                self.is_dirty.store(false, Ordering::Release);
                if let Some(trouble) = state.trouble.take() {
                    let dropped = std::mem::take(&mut state.dropped);
                    tracing::warn!(dropped, was = trouble.what, "the journal is written again");
                }
                if state.is_awaited {
                    self.written.notify_all();
                }
                Ok(())
            }
            Err(error) => {
                let what = format!("the journal cannot be written: {error}");
                if state.trouble.is_none() {
                    tracing::warn!("{what}; calls go on without it");
                }
                state.trouble = Some(Trouble { what: what.clone(), again: Instant::now() + PAUSE });
                Err(what)
            }
        }
    }

    fn write(&self, state: &mut State) -> io::Result<()> {
        let State { file, at, buffer, full, disk, .. } = &mut *state;
        if file.is_none() || at.offset > SEGMENT {
            let number = at.segment + 1;
            let (fresh, offset) = self.begin(number)?;
            hold(file.take(), full, disk);
            *file = Some(fresh);
            *at = Position { segment: number, offset };
        }
        if let Some(file) = file {
            // At a known place, so that a write that was cut short is written over by the next.
            file.write_all_at(buffer, at.offset)?;
        }
        at.offset += buffer.len() as u64;
        buffer.clear();
        if buffer.capacity() > KEPT {
            *buffer = Vec::new();
        }
        Ok(())
    }

    fn begin(&self, number: u64) -> io::Result<(File, u64)> {
        let path = self.claim.segment(number);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let head = format!("{HEAD}{}\n", self.boot);
        file.write_all_at(head.as_bytes(), 0)?;
        Ok((file, head.len() as u64))
    }

    /// Up to where it is written.
    pub fn position(&self) -> Position {
        self.state.lock().at
    }

    /// Brings everything that is written to the disk. Blocks; for a thread.
    pub fn sync(&self) -> io::Result<()> {
        let files = {
            let mut state = self.state.lock();
            let mut files = std::mem::take(&mut state.full);
            // What fails from here on leaves it unknown: the next one begins anew.
            let disk = std::mem::take(&mut state.disk);
            if disk == Disk::Unknown {
                // Earlier segments were not synced.
                let segments = self.claim.segments()?;
                // What is gone is in the store.
                let opened = segments.iter().map(|(_, path)| File::open(path));
                let is_there =
                    |file: &io::Result<File>| !matches!(file, Err(error) if error.kind() == io::ErrorKind::NotFound);
                files = opened.filter(is_there).collect::<io::Result<_>>()?;
            } else {
                files.extend(state.file.as_ref().map(File::try_clone).transpose()?);
            }
            if disk != Disk::Names {
                files.push(File::open(&self.claim.folder)?);
            }
            state.disk = Disk::Names;
            files
        };
        let synced = files.iter().try_for_each(File::sync_data);
        if synced.is_err() {
            self.state.lock().disk = Disk::Unknown;
        }
        synced
    }

    /// Begins a file with the next record, if everything is read up to this position. Whether it does: then the file before it may go.
    pub fn turn_over(&self, read: Position) -> bool {
        let mut state = self.state.lock();
        let is_read = state.at == read && state.buffer.is_empty();
        if is_read {
            let State { file, full, disk, .. } = &mut *state;
            hold(file.take(), full, disk);
        }
        is_read
    }

    /// Waits until something is written behind a position, or this time is over. Whether more may follow.
    pub fn wait(&self, behind: Position, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if state.at <= behind && !state.is_over {
            state.is_awaited = true;
            self.written.wait_for(&mut state, limit);
            state.is_awaited = false;
        }
        !state.is_over
    }

    /// Lets records gather for this long, unless nothing is appended any more.
    pub fn gather(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.is_over && !state.is_hurried && !self.written.wait_until(&mut state, until).timed_out() {}
        state.is_hurried = false;
    }

    /// Lets no more records gather this time.
    pub fn hurry(&self) {
        self.state.lock().is_hurried = true;
        self.written.notify_all();
    }

    /// Nothing is appended any more.
    pub fn end(&self) {
        let _ = self.pass();
        self.state.lock().is_over = true;
        self.written.notify_all();
    }

    /// The file of a segment.
    #[cfg(test)]
    pub fn path(&self, segment: u64) -> std::path::PathBuf {
        self.claim.segment(segment)
    }
}

/// Keeps a file open that gets no more records, if the disk has everything before it: the next sync brings it there.
fn hold(file: Option<File>, full: &mut Vec<File>, disk: &mut Disk) {
    if full.len() >= MOST_HELD {
        full.clear();
        *disk = Disk::Unknown;
    }
    if *disk != Disk::Unknown {
        full.extend(file);
        *disk = Disk::Content;
    }
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;
