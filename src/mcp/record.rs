//! What must be known of a session when the process that serves it is killed: how it began, which requests have no answer,
//! what was read of the client and not processed. It is in memory that the attached process holds, so recording costs no
//! system call.
//!
//! A request is answered once its answer's last byte is written, which is later than the moment in which it is queued: so
//! each request has the position of its answer in the output, and the record has the position up to which output is
//! written.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, compiler_fence};

use super::connection::MAX_MESSAGE;
use crate::process::SharedMemory;

/// Positions and flags.
const HEAD: Range<usize> = 0..64;
/// The lines that make a session what it is, each with its length before it.
const STATE: Range<usize> = 64..(256 << 10);
/// Requests: what is known of each.
const SLOT: usize = 256;
const SLOTS: usize = 4096;
const TABLE: Range<usize> = STATE.end..STATE.end + SLOT * SLOTS;
/// Where the client's bytes are read to. Zeros follow what was read, and JSON contains none.
const INPUT: Range<usize> = TABLE.end..TABLE.end + (16 << 10);
/// The beginning of a line whose end has not been read. It is as long as a line may be; what was never used takes no memory.
const TAIL: Range<usize> = INPUT.end..INPUT.end + MAX_MESSAGE + (1 << 20);
const LENGTH: usize = TAIL.end;
/// What stays in memory of a long line after its end.
const KEPT_TAIL: usize = 1 << 20;

/// Fields of the head, in eight bytes each.
const WRITTEN: usize = 0;
const IS_MID_LINE: usize = 1;
const STATE_LENGTH: usize = 2;
/// Twice the length, and one more while what is in [`INPUT`] is in the tail, or processed.
const TAIL_LENGTH: usize = 3;
const IS_CUT: usize = 4;

/// Fields of a slot: its kind, the position of its answer, and its text with a length before it.
const KIND: usize = 0;
const ANSWER: usize = 8;
const TEXT: usize = 16;
/// How many slots are looked at for one that is free.
const LOOKED_AT: usize = 64;
/// The slots that are used in turn, so that few are in the processor's caches. They are more than the lines that fit into
/// [`INPUT`]: each line that is in it and was begun is found. The others are for requests that stay open for long.
const USUAL: Range<usize> = 0..1024;
const OTHERS: Range<usize> = USUAL.end..SLOTS;
pub(super) const LONGEST_TEXT: usize = SLOT - TEXT - 2;

const FREE: u8 = 0;
const OPEN: u8 = 1;
const ANSWERED: u8 = 2;

/// The place of a request in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(usize);

/// The record of one session.
pub struct Record {
    memory: SharedMemory,
    next: usize,
}

