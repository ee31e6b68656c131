//! An accepted call from its first step to its one outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::Value;

use super::handle::RunningCall;
use super::keyed::{self, Ruling};
use super::request::CallRequest;
use super::resolve::prepare;
use super::service::CallService;
use super::tries::{Tries, until};
use crate::config::tool::JournalLevel;
use crate::journal::digest;
use crate::outcome::{Code, Fault, Metadata, Outcome};
use crate::pool::Settled;
use crate::process::edge;
use crate::registry::Tool;

/// Guarantees an outcome for an accepted call, also when its task panics or the runtime shuts down.
pub(super) struct Finish {
    pub service: Arc<CallService>,
    pub running: Arc<RunningCall>,
    /// Why the call is not made.
    pub refusal: Option<Fault>,
    /// The full name, once it is known.
    pub tool: String,
    pub began: Instant,
}

impl Finish {
    pub async fn run(&mut self, mut request: CallRequest) {
        if let Some(fault) = self.refusal.take() {
            return self.end(Settled { ended: Err(fault), metadata: Metadata::default() });
        }
        let (service, running) = (Arc::clone(&self.service), Arc::clone(&self.running));
        service.keep_ready();
        let found = running
            .cancellation
            .or(&self.tool, service.find_asked(request.role, &request.tool))
            .await
            .and_then(|found| found);
        if let Ok(tool) = &found {
            self.tool.clone_from(&tool.name);
            running.resolved(tool);
        }
        // The validator needs a Value; moving avoids a copy of large arguments.
        let arguments = Value::Object(std::mem::take(&mut request.arguments));
        let request = Arc::new(request);
        let tool = found.as_ref().ok().cloned();
        let guarded = self.guarded(tool.as_deref(), &arguments, &request);
        let prepared = found.and_then(|tool| Ok((prepare(&tool, arguments)?, tool)));
        let key = request.key.as_deref();
        let prepared = match (prepared, key, &service.journal) {
            (Ok((arguments, tool)), Some(key), Some(journal)) => {
                let until = until(&request, &tool, self.began);
                match keyed::rule(&service, journal, &running, (&tool.name, key, until), &arguments).await {
                    Ok(Ruling::Make) => Ok((arguments, tool)),
                    Ok(Ruling::Known(outcome)) => return service.finish(&running, *outcome),
                    Err(fault) => Err(fault),
                }
            }
            (Ok((_, tool)), key, None) if request.needs_journal && relies_on_journal(&tool, key) => Err(no_journal()),
            (prepared, ..) => prepared,
        };
        if let Some(journal) = &service.journal {
            let arguments = prepared.as_ref().ok().map(|(arguments, _)| &**arguments);
            running.journal_accept(journal, tool.as_deref(), arguments, &request);
        }
        running.accepted.notify_waiters();
        let settled = match prepared {
            Ok((arguments, tool)) => Tries::of(&service, &running, &request, tool, self.began).run(arguments).await,
            Err(fault) => Settled { ended: Err(fault), metadata: Metadata::default() },
        };
        let mut outcome = self.outcome(settled);
        if let Some((most, arguments)) = guarded {
            let times = service.loops.ended(running.caller.session, &arguments, &outcome);
            outcome.metadata.repeated = (times >= most).then_some(times);
        }
        let is_denied = outcome.ended.as_ref().is_err_and(|fault| fault.code == Code::PermissionDenied);
        if is_denied && self.is_of_model(&request) {
            let denied = service.loops.denied(running.caller.session, &outcome);
            outcome.metadata.repeated = outcome.metadata.repeated.or(denied);
        }
        let has_ended = running.journal_end(&outcome);
        running.journal_settles().await;
        edge("call.before-answer");
        if let Some(journal) = service.journal.as_ref().filter(|_| has_ended && outcome.ended.is_err()) {
            running.gives_key_back(journal, &outcome.tool, request.key.as_deref()).await;
        }
        service.finish(&running, outcome);
    }

    /// After how many equal calls in a row the model gets a note, with a digest of the arguments.
    fn guarded(&self, tool: Option<&Tool>, arguments: &Value, request: &CallRequest) -> Option<(usize, String)> {
        let config = self.service.config();
        let most = tool.map_or(&config.policy.loop_guard, |tool| &tool.settings.policy.loop_guard).as_ref()?.value;
        self.is_of_model(request).then(|| (most, digest(arguments)))
    }

    /// A tool's own calls, and those of several clients together, are no loop of a model.
    fn is_of_model(&self, request: &CallRequest) -> bool {
        request.chain.is_empty() && !request.background && !self.running.caller.is_of_many
    }

    fn end(&self, settled: Settled) {
        let outcome = self.outcome(settled);
        self.running.journal_end(&outcome);
        self.service.finish(&self.running, outcome);
    }

    fn outcome(&self, mut settled: Settled) -> Outcome {
        let is_cancelled = |fault: &Fault| matches!(fault.code, Code::Cancelled | Code::ShuttingDown);
        if settled.ended.as_ref().is_err_and(is_cancelled) {
            settled.metadata.cancelled = self.running.cancellation.why().cloned();
        }
        if let Err(fault) = &mut settled.ended {
            let secrets = self.running.secrets();
            if let Some(secrets) = &secrets {
                secrets.fault(fault);
            }
            fault.details.input = self.running.watched.input(secrets.as_deref());
            fault.shorten();
        }
        settled.metadata.attempt = settled.metadata.attempt.max(self.running.attempts.load(Ordering::Relaxed));
        settled.metadata.traceparent = self.running.trace.as_ref().map(|span| span.traceparent().to_owned());
        Outcome {
            call_id: self.running.id.clone(),
            tool: self.tool.clone(),
            ended: settled.ended,
            latency: self.began.elapsed(),
            metadata: settled.metadata,
        }
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        if self.running.has_ended() {
            return;
        }
        let fault = if std::thread::panicking() {
            let message =
                format!("hostler failed during the call of {}; please report this bug with the log", self.tool);
            Fault::new(Code::SystemError, message)
        } else {
            Fault::new(Code::ShuttingDown, format!("hostler shut down before the call of {} ended", self.tool))
        };
        self.end(Settled { ended: Err(fault), metadata: Metadata::default() });
    }
}

/// Whether a call without a journal may be made twice, or be lost with the power, although its caller or the operator says that it may not.
fn relies_on_journal(tool: &Tool, key: Option<&str>) -> bool {
    let config = &tool.entry.config.journal;
    key.is_some() || (config.enabled.value && tool.entry.settings.journal.value == JournalLevel::Synced)
}

fn no_journal() -> Fault {
    let message = "a call with an idempotency key, or of a tool that is `synced`, needs the journal, which is off or cannot be written \
                   here; see the log, and `enabled` under [journal]";
    Fault::new(Code::ResourceExhausted, message)
}
