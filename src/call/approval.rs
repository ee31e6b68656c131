//! Asking for approval of a call: the user of its client, and everybody who can answer elsewhere. The first answer counts.

use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::client::Feature;
use super::layer::CallContext;
use super::questions::Questions;
use super::service::CallService;
use super::watch::EventKind;
use crate::approvals::{Answer, ApprovalRequest, ApprovalScope, PendingAnswer, visible};
use crate::discovery::Kind;
use crate::outcome::Fault;
use crate::pool::Listener;
use crate::threads::blocking_or_here;

/// The most of the arguments that a client's user is shown. Longer ones cannot be judged at a glance.
const SHOWN: usize = 4000;
/// The most of the arguments that are shown in a terminal.
const LONGEST: usize = 64 << 10;

/// Why a call is not made.
pub(super) enum NotApproved {
    /// It was not approved, for this reason.
    Because(String),
    /// The call has ended.
    Ended(Fault),
}

/// Asks people, unless they have said already that such calls may be made. What is shown is what runs: the arguments as the tool gets
/// them, as JSON on one line.
pub(super) async fn require_approval(
    call: &CallContext,
    arguments: &RawValue,
    service: &Arc<CallService>,
    why: &str,
    by: &mut Option<String>,
) -> Result<(), NotApproved> {
    let not = |how: String| Err(NotApproved::Because(format!("{why}, and {how}")));
    let length = arguments.get().len();
    let can_ask = call.request.client.as_ref().is_some_and(|client| client.offers(Feature::Elicitation));
    let has_channel = service.approvals.has_channel();
    if length > LONGEST {
        return not(no_way(can_ask, has_channel, length));
    }
    let request = request(call, arguments, service, why).await;
    let shown = request.arguments.len();
    let (is_client, is_elsewhere) = (can_ask && shown <= SHOWN, has_channel && shown <= LONGEST);
    if is_allowed(service, &request).await {
        *by = Some(BEFORE.to_owned());
        return Ok(());
    }
    let question = match is_elsewhere.then(|| service.approvals.ask(request.clone())).transpose() {
        Err(full) if !is_client => return not(full.to_string()),
        question => question.unwrap_or_default(),
    };
    if !is_client && question.is_none() {
        return not(no_way(can_ask, has_channel, shown));
    }
    // An answer that covers it may have been given since it was looked at.
    if question.is_some() && is_allowed(service, &request).await {
        *by = Some(BEFORE.to_owned());
        return Ok(());
    }
    wait(call, arguments, service, (is_client, question), &request, by).await
}

/// Who approved a call that was not asked about again.
const BEFORE: &str = "allowed before";

async fn is_allowed(service: &CallService, request: &ApprovalRequest) -> bool {
    let (approvals, request) = (Arc::clone(&service.approvals), request.clone());
    blocking_or_here(move || approvals.is_allowed(&request)).await
}

/// Waits for the answer, and says what it was.
async fn wait(
    call: &CallContext,
    arguments: &RawValue,
    service: &CallService,
    (is_client, question): (bool, Option<PendingAnswer>),
    request: &ApprovalRequest,
    by: &mut Option<String>,
) -> Result<(), NotApproved> {
    let (running, tool) = (&call.running, &call.tool.name);
    running.journal_waits();
    running.watch_approval(EventKind::ApprovalRequested, &request.reason);
    let mut answered = |how: &str| {
        *by = Some(how.to_owned());
        running.watch_approval(EventKind::ApprovalAnswered, how);
        tracing::info!(call = running.id, tool, "approval: {how}");
    };
    let questions = Questions {
        client: call.request.client.clone(),
        call_id: running.id.clone(),
        tool: tool.clone(),
        listener: Arc::clone(running) as Arc<dyn Listener>,
        outer: call.request.outer.clone(),
        limit: service.config().approval_timeout.value,
    };
    let message = || format!("Allow {tool} to be called with {}? ({})", request.arguments, request.reason);
    let shown = is_client.then(|| (Arc::from(arguments.to_owned()), message()));
    let answer = running.cancellation.or(tool, questions.consent(shown, question)).await;
    let answer = answer.inspect_err(|_| answered("withdrawn")).map_err(NotApproved::Ended)?;
    match answer {
        Ok((Answer::Allow(scope), who)) => {
            answered(&format!("allowed {} by {}", covered(scope), who.word()));
            service.approvals.record_approved(request);
            Ok(())
        }
        Ok((Answer::Deny(reason), who)) => {
            answered(&format!("denied by {}", who.word()));
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(NotApproved::Because(format!("Approval denied by user{reason}")))
        }
        Err(missing) => {
            answered("no answer");
            Err(NotApproved::Because(format!("{}, and {missing}", request.reason)))
        }
    }
}

fn covered(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Once => "once",
        ApprovalScope::Session => "for the session",
        ApprovalScope::Arguments => "always with these arguments",
        ApprovalScope::Tool => "always",
    }
}

/// Why there is no way to ask.
fn no_way(can_ask: bool, has_channel: bool, length: usize) -> String {
    if has_channel {
        format!("its arguments are too long to be shown ({length} bytes; at most {LONGEST})")
    } else if can_ask {
        format!("its arguments are too long to be shown ({length} bytes; at most {SHOWN} here)")
    } else {
        "this client cannot ask its user, and no shared hostler runs where you could answer `hostler approve`: call it on \
         a terminal, from a client with MCP elicitation, or share one with `hostler serve --shared`"
            .to_owned()
    }
}

async fn request(call: &CallContext, arguments: &RawValue, service: &CallService, why: &str) -> ApprovalRequest {
    let (caller, config, tool) = (call.caller(), service.config(), &call.tool);
    let text = arguments.get().to_owned();
    // Up to 64 kB.
    let shown = blocking_or_here(move || (visible(&text), hex(&Sha256::digest(&text)))).await;
    let is_of_one = !call.request.background && !caller.is_of_many;
    ApprovalRequest {
        call: call.running.id.clone(),
        tool: tool.name.clone(),
        version: hex(&tool.entry.version),
        identity: identity(call, service),
        arguments: shown.0.into(),
        // Of the text: two that read the same may not be the same to every tool.
        digest: shown.1,
        is_secret: !tool.entry.settings.secrets.value.is_empty(),
        reason: why.to_owned(),
        session: caller.session.0,
        number: is_of_one.then(|| service.number_of(caller.session)),
        client: caller.client.clone(),
        project: config.files.first().map(|file| file.display().to_string()).unwrap_or_default(),
        folder: config.directory.display().to_string(),
    }
}

/// What an approval is bound to. A built-in tool has no file: its version is hostler's.
fn identity(call: &CallContext, service: &CallService) -> String {
    let (config, entry) = (service.config(), &call.tool.entry);
    let file = config.files.first().map(|file| file.as_os_str().as_encoded_bytes()).unwrap_or_default();
    let reach = match entry.file.kind {
        Kind::Builtin => format!("{} {}", env!("CARGO_PKG_VERSION"), config.builtin.reach()),
        _ => entry.settings.reach(),
    };
    let folder = config.directory.as_os_str().as_encoded_bytes();
    let mut hash = Sha256::new();
    for part in [
        file,
        folder,
        call.tool.name.as_bytes(),
        call.tool.key().as_bytes(),
        &entry.version,
        config.mode.value.word().as_bytes(),
        reach.as_bytes(),
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