/// What a killed process left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Whether nothing was left: the session begins.
    pub is_new: bool,
    /// The lines that made the session, oldest first.
    pub state: Vec<Vec<u8>>,
    /// Requests that were begun lately, answered or not, as they were given to [`Record::begin`].
    pub begun: HashSet<String>,
    /// What was read last of the client; some of it was begun.
    pub unread: Vec<u8>,
    /// Whether only the beginning of the last line read is known.
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

    /// The memory, for the process that holds it.
    pub fn into_file(self) -> io::Result<OwnedFd> {
        self.memory.file().try_clone_to_owned()
    }

    /// A request is about to be processed. A text that is too long, or more requests than there is room for, are not recorded.
    pub(super) fn begin(&mut self, text: &str) -> Option<Slot> {
        if text.len() > LONGEST_TEXT {
            return None;
        }
        let place = self.free_slot(USUAL).or_else(|| self.free_slot(OTHERS))?;
        let length = u16::try_from(text.len()).unwrap_or_default().to_le_bytes();
        let slot = self.slot(place);
        slot[KIND] = FREE;
        compiler_fence(Ordering::SeqCst);
        slot[TEXT..TEXT + 2].copy_from_slice(&length);
        slot[TEXT + 2..TEXT + 2 + text.len()].copy_from_slice(text.as_bytes());
        compiler_fence(Ordering::SeqCst);
        slot[KIND] = OPEN;
        Some(Slot(place))
    }

    /// A slot that is free, or whose request is answered, behind the one that was taken last.
    fn free_slot(&mut self, among: Range<usize>) -> Option<usize> {
        let next = self.next;
        let mut near = (next..next + LOOKED_AT).map(|at| among.start + at % among.len());
        let place = near.find(|place| self.slot(*place)[KIND] != OPEN)?;
        self.next = place + 1 - among.start;
        Some(place)
    }

    /// The answer is in the output, and ends before this position.
    pub(super) fn answered(&mut self, slot: Slot, position: u64) {
        let slot = self.slot(slot.0);
        slot[ANSWER..ANSWER + 8].copy_from_slice(&position.to_le_bytes());
        compiler_fence(Ordering::SeqCst);
        slot[KIND] = ANSWERED;
    }

    /// A line without which the session is another one.
    pub(super) fn keep(&mut self, line: &[u8]) {
        let (line, at) = (line.trim_ascii_end(), self.head(STATE_LENGTH));
        let Ok(length) = u32::try_from(line.len()) else { return };
        let Some(room) = self.memory.bytes()[STATE].get_mut(at..at + 4 + line.len()) else {
            tracing::warn!("a session has more subscriptions than survive an end of the shared hostler");
            return;
        };
        room[..4].copy_from_slice(&length.to_le_bytes());
        room[4..].copy_from_slice(line);
        self.set_head(STATE_LENGTH, at + 4 + line.len());
    }

    /// Where the next bytes are read to.
    pub(super) fn input(&mut self) -> &mut [u8] {
        &mut self.memory.bytes()[INPUT]
    }

    /// What was read was processed up to this beginning of a line.
    pub(super) fn processed(&mut self, read: usize, tail: &[u8], is_cut: bool) {
        let before = self.head(TAIL_LENGTH) / 2;
        let kept = tail.len().min(TAIL.len());
        // A long line grows by what was read.
        let from = if tail.len() == before.saturating_add(read) { before.min(kept) } else { 0 };
        self.memory.bytes()[TAIL][from..kept].copy_from_slice(&tail[from..kept]);
        self.set_head(IS_CUT, usize::from(is_cut || kept < tail.len()));
        self.set_head(TAIL_LENGTH, kept * 2 + 1);
        self.memory.bytes()[INPUT][..read.min(INPUT.len())].fill(0);
        self.set_head(TAIL_LENGTH, kept * 2);
        if before > KEPT_TAIL && kept <= KEPT_TAIL {
            self.memory.give_back(TAIL.start + KEPT_TAIL..TAIL.end);
        }
    }

    /// Bytes are about to be written: until it is known how many were, a part of a line may be. Returns what was known before,
    /// for [`Record::wrote_nothing`].
    pub(super) fn writes(&mut self) -> bool {
        let was_mid_line = self.head(IS_MID_LINE) != 0;
        self.set_head(IS_MID_LINE, 1);
        was_mid_line
    }

    /// No byte was written.
    pub(super) fn wrote_nothing(&mut self, was_mid_line: bool) {
        self.set_head(IS_MID_LINE, usize::from(was_mid_line));
    }

    /// These bytes were written.
    pub(super) fn wrote(&mut self, bytes: &[u8]) {
        let written = self.head(WRITTEN) + bytes.len();
        self.set_head(WRITTEN, written);
        self.set_head(IS_MID_LINE, usize::from(bytes.last().is_some_and(|last| *last != b'\n')));
    }

    /// What the process that served the session before left, and the requests without a complete answer. The record is then
    /// that of a session whose output begins anew; those requests stay open in it.
    pub(super) fn take_over(&mut self) -> (Left, Vec<(Slot, String)>) {
        let (written, is_mid_line) = (self.head(WRITTEN) as u64, self.head(IS_MID_LINE) != 0);
        let is_cut = self.head(IS_CUT) != 0;
        let mut left =
            Left { state: self.state(), is_mid_line, is_cut, unread: self.unread(is_cut), ..Left::default() };
        left.is_new = written == 0 && left.state.is_empty();
        let mut open = Vec::new();
        for place in 0..SLOTS {
            let (kind, position) = (self.slot(place)[KIND], self.position(place));
            let Some(text) = self.text(place).filter(|_| kind != FREE) else { continue };
            left.begun.insert(text.clone());
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

    fn unread(&mut self, is_cut: bool) -> Vec<u8> {
        let (tail, is_input_in_it) = (self.head(TAIL_LENGTH) / 2, self.head(TAIL_LENGTH) & 1 != 0);
        let mut bytes = self.memory.bytes()[TAIL][..tail.min(TAIL.len())].to_vec();
        if is_input_in_it {
            return bytes;
        }
        let input = &self.memory.bytes()[INPUT];
        let read = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
        let read = &input[..read];
        // What follows a gap is of use from the next line on.
        let fits = if is_cut { read.iter().position(|byte| *byte == b'\n').unwrap_or(read.len()) } else { 0 };
        bytes.extend_from_slice(&read[fits..]);
        bytes
    }

    fn state(&mut self) -> Vec<Vec<u8>> {
        let end = self.head(STATE_LENGTH).min(STATE.len());
        let mut rest = &self.memory.bytes()[STATE][..end];
        let mut lines = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((line, after)) = after.split_at_checked(length) else { break };
            lines.push(line.to_vec());
            rest = after;
        }
        lines
    }

    fn slot(&mut self, place: usize) -> &mut [u8] {
        let start = TABLE.start + place * SLOT;
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

    fn head(&mut self, field: usize) -> usize {
        let at = HEAD.start + field * 8;
        let bytes = self.memory.bytes()[at..at + 8].try_into().unwrap_or_default();
        usize::try_from(u64::from_le_bytes(bytes)).unwrap_or_default()
    }

    fn set_head(&mut self, field: usize, value: usize) {
        let at = HEAD.start + field * 8;
        // Whoever reads this after a kill finds what was stored before, and nothing of what is stored after.
        compiler_fence(Ordering::SeqCst);
        self.memory.bytes()[at..at + 8].copy_from_slice(&(value as u64).to_le_bytes());
        compiler_fence(Ordering::SeqCst);
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
    fn what_was_read_and_not_processed_is_read_again() {
        let mut record = Record::new().unwrap();
        record.input()[..5].copy_from_slice(b"one\nt");
        record.processed(5, b"t", false);
        record.input()[..4].copy_from_slice(b"wo\nx");
        let (left, _) = killed(record).take_over();
        assert_eq!(left.unread, b"two\nx");
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
        record.keep(&vec![b'x'; STATE.len()]);
        let (left, open) = killed(record).take_over();
        assert_eq!((left.state.len(), open.len()), (0, 0));
    }

    #[test]
    fn the_beginning_of_a_line_is_not_taken_for_the_whole() {
        let mut record = Record::new().unwrap();
        record.processed(0, b"begin", true);
        record.input()[..8].copy_from_slice(b"end\nnext");
        let (left, _) = killed(record).take_over();
        assert_eq!((left.is_cut, left.unread), (true, b"begin\nnext".to_vec()));
    }

    #[test]
    fn a_long_line_is_kept_whole_and_its_memory_is_given_back() {
        let resident = |record: &mut Record| rustix::fs::fstat(record.memory.file()).unwrap().st_blocks / 2;
        let mut record = Record::new().unwrap();
        let line: Vec<u8> = (0..3 << 20).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
        for (end, chunk) in line.chunks(INPUT.len()).enumerate() {
            record.input()[..chunk.len()].copy_from_slice(chunk);
            record.processed(chunk.len(), &line[..end * INPUT.len() + chunk.len()], false);
        }
        let mut record = killed(record);
        assert_eq!(record.take_over().0.unread, line);
        let before = resident(&mut record);
        record.processed(1, b"next", false);
        assert!(before - resident(&mut record) >= 2 << 10, "all of it but what is kept");
        assert_eq!(killed(record).take_over().0.unread, b"next");
    }

    #[test]
    fn nothing_is_read_twice_when_it_is_killed_while_it_records() {
        let mut record = Record::new().unwrap();
        record.input()[..5].copy_from_slice(b"one\nt");
        record.processed(5, b"t", false);
        // As after the first half of it.
        record.input()[..5].copy_from_slice(b"one\nt");
        let taken = record.head(TAIL_LENGTH) + 1;
        record.set_head(TAIL_LENGTH, taken);
        assert_eq!(killed(record).take_over().0.unread, b"t");
    }

    #[test]
    fn a_write_that_nobody_recorded_may_have_left_a_part_of_a_line() {
        let mut record = Record::new().unwrap();
        let before = record.writes();
        record.wrote_nothing(before);
        assert!(!record.take_over().0.is_mid_line);
        record.writes();
        record.wrote(b"whole\n");
        assert!(!record.take_over().0.is_mid_line);
        record.writes();
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
