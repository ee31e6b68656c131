//! The layer that asks the policy, and people where a rule says so.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::approval::{NotApproved, require_approval};
use super::audited::{DecisionLog, FinalDecision, Verdict};
use super::facts::facts;
use super::layer::{CallContext, Layer, LayerFuture, Next};
use super::service::CallService;
use crate::config::mode::Mode;
use crate::outcome::{Code, Details, Fault, Metadata};
use crate::policy::{Because, Decision, Facts, Rate, Rules, Turn, Unit};
use crate::pool::{SessionId, Settled};
use crate::process::Moment;
use crate::rates::{CountError, Purpose, Rates};
use crate::registry::Tool;
use crate::threads::blocking_or_here;

/// Lets pass what the rules allow.
pub(super) struct PolicyLayer {
    pub rates: Arc<Rates>,
    pub decisions: DecisionLog,
}

impl Layer for PolicyLayer {
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        if !call.running.is_again.load(Ordering::Relaxed) {
            return self.judge(call, next);
        }
        Box::pin(async move {
            let mut verdict = Verdict::default();
            match self.judge_again(call, next.arguments(), next.service, false, &mut verdict).await {
                Err(fault) => {
                    let recorded = self.decisions.record(call, next.arguments().get(), verdict).await;
                    refusal(recorded.err().unwrap_or(fault))
                }
                Ok(now) if now.is_empty() => self.judge(call, next).await,
                // The rules that the call began with may not ask.
                Ok(now) => self.go_on(call, next, Asks { now, facts: None }).await,
            }
        })
    }
}

/// What is known of a call before it is admitted.
struct Asks {
    /// The rules in force now that ask a person, where the call began with others.
    now: Vec<Because>,
    /// The facts, where they are known already.
    facts: Option<Facts>,
}

fn refusal(fault: Fault) -> Settled {
    Settled { ended: Err(fault), metadata: Metadata::default() }
}

impl PolicyLayer {
    fn judge<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        let Some(governed) = call.tool.governed() else { return self.pass(call, next) };
        let rules = &governed.rules;
        let mut asks = Asks { now: Vec::new(), facts: None };
        if !rules.judge_paths() {
            let mode = next.service.config().mode.value;
            let facts = if rules.judge_commands() || rules.judge_hosts() {
                read_facts(&call.tool, next.arguments().get(), mode)
            } else {
                Facts { mode, ..Facts::default() }
            };
            if rules.rates().is_empty() && rules.decide(&facts) == Decision::Allowed {
                return self.pass(call, next);
            }
            asks.facts = Some(facts);
        }
        Box::pin(self.go_on(call, next, asks))
    }
}

fn read_facts(tool: &Tool, arguments: &str, mode: Mode) -> Facts {
    let arguments = serde_json::from_str(arguments).unwrap_or_default();
    tool.governed().map(|governed| facts(tool, governed, &arguments, mode)).unwrap_or_default()
}

/// The same where that looks at files, which can block.
async fn facts_of(tool: &Arc<Tool>, arguments: &RawValue, service: &CallService) -> Facts {
    let (tool, text, mode) = (Arc::clone(tool), arguments.get().to_owned(), service.config().mode.value);
    blocking_or_here(move || read_facts(&tool, &text, mode)).await
}

impl PolicyLayer {
    async fn go_on(&self, call: &CallContext, next: Next<'_>, asks: Asks) -> Settled {
        let mut verdict = Verdict::default();
        let admitted = self.admit(call, next.arguments(), next.service, asks, &mut verdict).await;
        let recorded = self.decisions.record(call, next.arguments().get(), verdict).await;
        match admitted.and(recorded) {
            Ok(()) => {
                let settled = next.run().await;
                self.spend(call, &settled).await;
                settled
            }
            Err(fault) => refusal(fault),
        }
    }

