//! Executables with one process per call: arguments on standard input, the result on standard output.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};

use super::admission::Admission;
use super::makers::{directory_of, usage_limits};
use super::pooled::Invocation;
use super::walls::walls_of;
use crate::outcome::{Code, Details, Fault, Metadata};
use crate::pool::{BrokerHandle, Settled};
use crate::process::{
    Done, End, EnvFilter, Excess, Exit, Grace, Launch, Once, Stream, USUAL_TAIL, cannot_run, last_word, once,
};
use crate::protocol::TraceContext;
use crate::registry::{Catalogue, Tool};
use crate::worker::is_sent;

/// How an executable is stopped at its time limit, and when its call is cancelled: TERM, then KILL.
const GRACE: Grace = Grace { to_leave: Duration::ZERO, to_obey: Duration::from_millis(500) };

/// The longest argument of a program, in bytes: Linux's limit.
const LONGEST_ARGUMENT: usize = 128 << 10;

/// Names the tool, for executables with several.
const WHICH: &str = "HOSTLER_TOOL";

/// All executables with one process per call.
pub struct OneShots {
    admission: Admission,
    env_filter: EnvFilter,
}

impl OneShots {
    /// `env_filter` holds the variables that executables do not inherit.
    pub fn new(shared: Arc<BrokerHandle>, env_filter: EnvFilter) -> Self {
        Self { admission: Admission::new(shared), env_filter }
    }

    /// Runs a call. Dropping the future stops the process group.
    pub async fn call(&self, tool: &Tool, invocation: Invocation) -> Settled {
        let work = |invocation, _seat| async {
            let mut metadata = Metadata { cold: true, ..Metadata::default() };
            Settled { ended: self.run(tool, invocation, &mut metadata).await, metadata }
        };
        self.admission.settled(tool, invocation, work).await
    }

    /// Removes deleted tool files.
    pub fn keep_those_of(&self, catalogue: &Catalogue) {
        self.admission.keep_those_of(catalogue);
    }

    async fn run(&self, tool: &Tool, invocation: Invocation, metadata: &mut Metadata) -> Result<Box<RawValue>, Fault> {
        let file = &tool.entry.file;
        let max_output = tool.entry.config.limits.max_output.value.0;
        let launch = self.launch(tool, invocation.trace.as_deref());
        let arguments = invocation.kwargs.get();
        let (launch, input) = match &tool.entry.settings.input_option {
            Some(option) => (launch.arg(&option.value).arg(fitting(tool, arguments)?), Vec::new()),
            None => (launch, arguments.as_bytes().to_vec()),
        };
        let program = Once {
            launch,
            input,
            limit: invocation.timeout,
            most: max_output,
            tail: USUAL_TAIL,
            grace: GRACE,
            limits: usage_limits(&tool.entry),
        };
        // Standard output is the result and is not forwarded.
        let hear = |stream: Stream, line: &str| match stream {
            Stream::Errors => invocation.listener.output(stream.word(), line),
            Stream::Output => {}
        };
        let launcher = tool.entry.launcher(self.env_filter.environment());
        let is_launched = launcher.is_some();
        let program = match launcher {
            Some(launcher) => {
                let launch =
                    launcher.wrap(program.launch, Vec::new()).await.map_err(|reason| reason.unlaunched(&tool.name))?;
                Once { launch, ..program }
            }
            None => program,
        };
        let done = once(program, hear).await.map_err(|error| {
            let reason = cannot_run(&file.path, &error);
            let other = || Fault::new(Code::CommandNotFound, format!("{} was not called: {reason}", tool.name));
            error.limit().unwrap_or_else(other)
        })?;
        metadata.worker = Some(done.pid);
        if !done.stderr.is_empty() {
            metadata.output = Some(done.stderr.clone());
        }
        match done.end {
            End::Exit(Exit::Code(0)) if tool.entry.settings.prints_text() => text(&done),
            End::Exit(Exit::Code(0)) => result(&tool.name, &done),
            End::Exit(exit) => {
                let exit = if is_launched { exit.behind_launcher() } else { exit };
                Err(ended(&tool.name, exit, &done))
            }
            End::TimeOver => Err(too_long(&tool.name, invocation.timeout, &done)),
            End::TooMuch => Err(too_much(&tool.name, max_output, &done)),
            End::Excess(excess) => Err(excessive(&tool.name, excess, &done)),
        }
    }

