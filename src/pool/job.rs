//! A call on its way through the pool, its caller and its listener.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::value::RawValue;

use super::handle::Cancellation;
use crate::outcome::{Fault, Metadata, Outcome};
use crate::protocol::{ProgressNote, TraceContext};
use crate::secrets::{LiveSecrets, Redactor, SecretJson};
use crate::telemetry::Audience;
use crate::worker::{HostAccess, LogLine};

/// One client connection, unique within a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl SessionId {
    /// What tools know it by: another number in each process, so that none stands for two sessions.
    pub fn for_tools(self) -> u64 {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        KEY.hash_one(self.0)
    }
}

/// The caller of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The session; the default one belongs to the program itself.
    pub session: SessionId,
    /// Whether that session is of several clients.
    pub is_of_many: bool,
    /// The client's own name and version: `claude-code 2.1`.
    pub client: Option<String>,
    /// The client's tags, for the log and the worker.
    pub tags: Vec<String>,
    /// The span that it calls from, for the worker and for what is seen of the call.
    pub trace: Option<TraceContext>,
}

/// A call for a worker.
pub struct Job {
    /// The call's id, unique across runs.
    pub call_id: String,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The call's own span, if it belongs to a trace.
    pub trace: Option<Arc<TraceContext>>,
    /// The tool's full name, for messages.
    pub tool: String,
    /// The function.
    pub function: String,
    /// The arguments, a JSON object.
    pub kwargs: Box<RawValue>,
    /// The tool's configuration, a JSON object.
    pub config: Arc<RawValue>,
    /// The declared secrets that are set, a JSON object.
    pub secrets: Arc<SecretJson>,
    /// The time limit.
    pub timeout: Duration,
    /// Whether it may be repeated if its worker dies during it.
    pub repeatable: bool,
    /// Whether a running call waits for it.
    pub nested: bool,
    /// Whether it is only written to a worker that begins it at once.
    pub begins_at_once: bool,
    /// The most output to keep, in bytes.
    pub output_limit: usize,
    /// The secrets that may not be seen of it.
    pub live: Arc<LiveSecrets>,
    /// Receives the call's progress and output.
    pub listener: Arc<dyn Listener>,
    /// Answers the tool's requests, if it has host access.
    pub host: Option<Arc<dyn HostAccess>>,
    /// Who reads what is logged of it.
    pub audience: Option<Audience>,
    /// Signals that the call was cancelled.
    pub cancellation: Cancellation,
}

/// Receives the events of a call. Must not block.
pub trait Listener: Send + Sync {
    /// A preparation before the tool runs: an environment is built, a worker starts.
    fn note(&self, _text: &str) {}
    /// The call waits for an answer of its client.
    fn asks(&self, text: &str) {
        self.note(text);
    }
    /// What the last note announced is over.
    fn goes_on(&self) {}
    /// The tool reports progress.
    fn progress(&self, _note: &ProgressNote) {}
    /// The tool printed something.
    fn output(&self, _stream: &str, _text: &str) {}
    /// The tool logged something.
    fn log(&self, _line: &LogLine) {}
    /// A log line as it may be written down.
    #[doc(hidden)]
    fn clean(&self, line: LogLine) -> LogLine {
        line
    }
    /// Whether what it writes about the end of the call comes behind what the journal writes.
    #[doc(hidden)]
    fn is_behind_journal(&self) -> bool {
        false
    }
    /// The call has ended and its outcome is recorded. The last event.
    fn ended(&self, _outcome: &Arc<Outcome>) {}
}

/// A listener that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopListener;

impl Listener for NoopListener {}

/// How a job ended.
#[derive(Debug)]
pub struct Settled {
    /// The result as JSON text, or the fault.
    pub ended: Result<Box<RawValue>, Fault>,
    /// Its metadata.
    pub metadata: Metadata,
}

/// The captured output of a call, up to a limit; truncation is marked.
#[derive(Debug, Default)]
pub(super) struct CapturedOutput {
    text: String,
    dropped: usize,
    /// The end of standard error, for a death.
    last_words: String,
    /// The ends of both streams that may be the beginning of a secret.
    held: [String; 2],
}

/// The most to keep, in bytes.
const LAST_WORDS: usize = 4096;

impl CapturedOutput {
    pub fn push(&mut self, text: &str, limit: usize) {
        let room = limit.saturating_sub(self.text.len());
        let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.text.push_str(&text[..end]);
        self.dropped += text.len() - end;
    }

    /// The part of a piece that can be passed on now, with secrets redacted.
    pub fn clean<'t>(&mut self, redactor: Option<&Redactor>, stream: &str, text: &'t str) -> Cow<'t, str> {
        let Some(redactor) = redactor else { return text.into() };
        let held = &mut self.held[usize::from(stream == "stderr")];
        held.push_str(text);
        let (clean, passed) = redactor.ready(held);
        held.drain(..passed);
        clean.into()
    }

    /// The withheld rest, with secrets redacted: it may be one that is also the beginning of another.
    pub fn held(&mut self, redactor: Option<&Redactor>) -> [(&'static str, String); 2] {
        let [stdout, stderr] = std::mem::take(&mut self.held);
        let clean = |text: String| match redactor {
            Some(redactor) => redactor.text(&text).into_owned(),
            None => text,
        };
        [("stdout", clean(stdout)), ("stderr", clean(stderr))]
    }

    /// Keeps the end of standard error.
    pub fn keep_tail(&mut self, stream: &str, text: &str) {
        if stream == "stderr" {
            self.last_words.push_str(text);
            let surplus = self.last_words.len().saturating_sub(LAST_WORDS);
            let cut = (surplus..=self.last_words.len()).find(|at| self.last_words.is_char_boundary(*at)).unwrap_or(0);
            self.last_words.drain(..cut);
        }
    }

    /// The last lines of stderr of a process that died during the call.
    pub fn last_words(&self) -> Option<String> {
        let text = self.last_words.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub fn take(self) -> Option<String> {
        match (self.text.is_empty(), self.dropped) {
            (true, 0) => None,
            (_, 0) => Some(self.text),
            (_, dropped) => Some(format!("{}\n[output cut: {dropped} more bytes]", self.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_begins_another_is_redacted_at_the_end() {
        let redactor = Redactor::of([("SHORT", "token"), ("LONG", "token-1")]);
        let mut printed = CapturedOutput::default();
        assert_eq!(printed.clean(redactor.as_deref(), "stderr", "my token"), "my ");
        assert_eq!(printed.held(redactor.as_deref())[1], ("stderr", "[secret SHORT]".to_owned()));
    }

    #[test]
    fn output_over_the_limit_is_marked() {
        let mut printed = CapturedOutput::default();
        printed.push("äöü", 5);
        printed.push("more", 5);
        assert_eq!(printed.take().unwrap(), "äöm\n[output cut: 5 more bytes]");
    }
}
