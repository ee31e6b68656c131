//! What must be known of a session when the process that serves it is killed: how it began, which requests have no answer,
//! what was read of the client and not processed. It is in memory that the attached process holds, so recording costs no
//! system call.
//!
//! A request is answered once its answer's last byte is written, which is later than the moment in which it is queued: so
//! each request has the position of its answer in the output, and the record has the position up to which output is
//! written.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, compiler_fence};

use super::connection::MAX_MESSAGE;
use crate::process::SharedMemory;

/// The lines that make a session what it is, behind positions and flags: each with its length before it, in one half. The other is for replacing them.
const STATE: Range<usize> = 64..(512 << 10);
const HALF: usize = STATE.end / 2 - STATE.start;
/// Requests: what is known of each.
const SLOT: usize = 256;
const SLOTS: usize = 4096;
const TABLE: Range<usize> = STATE.end..STATE.end + SLOT * SLOTS;
/// Where the client's bytes are read to. Zeros follow what was read, and JSON contains none.
pub(super) const INPUT: Range<usize> = TABLE.end..TABLE.end + (16 << 10);
/// What was read before and not taken: the beginning of a line and, after a kill, the lines before it. What was never used takes no
/// memory.
pub(super) const TAIL: Range<usize> = INPUT.end..INPUT.end + 2 * MAX_MESSAGE;
const LENGTH: usize = TAIL.end;
/// What stays in memory of a long line after its end.
pub(super) const KEPT_TAIL: usize = 1 << 20;

/// So many bytes a pipe takes whole or not at all (`PIPE_BUF`).
const WRITTEN_WHOLE: usize = 4096;

/// Fields of the head, in eight bytes each.
const WRITTEN: usize = 0;
const IS_MID_LINE: usize = 1;
/// Twice the length, and one more if it is in the second half.
const STATE_LENGTH: usize = 2;
/// How far the input was taken; see `record_input`.
pub(super) const CURSOR: usize = 3;
/// The slot of the line that is being begun.
pub(super) const NEXT: usize = 4;
/// The slots from here on were never used: to look at their memory would allocate it.
const USED: usize = 5;

/// Fields of a slot: its kind, the position of its answer, and its text with a length before it.
pub(super) const KIND: usize = 0;
const ANSWER: usize = 8;
const TEXT: usize = 16;
/// The slots that are used in turn, so that few are in the processor's caches. The others are for requests that stay open for long.
const USUAL: usize = 1024;
/// How many of them are looked at first.
const LOOKED_AT: usize = 64;
pub(super) const LONGEST_TEXT: usize = SLOT - TEXT - 2;

pub(super) const FREE: u8 = 0;
const OPEN: u8 = 1;
const ANSWERED: u8 = 2;

/// The place of a request in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(pub(super) usize);

/// The record of one session.
pub struct Record {
    pub(super) memory: SharedMemory,
    next: usize,
}

/// What a killed process left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Whether nothing was left: the session begins.
    pub is_new: bool,
    /// The lines that made the session, oldest first.
    pub state: Vec<Vec<u8>>,
    /// What was read of the client and not taken.
    pub unread: Vec<u8>,
    /// Whether only the beginning of the first line in it is known.
    pub is_cut: bool,
    /// Whether the last line of the output is incomplete.
    pub is_mid_line: bool,
}

