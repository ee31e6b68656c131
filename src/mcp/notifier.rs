//! Notifications during a call: progress, if the client asked for it, and log messages. For a client that does not read, the
//! newest are kept.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId};
use serde_json::{Value, json};

use super::message;
use super::open_requests::OpenRequests;
use crate::process::Outbox;
use crate::protocol::ProgressNote;
use crate::telemetry::spawn;
use crate::worker::LogLine;

/// The interval of notifications while a worker is being started: clients give up after a minute of silence.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Unread bytes beyond which notifications wait.
const MAX_UNREAD_NOTES: usize = 4 << 20;
/// Log messages of one call that wait, in bytes. Beyond it, the oldest are dropped.
const MAX_LATE_LOGS: usize = 64 << 10;

/// Writes the notifications of one call.
pub(super) struct Notifier(Arc<Shared>);

/// Lets notifications through while their request has no answer.
pub(super) struct Gate {
    pub outbox: Outbox,
    pub open: Arc<Mutex<OpenRequests>>,
    pub id: RequestId,
    pub number: u64,
}

impl Gate {
    /// Nothing is answered meanwhile, so the answer follows.
    fn send(&self, lines: &[u8]) {
        let open = self.open.lock();
        if open.has(&self.id, self.number) {
            self.outbox.send(lines);
        }
    }
}

struct Shared {
    gate: Gate,
    token: Option<ProgressToken>,
    level: Option<LoggingLevel>,
    tool: String,
    /// Locked only briefly, as is the next.
    progress: Mutex<Progress>,
    late: Mutex<Late>,
}

/// What waits for the client to read.
#[derive(Default)]
struct Late {
    /// The newest progress.
    progress: Option<Vec<u8>>,
    /// The newest log messages.
    logs: VecDeque<Vec<u8>>,
    has_task: bool,
    /// Notifications that newer ones replaced.
    dropped: usize,
}

impl Late {
    fn keep(&mut self, kind: Kind, line: Vec<u8>) {
        match kind {
            Kind::Progress => self.dropped += usize::from(self.progress.replace(line).is_some()),
            Kind::Log => {
                self.logs.push_back(line);
                while self.logs.len() > 1 && self.logs.iter().map(Vec::len).sum::<usize>() > MAX_LATE_LOGS {
                    self.logs.pop_front();
                    self.dropped += 1;
                }
            }
        }
    }

    /// Everything that waits, oldest first.
    fn take(&mut self) -> Vec<u8> {
        let (logs, progress) = (std::mem::take(&mut self.logs), self.progress.take());
        logs.into_iter().chain(progress).flatten().collect()
    }

