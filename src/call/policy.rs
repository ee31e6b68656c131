//! The layer that asks the policy, and people where a rule says so.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::approval::approved;
use super::facts::facts;
use super::layer::{CallContext, Layer, LayerFuture, Next};
use super::service::CallService;
use crate::config::declared_policy::Mode;
use crate::outcome::{Code, Details, Fault, Metadata};
use crate::policy::{Because, Decision, Facts, Rate, Rules, Turn};
use crate::pool::{SessionId, Settled};
use crate::process::Moment;
use crate::rates::{CountError, Rates};
use crate::registry::Tool;
use crate::threads::blocking_or_here;

/// Lets pass what the rules allow.
pub(super) struct PolicyLayer {
    pub rates: Arc<Rates>,
}

impl Layer for PolicyLayer {
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        if call.running.retries.load(Ordering::Relaxed) == 0 {
            return self.judge(call, next);
        }
        // The rules that the call began with may be old.
        Box::pin(async move {
            match self.judge_again(call, next.arguments(), next.service, false).await {
                Ok(()) => self.judge(call, next).await,
                Err(fault) => Settled { ended: Err(fault), metadata: Metadata::default() },
            }
        })
    }
}

impl PolicyLayer {
    fn judge<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        let Some(governed) = call.tool.governed() else { return next.run() };
        let mode = next.service.config().mode.value;
        let (rules, text) = (&governed.rules, next.arguments().get());
        if rules.judge_paths() {
            let (tool, text) = (Arc::clone(&call.tool), text.to_owned());
            // Looks at files, which can block.
            let facts = blocking_or_here(move || read_facts(&tool, &text, mode));
            return Box::pin(async move { self.go_on(call, next, rules, facts.await).await });
        }
        let facts = if rules.judge_commands() || rules.judge_hosts() {
            read_facts(&call.tool, text, mode)
        } else {
            Facts { mode, ..Facts::default() }
        };
        if rules.rates().is_empty() && rules.decide(&facts) == Decision::Allowed {
            return next.run();
        }
        Box::pin(self.go_on(call, next, rules, facts))
    }
}

fn read_facts(tool: &Tool, arguments: &str, mode: Mode) -> Facts {
    let arguments = serde_json::from_str(arguments).unwrap_or_default();
    tool.governed().map(|governed| facts(tool, governed, &arguments, mode)).unwrap_or_default()
}

impl PolicyLayer {
    async fn go_on(&self, call: &CallContext, next: Next<'_>, rules: &Rules, mut facts: Facts) -> Settled {
        match self.admit(call, next.arguments(), next.service, rules, &mut facts).await {
            Ok(()) => next.run().await,
            Err(fault) => Settled { ended: Err(fault), metadata: Metadata::default() },
        }
    }

    /// Why a call is not made. Its rates are looked at before a person is asked, and it is counted once nothing else is against it.
    async fn admit(
        &self,
        call: &CallContext,
        arguments: &RawValue,
        service: &CallService,
        rules: &Rules,
        facts: &mut Facts,
    ) -> Result<(), Fault> {
        // The fallback to an older version is the same call.
        let is_counted = call.version == 1 && !rules.rates().is_empty();
        let mut decision = rules.decide(facts);
        if is_counted && decision != Decision::Allowed {
            facts.turns = self.turns(call, false).await?;
            decision = rules.decide(facts);
        }
        match decision {
            Decision::Allowed => {}
            Decision::Denied(because) => return Err(denied(&call.tool, &because, &facts.turns)),
            Decision::Ask(because) => {
                approved(call, arguments, service, &reason(&because)).await?;
                self.judge_again(call, arguments, service, true).await?;
            }
        }
        if is_counted {
            facts.turns = self.turns(call, true).await?;
            if let Decision::Denied(because) = rules.decide(facts) {
                return Err(denied(&call.tool, &because, &facts.turns));
            }
        }
        Ok(())
    }

