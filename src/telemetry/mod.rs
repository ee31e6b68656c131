//! Logs. They always go to standard error: standard output belongs to answers and protocols. A thread of its own writes them, so
//! that a slow reader blocks no caller.

mod audience;
mod format;
mod spans;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::audience::Levels;
pub use self::audience::{Audience, carried, carry, spawn};
use self::format::Formats;
pub use self::format::LogFormat;
pub use self::spans::{Collector, Span, SpanExport, SpanExporter, Value, flush_spans, flush_unused_spans, span_counts};

/// The time since 1970, for reports alone: the clock may be set.
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A time in milliseconds since 1970, as RFC 3339 writes it.
pub fn rfc3339(ms: u64) -> String {
    /// The end of the year 9999, the last that can be written.
    const LAST: u64 = 253_402_300_799_999;
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms.min(LAST))).to_string()
}

/// The same in milliseconds.
pub fn unix_ms() -> u64 {
    u64::try_from(unix_time().as_millis()).unwrap_or_default()
}

/// Starts logging at a level: `warn`, `info`, `debug`, or a filter such as `hostler=debug,tool=info`. An invalid filter
/// is reported and replaced by `warn`. From here on a thread writes the log, so that a slow reader of stderr blocks no
/// caller.
pub fn start(level: &str, format: LogFormat) {
    start_thread();
    let (targets, unusable) = targets(level);
    let lines = fmt::layer().with_writer(|| Lines).with_ansi(io::stderr().is_terminal());
    let lines = lines.event_format(Formats::new(format));
    let started = tracing_subscriber::registry().with(Levels(targets)).with(lines).try_init();
    if started.is_ok() && unusable {
        report_unusable(level);
    }
}

/// What a level means, and whether it could not be understood.
fn targets(level: &str) -> (Targets, bool) {
    let filter = if is_understood(level) { level.parse::<Targets>().ok() } else { None };
    let unusable = filter.is_none();
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    // rmcp logs every request at info, which is noise at hostler's levels.
    let filter = if level.contains("rmcp") { filter } else { filter.with_target("rmcp", LevelFilter::ERROR) };
    (filter, unusable)
}

fn report_unusable(level: &str) {
    tracing::warn!(level, "log level not understood; write error, warn, info, debug or trace");
}

/// The level by `-v`, given this often, or by the configuration.
pub fn level(verbose: u8, configured: &str) -> &str {
    match verbose {
        0 => configured,
        1 => "info",
        _ => "debug",
    }
}

/// The subscriber's writer; each write is a whole event.
struct Lines;