    fn is_empty(&self) -> bool {
        self.progress.is_none() && self.logs.is_empty()
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Progress,
    Log,
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
    pub fn new(
        gate: impl FnOnce() -> Gate,
        token: Option<ProgressToken>,
        level: Option<LoggingLevel>,
        tool: &str,
    ) -> Option<Self> {
        (token.is_some() || level.is_some()).then(|| {
            let (progress, late) = (Mutex::default(), Mutex::default());
            Self(Arc::new(Shared { gate: gate(), token, level, tool: tool.to_owned(), progress, late }))
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
            spawn(beat(Arc::downgrade(&self.0)));
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
        self.0.send(Kind::Log, message::notification("notifications/message", &params));
    }

    /// Sends what waits. For the end of a call: nothing follows its answer.
    pub fn flush(&self) {
        let mut late = self.0.late.lock();
        if !late.is_empty() {
            self.0.gate.send(&late.take());
        }
    }
}

/// The smallest increase of progress.
const STEP: f64 = 0.001;

impl Shared {
    fn say(self: &Arc<Self>, text: String) {
        let value = {
            let mut progress = self.progress.lock();
            progress.last += STEP;
            progress.last
        };
        self.send_progress(value, None, Some(text));
    }

    fn send_progress(self: &Arc<Self>, value: f64, total: Option<f64>, text: Option<String>) {
        let Some(token) = self.token.clone() else { return };
        let mut params = ProgressNotificationParam::new(token, value);
        params.total = total;
        params.message = text;
        self.send(Kind::Progress, message::notification("notifications/progress", &params));
    }

    fn send(self: &Arc<Self>, kind: Kind, line: Vec<u8>) {
        let mut late = self.late.lock();
        if late.is_empty() && self.gate.outbox.waiting() <= MAX_UNREAD_NOTES {
            return self.gate.send(&line);
        }
        late.keep(kind, line);
        if !std::mem::replace(&mut late.has_task, true) {
            spawn(send_late(Arc::downgrade(self), self.gate.outbox.clone()));
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let dropped = self.late.get_mut().dropped;
        if dropped > 0 {
            tracing::warn!(tool = self.tool, dropped, "older notifications dropped: the client does not read");
        }
    }
}

/// Sends what waits once the client has read what came before.
async fn send_late(call: Weak<Shared>, outbox: Outbox) {
    outbox.caught_up().await;
    let Some(call) = call.upgrade() else { return };
    let mut late = call.late.lock();
    late.has_task = false;
    call.gate.send(&late.take());
}

/// Repeats the last note until the tool runs or the call has ended.
async fn beat(call: Weak<Shared>) {
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

    fn gate(outbox: Outbox) -> Gate {
        let (mut open, id) = (OpenRequests::default(), RequestId::Number(1));
        let number = open.accept(&id).unwrap();
        Gate { outbox, open: Arc::new(Mutex::new(open)), id, number }
    }

    fn notifier(outbox: Outbox) -> Notifier {
        let token = Some(ProgressToken(NumberOrString::Number(1)));
        Notifier::new(|| gate(outbox), token, Some(LoggingLevel::Debug), "a.b").unwrap()
    }

    fn progress(notifier: &Notifier, number: u32) {
        notifier.progress(&ProgressNote { id: None, progress: f64::from(number), total: None, message: None });
    }

    /// A client that leaves more unread than is queued for it, and its end of the connection.
    fn unread() -> (Outbox, Box<dyn tokio::io::AsyncRead + Unpin>) {
        let (ours, client) = tokio::io::duplex(1 << 16);
        let outbox = Outbox::new(Box::new(ours));
        let line = [vec![b' '; MAX_UNREAD_NOTES + 100], b"\n".to_vec()].concat();
        outbox.send(&line);
        (outbox, Box::new(client))
    }

    /// The progress of the next message, or its log text.
    async fn next(lines: &mut tokio::io::Lines<BufReader<Box<dyn tokio::io::AsyncRead + Unpin>>>) -> Value {
        let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        line["params"].get("progress").unwrap_or(&line["params"]["data"]["message"]).clone()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_again_gets_the_newest_progress_of_each_call() {
        let (outbox, client) = unread();
        let (first, second) = (notifier(outbox.clone()), notifier(outbox));
        (1..=1000).for_each(|number| progress(&first, number));
        progress(&second, 7);
        let mut lines = BufReader::new(client).lines();
        assert!(lines.next_line().await.unwrap().unwrap().trim().is_empty(), "what was unread");
        let mut newest = [next(&mut lines).await, next(&mut lines).await];
        newest.sort_by(|left, right| left.as_f64().unwrap().total_cmp(&right.as_f64().unwrap()));
        assert_eq!(newest, [json!(7.0), json!(1000.0)]);
        progress(&first, 1001);
        assert_eq!(next(&mut lines).await, json!(1001.0), "nothing waits any longer");
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_of_a_call_its_newest_notifications_precede_the_answer() {
        let (outbox, client) = unread();
        let notifier = notifier(outbox.clone());
        let text = "x".repeat(1000);
        for number in 0..200 {
            let message = format!("{number} {text}");
            notifier.log(&LogLine { level: "info".to_owned(), message, fields: serde_json::Map::new() });
            progress(&notifier, number + 1);
        }
        notifier.flush();
        drop(notifier);
        outbox.send(b"\"the answer\"\n");
        drop(outbox);
        let mut lines = BufReader::new(client).lines();
        lines.next_line().await.unwrap();
        let mut heard = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap();
            let params = &line["params"];
            heard.push(params.get("progress").or(params["data"].get("message")).cloned().unwrap_or(line));
        }
        assert_eq!(heard.pop(), Some(json!("the answer")));
        assert_eq!(heard.pop(), Some(json!(200.0)), "the newest progress");
        assert!((40..70).contains(&heard.len()), "{}", heard.len());
        assert!(
            heard
                .iter()
                .rev()
                .enumerate()
                .all(|(back, text)| text.as_str().unwrap().starts_with(&format!("{} ", 199 - back)))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_start_is_heard_of_every_ten_seconds_until_the_tool_runs() {
        let (ours, client) = tokio::io::duplex(1 << 16);
        let outbox = Outbox::new(Box::new(ours));
        let notifier = notifier(outbox);
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

    #[tokio::test(start_paused = true)]
    async fn nothing_follows_the_answer() {
        for is_read in [true, false] {
            let (outbox, client) = unread();
            let notifier = notifier(outbox.clone());
            let mut lines = BufReader::new(client).lines();
            if is_read {
                lines.next_line().await.unwrap();
                outbox.caught_up().await;
            }
            // A heartbeat begins, and where the client does not read, notifications wait.
            notifier.note("the user is asked");
            let Gate { open, id, number, .. } = &notifier.0.gate;
            assert!(open.lock().remove(id, *number));
            outbox.send(b"\"the answer\"\n");
            progress(&notifier, 7);
            notifier.log(&LogLine { level: "info".to_owned(), message: String::new(), fields: serde_json::Map::new() });
            let mut last = None;
            while let Ok(line) = tokio::time::timeout(HEARTBEAT * 3, lines.next_line()).await {
                last = line.unwrap();
            }
            assert_eq!(last.as_deref(), Some("\"the answer\""), "{is_read}");
        }
    }
}
