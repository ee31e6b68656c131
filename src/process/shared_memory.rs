//! Memory that outlives the process that writes it: another process holds it open, and passes it to the next one.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::slice;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// What makes access to the mapping safe: no process can shorten the file below it.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A file without a name, mapped whole. Only one process uses it at a time; the ones that hold it open neither read nor
/// write it.
pub struct SharedMemory {
    file: OwnedFd,
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and access needs a reference to it as with any other buffer.
#[expect(unsafe_code, reason = "a mapping is not bound to a thread; argued above")]
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// New memory of this length, all zeros.
    pub fn new(length: usize) -> io::Result<Self> {
        let file = memfd_create("hostler-session", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, length as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        Self::map(file, length)
    }

    /// Memory that another process began, if it has this length and can never be shortened.
    pub fn of(file: OwnedFd, length: usize) -> io::Result<Self> {
        let is_whole = usize::try_from(fstat(&file)?.st_size).is_ok_and(|size| size == length);
        if !is_whole || !fcntl_get_seals(&file)?.contains(SEALS) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not the memory of a session"));
        }
        Self::map(file, length)
    }

    fn map(file: OwnedFd, length: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, of a file that is as long as the mapping and, by its seals, stays so.
        #[expect(unsafe_code, reason = "a mapping; argued above")]
        let start = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0)? };
        Ok(Self { file, start: start.cast(), length })
    }

    /// The file, to be passed on.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Gives whole pages back to the system; they are zeros then.
    pub fn give_back(&mut self, range: Range<usize>) {
        let (offset, length) = (range.start as u64, range.len() as u64);
        // They only take memory if that is refused.
        let _ = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length);
    }

    /// All bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length` bytes long, initialised by the kernel, and lives as long as this value. While this
        // process has it, the process that holds the file open does not touch it; one that did would only spoil its own
        // session, since every length and index that is read from here is checked.
        #[expect(unsafe_code, reason = "a view of the mapping; argued above")]
        unsafe {
            slice::from_raw_parts_mut(self.start, self.length)
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more: every view borrows this value.
        #[expect(unsafe_code, reason = "the end of the mapping; argued above")]
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_process_wrote_the_next_one_reads() {
        let mut one = SharedMemory::new(8192).unwrap();
        one.bytes()[8191] = 7;
        let passed = one.file().try_clone_to_owned().unwrap();
        drop(one);
        assert_eq!(SharedMemory::of(passed, 8192).unwrap().bytes()[8191], 7);
    }

    #[test]
    fn a_file_that_could_be_shortened_is_refused() {
        let file = || memfd_create("x", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        let open = file();
        ftruncate(&open, 4096).unwrap();
        assert!(SharedMemory::of(open, 4096).is_err(), "no seals");
        let small = SharedMemory::new(4096).unwrap();
        assert!(SharedMemory::of(small.file().try_clone_to_owned().unwrap(), 8192).is_err(), "too short");
        assert!(SharedMemory::of(tempfile::tempfile().unwrap().into(), 4096).is_err(), "a file on a disk");
    }
}
