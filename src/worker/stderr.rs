//! A worker's standard error, always drained: structured log lines, stacks, and other output.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::ioctl_fionread;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use super::events::{EventSender, LogLine, WorkerEvent};
use super::stack::{Stack, may_begin_a_stack};

/// The end of the output; shown when the worker dies.
#[derive(Debug, Default)]
pub struct Tail(String);

const TAIL_BYTES: usize = 4 * 1024;
/// An endless line is forwarded in pieces of this size, to bound memory.
const LINE_BYTES: usize = 64 * 1024;

impl Tail {
    /// Appends output.
    pub fn push(&mut self, text: &str) {
        self.0.push_str(text);
        if self.0.len() > 2 * TAIL_BYTES {
            self.0.drain(..self.cut());
        }
    }

    /// Where the last kilobytes begin.
    fn cut(&self) -> usize {
        let wanted = self.0.len().saturating_sub(TAIL_BYTES);
        let at = self.0.ceil_char_boundary(wanted);
        // At the end of a word: the rest of a secret would not be recognised as one.
        if at == 0 { 0 } else { self.0[at..].find(char::is_whitespace).map_or(at, |word| at + word) }
    }

    /// The tail as text; `None` if nothing was written.
    pub fn text(&self) -> Option<String> {
        let text = self.0[self.cut()..].trim_end();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// Reads standard error to its end. Text is forwarded at once, even incomplete lines: the worker answers only after its
/// stderr has been read, so all of it belongs to that call.
pub async fn drain(
    mut pipe: impl AsyncRead + Unpin,
    events: EventSender,
    tail: Arc<Mutex<Tail>>,
    stack: Arc<Mutex<Stack>>,
    forwarded: watch::Sender<u64>,
) {
    let mut lines = Lines { pending: Vec::new(), begun: false, events, tail, stack };
    let mut chunk = Vec::with_capacity(16 * 1024);
    while let Ok(1..) = pipe.read_buf(&mut chunk).await {
        lines.feed(&chunk);
        forwarded.send_modify(|count| *count += chunk.len() as u64);
        chunk.clear();
        lines.events.room().await;
    }
    lines.end();
}

/// How much of a pipe has been read, for who waits until what was written is.
pub struct Waiting {
    /// A second descriptor, to check how much is unread.
    pipe: Option<OwnedFd>,
    /// How many bytes have been read and forwarded.
    forwarded: watch::Receiver<u64>,
}

/// How long an answer waits for the output before it, if that is not read.
const LONGEST: Duration = Duration::from_secs(5);

impl Waiting {
    /// Of this pipe, and what counts its bytes.
    pub fn of(pipe: &impl AsFd) -> (Self, watch::Sender<u64>) {
        let (count, forwarded) = watch::channel(0);
        (Self { pipe: pipe.as_fd().try_clone_to_owned().ok(), forwarded }, count)
    }

    /// Waits until the output that was written so far has been forwarded; endless output delays no answer. The shim ensures that itself
    /// before it answers; for other workers, earlier output belongs to the call too.
    pub async fn read(&self) {
        let Some(pipe) = &self.pipe else { return };
        let mut forwarded = self.forwarded.clone();
        let left = || ioctl_fionread(pipe).unwrap_or(0);
        let all = left();
        let all = all + *forwarded.borrow_and_update();
        let is_read =
            async { while left() > 0 && *forwarded.borrow_and_update() < all && forwarded.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(LONGEST, is_read).await;
    }
}

struct Lines {
    /// The bytes of the current line that were not forwarded.
    pending: Vec<u8>,
    /// Whether the beginning of the current line was forwarded as output.
    begun: bool,
    events: EventSender,
    tail: Arc<Mutex<Tail>>,
    stack: Arc<Mutex<Stack>>,
}

impl Lines {
    fn feed(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.line();
            }
        }
        let may_be_more = !self.begun && self.pending.len() < LINE_BYTES && self.may_be_special();
        if !may_be_more {
            self.pass_on(complete(&self.pending));
            self.begun = self.begun || !self.pending.is_empty();
        }
    }

    /// Whether the current line may become a log line or part of a stack.
    fn may_be_special(&self) -> bool {
        self.pending.first() == Some(&b'{') || may_begin_a_stack(&self.pending) || self.stack.lock().is_open()
    }

    fn line(&mut self) {
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        let bare = text.trim_end_matches(['\n', '\r']);
        let begun = std::mem::take(&mut self.begun);
        if begun {
            self.pass_on(self.pending.len());
        } else if let Some(log) = parse_log(bare) {
            self.events.send(WorkerEvent::Log(log));
        } else if !self.stack.lock().take_line(bare) {
            self.pass_on(self.pending.len());
        }
        self.pending.clear();
        self.begun = false;
    }

    /// Forwards the first bytes of the current line as output.
    fn pass_on(&mut self, length: usize) {
        if length > 0 {
            let text = String::from_utf8_lossy(&self.pending[..length]).into_owned();
            self.pending.drain(..length);
            self.begun = true;
            self.tail.lock().push(&text);
            self.events.send(WorkerEvent::Stderr(text));
        }
    }

    fn end(&mut self) {
        if !self.pending.is_empty() {
            self.line();
        }
    }
}

/// The number of bytes in whole characters: a character may arrive in two pieces.
fn complete(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Parses a JSON object on a line of its own as a log line.
fn parse_log(line: &str) -> Option<LogLine> {
    if !line.starts_with('{') || !line.ends_with('}') {
        return None;
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return None };
    let mut word =
        |names: &[&str]| names.iter().find_map(|name| fields.shift_remove(*name)?.as_str().map(str::to_owned));
    let message = word(&["message", "msg", "event"])?;
    let level = word(&["level", "levelname", "severity"]).unwrap_or_else(|| "info".to_owned()).to_ascii_lowercase();
    fields.shift_remove("hostler");
    Some(LogLine { level, message, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_lines_are_logs_and_others_are_output() {
        let log = parse_log(r#"{"hostler":"log","level":"WARNING","message":"slow","fields":{"n":1},"call":"c"}"#);
        let log = log.unwrap();
        assert_eq!((log.level.as_str(), log.message.as_str()), ("warning", "slow"));
        assert_eq!(log.fields.keys().collect::<Vec<_>>(), ["fields", "call"]);
        for line in ["plain", "{not json}", r#"{"no":"message"}"#, "[1]", ""] {
            assert_eq!(parse_log(line), None, "{line}");
        }
    }

    #[test]
    fn the_tail_keeps_the_end_and_stays_small() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(&format!("line {number}\n"));
        }
        let text = tail.text().unwrap();
        assert!(text.ends_with("line 9999") && text.len() <= TAIL_BYTES);
        let mut words = Tail::default();
        words.push(&format!("some secret {}", "b".repeat(TAIL_BYTES - 4)));
        assert_eq!(words.text().unwrap(), format!(" {}", "b".repeat(TAIL_BYTES - 4)), "no half of a word");
        tail.push(&"é".repeat(TAIL_BYTES));
        assert!(tail.text().unwrap().len() <= TAIL_BYTES && tail.0.len() <= 4 * TAIL_BYTES);
    }

    /// The events for stderr in these pieces.
    fn heard(pieces: &[&[u8]]) -> Vec<String> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        let events = move |events| {
            into.lock().push(match events {
                WorkerEvent::Stderr(text) => text,
                WorkerEvent::Log(line) => format!("log: {}", line.message),
                other => format!("{other:?}"),
            });
        };
        let events = EventSender::new(events, Arc::default());
        let mut lines =
            Lines { pending: Vec::new(), begun: false, events, tail: Arc::default(), stack: Arc::default() };
        for piece in pieces {
            lines.feed(piece);
        }
        lines.end();
        let heard = heard.lock();
        heard.clone()
    }

    /// However long that takes, within reason: on a busy machine, milliseconds say nothing.
    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_all_output_before_it() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        use tokio::net::unix::pipe::Receiver;

        use super::super::events::Backpressure;

        let (reader, writer) = std::io::pipe().unwrap();
        let flow = Arc::new(Backpressure::default());
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        let count = move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let events = EventSender::new(count, Arc::clone(&flow));
        let (waiting, forwarded) = Waiting::of(&reader);
        let tail = Arc::<Mutex<Tail>>::default();
        let text = "aside\n".repeat(8000);
        std::io::Write::write_all(&mut &writer, text.as_bytes()).unwrap();
        let pipe = Receiver::from_file(std::os::fd::OwnedFd::from(reader).into()).unwrap();
        let drained = tokio::spawn(drain(pipe, events, Arc::clone(&tail), Arc::default(), forwarded.clone()));
        // The owner is busy: nothing of what was sent is processed.
        let second = Duration::from_secs(1);
        assert!(tokio::time::timeout(second, waiting.read()).await.is_err(), "some of it is unread");
        let taking = tokio::spawn(async move {
            let mut taken = 0;
            loop {
                while taken < sent.load(Ordering::Relaxed) {
                    flow.took();
                    taken += 1;
                }
                tokio::task::yield_now().await;
            }
        });
        waiting.read().await;
        assert_eq!(*forwarded.borrow(), text.len() as u64);
        taking.abort();
        drop(writer);
        drained.abort();
    }

    #[test]
    fn text_is_forwarded_before_its_line_ends() {
        assert_eq!(heard(&[b"no newline"]), ["no newline"]);
        assert_eq!(heard(&[b"first", b" and\nsecond\n"]), ["first", " and\n", "second\n"]);
        assert_eq!(heard(&[b"x {", b"\"message\":\"m\"}\n"]), ["x {", "\"message\":\"m\"}\n"]);
        assert_eq!(heard(&[b"x", b"{\"message\":\"m\"}\n"]), ["x", "{\"message\":\"m\"}\n"]);
        assert_eq!(heard(&["aé".as_bytes()[..2].as_ref(), &"é".as_bytes()[1..]]), ["a", "é"]);
    }

    #[test]
    fn a_possible_log_line_or_stack_waits_for_its_end() {
        assert_eq!(heard(&[b"{\"message\":", b"\"m\"}\n"]), ["log: m"]);
        assert_eq!(heard(&[b"{\"message\":"]), ["{\"message\":"]);
        let dump: &[&[u8]] =
            &[b"Current thr", b"ead 0x1 (most recent call first):\n  Fi", b"le \"a.py\", line 1 in f\nmore"];
        assert_eq!(heard(dump), ["more"]);
        assert_eq!(heard(&[b"Current", b" affairs\n"]), ["Current affairs\n"]);
    }

    #[test]
    fn an_endless_line_does_not_fill_memory() {
        let piece = [b'{'; 16 * 1024];
        let passed: usize = heard(&[&piece[..]; 20]).iter().map(String::len).sum();
        assert_eq!(passed, 20 * piece.len());
    }
}
