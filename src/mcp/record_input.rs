//! The part of a session's record that knows how far the client's input was taken: each line is begun by one process, and by one
//! only.
//!
//! Bytes are read to [`INPUT`]; what is left of a line when all before it are taken moves to [`TAIL`]. One word says where both
//! end and which line is next, so that it changes at once.

use std::io;
use std::sync::atomic::{Ordering, compiler_fence};

use super::record::{CURSOR, FREE, INPUT, KEPT_TAIL, KIND, NEXT, Record, Slot, TAIL};

/// Where the input stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cursor {
    /// The length of what is in [`TAIL`].
    tail: usize,
    /// How many bytes of tail and input, in this order, were taken. The next line begins there.
    taken: usize,
    /// Whether what is in [`INPUT`] is in the tail, or was taken.
    is_moved: bool,
    /// Whether the slot in [`NEXT`] is that of the next line.
    is_begun: bool,
    /// Whether only the beginning of the next line is kept.
    is_cut: bool,
}

const BITS: u32 = 30;
const MOST: u64 = (1 << BITS) - 1;

impl Cursor {
    fn packed(self) -> u64 {
        let flags = u64::from(self.is_moved) | u64::from(self.is_begun) << 1 | u64::from(self.is_cut) << 2;
        flags | (self.tail as u64 & MOST) << 3 | (self.taken as u64 & MOST) << (3 + BITS)
    }

    fn of(word: u64) -> Self {
        let number = |shift: u32| usize::try_from(word >> shift & MOST).unwrap_or_default();
        let (tail, taken) = (number(3).min(TAIL.len()), number(3 + BITS).min(TAIL.len() + INPUT.len()));
        Self { tail, taken, is_moved: word & 1 != 0, is_begun: word & 2 != 0, is_cut: word & 4 != 0 }
    }
}

impl Record {
    fn cursor(&mut self) -> Cursor {
        Cursor::of(self.head(CURSOR))
    }

    fn set_cursor(&mut self, cursor: Cursor) {
        self.set_head(CURSOR, cursor.packed());
    }

    /// Where the next bytes are read to.
    pub(super) fn input(&mut self) -> &mut [u8] {
        &mut self.memory.bytes()[INPUT]
    }

    /// A request of the next line is about to be processed: it is begun as soon as its slot is not free.
    pub(super) fn is_next(&mut self, slot: Slot) {
        self.set_head(NEXT, slot.0 as u64);
        let cursor = self.cursor();
        self.set_cursor(Cursor { is_begun: true, ..cursor });
    }

    /// The next line, which is as long as this, was processed.
    pub(super) fn taken(&mut self, length: usize) {
        let cursor = self.cursor();
        let taken = cursor.taken + length;
        self.set_cursor(Cursor { taken, is_begun: false, is_cut: false, ..cursor });
    }

    /// The whole lines among these bytes that were read are taken. What is left, or so much of a line that is too long, is kept.
    pub(super) fn keep_rest(&mut self, read: usize, cut: Option<usize>) {
        let (before, read) = (self.cursor(), read.min(INPUT.len()));
        if let Some(kept) = cut.filter(|_| before.taken == 0) {
            self.set_cursor(Cursor { tail: kept.min(before.tail), is_moved: true, is_cut: true, ..before });
        } else if before.taken >= before.tail {
            // The rest is in the input alone, so nothing is lost while the tail is overwritten.
            let rest = INPUT.start + read.min(before.taken - before.tail)..INPUT.start + read;
            let tail = rest.len();
            self.memory.bytes().copy_within(rest, TAIL.start);
            self.set_cursor(Cursor { tail, taken: 0, is_moved: true, ..before });
        } else {
            self.append(0, read);
            self.close_gap();
        }
        self.memory.bytes()[INPUT][..read].fill(0);
        let after = self.cursor();
        self.set_cursor(Cursor { is_moved: false, ..after });
        if before.tail > KEPT_TAIL && after.tail <= KEPT_TAIL {
            self.memory.give_back(TAIL.start + KEPT_TAIL..TAIL.end);
        }
    }

    /// Adds a part of the input to the tail.
    fn append(&mut self, from: usize, to: usize) {
        let cursor = self.cursor();
        let length = (to - from).min(TAIL.len() - cursor.tail);
        let from = INPUT.start + from;
        self.memory.bytes().copy_within(from..from + length, TAIL.start + cursor.tail);
        self.set_cursor(Cursor { tail: cursor.tail + length, is_moved: true, ..cursor });
    }

    /// Moves what is not taken to the beginning of the tail, unless it would overwrite itself.
    fn close_gap(&mut self) {
        let cursor = self.cursor();
        let rest = cursor.tail - cursor.taken.min(cursor.tail);
        if cursor.taken > 0 && rest <= cursor.taken {
            let from = TAIL.start + cursor.tail - rest;
            self.memory.bytes().copy_within(from..from + rest, TAIL.start);
            self.set_cursor(Cursor { tail: rest, taken: 0, ..cursor });
        }
    }

