//! A worker's standard error, drained always: structured log lines, stacks, and whatever else is written there.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::news::{LogLine, News, NewsSender};
use super::stack::Stack;

/// The last of what was written; shown when the worker dies.
#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
}

const TAIL_BYTES: usize = 4 * 1024;
const LINE_BYTES: usize = 64 * 1024;

impl Tail {
    pub(super) fn push(&mut self, line: &str) {
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
        while self.bytes > TAIL_BYTES && self.lines.len() > 1 {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }

    /// The tail as text; `None` when nothing was written.
    pub fn text(&self) -> Option<String> {
        let joined = self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let cut = joined.len().saturating_sub(TAIL_BYTES);
        let start = (cut..=joined.len()).find(|at| joined.is_char_boundary(*at)).unwrap_or(0);
        (!joined.is_empty()).then(|| joined[start..].to_owned())
    }
}

/// Reads standard error to its end.
pub async fn drain(pipe: impl AsyncRead + Unpin, news: NewsSender, tail: Arc<Mutex<Tail>>, stack: Arc<Mutex<Stack>>) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        let Ok(chunk) = reader.fill_buf().await else { return };
        if chunk.is_empty() {
            break;
        }
        // A line without end is passed on in pieces, so that it cannot fill memory.
        let end = chunk.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(chunk.len());
        line.extend_from_slice(&chunk[..taken]);
        reader.consume(taken);
        if end.is_some() || line.len() >= LINE_BYTES {
            take(&line, &news, &tail, &stack);
            line.clear();
        }
    }
    if !line.is_empty() {
        take(&line, &news, &tail, &stack);
    }
}

fn take(line: &[u8], news: &NewsSender, tail: &Mutex<Tail>, stack: &Mutex<Stack>) {
    let text = String::from_utf8_lossy(line);
    let bare = text.trim_end_matches(['\n', '\r']);
    if let Some(log) = parse_log(bare) {
        news(News::Log(log));
    } else if !stack.lock().take_line(bare) {
        tail.lock().push(bare);
        news(News::Stderr(text.into_owned()));
    }
}

/// A JSON object on a line of its own is a log line, ours or any structured logger's.
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
    fn structured_lines_are_logs_and_the_rest_is_output() {
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
            tail.push(&format!("line {number}"));
        }
        let text = tail.text().unwrap();
        assert!(text.ends_with("line 9999") && text.len() <= TAIL_BYTES);
        tail.push(&"é".repeat(TAIL_BYTES));
        assert!(tail.text().unwrap().len() <= TAIL_BYTES);
    }
}
