//! Methods about calls that wait for a person's approval.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::refusals::{invalid_params, not_found, not_saved};
use super::table::{Answer, Entry, Nothing, Scope, Table};
use crate::approvals::{self, AnswerError, ApprovalScope, WaitingCall};
use crate::threads::blocking_or_here;

pub(super) fn enter(table: &mut impl Table) {
    let about = "The calls that wait for a person, those that have waited longest first. After the first call of this \
                 method, calls also wait whose own client cannot ask.";
    table.enter(Entry { name: "approvals.list", scope: Scope::Operate, session: false, about }, list);
    let about = "Approves or denies a call that waits. The first answer counts. Answers with the ids of the calls that it decides.";
    table.enter(Entry { name: "approvals.answer", scope: Scope::Operate, session: false, about }, answer);
}

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Decision {
    /// This call is made.
    Once,
    /// It and later calls of this version of the tool in its session are made; not where several clients share one.
    Session,
    /// It and later calls of this version of the tool with the same arguments are made.
    Arguments,
    /// It and later calls of this version of the tool are made.
    Tool,
    /// It is not made.
    Deny,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Decided {
    /// The id of the approval.
    approval: String,
    /// What is decided.
    decision: Decision,
    /// Why it is denied; the model reads it.
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Settled {
    /// The ids of the calls, the one that was asked about first.
    calls: Vec<String>,
}

async fn list(client: Arc<Client>, _: Nothing) -> Answer<Vec<WaitingCall>> {
    let approvals = &client.control().runtime().approvals;
    approvals.open_channel();
    Ok(approvals.list())
}

async fn answer(client: Arc<Client>, params: Decided) -> Answer<Settled> {
    let Decided { approval, decision, reason } = params;
    let allow = approvals::Answer::Allow;
    let answer = match decision {
        Decision::Once => allow(ApprovalScope::Once),
        Decision::Session => allow(ApprovalScope::Session),
        Decision::Arguments => allow(ApprovalScope::Arguments),
        Decision::Tool => allow(ApprovalScope::Tool),
        Decision::Deny => approvals::Answer::Deny(reason.filter(|reason| !reason.trim().is_empty())),
    };
    let (approvals, id) = (Arc::clone(&client.control().runtime().approvals), approval.clone());
    // What is allowed for good is written.
    let calls = blocking_or_here(move || approvals.answer(&id, &answer)).await;
    calls.map(|calls| Settled { calls }).map_err(|error| match error {
        AnswerError::NotWaiting => {
            not_found(format!("no call waits for the approval {approval}; list them with `approvals.list`"))
        }
        AnswerError::NoSession => invalid_params(&format!("{error}; decide `once`, `arguments` or `tool`")),
        AnswerError::NotSaved(_) => not_saved(&error),
    })
}
