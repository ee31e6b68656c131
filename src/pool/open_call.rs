//! An open call: its job, its clock, its output, and the faults that the pool itself raises.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::admission::Full;
use super::asking::HeldAnswer;
use super::event::CallId;
use super::job::{CapturedOutput, Job, Settled};
use crate::outcome::{Code, Details, Fault, Metadata, milliseconds};
use crate::protocol::{CallFrame, ProgressNote, WireError, wire_code};
use crate::secrets::LiveSecrets;
use crate::worker::LogLine;

pub(super) struct OpenCall {
    pub job: Box<Job>,
    pub answer: Option<Result<Box<RawValue>, Fault>>,
    /// Requests from the tool; dropped with the call.
    pub questions: JoinSet<()>,
    /// The arguments, for its requests to share.
    arguments: Option<Arc<RawValue>>,
    /// Questions to the client without an answer, its inner calls' included.
    pub unanswered: usize,
    /// Answers of the client that wait until the call may go on.
    pub answers: Vec<HeldAnswer>,
    reply: oneshot::Sender<Settled>,
    output: CapturedOutput,
    dropped: Vec<String>,
    cold: bool,
    /// Whether its caller last heard why it waits.
    is_noted: bool,
    attempt: u32,
    worker: Option<u32>,
    submitted: Instant,
    ready: Option<Instant>,
    began: Option<Instant>,
    /// Since when it waits for its client.
    parked: Option<Instant>,
    asked: Duration,
}

/// More names of fields are left out.
const MOST_DROPPED: usize = 50;

impl OpenCall {
    /// Notes the fields that were removed from its result.
    pub fn dropped(&mut self, fields: Vec<String>) {
        let short = fields.into_iter().map(|field| field.chars().take(200).collect());
        self.dropped = short.take(MOST_DROPPED).collect();
    }

    pub fn new(job: Box<Job>, reply: oneshot::Sender<Settled>, cold: bool) -> Self {
        Self {
            job,
            answer: None,
            questions: JoinSet::new(),
            arguments: None,
            unanswered: 0,
            answers: Vec::new(),
            reply,
            output: CapturedOutput::default(),
            dropped: Vec::new(),
            cold,
            is_noted: false,
            attempt: 0,
            worker: None,
            submitted: Instant::now(),
            ready: None,
            began: None,
            parked: None,
            asked: Duration::ZERO,
        }
    }

    /// Its arguments, as its requests name them.
    pub fn arguments(&mut self) -> Arc<RawValue> {
        Arc::clone(self.arguments.get_or_insert_with(|| Arc::from(self.job.kwargs.clone())))
    }

    /// The worker that this call waited for is ready.
    pub fn started(&mut self) {
        self.ready.get_or_insert_with(Instant::now);
    }

    /// It goes to this process; or why it may not.
    pub fn sent_to(&mut self, (pid, process_started): (u32, u64), first: bool) -> Result<(), Fault> {
        self.worker = Some(pid);
        // Questions of an earlier attempt.
        if self.attempt > 0 {
            self.questions = JoinSet::new();
            self.unanswered = 0;
            self.answers.clear();
            self.unparks();
        }
        self.attempt += 1;
        if let Some(host) = &self.job.host {
            host.dispatches((pid, process_started))?;
        }
        self.began = None;
        if first {
            self.begins();
        }
        Ok(())
    }

    /// Its worker begins it now.
    pub fn begins(&mut self) {
        if self.began.is_none() {
            self.began = Some(Instant::now());
            if let Some(host) = &self.job.host {
                host.begins();
            }
        }
    }

    /// Which attempt to run it this is.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Tells its caller why it waits.
    pub fn note(&mut self, text: &str) {
        self.is_noted = true;
        self.job.listener.note(text);
    }

    /// What the last note to the caller announced is over.
    pub fn goes_on(&mut self) {
        if std::mem::take(&mut self.is_noted) {
            self.job.listener.goes_on();
        }
    }

    /// A worker gave it back without beginning it.
    pub fn returned(&mut self) {
        self.attempt = self.attempt.saturating_sub(1);
    }