impl Record {
    /// The record of a new session.
    pub fn new() -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::new(LENGTH)?, next: 0 })
    }

    /// The record that another process began.
    pub fn of(file: OwnedFd) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::of(file, LENGTH)?, next: 0 })
    }

    /// A request, which is the next line of the input, is about to be processed. `None` if its text is too long, or there are
    /// too many open ones.
    pub(super) fn begin(&mut self, text: &str) -> Option<Slot> {
        if text.len() > LONGEST_TEXT {
            return None;
        }
        let place = self.free_slot()?;
        if place >= self.used() {
            self.set_head(USED, place as u64 + 1);
        }
        let length = u16::try_from(text.len()).unwrap_or_default().to_le_bytes();
        let slot = self.slot(place);
        slot[KIND] = FREE;
        compiler_fence(Ordering::SeqCst);
        slot[TEXT..TEXT + 2].copy_from_slice(&length);
        slot[TEXT + 2..TEXT + 2 + text.len()].copy_from_slice(text.as_bytes());
        self.is_next(Slot(place));
        self.slot(place)[KIND] = OPEN;
        Some(Slot(place))
    }

    fn used(&mut self) -> usize {
        usize::try_from(self.head(USED)).map_or(SLOTS, |used| used.min(SLOTS))
    }

    /// A slot that is free, or whose request has its answer, behind the one that was taken last.
    fn free_slot(&mut self) -> Option<usize> {
        let (next, written) = (self.next, self.head(WRITTEN));
        let mut places = (next..next + LOOKED_AT).map(|at| at % USUAL).chain(0..SLOTS);
        let place = places.find(|place| match self.slot(*place)[KIND] {
            OPEN => false,
            ANSWERED => self.position(*place) <= written,
            _ => true,
        })?;
        self.next = (place + 1) % USUAL;
        Some(place)
    }

    /// The answer is in the output, and ends before this position.
    pub(super) fn answered(&mut self, slot: Slot, position: u64) {
        let slot = self.slot(slot.0);
        slot[ANSWER..ANSWER + 8].copy_from_slice(&position.to_le_bytes());
        compiler_fence(Ordering::SeqCst);
        slot[KIND] = ANSWERED;
    }

    /// A line without which the session is another one. Whether there is room for it.
    pub(super) fn keep(&mut self, line: &[u8]) -> bool {
        let (half, at) = self.state_end();
        let Some(end) = self.put(half, at, line) else { return false };
        self.set_head(STATE_LENGTH, end as u64 * 2 + half as u64);
        true
    }

    /// Replaces the lines that were kept by others, which are fewer.
    pub(super) fn replace(&mut self, lines: &[&[u8]]) {
        let half = 1 - self.state_end().0;
        let Some(end) = lines.iter().try_fold(0, |at, line| self.put(half, at, line)) else { return };
        self.set_head(STATE_LENGTH, end as u64 * 2 + half as u64);
    }

    /// Writes a line to a half; returns its end.
    fn put(&mut self, half: usize, at: usize, line: &[u8]) -> Option<usize> {
        let line = line.trim_ascii_end();
        let (length, end) = (u32::try_from(line.len()).ok()?, at + 4 + line.len());
        let room = self.memory.bytes()[STATE][half * HALF..][..HALF].get_mut(at..end)?;
        room[..4].copy_from_slice(&length.to_le_bytes());
        room[4..].copy_from_slice(line);
        Some(end)
    }

    /// The half that the lines are in, and their end in it.
    fn state_end(&mut self) -> (usize, usize) {
        let value = usize::try_from(self.head(STATE_LENGTH)).unwrap_or_default();
        (value & 1, (value / 2).min(HALF))
    }

    /// Bytes are about to be written: until it is known how many were, a part of a line may be. Of few bytes all are written, or
    /// none. Returns what was known before, for [`Record::wrote_nothing`].
    pub(super) fn writes(&mut self, bytes: &[u8]) -> bool {
        let was_mid_line = self.head(IS_MID_LINE) != 0;
        let is_whole = !was_mid_line && bytes.len() <= WRITTEN_WHOLE && bytes.ends_with(b"\n");
        if !is_whole {
            self.set_head(IS_MID_LINE, 1);
        }
        was_mid_line
    }

    /// No byte was written.
    pub(super) fn wrote_nothing(&mut self, was_mid_line: bool) {
        self.set_head(IS_MID_LINE, u64::from(was_mid_line));
    }

    /// These bytes were written.
    pub(super) fn wrote(&mut self, bytes: &[u8]) {
        let written = self.head(WRITTEN) + bytes.len() as u64;
        self.set_head(WRITTEN, written);
        self.set_head(IS_MID_LINE, u64::from(bytes.last().is_some_and(|last| *last != b'\n')));
    }

    /// What the process that served the session before left, and the requests without a complete answer. The record is then
    /// that of a session whose output begins anew; those requests stay open in it.
    pub(super) fn take_over(&mut self) -> (Left, Vec<(Slot, String)>) {
        let (written, is_mid_line) = (self.head(WRITTEN), self.head(IS_MID_LINE) != 0);
        let (unread, is_cut) = self.unread();
        let mut left = Left { state: self.state(), is_mid_line, is_cut, unread, is_new: false };
        left.is_new = written == 0 && left.state.is_empty();
        let mut open = Vec::new();
        for place in 0..self.used() {
            let (kind, position) = (self.slot(place)[KIND], self.position(place));
            let Some(text) = self.text(place).filter(|_| kind != FREE) else { continue };
            if kind == ANSWERED && position <= written {
                self.slot(place)[KIND] = FREE;
            } else {
                self.slot(place)[KIND] = OPEN;
                open.push((Slot(place), text));
            }
        }
        left.is_new &= open.is_empty();
        // The incomplete line stays so until its end is written.
        self.set_head(WRITTEN, 0);
        (left, open)
    }

    /// The lines that were kept.
    pub(super) fn state(&mut self) -> Vec<Vec<u8>> {
        let (half, end) = self.state_end();
        let mut rest = &self.memory.bytes()[STATE][half * HALF..][..end];
        let mut lines = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((line, after)) = after.split_at_checked(length) else { break };
            lines.push(line.to_vec());
            rest = after;
        }
        lines
    }

    pub(super) fn slot(&mut self, place: usize) -> &mut [u8] {
        let start = TABLE.start + place.min(SLOTS - 1) * SLOT;
        &mut self.memory.bytes()[start..start + SLOT]
    }

    fn position(&mut self, place: usize) -> u64 {
        let bytes = self.slot(place)[ANSWER..ANSWER + 8].try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    }

    fn text(&mut self, place: usize) -> Option<String> {
        let slot = self.slot(place);
        let length = usize::from(u16::from_le_bytes([slot[TEXT], slot[TEXT + 1]]));
        let text = slot.get(TEXT + 2..TEXT + 2 + length)?;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As after a kill: what is in the memory alone.
    fn killed(record: Record) -> Record {
        Record::of(record.into_file().unwrap()).unwrap()
    }

    fn open(record: &mut Record) -> Vec<String> {
        let mut open: Vec<String> = record.take_over().1.into_iter().map(|(_, text)| text).collect();
        open.sort();
        open
    }

    #[test]
    fn a_request_is_open_until_its_answer_is_written() {
        let mut record = Record::new().unwrap();
        let slots: Vec<Slot> = ["1\ta", "2\ta", "3\ta"].iter().filter_map(|text| record.begin(text)).collect();
        record.answered(slots[0], 10);
        record.answered(slots[1], 20);
        record.wrote(b"123456789\n");
        record.wrote(b"1234");
        let mut next = killed(record);
        assert!(next.head(IS_MID_LINE) != 0);
        assert_eq!(open(&mut next), ["2\ta", "3\ta"], "one answer is written, one in part, one not made");
        // They stay open if the next process is killed before it has answered.
        assert_eq!(open(&mut killed(next)), ["2\ta", "3\ta"]);
    }

    #[test]
    fn a_new_record_takes_hardly_any_memory() {
        let (mut record, page) = (Record::new().unwrap(), rustix::param::page_size() as u64);
        let file = record.memory.file().try_clone_to_owned().unwrap();
        record.take_over();
        assert!(record.begin("1\ta").is_some());
        assert!(rustix::fs::fstat(file).unwrap().st_blocks.cast_unsigned() * 512 <= 8 * page);
    }

    #[test]
    fn the_lines_of_a_session_are_kept_in_their_order() {
        let mut record = Record::new().unwrap();
        assert!(killed(Record::new().unwrap()).take_over().0.is_new);
        record.keep(b"first\n");
        record.keep(b"second\n");
        let (left, _) = killed(record).take_over();
        assert_eq!((left.state, left.is_new), (vec![b"first".to_vec(), b"second".to_vec()], false));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut record = Record::new().unwrap();
        assert_eq!(record.begin(&"x".repeat(SLOT)), None);
        for number in 0..SLOTS + 100 {
            let slot = record.begin(&number.to_string()).expect("answered ones make room");
            record.answered(slot, 0);
        }
        for number in 0..SLOTS {
            record.begin(&number.to_string()).expect("every slot can be used");
        }
        assert_eq!(record.begin("x"), None);
        assert!(!record.keep(&vec![b'x'; HALF]));
        let (left, open) = killed(record).take_over();
        assert_eq!((left.state.len(), open.len()), (0, SLOTS));
    }

    #[test]
    fn an_answer_that_is_not_written_keeps_its_slot() {
        let mut record = Record::new().unwrap();
        for number in 0..SLOTS {
            let slot = record.begin(&number.to_string()).unwrap();
            record.answered(slot, 10);
        }
        assert_eq!(record.begin("x"), None);
        record.wrote(b"123456789\n");
        assert!(record.begin("x").is_some());
    }

    #[test]
    fn lines_are_replaced_at_once() {
        let mut record = Record::new().unwrap();
        while record.keep(b"one") {}
        record.replace(&[b"two", b"three"]);
        assert!(record.keep(b"four"));
        let (left, _) = killed(record).take_over();
        assert_eq!(left.state, [&b"two"[..], b"three", b"four"]);
    }

    #[test]
    fn a_write_that_nobody_recorded_may_have_left_a_part_of_a_line() {
        let mut record = Record::new().unwrap();
        let long = [b"x".repeat(WRITTEN_WHOLE), b"\n".to_vec()].concat();
        let before = record.writes(&long);
        record.wrote_nothing(before);
        assert!(!record.take_over().0.is_mid_line);
        record.writes(&long);
        record.wrote(&long);
        assert!(!record.take_over().0.is_mid_line);
        record.writes(&long);
        assert!(killed(record).take_over().0.is_mid_line);
    }

    #[test]
    fn a_short_line_is_written_whole_or_not_at_all() {
        let mut record = Record::new().unwrap();
        record.writes(&[b"x".repeat(WRITTEN_WHOLE - 1), b"\n".to_vec()].concat());
        let mut record = killed(record);
        assert!(!record.take_over().0.is_mid_line);
        // Not so the rest of a longer one.
        record.wrote(b"the beginning of one");
        record.writes(b"rest\n");
        assert!(killed(record).take_over().0.is_mid_line);
    }

    #[test]
    fn a_record_of_nonsense_is_read_without_a_panic() {
        let mut record = Record::new().unwrap();
        record.memory.bytes().fill(0xff);
        let (left, _) = record.take_over();
        assert!(left.is_mid_line);
    }
}
