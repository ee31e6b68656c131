//! What is written down of one call, from its acceptance to its outcome. Called from where it happens, before it happens.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::value::RawValue;

use super::attachment::Since;
use super::handle::RunningCall;
use super::kept_source;
use super::request::CallRequest;
use super::retries::usual_retries;
use super::watch::without_secrets;
use crate::config::Config;
use crate::config::call_site::CallSite;
use crate::config::journal::Bodies;
use crate::config::tool::{Effects, JournalLevel};
use crate::config::value::Word;
use crate::journal::{
    Accepted, Cancelling, Created, Detached, Dispatched, Finished, Id, Journal, Printed, Record, Retrying, State,
    Waiting, id_of,
};
use crate::outcome::{Attempt, Cancelled, Canceller, Code, Fault, Outcome};
use crate::process::edge;
use crate::registry::Tool;
use crate::telemetry::unix_ms;

/// Longer arguments and results are not kept of calls that have ended.
const LONGEST: usize = 1 << 20;
/// The same for results that somebody will ask for: those of background calls, and of calls with a key.
const LONGEST_ASKED_FOR: usize = 16 << 20;

/// The pause before the store is asked again to accept a call.
const STORE_AGAIN: Duration = Duration::from_secs(1);

/// What is known of a call that is written down.
pub(super) struct Journaled {
    journal: Arc<Journal>,
    id: Id,
    bodies: Bodies,
    effects: Effects,
    /// Where it runs, if that was not written down yet.
    config: Option<Arc<Config>>,
    /// Others may ask for its result, by its key.
    is_keyed: bool,
    /// Where it has to be.
    level: JournalLevel,
    /// Whether there was room to write it down.
    is_kept: bool,
    /// Whether it may begin, once that is decided.
    is_admitted: OnceLock<bool>,
    /// Whether its tool may have begun.
    is_dispatched: AtomicBool,
    /// Its arguments, if they may hold secrets of its tool: they are kept without them.
    arguments: Option<Box<RawValue>>,
}

impl RunningCall {
    /// It was accepted: from here on it is written down, unless its tool says otherwise. `arguments` are those that its tool will get.
    pub fn journal_accept(
        &self,
        journal: &Arc<Journal>,
        tool: Option<&Tool>,
        arguments: Option<&RawValue>,
        request: &CallRequest,
    ) {
        let level = tool.map_or(JournalLevel::Kept, |tool| tool.entry.settings.journal.value);
        // A background call that is not remembered would be none.
        if level == JournalLevel::Off && !request.background && !request.may_detach && request.key.is_none() {
            return;
        }
        if let Some(tool) = tool {
            kept_source::keep(journal, &tool.entry);
        }
        let id = id_of(&self.id);
        // Also those of the call that makes it.
        let has_secrets =
            self.secrets().is_some() || tool.is_some_and(|tool| !tool.entry.settings.secrets.value.is_empty());
        let bodies = tool.map_or(Bodies::Needed, |tool| tool.entry.config.journal.bodies.value);
        let effects = tool.map_or(Effects::Once, |tool| tool.settings.effects.value);
        let caller = &self.caller;
        let name = tool.map_or(&*request.tool, |tool| &tool.name);
        let limit = request.timeout.or_else(|| Some(tool?.settings.timeout.value)).unwrap_or_default();
        let timeout = request.at_most.map_or(limit, |most| limit.min(most));
        let is_kept = journal.append(&Record::Accepted(Accepted {
            id,
            at_ms: unix_ms(),
            tool: name,
            version: tool.map_or(&[], |tool| &tool.entry.version[..]),
            arguments: arguments.map_or("", RawValue::get),
            effects: effects.word(),
            level: level.word(),
            background: request.background,
            session: self.watched.session(),
            client: caller.client.as_deref(),
            tags: caller.tags.iter().map(String::as_str).collect(),
            traceparent: self.trace.as_ref().map(|span| span.traceparent()),
            key: request.key.as_deref(),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            max_retries: request.max_retries.unwrap_or_else(|| usual_retries(effects)).into(),
            workspace: request.workspace.as_deref(),
            has_secrets: has_secrets || bodies == Bodies::None,
        }));
        edge("call.accepted");
        let _ = self.journaled.set(Journaled {
            journal: Arc::clone(journal),
            id,
            bodies,
            effects,
            config: tool.filter(|_| !request.background).map(|tool| Arc::clone(&tool.entry.config)),
            is_keyed: request.key.is_some(),
            level,
            is_kept,
            is_admitted: OnceLock::new(),
            is_dispatched: AtomicBool::new(false),
            arguments: arguments.filter(|_| has_secrets).map(ToOwned::to_owned),
        });
    }

