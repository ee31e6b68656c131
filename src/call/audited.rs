//! Writes down in the audit log what rules and people decided about calls, before that takes effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::layer::CallContext;
use crate::audit::{AuditLog, DecidedRule, DecisionRecord, Kind, Signing, WriteError, folder};
use crate::config::Environment;
use crate::config::audit::{Audited, Keep};
use crate::config::mode::Mode;
use crate::outcome::{Code, Fault};
use crate::policy::Because;

/// What was decided about a call, as far as that has come.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// The decision; none if nothing was decided, such as for a call that its client has cancelled.
    pub decision: Option<FinalDecision>,
    /// The rules that decided, or that asked a person.
    pub because: Vec<Because>,
    /// What besides rules says why.
    pub reason: Option<String>,
    /// Who answered, and how.
    pub by: Option<String>,
    /// The mode that it was decided in.
    pub mode: Mode,
}

/// A decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalDecision {
    /// No rule is against it.
    Allowed,
    /// A rule is.
    Denied,
    /// A person approved it.
    Approved,
    /// A person did not, or could not be asked.
    NotApproved,
}

impl FinalDecision {
    fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Approved => "approved",
            Self::NotApproved => "not_approved",
        }
    }
}

impl Verdict {
    /// A rule is against it.
    pub fn deny(&mut self, because: Vec<Because>) {
        (self.decision, self.because) = (Some(FinalDecision::Denied), because);
    }

    /// Something else is against it.
    pub fn deny_for(&mut self, reason: impl Into<String>) {
        (self.decision, self.reason) = (Some(FinalDecision::Denied), Some(reason.into()));
    }
}

/// The audit log, for the calls of a workspace.
pub(super) struct DecisionLog {
    log: Arc<AuditLog>,
    signing: Signing,
    /// Whether a checkpoint will be made.
    is_signing: Arc<AtomicBool>,
}

/// How long other processes that write are waited for, and the pause between two tries.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_millis(2));

impl DecisionLog {
    pub fn of(environment: &Environment, signing: Signing) -> Self {
        Self { log: Arc::new(AuditLog::in_folder(folder(environment))), signing, is_signing: Arc::default() }
    }

    /// Whether calls that no rule is against are written down, too.
    pub fn has_all(call: &CallContext) -> bool {
        call.tool.entry.config.audit.log.value == Audited::All
    }

    /// Writes down a decision. A call whose decision cannot be written down is not made.
    pub async fn record(&self, call: &CallContext, arguments: &str, verdict: Verdict) -> Result<(), Fault> {
        let settings = &call.tool.entry.config.audit;
        let Some(decision) = verdict.decision else { return Ok(()) };
        let least = if decision == FinalDecision::Allowed { Audited::All } else { Audited::Denied };
        if settings.log.value < least {
            return Ok(());
        }
        let kind = Kind::Decision(Box::new(decided(call, arguments, decision, &verdict)));
        let error = match self.add(&kind, settings.keep()).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if matches!(decision, FinalDecision::Denied | FinalDecision::NotApproved) {
            // It is not made anyway.
            tracing::warn!(call = call.id(), "a denial is not in the audit log: {error}");
            return Ok(());
        }
        let message = format!("Permission denied: the audit log cannot be written: {error}");
        Err(Fault::new(Code::PermissionDenied, message))
    }

    async fn add(&self, kind: &Kind, keep: Keep) -> Result<(), WriteError> {
        let late = tokio::time::Instant::now() + PATIENCE.0;
        loop {
            match self.log.add(kind, keep) {
                Err(WriteError::Busy) if tokio::time::Instant::now() < late => tokio::time::sleep(PATIENCE.1).await,
                added => return added.map(|due| self.sign(due, keep)),
            }
        }
    }

    /// Makes a checkpoint after a while, unless one will be made already.
    fn sign(&self, due: Duration, keep: Keep) {
        if self.is_signing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (log, pending) = (Arc::clone(&self.log), Pending(Arc::clone(&self.is_signing)));
        self.signing.after(due, move || {
            // What is added from here on needs another one.
            drop(pending);
            if let Err(error) = log.sign(keep) {
                tracing::warn!("the audit log has no new checkpoint: {error}");
            }
        });
    }
}

/// A checkpoint that will be made, until it is dropped: also if there is no thread for it.
struct Pending(Arc<AtomicBool>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The most of a text that is kept, in bytes, and the most texts of a list: what comes from a client has no limit of its own.
const LONGEST: usize = 500;
const MOST: usize = 20;

fn shortened(text: &str) -> String {
    if text.len() <= LONGEST { text.to_owned() } else { format!("{}…", &text[..text.floor_char_boundary(LONGEST)]) }
}

fn decided(call: &CallContext, arguments: &str, decision: FinalDecision, verdict: &Verdict) -> DecisionRecord {
    let (caller, config) = (call.caller(), &call.tool.entry.config);
    // Reasons have values of arguments.
    let secrets = call.running.secrets();
    let shortened = |text: &str| match &secrets {
        Some(secrets) => shortened(&secrets.text(text)),
        None => shortened(text),
    };
    let rule = |because: &Because| DecidedRule {
        rule: because.key.to_owned(),
        origin: because.origin.to_string(),
        reason: shortened(&because.reason),
    };
    let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
    let trace = call.running.trace.as_deref().or(caller.trace.as_ref());
    let rules: Vec<DecidedRule> = verdict.because.iter().take(MOST).map(rule).collect();
    DecisionRecord {
        decision: decision.word().to_owned(),
        call: call.id().to_owned(),
        tool: shortened(&call.tool.name),
        version: hex(&call.tool.entry.version[..8]),
        arguments: hex(&Sha256::digest(arguments)),
        rules,
        more_rules: verdict.because.len().saturating_sub(MOST),
        reason: verdict.reason.as_deref().map(shortened),
        mode: verdict.mode.word().to_owned(),
        by: verdict.by.as_deref().map(shortened),
        session: caller.session.0,
        client: caller.client.as_deref().map(shortened),
        tags: caller.tags.iter().take(MOST).map(|tag| shortened(tag)).collect(),
        trace: trace.map(|trace| trace.traceparent().to_owned()),
        attempt: call.running.attempts.load(Ordering::Relaxed) + 1,
        config: config.files.first().map(|file| shortened(&file.display().to_string())),
    }
}