    /// Judges a call by what is in force once a person has approved it, or when it is tried again: that may have taken minutes. What was
    /// approved has to be the same file still.
    async fn judge_again(
        &self,
        call: &CallContext,
        arguments: &RawValue,
        service: &CallService,
        is_approved: bool,
    ) -> Result<(), Fault> {
        let tool = service.find(call.request.role, &call.tool.name)?;
        if is_approved && call.version == 1 && tool.entry.version != call.tool.entry.version {
            let message = format!("Permission denied: {} has changed since it was approved; call it again", tool.name);
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        let (mode, text, of) = (service.config().mode.value, arguments.get().to_owned(), Arc::clone(&tool));
        let facts = blocking_or_here(move || read_facts(&of, &text, mode)).await;
        match tool.governed().map(|governed| governed.rules.decide(&facts)) {
            Some(Decision::Denied(because)) => Err(denied(&tool, &because, &[])),
            _ => Ok(()),
        }
    }

    /// When the rates of a tool admit this call. If that is now and it is to be counted, it is.
    async fn turns(&self, call: &CallContext, counts: bool) -> Result<Vec<Turn>, Fault> {
        let of = call.tool.governed().map(|governed| governed.rules.rates()).unwrap_or_default();
        let look = || {
            let (session, now) = (call.caller().session.0, Moment::now());
            let look = if counts { Rates::take } else { Rates::look };
            look(&self.rates, of, session, now, Duration::ZERO)
        };
        let late = tokio::time::Instant::now() + LONGEST_COUNT;
        loop {
            match look() {
                Err(CountError::Busy) if tokio::time::Instant::now() < late => tokio::time::sleep(PAUSE).await,
                Err(CountError::Busy) => {
                    let message = "Rate limit unknown: another process has held the lock of the counts for 5 s";
                    return Err(Fault::new(Code::Busy, message));
                }
                turns => {
                    let failed = |error| refused(&call.tool, &format!("its calls cannot be counted: {error}"));
                    return turns.map_err(failed);
                }
            }
        }
    }
}

impl CallService {
    /// What the rules would say of a call of this tool now, from a new session. It is not counted. Blocks.
    pub fn decide_now(&self, tool: &Tool, arguments: &Map<String, Value>, mode: Mode) -> Result<Decision, CountError> {
        let Some(governed) = tool.governed() else { return Ok(Decision::Allowed) };
        let session = SessionId::default();
        let turns = self.rates.look(governed.rules.rates(), session.0, Moment::now(), LONGEST_COUNT)?;
        Ok(governed.rules.decide(&Facts { turns, ..facts(tool, governed, arguments, mode) }))
    }
}

/// How long a lock that another process holds is left alone.
const PAUSE: Duration = Duration::from_millis(2);

/// How long the lock of another process is waited for. It holds it for some microseconds.
const LONGEST_COUNT: Duration = Duration::from_secs(5);

/// The reason of the first rule in the order of specification 002.
fn reason(because: &[Because]) -> String {
    because.first().map(|first| first.reason.clone()).unwrap_or_default()
}

fn denied(tool: &Tool, because: &[Because], turns: &[Turn]) -> Fault {
    let why = reason(because);
    if !because.first().is_some_and(|first| Rate::has_key(first.key)) {
        return refused(tool, &why);
    }
    let wait = |turn: &Turn| match turn {
        Turn::Now => Some(Duration::ZERO),
        Turn::After(wait) => Some(*wait),
        Turn::Never => None,
    };
    let waits: Option<Vec<Duration>> = turns.iter().map(wait).collect();
    let longest = waits.and_then(|waits| waits.into_iter().max());
    let retry_after_ms = longest.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    Fault::new(Code::RateLimited, why).with(Details { retry_after_ms, ..Details::default() })
}

pub(super) fn refused(tool: &Tool, why: &str) -> Fault {
    let name = &tool.name;
    let message = format!("Permission denied: {why}; `hostler policy explain {name}` shows the rule");
    Fault::new(Code::PermissionDenied, message)
}
