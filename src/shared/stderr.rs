//! Standard error of an attached process, which has one thread: a reader that does not read must not keep it from passing
//! signals on.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::telemetry;

/// The most bytes that are kept. Further lines are dropped and counted.
const MOST: usize = 1 << 20;
/// So many bytes a pipe takes without blocking when it is ready.
const PART: usize = 4096;

/// Lines that were not written yet.
#[derive(Debug, Default)]
pub struct Stderr {
    waiting: Vec<u8>,
    lost: usize,
}

impl Stderr {
    /// Adds whole lines.
    pub fn add(&mut self, text: &str) {
        // After a dropped line, all are until there is room again, so that there is one gap with one notice.
        if self.lost > 0 || (!self.waiting.is_empty() && self.waiting.len() + text.len() > MOST) {
            self.lost += text.lines().count();
        } else {
            self.waiting.extend_from_slice(text.as_bytes());
        }
    }

    /// What to wait for, if there is something to write.
    pub fn awaited(&self) -> Option<BorrowedFd<'static>> {
        (!self.waiting.is_empty()).then(rustix::stdio::stderr)
    }

    /// Writes what is taken at once. Call it when standard error is ready.
    pub fn write(&mut self) {
        let part = self.waiting.len().min(PART);
        match rustix::io::write(rustix::stdio::stderr(), &self.waiting[..part]) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // It is closed, or its disk is full; the error cannot be reported.
            Err(_) => (self.waiting, self.lost) = (Vec::new(), 0),
        }
        if self.waiting.is_empty() && self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            self.waiting = telemetry::dropped(lost).into_bytes();
        }
    }

    /// Writes what is left, as long as it is read, at most this long.
    pub fn flush(&mut self, limit: Duration) -> io::Result<()> {
        let until = Instant::now() + limit;
        while let Some(stderr) = self.awaited() {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).unwrap_or_default();
            if poll(&mut [PollFd::from_borrowed_fd(stderr, PollFlags::OUT)], Some(&left))? == 0 {
                break;
            }
            self.write();
        }
        Ok(())
    }
}
