//! Writes down in the audit log what rules and people decided about calls, before that takes effect.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::layer::CallContext;
use super::policy::reason;
use crate::audit::{AuditLog, Decided, DecidedRule, Kind, WriteError, folder};
use crate::config::Environment;
use crate::config::audit::{Audited, Keep};
use crate::config::mode::Mode;
use crate::outcome::{Code, Fault};
use crate::policy::Because;
use crate::threads::Unfinished;

/// How a call was judged so far.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The rules that decided, or that asked a person.
    pub because: Vec<Because>,
    /// Whether a person was asked.
    pub is_asked: bool,
    /// Who answered, and how.
    pub by: Option<String>,
}

/// The audit log, for the calls of a workspace.
pub(super) struct DecisionLog {
    log: Arc<AuditLog>,
    /// Checkpoints that are being made.
    signing: Unfinished,
}

/// How long other processes that write are waited for, and the pause between two tries.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_millis(2));

impl DecisionLog {
    pub fn of(environment: &Environment, signing: Unfinished) -> Self {
        Self { log: Arc::new(AuditLog::in_folder(folder(environment))), signing }
    }

    /// Whether calls that no rule is against are written down, too.
    pub fn has_all(call: &CallContext) -> bool {
        call.tool.entry.config.audit.log.value == Audited::All
    }

    /// Writes down a decision. A call whose decision cannot be written down is not made.
    pub async fn record(
        &self,
        call: &CallContext,
        arguments: &str,
        mode: Mode,
        judged: Judged,
        admitted: Result<(), Fault>,
    ) -> Result<(), Fault> {
        let settings = &call.tool.entry.config.audit;
        let is_plain = admitted.is_ok() && !judged.is_asked;
        // Counts that another process holds are no decision.
        let is_unknown = admitted.as_ref().is_err_and(|fault| fault.code == Code::Busy);
        if settings.log.value == Audited::Off || (is_plain && settings.log.value != Audited::All) || is_unknown {
            return admitted;
        }
        let decided = decided(call, arguments, mode, judged, admitted.as_ref().err());
        match (self.add(Kind::Decision(Box::new(decided)), settings.keep()).await, admitted) {
            (Ok(()), admitted) => admitted,
            // It is denied anyway.
            (Err(error), Err(fault)) => {
                tracing::warn!(call = call.id(), "a denial is not in the audit log: {error}");
                Err(fault)
            }
            (Err(error), Ok(())) => {
                let message = format!("Permission denied: the audit log is not written: {error}");
                Err(Fault::new(Code::PermissionDenied, message))
            }
        }
    }

    async fn add(&self, kind: Kind, keep: Keep) -> Result<(), WriteError> {
        let late = tokio::time::Instant::now() + PATIENCE.0;
        loop {
            match self.log.add(kind.clone(), keep) {
                Err(WriteError::Busy) if tokio::time::Instant::now() < late => tokio::time::sleep(PATIENCE.1).await,
                Ok(true) => {
                    self.sign(keep);
                    return Ok(());
                }
                added => return added.map(drop),
            }
        }
    }

    /// Makes a checkpoint, while the call goes on.
    fn sign(&self, keep: Keep) {
        let log = Arc::clone(&self.log);
        self.signing.start(move || match log.sign(keep) {
            // Who writes just now signs next.
            Ok(()) | Err(WriteError::Busy) => {}
            Err(error) => tracing::warn!("the audit log has no checkpoint: {error}"),
        });
    }
}

fn decided(call: &CallContext, arguments: &str, mode: Mode, judged: Judged, fault: Option<&Fault>) -> Decided {
    let (caller, config) = (call.caller(), &call.tool.entry.config);
    let decision = match (fault, judged.is_asked) {
        (None, false) => "allowed",
        (None, true) => "approved",
        (Some(_), false) => "denied",
        (Some(_), true) => "not_approved",
    };
    let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
    let mut rules: Vec<DecidedRule> = judged.because.iter().map(rule).collect();
    // What no rule says: counts that cannot be kept, a file that has changed since.
    let (said, why) = (reason(&judged.because), fault.map(|fault| fault.message.clone()));
    let by_no_rule = why.filter(|why| rules.is_empty() || (!judged.is_asked && !why.contains(&said)));
    rules.extend(by_no_rule.map(|reason| DecidedRule { rule: String::new(), origin: String::new(), reason }));
    let trace = call.running.trace.as_deref().or(caller.trace.as_ref());
    Decided {
        decision: decision.to_owned(),
        call: call.id().to_owned(),
        tool: call.tool.name.clone(),
        version: hex(&call.tool.entry.version[..8]),
        arguments: hex(&Sha256::digest(arguments)),
        rules,
        mode: mode.word().to_owned(),
        by: judged.by,
        session: caller.session.0,
        client: caller.client.clone(),
        tags: caller.tags.clone(),
        trace: trace.map(|trace| trace.traceparent().to_owned()),
        attempt: call.running.attempts.load(std::sync::atomic::Ordering::Relaxed) + 1,
        config: config.files.first().map(|file| file.display().to_string()),
    }
}

fn rule(because: &Because) -> DecidedRule {
    let Because { key, origin, reason } = because;
    DecidedRule { rule: (*key).to_owned(), origin: origin.to_string(), reason: reason.clone() }
}