impl Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(text);
        match Audience::current() {
            None => say(&line),
            Some(audience) => audience.tell(&line),
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An unknown word would be parsed as a module name, and silence everything else.
fn is_understood(level: &str) -> bool {
    let words = ["off", "error", "warn", "info", "debug", "trace"];
    level.contains(['=', ',']) || words.contains(&level.trim().to_ascii_lowercase().as_str())
}

/// The most bytes that are buffered. Further lines are dropped and counted.
const MOST: usize = 1 << 20;

/// The most bytes of a log in a file before it begins anew; the one before is kept beside it.
const LARGEST_LOG: u64 = 1 << 20;

/// The file that standard error goes to, if it is to be kept small.
static LOG_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Keeps the file that standard error goes to small.
pub fn keep_small(log: &Path) {
    let _ = LOG_FILE.set(log.to_owned());
    hold();
    begin_anew_if_large();
}

/// Puts a large log aside and goes on in a new one. Where that fails, the log grows.
fn begin_anew_if_large() {
    let Some(log) = LOG_FILE.get() else { return };
    let is_large =
        rustix::fs::fstat(rustix::stdio::stderr()).is_ok_and(|stat| stat.st_size.cast_unsigned() > LARGEST_LOG);
    if !is_large || std::fs::rename(log, log.with_extension("log.old")).is_err() {
        return;
    }
    if let Ok(file) = OpenOptions::new().create(true).append(true).mode(0o600).open(log) {
        let _ = rustix::stdio::dup2_stderr(&file);
        hold();
    }
}

/// Marks the log as one in use.
fn hold() {
    let _ = rustix::fs::flock(rustix::stdio::stderr(), rustix::fs::FlockOperation::NonBlockingLockShared);
}

/// The buffer of the writing thread.
static STDERR: StderrWriter = StderrWriter::new();
/// Whether the thread runs.
static HAS_THREAD: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct StderrWriter {
    /// Locked only to append or to take.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: Vec<u8>,
    /// Lines dropped after the buffered ones.
    lost: usize,
    is_writing: bool,
}

/// Starts the thread that writes lines, so that nothing else waits for a reader. Call it after the keeper was started, which requires
/// a single thread. Before that, and if no thread can be started, lines are written directly.
pub fn start_thread() {
    if HAS_THREAD.load(Ordering::Relaxed) {
        return;
    }
    let thread = std::thread::Builder::new().name("standard-error".to_owned());
    let started = thread.spawn(|| {
        loop {
            write(&STDERR.next());
            begin_anew_if_large();
        }
    });
    HAS_THREAD.store(started.is_ok(), Ordering::Relaxed);
}

/// Writes whole lines.
pub fn say(text: &str) {
    if HAS_THREAD.load(Ordering::Relaxed) { STDERR.add(text) } else { write(text.as_bytes()) }
}

/// Waits until the buffer is written, at most this long; returns whether it is.
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
        // Once a line is dropped, all further ones are until the buffer is taken, so that there is one gap with one
        // notice.
        let is_full = !state.waiting.is_empty() && state.waiting.len() + text.len() > MOST;
        if is_full || state.lost > 0 {
            state.lost += text.lines().count();
        } else {
            state.waiting.extend_from_slice(text.as_bytes());
            self.changed.notify_all();
        }
    }

    /// Takes the buffer as soon as it has content. The previously taken bytes count as written.
    fn next(&self) -> Vec<u8> {
        let mut state = self.state.lock();
        state.is_writing = false;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| state.waiting.is_empty());
        state.is_writing = true;
        let mut taken = mem::take(&mut state.waiting);
        match mem::take(&mut state.lost) {
            0 => {}
            lost => taken.extend_from_slice(dropped(lost).as_bytes()),
        }
        taken
    }

    fn flush(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        let is_under_way = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        !self.changed.wait_while_for(&mut state, is_under_way, limit).timed_out()
    }
}

/// Says that lines were dropped.
pub fn dropped(lines: usize) -> String {
    match lines {
        1 => "1 log line was dropped: stderr was not read\n".to_owned(),
        _ => format!("{lines} log lines were dropped: stderr was not read\n"),
    }
}

/// Bypasses Rust's lock on stderr, which a blocked writer would hold while hostler exits.
fn write(mut text: &[u8]) {
    let stderr = rustix::stdio::stderr();
    while !text.is_empty() {
        match rustix::io::write(stderr, text) {
            Ok(count) => text = &text[count..],
            Err(Errno::INTR) => {}
            // Another process that shares the descriptor made it non-blocking.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None);
            }
            // It is closed, or its disk is full; the error cannot be reported.
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
    fn written_lines_arrive_complete_and_in_order() {
        let stderr_writer = StderrWriter::new();
        stderr_writer.add("one\n");
        stderr_writer.add("two\n");
        assert_eq!(text(&stderr_writer.next()), "one\ntwo\n");
        stderr_writer.add("three\n");
        assert_eq!(text(&stderr_writer.next()), "three\n");
    }

    #[test]
    fn dropped_lines_are_counted_at_the_gap() {
        let stderr_writer = StderrWriter::new();
        let long = format!("{}\n", "x".repeat(MOST - 3));
        stderr_writer.add(&long);
        stderr_writer.add("two\nlines\n");
        // This line would fit, but would precede the gap.
        stderr_writer.add("3\n");
        let taken = stderr_writer.next();
        let (before, notice) = taken.split_at(MOST - 2);
        assert_eq!(text(before), long);
        assert_eq!(text(notice), "3 log lines were dropped: stderr was not read\n");
        stderr_writer.add("after\n");
        assert_eq!(text(&stderr_writer.next()), "after\n");
    }

    #[test]
    fn a_flush_waits_for_the_write_up_to_its_limit() {
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
                // The thread ends with the next line, after the flush.
                stderr_writer.next();
            });
            assert!(stderr_writer.flush(Duration::from_secs(20)));
            stderr_writer.add("three\n");
        });
    }
}