    /// Makes a call that no rule is against.
    fn pass<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        if !DecisionLog::has_all(call) {
            return next.run();
        }
        let mode = next.service.config().mode.value;
        let verdict = Verdict { decision: Some(FinalDecision::Allowed), mode, ..Verdict::default() };
        Box::pin(async move {
            match self.decisions.record(call, next.arguments().get(), verdict).await {
                Ok(()) => next.run().await,
                Err(fault) => refusal(fault),
            }
        })
    }

    /// Counts how long a call ran, also if it failed: a tool that is killed after an hour has run for an hour.
    async fn spend(&self, call: &CallContext, settled: &Settled) {
        let rates = call.tool.governed().map(|governed| governed.rules.rates()).unwrap_or_default();
        let ran = Duration::try_from_secs_f64(settled.metadata.run_ms / 1000.0).unwrap_or_default();
        if rates.iter().any(|rate| rate.unit == Unit::Seconds)
            && !ran.is_zero()
            && let Err(fault) = self.turns(call, Purpose::Spend(ran)).await
        {
            tracing::warn!(tool = call.tool.name, "how long a call ran is not counted: {}", fault.message);
        }
    }

    /// Why a call is not made. Its rates are looked at before a person is asked, and it is counted once nothing else is against it.
    async fn admit(
        &self,
        call: &CallContext,
        arguments: &RawValue,
        service: &Arc<CallService>,
        asks: Asks,
        verdict: &mut Verdict,
    ) -> Result<(), Fault> {
        let none = Rules::default();
        let rules = call.tool.governed().map_or(&none, |governed| &governed.rules);
        let mut facts = match asks.facts {
            Some(facts) => facts,
            None => facts_of(&call.tool, arguments, service).await,
        };
        verdict.mode = facts.mode;
        // The fallback to an older version is the same call.
        let is_counted = call.version == 1 && !rules.rates().is_empty();
        let mut decision = rules.decide(&facts);
        if is_counted && decision != Decision::Allowed {
            facts.turns = self.turns(call, Purpose::Look).await?;
            decision = rules.decide(&facts);
        }
        let asking = match decision {
            Decision::Denied(because) => return Err(denied(&call.tool, because, &facts.turns, verdict)),
            Decision::Ask(because) => because,
            Decision::Allowed => asks.now,
        };
        let is_asked = !asking.is_empty();
        if is_asked {
            let why = reason(&asking);
            verdict.because = asking;
            require_approval(call, arguments, service, &why, &mut verdict.by).await.map_err(|not| match not {
                NotApproved::Because(why) => {
                    verdict.decision = Some(FinalDecision::NotApproved);
                    verdict.reason = Some(why.clone());
                    refused(&call.tool, &why)
                }
                NotApproved::Ended(fault) => fault,
            })?;
            verdict.decision = Some(FinalDecision::Approved);
            self.judge_again(call, arguments, service, true, verdict).await?;
        }
        if is_counted {
            facts.turns = self.turns(call, Purpose::Take).await.inspect_err(|fault| {
                if fault.code != Code::Busy {
                    verdict.deny_for(&*fault.message);
                }
            })?;
            if let Decision::Denied(because) = rules.decide(&facts) {
                return Err(denied(&call.tool, because, &facts.turns, verdict));
            }
        }
        if !is_asked {
            verdict.decision = Some(FinalDecision::Allowed);
        }
        Ok(())
    }

    /// Judges a call by what is in force once a person has approved it, or when it is tried again: that may have taken minutes. What was
    /// approved has to be the same file still. The rules by which a person is to be asked.
    async fn judge_again(
        &self,
        call: &CallContext,
        arguments: &RawValue,
        service: &CallService,
        is_approved: bool,
        verdict: &mut Verdict,
    ) -> Result<Vec<Because>, Fault> {
        let tool = service.find(call.request.role, &call.tool.name)?;
        if is_approved
            && call.version == 1
            && (tool.entry.version != call.tool.entry.version || tool.key() != call.tool.key())
        {
            verdict.deny_for("its file has changed since it was approved");
            let message = format!("Permission denied: {} has changed since it was approved; call it again", tool.name);
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        let facts = facts_of(&tool, arguments, service).await;
        verdict.mode = facts.mode;
        match tool.governed().map(|governed| governed.rules.decide(&facts)) {
            Some(Decision::Denied(because)) => Err(denied(&tool, because, &[], verdict)),
            Some(Decision::Ask(because)) => Ok(because),
            _ => Ok(Vec::new()),
        }
    }

    /// When the rates of a tool admit this call, counted as the purpose says.
    async fn turns(&self, call: &CallContext, purpose: Purpose) -> Result<Vec<Turn>, Fault> {
        let of = call.tool.governed().map(|governed| governed.rules.rates()).unwrap_or_default();
        let session = call.caller().session.0;
        let look = || self.rates.count(of, session, Moment::now(), Duration::ZERO, purpose);
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

fn denied(tool: &Tool, because: Vec<Because>, turns: &[Turn], verdict: &mut Verdict) -> Fault {
    let why = reason(&because);
    verdict.deny(because);
    let because = &verdict.because;
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

fn refused(tool: &Tool, why: &str) -> Fault {
    let name = &tool.name;
    let message = format!("Permission denied: {why}; `hostler policy explain {name}` shows the rule");
    Fault::new(Code::PermissionDenied, message)
}
