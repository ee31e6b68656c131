//! Notifications during a call: progress, if the client asked for it, and log messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use serde_json::{Value, json};

use super::message;
use crate::process::Outbox;
use crate::protocol::ProgressNote;
use crate::worker::LogLine;

/// The interval of notifications while a worker is being started: clients give up after a minute of silence.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Unread bytes beyond which notifications are dropped.
const MAX_UNREAD_NOTES: usize = 4 << 20;

/// Writes the notifications of one call.
pub(super) struct Notifier(Arc<Shared>);

struct Shared {
    outbox: Outbox,
    token: Option<ProgressToken>,
    level: Option<LoggingLevel>,
    tool: String,
    progress: Mutex<Progress>,
    /// Notifications dropped because the client does not read.
    dropped: AtomicUsize,
}

#[derive(Default)]
struct Progress {
    last: f64,
    /// The current preparation.
    starting: Option<String>,
    has_heartbeat: bool,
}

impl Notifier {
    /// `None` if the client asked for neither progress nor logs.
    pub fn new(outbox: Outbox, token: Option<ProgressToken>, level: Option<LoggingLevel>, tool: &str) -> Option<Self> {
        (token.is_some() || level.is_some()).then(|| {
            let (progress, dropped) = (Mutex::default(), AtomicUsize::new(0));
            Self(Arc::new(Shared { outbox, token, level, tool: tool.to_owned(), progress, dropped }))
        })
    }

    pub fn note(&self, text: &str) {
        if self.0.token.is_none() {
            return;
        }
        self.0.say(text.to_owned());
        let mut progress = self.0.progress.lock();
        progress.starting = Some(text.to_owned());
        if !std::mem::replace(&mut progress.has_heartbeat, true) {
            tokio::spawn(beat(Arc::downgrade(&self.0)));
        }
    }

    /// What the last note announced is over.
    pub fn goes_on(&self) {
        self.0.progress.lock().starting = None;
    }

    pub fn progress(&self, note: &ProgressNote) {
        let value = {
            let mut progress = self.0.progress.lock();
            progress.starting = None;
            // MCP requires progress to increase, whatever a tool reports; the total stays the tool's.
            progress.last = if note.progress > progress.last { note.progress } else { progress.last + STEP };
            progress.last
        };
        self.0.send_progress(value, note.total, note.message.clone());
    }

    pub fn log(&self, line: &LogLine) {
        if self.0.level.is_none_or(|least| rank(level(&line.level)) < rank(least)) {
            return;
        }
        let mut data = line.fields.clone();
        data.insert("message".to_owned(), line.message.clone().into());
        data.insert("tool".to_owned(), Value::from(self.0.tool.as_str()));
        let params = LoggingMessageNotificationParam::new(level(&line.level), json!(data)).with_logger(&self.0.tool);
        self.0.send("notifications/message", &params);
    }
}

/// The smallest increase of progress.
const STEP: f64 = 0.001;

impl Shared {
    fn say(&self, text: String) {
        let value = {
            let mut progress = self.progress.lock();
            progress.last += STEP;
            progress.last
        };
        self.send_progress(value, None, Some(text));
    }

    fn send_progress(&self, value: f64, total: Option<f64>, text: Option<String>) {
        let Some(token) = self.token.clone() else { return };
        let mut params = ProgressNotificationParam::new(token, value);
        params.total = total;
        params.message = text;
        self.send("notifications/progress", &params);
    }

    fn send(&self, method: &str, params: &impl serde::Serialize) {
        if self.outbox.waiting() > MAX_UNREAD_NOTES {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            self.outbox.send(&message::notification(method, params));
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(tool = self.tool, dropped, "notifications dropped: the client does not read");
        }
    }
}

/// Repeats the last note until the tool runs or the call has ended.
async fn beat(call: std::sync::Weak<Shared>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let Some(call) = call.upgrade() else { return };
        let mut progress = call.progress.lock();
        let Some(text) = progress.starting.clone() else {
            progress.has_heartbeat = false;
            return;
        };
        drop(progress);
        call.say(format!("{text} (still working)"));
    }
}

fn level(word: &str) -> LoggingLevel {
    match word {
        "trace" | "debug" => LoggingLevel::Debug,
        "notice" => LoggingLevel::Notice,
        "warn" | "warning" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        "critical" | "fatal" => LoggingLevel::Critical,
        _ => LoggingLevel::Info,
    }
}

fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_start_is_heard_of_every_ten_seconds_until_the_tool_runs() {
        let (ours, client) = tokio::io::duplex(1 << 16);
        let outbox = Outbox::new(Box::new(ours));
        let notifier = Notifier::new(outbox, Some(ProgressToken(NumberOrString::Number(1))), None, "a.b").unwrap();
        let mut lines = BufReader::new(client).lines();
        notifier.note("building");
        let mut last = 0.0;
        for _ in 0..3 {
            let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            assert!(line["params"]["progress"].as_f64().unwrap() > last, "{line}");
            last = line["params"]["progress"].as_f64().unwrap();
            assert!(line["params"]["message"].as_str().unwrap().starts_with("building"), "{line}");
        }
        notifier.note("a is ready");
        notifier.goes_on();
        assert!(lines.next_line().await.unwrap().unwrap().contains("is ready"));
        let silence = tokio::time::timeout(Duration::from_hours(1), lines.next_line()).await;
        assert!(silence.is_err(), "{silence:?}");
    }
}