    /// What the process before read and did not take, and whether only the beginning of its first line is known. It is in the tail
    /// then.
    pub(super) fn unread(&mut self) -> (Vec<u8>, bool) {
        let cursor = self.cursor();
        if !cursor.is_moved {
            let input = &self.memory.bytes()[INPUT];
            let read = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
            // What follows a gap is of use from the next line on.
            let is_of_next = |byte: &u8| !cursor.is_cut || *byte == b'\n';
            let from = input[..read].iter().position(is_of_next).unwrap_or(read);
            self.append(from, read);
        }
        self.memory.bytes()[INPUT].fill(0);
        let cursor = self.cursor();
        self.set_cursor(Cursor { is_moved: false, ..cursor });
        if cursor.is_begun {
            let slot = usize::try_from(self.head(NEXT)).unwrap_or_default();
            if self.slot(slot)[KIND] == FREE {
                self.set_cursor(Cursor { is_begun: false, is_moved: false, ..cursor });
            } else {
                let rest = &self.memory.bytes()[TAIL][cursor.taken.min(cursor.tail)..cursor.tail];
                let line = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
                self.taken(line);
            }
        }
        let cursor = self.cursor();
        (self.memory.bytes()[TAIL][cursor.taken.min(cursor.tail)..cursor.tail].to_vec(), cursor.is_cut)
    }

    pub(super) fn head(&mut self, field: usize) -> u64 {
        let bytes = self.memory.bytes()[field * 8..][..8].try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    }

    pub(super) fn set_head(&mut self, field: usize, value: u64) {
        // What reads this after a kill finds what was stored before, and nothing of what is stored after.
        compiler_fence(Ordering::SeqCst);
        self.memory.bytes()[field * 8..][..8].copy_from_slice(&value.to_le_bytes());
        compiler_fence(Ordering::SeqCst);
    }

    /// The memory, for the process that holds it.
    pub fn into_file(self) -> io::Result<std::os::fd::OwnedFd> {
        self.memory.file().try_clone_to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As after a kill: what is in the memory alone.
    fn killed(record: Record) -> Record {
        Record::of(record.into_file().unwrap()).unwrap()
    }

    fn unread(record: Record) -> String {
        String::from_utf8(killed(record).take_over().0.unread).unwrap()
    }

    fn read(record: &mut Record, bytes: &[u8]) {
        record.input()[..bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn what_was_read_and_not_taken_is_read_again() {
        let mut record = Record::new().unwrap();
        read(&mut record, b"one\nt");
        record.taken(4);
        record.keep_rest(5, None);
        read(&mut record, b"wo\nthree\nx");
        record.taken(4);
        let mut record = killed(record);
        assert_eq!(record.take_over().0.unread, b"three\nx");
        record.taken(6);
        let mut record = killed(record);
        assert_eq!(record.take_over().0.unread, b"x");
        record.keep_rest(0, None);
        read(&mut record, b"y\nz");
        record.taken(3);
        record.keep_rest(3, None);
        assert_eq!(unread(record), "z");
    }

    #[test]
    fn a_line_whose_request_is_begun_is_not_read_again_and_its_repetition_is() {
        let mut record = Record::new().unwrap();
        read(&mut record, b"a 1\na 1\n");
        let slot = record.begin("1\ta").unwrap();
        record.answered(slot, 0);
        let mut record = killed(record);
        let (left, open) = record.take_over();
        assert_eq!((left.unread, open.len()), (b"a 1\n".to_vec(), 0), "the same id, another request");
        record.begin("1\ta").unwrap();
        record.taken(4);
        assert_eq!(unread(record), "");
    }

    #[test]
    fn a_request_that_was_about_to_be_begun_is_read_again() {
        let mut record = Record::new().unwrap();
        read(&mut record, b"a 1\n");
        let slot = record.begin("1\ta").unwrap();
        // As before the last store.
        record.slot(slot.0)[KIND] = FREE;
        assert_eq!(unread(record), "a 1\n");
    }

    #[test]
    fn the_beginning_of_a_line_is_not_taken_for_the_whole() {
        let mut record = Record::new().unwrap();
        read(&mut record, b"beginning");
        record.keep_rest(9, None);
        read(&mut record, b"middle");
        record.keep_rest(6, Some(5));
        read(&mut record, b"end\nnext");
        let mut record = killed(record);
        let (left, _) = record.take_over();
        assert_eq!((left.is_cut, left.unread), (true, b"begin\nnext".to_vec()));
        record.taken(6);
        let (left, _) = killed(record).take_over();
        assert_eq!((left.is_cut, left.unread), (false, b"next".to_vec()));
    }

    #[test]
    fn a_long_line_is_kept_whole_and_its_memory_is_given_back() {
        let resident = |record: &mut Record| rustix::fs::fstat(record.memory.file()).unwrap().st_blocks / 2;
        let mut record = Record::new().unwrap();
        let line: Vec<u8> = (0..3 << 20).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
        for chunk in line.chunks(INPUT.len()) {
            read(&mut record, chunk);
            record.keep_rest(chunk.len(), None);
        }
        let mut record = killed(record);
        assert_eq!(record.take_over().0.unread, line);
        assert!(resident(&mut record) > 3000);
        read(&mut record, b"\nnext");
        record.taken(line.len() + 1);
        record.keep_rest(5, None);
        assert!(resident(&mut record) < 2500);
        assert_eq!(unread(record), "next");
    }

    #[test]
    fn nothing_is_read_twice_when_it_is_killed_while_it_records() {
        let mut record = Record::new().unwrap();
        read(&mut record, b"one\nt");
        record.taken(4);
        record.keep_rest(5, None);
        // As after the first half of it.
        read(&mut record, b"one\nt");
        let cursor = record.cursor();
        record.set_cursor(Cursor { is_moved: true, ..cursor });
        assert_eq!(unread(record), "t");
    }

    #[test]
    fn a_cursor_is_read_as_it_was_packed() {
        let cursor = Cursor { tail: TAIL.len(), taken: TAIL.len() + 7, is_moved: true, is_begun: false, is_cut: true };
        assert_eq!(Cursor::of(cursor.packed()), cursor);
        assert_eq!(Cursor::of(0), Cursor::default());
    }
}
