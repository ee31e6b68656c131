//! Built-in tools that a sandbox limits: each call runs in a process of this program, because walls are around processes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;

use super::makers::usage_limits;
use super::one_shot::excessive;
use super::pooled::Invocation;
use super::walls::walls_with;
use crate::builtin::walled::{SentAnswer, SentCall, read_answer, runs_apart, secrets_of};
use crate::builtin::{BY_OWNER, LookUp};
use crate::config::value::Word;
use crate::outcome::{Code, Details, Fault};
use crate::process::{
    Done, End, EnvFilter, Grace, Launch, Once, Own, SpawnError, USUAL_TAIL, last_word, limit_behind, once, own_program,
    worker_environment,
};
use crate::registry::Tool;

/// The longest answer, in bytes. What may be sent to clients is decided elsewhere.
const LONGEST: usize = 64 << 20;

/// It has nothing to clean up.
const GRACE: Grace = Grace { to_leave: Duration::ZERO, to_obey: Duration::ZERO };

/// Makes a call there.
pub(super) async fn call(
    tool: &Tool,
    invocation: Invocation,
    env_filter: &EnvFilter,
    secrets: &LookUp,
) -> Result<Box<RawValue>, Fault> {
    let name = &tool.function().name;
    let program = own_program().filter(|_| runs_apart(name)).ok_or_else(|| without_process(tool))?;
    let sent = sent(tool, &invocation, secrets).await?;
    let input = serde_json::to_vec(&sent).map_err(|error| Fault::new(Code::SystemError, error.to_string()))?;
    let environment = env_filter.environment();
    let walls = walls_with(&tool.entry, environment, Some(Own::Path(program.clone())));
    let launch = Launch::new(program).args(["builtin", name, "--in-sandbox"]).with_walls(walls);
    let launch = launch.within_that_of(environment).envs(worker_environment(environment, &[]));
    let (limit, limits) = (invocation.timeout, usage_limits(&tool.entry));
    let program = Once { launch, input, limit, most: LONGEST, tail: USUAL_TAIL, grace: GRACE, limits };
    let done = once(program, |_, _| {}).await.map_err(|error| not_started(tool, &error))?;
    match done.end {
        End::Exit(_) => match read_answer(&done.stdout) {
            Some(SentAnswer::Result(result)) => Ok(result),
            Some(SentAnswer::Fault(fault)) => Err(told(fault)),
            None => Err(died(tool, &done)),
        },
        End::TimeOver => {
            let limit = humantime::format_duration(limit);
            Err(Fault::new(Code::ToolTimeout, format!("{} did not end within {limit} and was stopped", tool.name)))
        }
        End::Excess(excess) => Err(excessive(&tool.name, excess, &done)),
        End::TooMuch => Err(Fault::new(Code::InvalidOutput, format!("the result of {} is too long", tool.name))),
    }
}

async fn sent(tool: &Tool, invocation: &Invocation, secrets: &LookUp) -> Result<SentCall, Fault> {
    let (config, name) = (&tool.entry.config, &tool.function().name);
    let settings = &config.builtin;
    let mut found = BTreeMap::new();
    if let Some(secret) = secrets_of(name, settings)
        && let Some(value) = secrets(secret).await?
    {
        found.insert(secret.to_owned(), value);
    }
    Ok(SentCall {
        name: name.clone(),
        arguments: invocation.kwargs.clone(),
        timeout: invocation.timeout,
        max_output: config.limits.max_output.value.0,
        roots: settings.roots.iter().flat_map(|roots| &roots.value).cloned().collect(),
        private: settings.fetch_private.iter().flat_map(|names| &names.value).cloned().collect(),
        provider: settings.search.as_ref().map(|provider| provider.value.word().to_owned()),
        provider_url: settings.search_url.as_ref().map(|url| url.value.clone()),
        secrets: found,
    })
}

/// Why a built-in tool is not called: it needs a process, and can only run inside this one.
fn without_process(tool: &Tool) -> Fault {
    let name = &tool.function().name;
    let sandbox = tool.entry.settings.sandbox.iter().find(|sandbox| sandbox.limits_access());
    let place = sandbox.map(|sandbox| format!(" ({})", sandbox.origin)).unwrap_or_default();
    let message =
        format!("Permission denied: {name} needs a sandbox{place}, and this tool can only run inside hostler");
    Fault::new(Code::PermissionDenied, message)
}

fn not_started(tool: &Tool, error: &SpawnError) -> Fault {
    if let Some(limit) = limit_behind(&error.source) {
        return Fault::new(Code::ResourceExhausted, format!("{} could not be started: {limit}", tool.name));
    }
    Fault::new(Code::StartupFailed, format!("{} could not be started in its sandbox: {}", tool.name, error.source))
}

/// A fault without advice that holds outside of a sandbox only. What the sandbox has to do with it is added by others.
fn told(mut fault: Fault) -> Fault {
    if let Some(what) = fault.message.strip_suffix(BY_OWNER) {
        fault.message = what.to_owned();
    }
    fault
}

fn died(tool: &Tool, done: &Done) -> Fault {
    let last = last_word(&done.stderr).map(|line| format!("; its last words: {line}")).unwrap_or_default();
    let message = format!("{} died in its sandbox{last}", tool.name);
    let stderr = Some(done.stderr.trim_end().to_owned()).filter(|text| !text.is_empty());
    Fault::new(Code::ToolCrashed, message).with(Details { stderr, ..Details::default() })
}