    /// Waits until it is decided what is written down of it.
    async fn is_accepted(&self) {
        loop {
            let accepted = self.accepted.notified();
            if self.journaled.get().is_some() || self.has_ended() {
                break;
            }
            accepted.await;
        }
    }

    /// Waits until the call will not be lost. Says why that cannot be.
    pub async fn remembered(&self) -> Result<(), String> {
        self.is_accepted().await;
        match self.journaled.get() {
            Some(journaled) => journaled.remembered().await,
            None => Ok(()),
        }
    }

    /// From now on it goes on without its client. False if it has ended before. Says why it cannot be remembered.
    pub async fn journal_detach(&self) -> Result<bool, String> {
        self.is_accepted().await;
        let Some(journaled) = self.journaled.get() else { return Ok(false) };
        let _one = self.detaching.lock().await;
        match self.attachment.detach() {
            None => return Ok(false),
            Some(Since::Before) => return journaled.remembered().await.map(|()| true),
            Some(Since::Now) => {}
        }
        let site = journaled.config.as_deref().map(|config| CallSite::of(config).written());
        let detached = Detached { id: journaled.id, at_ms: unix_ms(), workspace: site.as_deref() };
        if !journaled.journal.append(&Record::Detached(detached)) {
            self.attachment.attach();
            return Err(no_room());
        }
        edge("call.detached");
        journaled.remembered().await.inspect_err(|_| self.attachment.attach()).map(|()| true)
    }

    /// Its attempt failed, and it will be tried again.
    pub fn journal_retry(&self, retry: u32, pause: Duration, failed: &Attempt) {
        let Some(journaled) = self.journaled.get() else { return };
        let at_ms = unix_ms();
        let retry_at_ms = at_ms + u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let fault = serde_json::to_string(failed).unwrap_or_default();
        let (id, retry) = (journaled.id, retry.into());
        journaled.journal.append(&Record::Retrying(Retrying { id, at_ms, retry, retry_at_ms, fault: &fault }));
        edge("call.retrying");
        let _ = journaled.journal.written();
        edge("call.retry-written");
    }

    /// Somebody asks for its end. hostler's own end is none.
    pub fn journal_cancel(&self, why: &Cancelled) {
        let is_own_end = matches!(why.by, Canceller::Shutdown | Canceller::SessionEnd | Canceller::Signal);
        let Some(journaled) = self.journaled.get().filter(|_| self.is_background() && !is_own_end) else {
            return;
        };
        let by = why.to_string();
        journaled.journal.append(&Record::Cancelling(Cancelling { id: journaled.id, at_ms: unix_ms(), by: &by }));
        let _ = journaled.journal.written();
    }

    /// A person is asked whether it may run.
    pub fn journal_waits(&self) {
        let Some(journaled) = self.journaled.get() else { return };
        journaled.journal.append(&Record::Waiting(Waiting { id: journaled.id, at_ms: unix_ms() }));
        let _ = journaled.journal.written();
    }

    /// It has printed something, without secrets.
    pub fn journal_output(&self, stream: &str, text: &str) {
        let keeps = |journaled: &&Journaled| self.is_background() && journaled.bodies != Bodies::None;
        let Some(journaled) = self.journaled.get().filter(keeps) else { return };
        journaled.journal.append(&Record::Printed(Printed { id: journaled.id, at_ms: unix_ms(), stream, text }));
    }

    /// Whether [`journal_admits`](Self::journal_admits) has to be asked before it begins.
    pub fn needs_admission(&self) -> bool {
        let needs = |journaled: &Journaled| journaled.is_synced() || journaled.journal.is_shared();
        self.journaled.get().is_some_and(|journaled| needs(journaled) && journaled.is_admitted.get().is_none())
    }

    /// Whether it may not begin, since what must be known of it could not be written down.
    pub fn was_refused(&self) -> bool {
        self.journaled.get().is_some_and(|journaled| journaled.is_admitted.get() == Some(&false))
    }

    /// It may begin: what must be known of it is where it must be. Otherwise says why it may not. Asked once nothing else is against
    /// it: a call that waits for a person has not begun.
    pub async fn journal_admits(&self) -> Result<(), Fault> {
        let Some(journaled) = self.journaled.get() else { return Ok(()) };
        let admitted = self.admits(journaled).await;
        let _ = journaled.is_admitted.set(admitted.is_ok());
        admitted
    }

