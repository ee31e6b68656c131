//! Asking people to approve a call: the user of its client, and whoever looks at the calls that wait. The first answer counts.

use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::client::Feature;
use super::layer::CallContext;
use super::policy::refused;
use super::questions::Questions;
use super::service::CallService;
use super::watch::EventKind;
use crate::approvals::{Answer, Asked, Extent, Question, visible};
use crate::outcome::Fault;
use crate::pool::Listener;
use crate::threads::blocking_or_here;

/// The most of the arguments that a client's user is shown. Longer ones cannot be judged at a glance.
const SHOWN: usize = 4000;
/// The most of the arguments that wait for somebody in a terminal.
const LONGEST: usize = 64 << 10;

/// Asks people, unless they have said already that such calls may be made. What is shown is what runs: the arguments as the tool gets
/// them, as JSON on one line. Otherwise says why the call is not made.
pub(super) async fn approved(
    call: &CallContext,
    arguments: &RawValue,
    service: &CallService,
    why: &str,
) -> Result<(), Fault> {
    let asked = asked(call, arguments, service, why);
    if service.approvals.is_allowed(&asked) || is_remembered(service, &asked).await {
        return Ok(());
    }
    let not = |why: String| refused(&call.tool, &why);
    let length = arguments.get().len();
    let can_ask = call.request.client.as_ref().is_some_and(|client| client.offers(Feature::Elicitation));
    let (is_client, is_elsewhere) = (can_ask && length <= SHOWN, service.approvals.has_channel() && length <= LONGEST);
    let question = match is_elsewhere.then(|| service.approvals.ask(asked.clone())).transpose() {
        Err(full) if !is_client => return Err(not(format!("{why}, and {full}"))),
        question => question.unwrap_or_default(),
    };
    if !is_client && question.is_none() {
        return Err(not(format!("{why}, and {}", no_way(can_ask, length))));
    }
    call.running.journal_waits();
    call.running.watch_approval(EventKind::ApprovalRequested, why);
    let answer = answer(call, arguments, service, is_client, question, why);
    let answer = call.running.cancellation.or(&call.tool.name, answer).await?;
    let said = match &answer {
        Ok(Answer::Allow(_)) => "allowed",
        Ok(Answer::Deny(_)) => "denied",
        Err(_) => "not answered",
    };
    call.running.watch_approval(EventKind::ApprovalAnswered, said);
    tracing::info!(call = call.running.id, tool = call.tool.name, "approval was asked for: {said}");
    match answer {
        Ok(Answer::Allow(extent)) => {
            keep(service, asked, extent).await;
            Ok(())
        }
        Ok(Answer::Deny(None)) => Err(not("Approval denied by user".to_owned())),
        Ok(Answer::Deny(Some(reason))) => Err(not(format!("Approval denied by user: {reason}"))),
        Err(silent) => Err(not(format!("{why}, and there is no answer: {silent}"))),
    }
}

/// Why nobody can be asked.
fn no_way(can_ask: bool, length: usize) -> String {
    if can_ask {
        format!("its arguments are too long to be shown ({length} bytes)")
    } else {
        "this client cannot ask its user, and no shared hostler runs where you could answer `hostler approve`: call it on \
                  a terminal, from a client with MCP elicitation, or share one with `hostler serve --shared`"
            .to_owned()
    }
}

fn asked(call: &CallContext, arguments: &RawValue, service: &CallService, why: &str) -> Asked {
    let caller = call.caller();
    let project = service.config().project().map(|file| file.display().to_string());
    Asked {
        call: call.running.id.clone(),
        tool: call.tool.name.clone(),
        version: data_encoding::HEXLOWER.encode(&call.tool.entry.version[..]),
        arguments: visible(arguments.get()).into(),
        // Of the text: two that read the same may not be the same to every tool.
        digest: data_encoding::HEXLOWER.encode(&Sha256::digest(arguments.get())),
        why: why.to_owned(),
        session: service.number_of(caller.session),
        client: caller.client.clone(),
        project: project.unwrap_or_default(),
    }
}

/// Asks the client's user, and waits for whoever else may answer.
async fn answer(
    call: &CallContext,
    arguments: &RawValue,
    service: &CallService,
    is_client: bool,
    question: Option<Question>,
    why: &str,
) -> Result<Answer, String> {
    let (running, request, tool) = (&call.running, &call.request, &call.tool.name);
    let questions = Questions {
        client: request.client.clone(),
        call_id: running.id.clone(),
        tool: tool.clone(),
        listener: Arc::clone(running) as Arc<dyn Listener>,
        outer: request.outer.clone(),
        limit: service.config().approval_timeout.value,
    };
    let message = || format!("Allow {tool} to be called with {}? ({why})", visible(arguments.get()));
    let shown = is_client.then(|| (Arc::from(arguments.to_owned()), message()));
    questions.consent(shown, question).await
}

async fn is_remembered(service: &CallService, asked: &Asked) -> bool {
    let (remembered, asked) = (Arc::clone(&service.remembered), asked.clone());
    blocking_or_here(move || remembered.allow(&asked)).await
}

/// Remembers what it is good for.
async fn keep(service: &CallService, asked: Asked, extent: Extent) {
    service.approvals.approved(&asked);
    if !matches!(extent, Extent::Arguments | Extent::Tool) {
        return;
    }
    let remembered = Arc::clone(&service.remembered);
    let kept = blocking_or_here(move || remembered.keep(&asked, extent == Extent::Arguments)).await;
    if let Err(error) = kept {
        tracing::warn!(%error, "an approval is good for this call only: it cannot be written down");
    }
}
