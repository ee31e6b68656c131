//! Gives up the memory that a forked process has from the one it is a copy of.
//!
//! The kernel keeps a page for the copy when the original changes it. A process that stays without an exec would hold, over time, all that
//! hostler had in memory when it was forked.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};
use rustix::mm::{Advice, madvise};

/// A line of the listing is longer only if a path is, and that is not looked at.
const LONGEST: usize = 4096;

/// How many mappings are looked at. More only cost time and memory.
const MOST: usize = 256;

/// The memory of this process that has no file and is written to, but for the stack, what belongs to the thread, and the data of programs and
/// libraries. Found and kept without an allocation, for a process with one thread between fork and exec.
pub(super) struct OwnMemory {
    mappings: [(usize, usize); MOST],
    count: usize,
}

impl OwnMemory {
    /// What is around this address is not among it.
    pub fn find(address: usize) -> Self {
        let here = 0_u8;
        // SAFETY: it returns the address of the thread's own error number.
        #[expect(unsafe_code, reason = "the library's own address; argued above")]
        let own = unsafe { libc::__errno_location() };
        let kept = [(&raw const here).addr(), own.addr(), address];
        let mut found = Self { mappings: [(0, 0); MOST], count: 0 };
        let _ = each_mapping(|start, end, is_own_memory| {
            let is_kept = kept.iter().any(|address| (start..end).contains(address));
            if let Some(place) = found.mappings.get_mut(found.count).filter(|_| is_own_memory && !is_kept) {
                *place = (start, end);
                found.count += 1;
            }
        });
        found
    }

    /// Decides whether children get a copy of it, which takes time. One without may make system calls only.
    pub fn share(&self, with_children: bool) {
        self.advise(if with_children { Advice::LinuxDoFork } else { Advice::LinuxDontFork });
    }

    /// Empties it. What was in it must not be used again: for a process that makes system calls from here on.
    pub fn shed(&self) {
        self.advise(Advice::LinuxDontNeed);
    }

    fn advise(&self, advice: Advice) {
        for (start, end) in self.mappings.iter().take(self.count) {
            // SAFETY: this process has one thread, whose stack and own memory are elsewhere. Who asks for it uses nothing else without them.
            #[expect(unsafe_code, reason = "advice on memory of this process; argued above")]
            let _ = unsafe { madvise(std::ptr::without_provenance_mut(*start), end - start, advice) };
        }
    }
}

/// Each mapping of this process: its beginning, its end, and whether it is private memory without a file. Without an allocation.
fn each_mapping(mut meet: impl FnMut(usize, usize, bool)) -> Result<(), Errno> {
    let maps = open(c"/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0; LONGEST];
    let mut line = Line::default();
    loop {
        match read(&maps, &mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => bytes.iter().take(count).for_each(|byte| line.take(*byte, &mut meet)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A line of the listing, as far as it has been read: `7f00-7f10 rw-p 00000000 00:00 0 [heap]`.
#[derive(Default)]
struct Line {
    field: usize,
    start: usize,
    end: usize,
    is_second: bool,
    /// How many of its rights are those of private memory that can be written.
    rights: usize,
    rights_read: usize,
    has_file: bool,
    /// Where the last mapping with a file ended.
    end_of_file: usize,
}

impl Line {
    fn take(&mut self, byte: u8, meet: &mut impl FnMut(usize, usize, bool)) {
        match (self.field, byte) {
            (_, b'\n') => {
                // What follows a file at once is the part of a program's or library's data that begins as zeros.
                let is_own_memory = self.rights == 3 && !self.has_file && self.start != self.end_of_file;
                if self.end > self.start {
                    meet(self.start, self.end, is_own_memory);
                }
                let end_of_file = if self.has_file { self.end } else { self.end_of_file };
                *self = Self { end_of_file, ..Self::default() };
            }
            (..=4, b' ') => self.field += 1,
            (0, b'-') => self.is_second = true,
            (0, digit) => {
                let value = char::from(digit).to_digit(16).unwrap_or(0) as usize;
                let number = if self.is_second { &mut self.end } else { &mut self.start };
                *number = (*number << 4) | value;
            }
            (1, right) => {
                let wanted = [b'r', b'w', 0, b'p'];
                self.rights += usize::from(wanted.get(self.rights_read) == Some(&right));
                self.rights_read += 1;
            }
            // The number of its file.
            (4, digit) => self.has_file |= digit != b'0',
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, usize, bool)> {
        let (mut line, mut found) = (Line::default(), Vec::new());
        text.bytes().for_each(|byte| line.take(byte, &mut |start, end, is_own| found.push((start, end, is_own))));
        found
    }

    #[test]
    fn private_memory_without_a_file_is_told_from_all_else() {
        let text = "\
5600-5700 r-xp 00001000 fe:00 1234                       /usr/bin/host ler
5700-5800 rw-p 00002000 fe:00 1234                       /usr/bin/hostler
5800-5880 rw-p 00000000 00:00 0 
5880-5900 rw-p 00000000 00:00 0                          [heap]
7f0000-7f8000 rw-p 00000000 00:00 0 
7f8000-7f9000 rw-s 00000000 00:01 99                     /memfd:x (deleted)
7f9000-7fa000 ---p 00000000 00:00 0 
7ffe00-7fff00 rw-p 00000000 00:00 0                      [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]
";
        let own: Vec<usize> = found(text).into_iter().filter(|mapping| mapping.2).map(|mapping| mapping.0).collect();
        assert_eq!(own, [0x5880, 0x007f_0000, 0x007f_fe00]);
        assert_eq!(found(text).len(), 9);
        assert_eq!(found(text)[8].1, 0xffff_ffff_ff60_1000);
    }

    #[test]
    fn this_process_has_some() {
        let place = vec![1_u8; 1 << 20];
        let address = place.as_ptr().addr();
        let mut is_found = false;
        each_mapping(|start, end, is_own| is_found |= is_own && (start..end).contains(&address)).unwrap();
        assert!(is_found);
    }
}