    fn launch(&self, tool: &Tool, trace: Option<&TraceContext>) -> Launch {
        let settings = &tool.entry.settings;
        let own = settings.env.iter().map(|(name, value)| (name.into(), value.value.clone().into()));
        let start = Launch {
            directory: directory_of(&tool.entry, self.env_filter.environment()),
            ..Launch::new(&tool.entry.file.path)
        };
        let walls = walls_of(&tool.entry, self.env_filter.environment());
        let start = start.with_new_privileges(settings.new_privileges.value).with_walls(walls);
        let mut launch = start.envs(self.env_filter.for_programs()).envs(own.collect());
        for (name, value) in trace.into_iter().flat_map(TraceContext::variables) {
            launch = launch.env(name, value);
        }
        if tool.entry.file.functions.len() > 1 {
            // The name is also an argument, for programs that prefer arguments.
            launch = launch.arg(&tool.function().name).env(WHICH, &tool.function().name);
        }
        launch
    }
}

/// The arguments as the value of an option.
fn fitting<'a>(tool: &Tool, arguments: &'a str) -> Result<&'a str, Fault> {
    if arguments.len() < LONGEST_ARGUMENT {
        return Ok(arguments);
    }
    let what = format!(
        "the arguments of {} are {} bytes of JSON; its program takes them as the value of an option, which may have {LONGEST_ARGUMENT}. \
         Pass less, or the path of a file",
        tool.name,
        arguments.len()
    );
    Err(Fault::new(Code::InvalidParams, what))
}

/// All that was printed as a string, without the end of its last line.
fn text(done: &Done) -> Result<Box<RawValue>, Fault> {
    let text = String::from_utf8_lossy(&done.stdout);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    to_raw_value(text).map_err(|error| Fault::new(Code::InvalidOutput, error.to_string()))
}

fn result(tool: &str, done: &Done) -> Result<Box<RawValue>, Fault> {
    let wrong = |what: String| {
        let message = format!(
            "the output of {tool} {what}; a tool prints one JSON value on its standard output (a string in quotation marks), and \
             everything else on standard error; for a program that prints text, set `output = \"text\"` under [tool.NAME], or let `--schema` print `\"output\": \"text\"`"
        );
        Err(Fault::new(Code::InvalidOutput, message).with(details(done)))
    };
    let Ok(text) = std::str::from_utf8(&done.stdout) else { return wrong("is not UTF-8".to_owned()) };
    if text.trim().is_empty() {
        return wrong("is empty".to_owned());
    }
    match serde_json::from_str::<Box<RawValue>>(text.trim()) {
        Ok(value) => Ok(value),
        Err(error) if error.to_string().starts_with("trailing characters") => {
            wrong(format!("continues after its JSON value, at line {} column {}", error.line(), error.column()))
        }
        Err(error) => wrong(format!("is not JSON: {error}")),
    }
}

fn details(done: &Done) -> Details {
    let stderr = Some(done.stderr.trim_end().to_owned()).filter(|text| !text.is_empty());
    Details { stderr, peak_memory: done.peak_memory, ..Details::default() }
}

fn ended(tool: &str, exit: Exit, done: &Done) -> Fault {
    let signal = exit.signal_name();
    let details = Details { exit_code: exit.code(), signal: signal.clone(), ..details(done) };
    let fault = match (exit, signal) {
        (Exit::Code(code), _) => {
            let said = last_word(&done.stderr).map(|line| format!("; last line of stderr: {line}")).unwrap_or_default();
            Fault::new(Code::ToolCrashed, format!("{tool} crashed with exit code {code}{said}"))
        }
        (_, Some(signal)) if is_sent(&signal) => {
            Fault::new(Code::ProcessKilled, format!("{tool} was killed with {signal} by another process"))
        }
        (_, Some(signal)) => Fault::new(Code::ToolCrashed, format!("{tool} crashed with {signal}")),
        _ => Fault::new(Code::ToolCrashed, format!("{tool} died")),
    };
    fault.with(details)
}

fn too_long(tool: &str, timeout: Duration, done: &Done) -> Fault {
    let message = format!("{tool} did not answer in {}; its process was stopped", humantime::format_duration(timeout));
    Fault::new(Code::ToolTimeout, message).with(details(done))
}

pub(super) fn excessive(tool: &str, excess: Excess, done: &Done) -> Fault {
    let message = format!("{tool} {}, so it was stopped", excess.said());
    Fault::new(Code::ResourceExhausted, message).with(Details { missing: Some(excess.into()), ..details(done) })
}

fn too_much(tool: &str, max_output: usize, done: &Done) -> Fault {
    let message = format!(
        "{tool} printed more than {} kB and was stopped; print less, or write to a file and print the path, or raise \
         `max_output` under [limits] in hostler.toml",
        max_output / 1000
    );
    Fault::new(Code::InvalidOutput, message).with(details(done))
}