    /// It waits for its client from now on.
    pub fn parks(&mut self) {
        self.parked.get_or_insert_with(Instant::now);
    }

    /// It goes on.
    pub fn unparks(&mut self) {
        self.asked += self.parked.take().map(|since| since.elapsed()).unwrap_or_default();
    }

    /// How long its worker has run it, without the time in which it waited for its client.
    pub fn run_time(&self) -> Option<Duration> {
        let asked = self.asked + self.parked.map(|since| since.elapsed()).unwrap_or_default();
        self.began.map(|began| began.elapsed().saturating_sub(asked))
    }

    pub fn print(&mut self, stream: &str, text: &str) {
        let text = self.output.clean(self.job.live.redactor().as_deref(), stream, text);
        self.tell(stream, &text);
    }

    fn tell(&mut self, stream: &str, text: &str) {
        if !text.is_empty() {
            self.job.listener.output(stream, text);
            self.output.keep_tail(stream, text);
            self.output.push(text, self.job.output_limit);
        }
    }

    /// Records what the tool wrote to standard error, through Python or directly.
    pub fn last_words(&self) -> Option<String> {
        self.output.last_words()
    }

    /// Forwards the tool's progress.
    pub fn progress(&self, note: &mut ProgressNote) {
        if let (Some(redactor), Some(message)) = (self.job.live.redactor(), &mut note.message) {
            *message = redactor.text(message).into_owned();
        }
        self.job.listener.progress(note);
    }

    pub fn frame(&self, call: CallId) -> CallFrame<'_> {
        let deadline_ms = in_ms(self.job.timeout);
        let Job { call_id, caller, function, kwargs, config, secrets, .. } = &*self.job;
        let (trace, tags) = (self.job.trace.as_deref(), &*caller.tags);
        let session = caller.session.for_tools();
        CallFrame { id: call.0, function, kwargs, config, secrets, call_id, deadline_ms, trace, tags, session }
    }

    pub fn settle(mut self, mut ended: Result<Box<RawValue>, Fault>) {
        let redactor = self.job.live.redactor();
        for (stream, text) in self.output.held(redactor.as_deref()) {
            self.tell(stream, &text);
        }
        if let (Some(redactor), Err(fault)) = (redactor, &mut ended) {
            redactor.fault(fault);
        }
        self.unparks();
        let began = self.began.unwrap_or_else(Instant::now);
        let run = self.run_time().unwrap_or_default();
        let start = self.ready.map_or(Duration::ZERO, |ready| ready - self.submitted);
        let metadata = Metadata {
            cold: self.cold,
            queue_ms: milliseconds((began - self.submitted).saturating_sub(start)),
            start_ms: milliseconds(start),
            run_ms: milliseconds(run),
            asked_ms: (!self.asked.is_zero()).then(|| milliseconds(self.asked)),
            worker: self.worker,
            attempt: self.attempt.max(1),
            stale: None,
            repeated: None,
            traceparent: None,
            cancelled: None,
            output: self.output.take(),
            dropped: std::mem::take(&mut self.dropped),
        };
        // The caller may be gone.
        let _ = self.reply.send(Settled { ended, metadata });
    }
}

/// A text without the secrets of these workspaces.
pub(super) fn without_secrets<'t>(live: &[Arc<LiveSecrets>], text: &'t str) -> Cow<'t, str> {
    live.iter().filter_map(|live| live.redactor()).fold(text.into(), |text: Cow<'t, str>, redactor| {
        match redactor.text(&text) {
            Cow::Owned(clean) => clean.into(),
            Cow::Borrowed(_) => text,
        }
    })
}

/// Sends a tool's log line to hostler's log and to the caller of the running call, without the secrets of these workspaces: a tool
/// may log after its answer.
pub(super) fn log(running: Option<&OpenCall>, secrets: &[Arc<LiveSecrets>], file: &Path, mut line: LogLine) {
    for redactor in secrets.iter().filter_map(|live| live.redactor()) {
        line.message = redactor.text(&line.message).into_owned();
        redactor.members(&mut line.fields);
    }
    if let Some(open) = running {
        line = open.job.listener.clean(line);
    }
    match running.and_then(|open| open.job.audience.as_ref()) {
        None => record(running, file, &line),
        Some(audience) => audience.hear(|| record(running, file, &line)),
    }
    if let Some(open) = running {
        open.job.listener.log(&line);
    }
}

