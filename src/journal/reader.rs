//! Reads spools, from where the store has them on.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::codec::{Found, read};
use super::fold::Fold;
use super::place::Claim;
use super::spool::{HEAD, Position};
use super::store::Batch;

/// How much of a file is read at once.
const CHUNK: usize = 1 << 20;
/// The most calls in one batch.
const MOST_CALLS: usize = 2000;
/// A batch of so many bytes is followed by another.
const MOST_BYTES: usize = 8 << 20;
/// The longest head of a segment.
const LONGEST_HEAD: usize = 128;

/// Why a spool is not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system's reason.
    #[error(transparent)]
    System(#[from] io::Error),
    /// Another version wrote it.
    #[error("it was written by another version of hostler")]
    Version,
}

/// Reads the segments of one spool.
pub struct Reader {
    at: Position,
    file: Option<File>,
    boot: String,
    /// Bytes of the file from `at` on.
    ahead: Vec<u8>,
}

/// What was read.
pub struct Read {
    /// What the records change.
    pub batch: Batch,
    /// Stretches that are no records.
    pub damaged: u64,
}

impl Reader {
    /// Begins at a position that the store names.
    pub fn at(at: Position) -> Self {
        Self { at, file: None, boot: String::new(), ahead: Vec::new() }
    }

    /// How far it is.
    pub fn position(&self) -> Position {
        self.at
    }

    /// Closes the file, which may go.
    pub fn close(&mut self) {
        self.file = None;
        self.ahead.clear();
    }

    /// The next batch; `None` at the end. `until` is where a spool ends that is being written.
    pub fn next(&mut self, claim: &Claim, until: Option<Position>) -> Result<Option<Read>, ReadError> {
        let boot = self.boot.clone();
        let (mut fold, mut damaged, mut taken, start) = (Fold::new(&boot), 0, 0, self.at);
        loop {
            if self.file.is_none() && !self.open(claim)? {
                break;
            }
            if self.boot != boot {
                // The first segment names it.
                return self.next(claim, until);
            }
            let is_last = until.is_some_and(|until| self.at.segment >= until.segment);
            let end = until.filter(|_| is_last).map(|until| until.offset);
            let is_at_end = self.fill(end)?;
            let is_whole = is_at_end && !is_last;
            let (used, lost) = take(&self.ahead, is_whole, &mut fold);
            damaged += lost;
            taken += used;
            self.ahead.drain(..used);
            self.at.offset += used as u64;
            if fold.calls() >= MOST_CALLS || taken >= MOST_BYTES {
                break;
            }
            if is_at_end && (is_last || !self.next_segment(claim)?) {
                break;
            }
        }
        Ok((self.at != start).then(|| Read { batch: fold.finish(self.at), damaged }))
    }

    /// Opens the segment of the position, or the first behind it that has anything. Whether there is one.
    fn open(&mut self, claim: &Claim) -> Result<bool, ReadError> {
        for (number, path) in claim.segments()?.into_iter().filter(|(number, _)| *number >= self.at.segment) {
            let file = File::open(path)?;
            let mut head = vec![0; LONGEST_HEAD];
            let length = file.read_at(&mut head, 0)?;
            let line = head[..length].split(|byte| *byte == b'\n').next().unwrap_or_default();
            if line.len() == length || line.first() == Some(&0) {
                continue; // cut off within its first line, or lost with the power
            }
            let boot = std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix(HEAD));
            boot.ok_or(ReadError::Version)?.clone_into(&mut self.boot);
            if number != self.at.segment || self.at.offset == 0 {
                self.at = Position { segment: number, offset: line.len() as u64 + 1 };
            }
            self.ahead.clear();
            self.file = Some(file);
            return Ok(true);
        }
        Ok(false)
    }

    /// Goes on to the next segment. Whether there is one.
    fn next_segment(&mut self, claim: &Claim) -> io::Result<bool> {
        let next = claim.segments()?.into_iter().map(|(number, _)| number).find(|number| *number > self.at.segment);
        let Some(number) = next else { return Ok(false) };
        self.file = None;
        self.ahead.clear();
        self.at = Position { segment: number, offset: 0 };
        Ok(true)
    }

    /// Reads more. Whether everything up to the end is read.
    fn fill(&mut self, end: Option<u64>) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let from = self.at.offset + self.ahead.len() as u64;
        let room = end.map_or(CHUNK as u64, |end| end.saturating_sub(from).min(CHUNK as u64));
        let before = self.ahead.len();
        self.ahead.resize(before + usize::try_from(room).unwrap_or(CHUNK), 0);
        let length = file.read_at(&mut self.ahead[before..], from)?;
        self.ahead.truncate(before + length);
        Ok(length == 0 || end == Some(from + length as u64))
    }
}

/// Takes complete records; how many bytes they are, and how many stretches are damaged.
fn take(bytes: &[u8], is_whole: bool, fold: &mut Fold<'_>) -> (usize, u64) {
    let (mut at, mut damaged) = (0, 0);
    while at < bytes.len() && fold.calls() < MOST_CALLS {
        match read(&bytes[at..], is_whole) {
            Found::Record(record, length) => {
                if let Some(record) = record {
                    fold.add(&record);
                }
                at += length;
            }
            // Its end may not be read yet.
            Found::Damaged(length) if at + length == bytes.len() && !is_whole => break,
            Found::Damaged(length) => {
                damaged += 1;
                at += length;
            }
            Found::End => break,
        }
    }
    (at, damaged)
}