    async fn admits(&self, journaled: &Journaled) -> Result<(), Fault> {
        let others_rely_on_it = journaled.journal.is_shared() && (self.is_background() || journaled.is_keyed);
        if others_rely_on_it {
            self.is_with_others(journaled).await?;
        }
        if journaled.is_synced() {
            // It counts as begun from here on: the disk does not show how far it was.
            self.journal_dispatch(None, false)?;
            let known = journaled.remembered().await;
            return known.map_err(|why| {
                journaled.is_dispatched.store(false, Ordering::Relaxed);
                not_begun(&why)
            });
        }
        Ok(())
    }

    /// Other machines know of it, and that it begins here. One that goes on without its client waits for that, as long as it is wanted:
    /// somebody was told that it will run.
    async fn is_with_others(&self, journaled: &Journaled) -> Result<(), Fault> {
        let tool = self.tool_name();
        loop {
            let known = async {
                journaled.remembered().await?;
                journaled.journal.begins(&self.id).await
            };
            match self.cancellation.or(tool, known).await? {
                // A machine that was paused for longer than its lease may have lost the call, or its key, to another.
                Ok(is_ours) => return is_ours.then_some(()).ok_or_else(lost),
                Err(why) if !self.is_background() => return Err(not_begun(&why)),
                Err(_) => self.cancellation.or(tool, tokio::time::sleep(STORE_AGAIN)).await?,
            }
        }
    }

    /// Its outcome is where it must be before it is answered.
    pub async fn journal_settles(&self) {
        if let Some(journaled) = self.journaled.get().filter(|journaled| journaled.is_synced()) {
            // It has run: its answer is given in any case.
            let _ = journaled.journal.synced().await;
        }
    }

    /// It goes to its worker, process or task. It is written before that: with what goes there, or at once. Otherwise says why it may
    /// not go there.
    pub fn journal_dispatch(&self, process: Option<(u32, u64)>, at_once: bool) -> Result<(), Fault> {
        let Some(journaled) = self.journaled.get() else { return Ok(()) };
        let was_dispatched = journaled.is_dispatched.swap(true, Ordering::Relaxed);
        let (pid, process_started) = process.unwrap_or_default();
        let (attempt, pid) = (self.attempts.load(Ordering::Relaxed).max(1).into(), pid.into());
        let dispatched = Dispatched { id: journaled.id, at_ms: unix_ms(), attempt, pid, process_started };
        let is_kept = journaled.journal.append(&Record::Dispatched(dispatched));
        edge("call.dispatched");
        let must_be_known = journaled.must_be_known(self.is_background());
        if !at_once && !must_be_known {
            return Ok(());
        }
        let written = journaled.journal.written();
        if must_be_known && let Some(why) = written.err().or((!is_kept).then(no_room)) {
            journaled.is_dispatched.store(was_dispatched, Ordering::Relaxed);
            return Err(not_begun(&why));
        }
        Ok(())
    }

    /// Whether it was sent to its tool.
    pub fn was_sent(&self) -> bool {
        self.journaled.get().is_some_and(|journaled| journaled.is_dispatched.load(Ordering::Relaxed))
    }

