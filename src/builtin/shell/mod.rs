//! `bash`: a command as a person would type it. It begins in a root and may go wherever hostler may.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{About, Builtin, Builtins, Call, Roots, Unregistered};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Details, Fault};
use crate::process::{Done, End, Exit, Grace, Launch, Once, once};

#[cfg(test)]
mod tests;

pub(super) fn add(tools: &mut Builtins, roots: &Roots) -> Result<(), Unregistered> {
    tools.register(Bash(roots.clone()))
}

struct Bash(Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The command, as bash reads it.
    command: String,
    /// How many seconds it may run.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 3600))]
    timeout: u64,
    /// The folder to run it in; relative paths begin at the first folder that tools may reach, which `.` is.
    #[serde(default = "crate::builtin::here")]
    path: String,
}

fn usual() -> u64 {
    120
}

#[derive(Debug, Serialize, JsonSchema)]
struct Ran {
    /// What it wrote to standard output.
    stdout: String,
    /// What it wrote to standard error.
    stderr: String,
    /// How it ended: 0 is well, -1 is that its time was over, 128 and more that a signal ended it.
    exit_code: i32,
}

/// What a command whose time is over is told with, as the specification has it.
const TIMED_OUT: &str = "Command timed out";

/// A command may clean up for this long when its time is over.
const GRACE: Grace = Grace { to_leave: Duration::ZERO, to_obey: Duration::from_millis(500) };

/// Whoever calls is to hear that the command's time is over, and not the call's.
const MARGIN: Duration = Duration::from_secs(2);

impl Builtin for Bash {
    type Params = Wanted;
    type Answer = Ran;

    fn about(&self) -> About {
        About::new(
            "bash",
            "Run a command in a shell and return what it wrote and how it ended.\n\nEach call is a shell of its own, without \
             input. A command that fails is a result with its exit_code. What is started in the background ends with it.",
        )
        .risk("system_write", Risk::High)
        .timeout(Duration::from_hours(1))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Ran, Fault> {
        if wanted.command.contains('\0') {
            return Err(Fault::new(Code::InvalidParams, "a command holds no NUL character"));
        }
        let at = self.0.locate(&wanted.path)?;
        let inner = at.really().map_err(|error| self.0.refused(&at.path(), &error))?;
        let shell = call.find_program("bash").or_else(|| call.find_program("sh")).ok_or_else(|| {
            Fault::new(Code::CommandNotFound, "there is neither `bash` nor `sh` on hostler's PATH; install one")
        })?;
        let limit = Duration::from_secs(wanted.timeout).min(call.timeout.saturating_sub(MARGIN)).max(MARGIN / 2);
        let folder = at.above.join(inner);
        let launch = Launch::new(shell).args(["-c", &wanted.command]).envs(call.env()).within(folder.clone());
        let most = call.most;
        let program = Once { launch, input: Vec::new(), limit, most, tail: most / 2, grace: GRACE };
        let hear = |stream: crate::process::Stream, line: &str| call.listener.output(stream.word(), line);
        let not_started = |error| self.0.not_started(&folder, &error, Code::CommandNotFound);
        let done = once(program, hear).await.map_err(not_started)?;
        told(done, most)
    }
}

fn told(done: Done, most: usize) -> Result<Ran, Fault> {
    let mut stderr = done.stderr;
    if done.unkept > 0 {
        stderr.insert_str(0, &format!("… ({} bytes before this are left out)\n", done.unkept));
    }
    let exit_code = match done.end {
        End::Exit(Exit::Code(code)) => code,
        End::Exit(Exit::Signal(signal)) => 128 + signal,
        End::Exit(Exit::Unknown) => -1,
        End::TimeOver => {
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(TIMED_OUT);
            -1
        }
        End::TooMuch => {
            let message = format!(
                "the command wrote more than {} kB and was stopped; let it write less (`| head`, `| tail`), or to a file, or \
                 raise `max_output` under [limits] in hostler.toml",
                most / 1000
            );
            let details = Details { stderr: Some(stderr).filter(|text| !text.is_empty()), ..Details::default() };
            return Err(Fault::new(Code::InvalidOutput, message).with(details));
        }
    };
    Ok(Ran { stdout: String::from_utf8_lossy(&done.stdout).into_owned(), stderr, exit_code })
}