fn record(running: Option<&OpenCall>, file: &Path, line: &LogLine) {
    let call = running.map(|open| open.job.call_id.as_str()).unwrap_or_default();
    let fields = serde_json::to_string(&line.fields).unwrap_or_default();
    let (file, message) = (file.display(), &line.message);
    match line.level.as_str() {
        "error" | "critical" | "fatal" => tracing::error!(target: "tool", %file, call, fields, "{message}"),
        "warning" | "warn" => tracing::warn!(target: "tool", %file, call, fields, "{message}"),
        "debug" | "trace" => tracing::debug!(target: "tool", %file, call, fields, "{message}"),
        _ => tracing::info!(target: "tool", %file, call, fields, "{message}"),
    }
}

/// The answer to a request that belongs to no running call.
pub(super) fn of_no_call() -> WireError {
    let message = "this request belongs to no running call: send the call's `id`, while the call runs".to_owned();
    WireError { code: wire_code::HOST_REFUSED, message, data: None }
}

/// The answer to an unknown request.
pub(super) fn unknown(method: &str) -> WireError {
    let message = format!("unknown request {method}; docs/protocol.md lists the known ones");
    WireError { code: wire_code::NO_FUNCTION, message, data: None }
}

/// The fault for a full queue. `retry_after` is when capacity is likely free.
pub fn busy(tool: &str, Full { waiting, overall }: Full, retry_after: Duration) -> Fault {
    let retry_after_ms = in_ms(retry_after);
    let (whom, whose, table) =
        if overall { ("all tools together", "their", "[limits]") } else { (tool, "its", "[tool]") };
    let message = format!(
        "{waiting} calls already wait for {whom}, which is {whose} limit; try again in {retry_after_ms} ms, or raise \
         `max_queue` under {table} in hostler.toml"
    );
    let details = Details { retry_after_ms: Some(retry_after_ms), ..Details::default() };
    Fault::new(Code::Busy, message).with(details)
}

/// The last start's fault, for a call that was refused because of it.
pub(super) fn still_failing(last: Option<&Fault>, tool: &str, times: u32, retry_after: Duration) -> Fault {
    let retry_after_ms = in_ms(retry_after).max(1);
    let mut fault = last.cloned().unwrap_or_else(|| Fault::new(Code::StartupFailed, format!("{tool} did not start")));
    fault.message = format!(
        "{}. Failed {times} times in a row; the next start is in {retry_after_ms} ms, or when the file changes",
        fault.message
    );
    fault.details.retry_after_ms = Some(retry_after_ms);
    fault
}

/// Whole milliseconds, as the protocol and faults state them.
fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The last death's fault, for a call that was refused because of it.
pub(super) fn broken_down(last: Option<&Fault>, tool: &str, times: u32, retry_after: Duration) -> Fault {
    let retry_after_ms = in_ms(retry_after).max(1);
    let mut fault =
        last.cloned().unwrap_or_else(|| Fault::new(Code::ToolCrashed, format!("the worker of {tool} died")));
    fault.message = format!(
        "{tool} was not called: its worker died {times} times in a row without an answer, so none is started \
         for another {retry_after_ms} ms. Last death: {}",
        fault.message
    );
    fault.details.retry_after_ms = Some(retry_after_ms);
    fault
}

/// The pool's actor ended unexpectedly.
pub(super) fn broken(tool: &str) -> Fault {
    let message = format!(
        "the worker pool of {tool} failed; the next call starts a new one. Please report this bug with the log"
    );
    Fault::new(Code::SystemError, message)
}

pub(super) fn closed(tool: &str) -> Fault {
    Fault::new(Code::ShuttingDown, format!("hostler is shutting down and did not finish the call of {tool}"))
}
