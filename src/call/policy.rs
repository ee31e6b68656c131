//! The layer that asks the policy, and the user where a rule says so.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::facts::decide;
use super::layer::{CallContext, Layer, LayerFuture, Next};
use super::questions::Questions;
use crate::outcome::{Code, Fault, Metadata};
use crate::policy::{Because, Decision};
use crate::pool::{Listener, Settled};
use crate::registry::Tool;
use crate::threads::blocking_or_here;

/// Lets pass what the rules allow.
pub(super) struct PolicyLayer;

impl Layer for PolicyLayer {
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        if call.tool.governed().is_none() {
            return next.run();
        }
        Box::pin(async move {
            let mode = next.service.config().mode.value;
            let (tool, text) = (Arc::clone(&call.tool), next.arguments().get().to_owned());
            // Looks at files, which can block.
            let decision = blocking_or_here(move || {
                let arguments = serde_json::from_str(&text).unwrap_or_default();
                decide(&tool, &arguments, mode)
            });
            let refusal = match decision.await {
                Decision::Allowed => None,
                Decision::Denied(because) => Some(reason(&because)),
                Decision::Ask(because) => approved(call, next.arguments(), &reason(&because)).await.err(),
            };
            match refusal {
                None => next.run().await,
                Some(why) => Settled { ended: Err(denied(&call.tool, &why)), metadata: Metadata::default() },
            }
        })
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
