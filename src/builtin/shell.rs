//! `bash`: a shell command. It starts in a root and may access everything that hostler may.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{About, Builtin, Builtins, Call, Roots, Unregistered};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Details, Fault};
use crate::process::{Done, End, Exit, Grace, Launch, Once, once};

pub(super) fn add(tools: &mut Builtins, roots: &Roots) -> Result<(), Unregistered> {
    tools.register(Bash(roots.clone()))
}

struct Bash(Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The command.
    command: String,
    /// Its time limit in seconds.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 3600))]
    timeout: u64,
    /// The folder to run it in, absolute or relative to the first allowed folder (`.`).
    #[serde(default = "crate::builtin::here")]
    path: String,
}

fn usual() -> u64 {
    120
}

#[derive(Debug, Serialize, JsonSchema)]
struct Ran {
    /// Its standard output.
    stdout: String,
    /// Its standard error.
    stderr: String,
    /// Its exit code: 0 is success, -1 a timeout, above 128 a signal.
    exit_code: i32,
}

/// The specification requires this text.
const TIMED_OUT: &str = "Command timed out";

/// How long a command may clean up after its time limit.
const GRACE: Grace = Grace { to_leave: Duration::ZERO, to_obey: Duration::from_millis(500) };

/// The command's limit ends before the call's, so that the caller gets its output.
const MARGIN: Duration = Duration::from_secs(2);

impl Builtin for Bash {
    type Params = Params;
    type Answer = Ran;

    fn about(&self) -> About {
        About::new(
            "bash",
            "Run a shell command and return its output and exit code.\n\nEach call is a new shell without input. A failing command \
             is a result with its exit_code. Background processes end with the call.",
        )
        .risk("system_write", Risk::High)
        .command_argument("command")
        .path_argument("path")
        .timeout(Duration::from_hours(1))
    }

    async fn call(&self, params: Params, call: Call) -> Result<Ran, Fault> {
        if params.command.contains('\0') {
            return Err(Fault::new(Code::InvalidParams, "a command must not contain a NUL character"));
        }
        let at = self.0.locate(&params.path)?;
        let inner = at.really().map_err(|error| self.0.refused(&at.path(), &error))?;
        let shell = call.find_program("bash").or_else(|| call.find_program("sh")).ok_or_else(|| {
            Fault::new(Code::CommandNotFound, "neither `bash` nor `sh` is on hostler's PATH; install one")
        })?;
        let limit = Duration::from_secs(params.timeout).min(call.timeout.saturating_sub(MARGIN)).max(MARGIN / 2);
        let folder = at.above.join(inner);
        let launch = Launch::new(shell).args(["-c", &params.command]).envs(call.env()).within(folder.clone());
        let launch = launch.with_new_privileges(call.new_privileges).with_walls(call.walls.clone());
        let launch = match &call.launcher {
            // There, the shell may lie in another folder.
            Some(launcher) => {
                let name = launch.program.file_name().unwrap_or_default().into();
                launcher
                    .wrap(Launch { program: name, ..launch }, Vec::new())
                    .await
                    .map_err(|reason| reason.unlaunched("bash"))?
            }
            None => launch,
        };
        let (most, tail) = (call.max_output, call.max_output / 2);
        let program = Once { launch, input: Vec::new(), limit, most, tail, grace: GRACE, limits: call.limits };
        let on_line = |stream: crate::process::Stream, line: &str| call.listener.output(stream.word(), line);
        let not_started = |error| self.0.not_started(&folder, &error, Code::CommandNotFound);
        let done = once(program, on_line).await.map_err(not_started)?;
        result(done, call.max_output)
    }
}

fn result(done: Done, max_output: usize) -> Result<Ran, Fault> {
    let mut stderr = done.stderr;
    if done.unkept > 0 {
        stderr.insert_str(0, &format!("… ({} earlier bytes omitted)\n", done.unkept));
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
        End::Excess(excess) => {
            let message = format!("the command {}, so it was stopped", excess.said());
            let stderr = Some(stderr).filter(|text| !text.is_empty());
            let details = Details { stderr, missing: Some(excess.into()), ..Details::default() };
            return Err(Fault::new(Code::ResourceExhausted, message).with(details));
        }
        End::TooMuch => {
            let message = format!(
                "the command wrote more than {} kB and was stopped; limit its output (`| head`, `| tail`), write to a file, or raise \
                 `max_output` under [limits] in hostler.toml",
                max_output / 1000
            );
            let details = Details { stderr: Some(stderr).filter(|text| !text.is_empty()), ..Details::default() };
            return Err(Fault::new(Code::InvalidOutput, message).with(details));
        }
    };
    Ok(Ran { stdout: String::from_utf8_lossy(&done.stdout).into_owned(), stderr, exit_code })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::add;
    use crate::builtin::testing::Bench;
    use crate::outcome::Code;

    #[tokio::test]
    async fn a_command_returns_its_output_and_exit_code() {
        let bench = Bench::of(add);
        bench.put("sub/x", "");
        let run = async |command: &str| bench.call("bash", json!({"command": command, "path": "sub"})).await.unwrap();
        assert_eq!(run("ls; echo oh >&2; exit 3").await, json!({"stdout": "x\n", "stderr": "oh\n", "exit_code": 3}));
        assert_eq!(run("kill -KILL $$").await["exit_code"], 137);
        assert_eq!(run("no-such-command").await["exit_code"], 127);
        assert_eq!(run("cat").await["exit_code"], 0, "there is no input to wait for");
    }

    #[tokio::test]
    async fn a_timed_out_command_is_reported_and_gone() {
        let bench = Bench::of(add);
        let late =
            bench.call("bash", json!({"command": "echo begun; sleep 60 & echo $! > pid; wait", "timeout": 1})).await;
        assert_eq!(late.unwrap(), json!({"stdout": "begun\n", "stderr": "Command timed out", "exit_code": -1}));
        let stat = format!("/proc/{}/stat", bench.text("pid").trim());
        // A zombie is dead.
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let gone = async {
            while lives() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.expect("its children are gone too");
    }

    #[tokio::test]
    async fn endless_output_is_stopped_and_reported() {
        let bench = Bench::of(add);
        bench.fails("bash", json!({"command": "exec yes"}), Code::InvalidOutput, "100 kB").await;
        let much = "i=0; while [ $i -lt 20000 ]; do echo 123456789 >&2; i=$((i+1)); done";
        let done = bench.call("bash", json!({"command": much})).await.unwrap();
        assert!(done["stderr"].as_str().unwrap().starts_with("… ("), "the omission is reported");
        bench.fails("bash", json!({"command": "a\0b"}), Code::InvalidParams, "NUL").await;
        bench.fails("bash", json!({"command": "ls", "path": ".."}), Code::PermissionDenied, "outside").await;
    }

    #[tokio::test]
    async fn a_missing_folder_is_not_reported_as_a_missing_shell() {
        let bench = Bench::of(add);
        bench.put("file", "");
        bench.fails("bash", json!({"command": "ls", "path": "gone"}), Code::ToolError, "gone does not exist").await;
        bench.fails("bash", json!({"command": "ls", "path": "file"}), Code::ToolError, "is a file").await;
    }
}
