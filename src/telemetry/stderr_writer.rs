//! What is said on standard error, by a thread of its own: whoever speaks never waits for whoever should read.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// So many bytes wait to be read. Beyond them lines are dropped, and counted.
const MOST: usize = 1 << 20;

/// What waits for the one thread that writes.
static STDERR: StderrWriter = StderrWriter::new();
/// Whether there is that thread.
static HAS_THREAD: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct StderrWriter {
    /// Held only to add or to take.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: Vec<u8>,
    /// Lines that did not fit, after what waits.
    lost: usize,
    is_writing: bool,
}

/// Starts the thread. To be called once the keeper has been started, which is done while there is one thread. Before that,
/// and where no thread can be had, everything is written at once.
pub(super) fn start() {
    if HAS_THREAD.load(Ordering::Relaxed) {
        return;
    }
    let thread = std::thread::Builder::new().name("standard-error".to_owned());
    let started = thread.spawn(|| {
        loop {
            write(&STDERR.next());
        }
    });
    HAS_THREAD.store(started.is_ok(), Ordering::Relaxed);
}

/// Says whole lines.
pub fn say(text: &str) {
    if HAS_THREAD.load(Ordering::Relaxed) { STDERR.add(text) } else { write(text.as_bytes()) }
}

/// Waits until everything that was said is written, at most so long; whether it is.
pub fn flush(limit: Duration) -> bool {
    !HAS_THREAD.load(Ordering::Relaxed) || STDERR.flush(limit)
}

impl StderrWriter {
    const fn new() -> Self {
        let state = State { waiting: Vec::new(), lost: 0, is_writing: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn add(&self, text: &str) {
        let mut state = self.state.lock();
        // Once a line is missing, all are until what waits was taken: so the gap is in one place, and told there.
        let is_full = !state.waiting.is_empty() && state.waiting.len() + text.len() > MOST;
        if is_full || state.lost > 0 {
            state.lost += text.lines().count();
        } else {
            state.waiting.extend_from_slice(text.as_bytes());
            self.changed.notify_all();
        }
    }

    /// Takes what waits, as soon as there is something. What was taken before counts as written.
    fn next(&self) -> Vec<u8> {
        let mut state = self.state.lock();
        state.is_writing = false;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| state.waiting.is_empty());
        state.is_writing = true;
        let mut taken = mem::take(&mut state.waiting);
        match mem::take(&mut state.lost) {
            0 => {}
            1 => taken.extend_from_slice(b"1 line of the log was dropped: nobody read standard error\n"),
            lost => {
                let text = format!("{lost} lines of the log were dropped: nobody read standard error\n");
                taken.extend_from_slice(text.as_bytes());
            }
        }
        taken
    }

    fn flush(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        let is_under_way = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        !self.changed.wait_while_for(&mut state, is_under_way, limit).timed_out()
    }
}

/// Writes past Rust's own lock of standard error, which a writer that waits would keep from whoever ends hostler.
fn write(mut text: &[u8]) {
    let stderr = rustix::stdio::stderr();
    while !text.is_empty() {
        match rustix::io::write(stderr, text) {
            Ok(count) => text = &text[count..],
            Err(Errno::INTR) => {}
            // Somebody else who has it made it so.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None);
            }
            // It is closed, or its disk is full: there is nobody to tell.
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_is_read_is_all_there_and_in_order() {
        let stderr_writer = StderrWriter::new();
        stderr_writer.add("one\n");
        stderr_writer.add("two\n");
        assert_eq!(text(&stderr_writer.next()), "one\ntwo\n");
        stderr_writer.add("three\n");
        assert_eq!(text(&stderr_writer.next()), "three\n");
    }

    #[test]
    fn what_does_not_fit_is_counted_where_it_is_missing() {
        let stderr_writer = StderrWriter::new();
        let long = format!("{}\n", "x".repeat(MOST - 3));
        stderr_writer.add(&long);
        stderr_writer.add("two\nlines\n");
        // This would fit, and would stand before what is missing.
        stderr_writer.add("3\n");
        let told = stderr_writer.next();
        let (before, notice) = told.split_at(MOST - 2);
        assert_eq!(text(before), long);
        assert_eq!(text(notice), "3 lines of the log were dropped: nobody read standard error\n");
        stderr_writer.add("after\n");
        assert_eq!(text(&stderr_writer.next()), "after\n");
    }

    #[test]
    fn a_flush_waits_for_what_is_being_written_but_not_for_ever() {
        let stderr_writer = StderrWriter::new();
        assert!(stderr_writer.flush(Duration::ZERO), "nothing was said");
        stderr_writer.add("one\n");
        assert!(!stderr_writer.flush(Duration::from_millis(1)));
        stderr_writer.next();
        assert!(!stderr_writer.flush(Duration::from_millis(1)), "taken and not written");
        std::thread::scope(|scope| {
            scope.spawn(|| stderr_writer.add("two\n"));
            stderr_writer.next();
            scope.spawn(|| {
                // It ends with the next line, which comes after the flush.
                stderr_writer.next();
            });
            assert!(stderr_writer.flush(Duration::from_secs(20)));
            stderr_writer.add("three\n");
        });
    }
}
