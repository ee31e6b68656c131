//! The layer that asks the policy, and the user where a rule says so.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::client::Feature;
use super::facts::decide;
use super::layer::{CallContext, Layer, LayerFuture, Next};
use super::questions::Questions;
use crate::config::declared_policy::Mode;
use crate::outcome::{Code, Fault, Metadata};
use crate::policy::{Because, Decision, Facts};
use crate::pool::{Listener, Settled};
use crate::registry::Tool;
use crate::threads::blocking_or_here;

/// Lets pass what the rules allow.
pub(super) struct PolicyLayer;

impl Layer for PolicyLayer {
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        let Some(governed) = call.tool.governed() else { return next.run() };
        let mode = next.service.config().mode.value;
        let (rules, text) = (&governed.rules, next.arguments().get());
        if rules.judge_paths() {
            let (tool, text) = (Arc::clone(&call.tool), text.to_owned());
            // Looks at files, which can block.
            let decision = blocking_or_here(move || decide_text(&tool, &text, mode));
            return Box::pin(async move { go_on(call, next, decision.await).await });
        }
        let decision = if rules.judge_commands() || rules.judge_hosts() {
            decide_text(&call.tool, text, mode)
        } else {
            rules.decide(&Facts { mode, ..Facts::default() })
        };
        if decision == Decision::Allowed { next.run() } else { Box::pin(go_on(call, next, decision)) }
    }
}

fn decide_text(tool: &Tool, arguments: &str, mode: Mode) -> Decision {
    decide(tool, &serde_json::from_str(arguments).unwrap_or_default(), mode)
}

async fn go_on(call: &CallContext, next: Next<'_>, decision: Decision) -> Settled {
    let refusal = match decision {
        Decision::Allowed => None,
        Decision::Denied(because) => Some(reason(&because)),
        Decision::Ask(because) => approved(call, next.arguments(), &reason(&because)).await.err(),
    };
    match refusal {
        None => next.run().await,
        Some(why) => Settled { ended: Err(denied(&call.tool, &why)), metadata: Metadata::default() },
    }
}

/// The reason of the first rule in the order of specification 002.
fn reason(because: &[Because]) -> String {
    because.first().map(|first| first.reason.clone()).unwrap_or_default()
}

fn denied(tool: &Tool, why: &str) -> Fault {
    let name = &tool.name;
    let message = format!("Permission denied: {why}; `hostler policy explain {name}` shows the rule");
    Fault::new(Code::PermissionDenied, message)
}

/// How long a person has to answer.
const TO_APPROVE: Duration = Duration::from_mins(5);

/// The most of the arguments that a person is shown. Longer ones cannot be judged at a glance.
const SHOWN: usize = 4000;

/// Asks the user of the call's client. What is shown is what runs: the arguments as the tool gets them, as JSON on one line. Says why the
/// call may not be made.
async fn approved(call: &CallContext, arguments: &RawValue, why: &str) -> Result<(), String> {
    let (running, request, tool) = (&call.running, &call.request, &call.tool.name);
    let can_ask = request.client.as_ref().is_some_and(|client| client.offers(Feature::Elicitation));
    if !can_ask {
        return Err(format!(
            "{why}, and this client cannot ask its user: call it on a terminal, or from a client with MCP elicitation"
        ));
    }
    let shown = arguments.get();
    if shown.len() > SHOWN {
        return Err(format!("{why}, and its arguments are too long to be shown"));
    }
    let questions = Questions {
        client: request.client.clone(),
        call_id: running.id.clone(),
        tool: tool.clone(),
        listener: Arc::clone(running) as Arc<dyn Listener>,
        outer: request.outer.clone(),
        limit: TO_APPROVE,
    };
    let message = format!("Allow {tool} to be called with {shown}? ({why})");
    match questions.consent(Arc::from(arguments.to_owned()), message).await {
        Ok(true) => Ok(()),
        Ok(false) => Err("Approval denied by user".to_owned()),
        Err(error) => Err(format!("{why}, and there is no answer: {error}")),
    }
}
