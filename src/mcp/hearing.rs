//! What a client hears while its call is under way: progress, where it asked for it, and log messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProgressToken, ServerNotification,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::outbox::Outbox;
use crate::pool::Listener;
use crate::protocol::ProgressNote;
use crate::worker::LogLine;

/// Clients give up after a minute of silence; while a worker is being started they hear something this often.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How long an answer waits for what was said before it.
const PATIENCE: Duration = Duration::from_millis(100);

/// How much may wait to be told: notes of one call, and unread bytes of all of them.
const MOST_OPEN: usize = 1000;
const MOST_UNREAD: usize = 4 << 20;

enum Heard {
    Note(String),
    Progress(ProgressNote),
    Log(LogLine),
    /// Everything before this has been told; nothing comes after it.
    Over(oneshot::Sender<()>),
}

/// Passes on what happens. Sending is another task's work, because hearing must not wait.
pub(super) struct Hearing {
    queue: mpsc::Sender<Heard>,
    outbox: Outbox,
    /// What nobody will be told, because the client does not read.
    dropped: Arc<AtomicUsize>,
    wants_progress: bool,
    log_level: Option<LoggingLevel>,
}

impl Hearing {
    /// Somebody who hears, for a client that asked for progress or for logs; `None` for one that asked for neither.
    pub fn new(
        peer: Peer<RoleServer>,
        token: Option<ProgressToken>,
        log_level: Option<LoggingLevel>,
        tool: String,
        outbox: Outbox,
    ) -> Option<Arc<Self>> {
        let wants_progress = token.is_some();
        if !wants_progress && log_level.is_none() {
            return None;
        }
        let (queue, heard) = mpsc::channel(MOST_OPEN);
        let dropped = Arc::<AtomicUsize>::default();
        let teller = Teller { peer, token, tool, last: 0.0, dropped: Arc::clone(&dropped) };
        tokio::spawn(teller.run(heard));
        Some(Arc::new(Self { queue, outbox, dropped, wants_progress, log_level }))
    }

    /// Waits until all that was heard has been told: a client drops what reaches it after the answer. A client that
    /// does not read, or is gone, does not hold up the answer for long.
    pub async fn told(&self) {
        let (over, told) = oneshot::channel();
        let telling = async {
            if self.queue.send(Heard::Over(over)).await.is_ok() {
                let _ = told.await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, telling).await;
    }

    /// Passes something on, unless more than a client can read waits to be told already.
    fn hear(&self, heard: Heard) {
        if self.outbox.waiting() > MOST_UNREAD || self.queue.try_send(heard).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Listener for Hearing {
    fn note(&self, text: &str) {
        if self.wants_progress {
            self.hear(Heard::Note(text.to_owned()));
        }
    }

    fn progress(&self, note: &ProgressNote) {
        if self.wants_progress {
            self.hear(Heard::Progress(note.clone()));
        }
    }

    fn log(&self, line: &LogLine) {
        if self.log_level.is_some_and(|least| rank(level(&line.level)) >= rank(least)) {
            self.hear(Heard::Log(line.clone()));
        }
    }
}

struct Teller {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    tool: String,
    last: f64,
    dropped: Arc<AtomicUsize>,
}

impl Teller {
    async fn run(mut self, mut heard: mpsc::Receiver<Heard>) {
        let mut starting: Option<String> = None;
        loop {
            let next = tokio::time::timeout(HEARTBEAT, heard.recv()).await;
            match next {
                Ok(Some(Heard::Note(text))) => {
                    self.progress(self.last + 0.001, None, Some(text.clone())).await;
                    starting = (!text.ends_with(READY)).then_some(text);
                }
                Ok(Some(Heard::Progress(note))) => {
                    starting = None;
                    // Progress must grow, whatever a tool says; the total stays the tool's.
                    let value = if note.progress > self.last { note.progress } else { self.last + 0.001 };
                    self.progress(value, note.total, note.message).await;
                }
                Ok(Some(Heard::Log(line))) => self.log(line).await,
                Ok(Some(Heard::Over(told))) => {
                    let dropped = self.dropped.load(Ordering::Relaxed);
                    if dropped > 0 {
                        tracing::warn!(tool = self.tool, dropped, "the client did not read what a call had to say");
                    }
                    let _ = told.send(());
                    return;
                }
                Ok(None) => return,
                Err(_) => {
                    if let Some(text) = &starting {
                        self.progress(self.last + 0.001, None, Some(format!("{text} (still at it)"))).await;
                    }
                }
            }
        }
    }

    async fn progress(&mut self, value: f64, total: Option<f64>, message: Option<String>) {
        let Some(token) = self.token.clone() else { return };
        self.last = value;
        let mut note = ProgressNotificationParam::new(token, value);
        note.total = total;
        note.message = message;
        let _ = self.peer.notify_progress(note).await;
    }

    async fn log(&self, line: LogLine) {
        let mut data = line.fields;
        data.insert("message".to_owned(), line.message.into());
        data.insert("tool".to_owned(), Value::from(self.tool.as_str()));
        let params = LoggingMessageNotificationParam::new(level(&line.level), json!(data)).with_logger(&self.tool);
        let note = ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(params));
        let _ = self.peer.send_notification(note).await;
    }
}

/// How the last note before the tool itself runs ends.
pub(super) const READY: &str = "is ready";

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

/// The level a client asked for, kept for as long as its connection.
#[derive(Debug, Default)]
pub(super) struct AskedLevel(Mutex<Option<LoggingLevel>>);

impl AskedLevel {
    pub fn set(&self, level: LoggingLevel) {
        *self.0.lock() = Some(level);
    }

    pub fn get(&self) -> Option<LoggingLevel> {
        *self.0.lock()
    }
}