    /// A fault as it is kept. One about arguments quotes them, and they may hold a secret of the tool, which was not read yet.
    fn kept<'a>(&self, fault: &'a Fault) -> Cow<'a, Fault> {
        if fault.code != Code::InvalidParams || self.watched.knows_secrets() {
            return Cow::Borrowed(fault);
        }
        let message = format!(
            "the arguments of {} are not valid; they are not kept, since it declares secrets",
            self.tool_name()
        );
        Cow::Owned(Fault::new(fault.code, message))
    }

    /// It has its outcome. It is written with the answer, if every listener's answer comes behind the journal, or at once. False if
    /// that is the outcome for this process alone, and the next one goes on with the call.
    pub fn journal_end(&self, outcome: &Outcome) -> bool {
        let Some(journaled) = self.journaled.get() else { return true };
        let fault = outcome.ended.as_ref().err();
        if fault.is_some_and(|fault| self.is_background() && journaled.goes_on_elsewhere(fault)) {
            return false;
        }
        let is_denied = fault.is_some_and(|fault| self.watched.is_denied(fault.code));
        let state =
            if is_denied { Created.deny().state() } else { ended(outcome, self.retries.load(Ordering::Relaxed) > 0) };
        let is_alone = self.attachment.settle();
        let kept = journaled.keeps(fault.is_some(), is_alone);
        let fault_json = fault.map(|fault| serde_json::to_string(&*self.kept(fault)).unwrap_or_default());
        let secrets = self.secrets();
        let result =
            outcome.ended.as_ref().ok().filter(|_| kept).and_then(|result| without_secrets(result, secrets.as_deref()));
        // Where the secrets are not known, nothing can be taken out: the tool lacks one of them.
        let own = journaled.arguments.as_ref().filter(|_| kept && secrets.is_some());
        let arguments = own.and_then(|arguments| without_secrets(arguments, secrets.as_deref()));
        // One that failed may be made again.
        let site = journaled.config.as_deref().filter(|_| kept).map(|config| CallSite::of(config).written());
        let is_asked_for = is_alone || journaled.is_keyed;
        let most = if is_asked_for { LONGEST_ASKED_FOR } else { LONGEST };
        let metadata = kept.then(|| serde_json::to_string(&outcome.metadata).unwrap_or_default());
        let cancelled = outcome.metadata.cancelled.as_ref().map(ToString::to_string);
        journaled.journal.append(&Record::Finished(Finished {
            id: journaled.id,
            at_ms: unix_ms(),
            state: state.word(),
            code: fault.map(|fault: &Fault| fault.code.word()),
            fault: fault_json.as_deref(),
            result: short(result.as_deref(), most),
            arguments: short(arguments.as_deref(), LONGEST),
            output: outcome.metadata.output.as_deref().filter(|_| kept),
            duration_us: u64::try_from(outcome.latency.as_micros()).unwrap_or(u64::MAX),
            attempt: outcome.metadata.attempt.into(),
            pid: outcome.metadata.worker.unwrap_or_default().into(),
            cancelled: cancelled.as_deref(),
            metadata: metadata.as_deref(),
            keeps_arguments: kept && journaled.arguments.is_none(),
            workspace: site.as_deref(),
        }));
        edge("call.finished");
        // No answer follows for a call that goes on alone.
        if is_alone || !self.answers_behind_journal() {
            let _ = journaled.journal.written();
        }
        true
    }
}

fn short(value: Option<&RawValue>, most: usize) -> Option<&str> {
    value.map(RawValue::get).filter(|text| text.len() <= most)
}

/// Another machine has the call, or its key.
pub fn lost() -> Fault {
    let message = "the call was not begun here: this hostler did not answer for so long that another one has the call or its \
                   idempotency key. Ask again with the key, or for the outcome with the id of the call";
    Fault::new(Code::ResourceExhausted, message)
}

fn no_room() -> String {
    "the journal cannot be written, and too much waits to be written".to_owned()
}

fn not_begun(why: &str) -> Fault {
    let message = format!(
        "{why}; the call was not begun, because it could have been made a second time. Make room on the disk of the state folder"
    );
    Fault::new(Code::ResourceExhausted, message)
}

impl Journaled {
    /// Waits until what was appended will not be lost.
    async fn remembered(&self) -> Result<(), String> {
        if !self.is_kept {
            return Err(no_room());
        }
        if self.is_synced() {
            self.journal.synced().await?;
        }
        // Other machines cannot read the spool.
        if self.journal.is_shared() { self.journal.in_store().await } else { self.journal.written() }
    }

    fn is_synced(&self) -> bool {
        self.level == JournalLevel::Synced
    }

    /// Whether it may be begun only if that is written down: otherwise it could be made a second time.
    fn must_be_known(&self, is_background: bool) -> bool {
        self.effects == Effects::Once && (is_background || self.is_keyed)
    }

    /// Whether a call that hostler's own end interrupted is left for the next hostler: one that was not begun, or may be repeated.
    fn goes_on_elsewhere(&self, fault: &Fault) -> bool {
        let may_run_again = !self.is_dispatched.load(Ordering::Relaxed) || self.effects != Effects::Once;
        fault.code == Code::ShuttingDown && may_run_again
    }

    /// Whether the arguments and the result of the call are kept.
    fn keeps(&self, has_failed: bool, is_background: bool) -> bool {
        match self.bodies {
            Bodies::All => true,
            Bodies::Needed => has_failed || is_background || self.is_keyed,
            Bodies::None => false,
        }
    }
}

/// The state in which a call has ended.
fn ended(outcome: &Outcome, were_retries: bool) -> State {
    let begun = || Created.dispatch();
    match &outcome.ended {
        Ok(_) => begun().complete().state(),
        Err(_) if outcome.metadata.cancelled.as_ref().is_some_and(|why| why.by != Canceller::Shutdown) => {
            begun().cancel().state()
        }
        Err(fault) if fault.code == Code::ShuttingDown => begun().orphan().fail().state(),
        Err(_) => begun().fail().end(were_retries).state(),
    }
}
