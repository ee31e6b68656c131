//! What to start: program, arguments, the whole environment, the directory; and the search for the process behind a
//! launcher.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::child::{Child, Tracked};
use super::table;
use super::walls::Walls;
use crate::config::Environment;
use crate::config::origin::Diagnosis;

/// A process to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program, as a path.
    pub program: PathBuf,
    /// Its arguments. Never secrets: other users can read arguments.
    pub args: Vec<OsString>,
    /// Its whole environment; nothing is inherited.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory; hostler's own if `None`.
    pub directory: Option<PathBuf>,
    /// Whether it may gain privileges by `exec`, as `sudo` does. Then it has no domain and may read other processes.
    pub new_privileges: bool,
    /// What it may reach, if that is limited. Walls count over `new_privileges`.
    pub walls: Option<Arc<Walls>>,
}

impl Launch {
    /// A program without arguments and variables.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            directory: None,
            new_privileges: false,
            walls: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn within(mut self, folder: impl Into<PathBuf>) -> Self {
        self.directory = Some(folder.into());
        self
    }

    /// Sets the working directory to the one of this environment.
    #[must_use]
    pub fn within_that_of(mut self, environment: &Environment) -> Self {
        self.directory = environment.directory().map(Path::to_owned);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Decides whether it may gain privileges.
    #[must_use]
    pub fn with_new_privileges(mut self, allowed: bool) -> Self {
        self.new_privileges = allowed;
        self
    }

    /// Decides what it may reach.
    #[must_use]
    pub fn with_walls(mut self, walls: Option<Arc<Walls>>) -> Self {
        self.walls = walls;
        self
    }

    /// The command that starts it, as far as that is a matter of program and arguments.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        command
    }

    /// The folder for temporary files that its variables name.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(super) fn temporary(&self) -> &Path {
        let named = self.env.get(OsStr::new("TMPDIR")).map(Path::new).filter(|path| path.is_absolute());
        named.unwrap_or(Path::new("/tmp"))
    }

    /// Sets variables.
    #[must_use]
    pub fn envs(mut self, variables: BTreeMap<OsString, OsString>) -> Self {
        self.env.extend(variables);
        self
    }
}

/// A process that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{program} could not be started: {source}")]
pub struct SpawnError {
    /// The program as requested.
    pub program: String,
    /// The system's error.
    #[source]
    pub source: io::Error,
}

/// Variables that every worker inherits, if hostler has them.
const WORKER_VARIABLES: [&str; 10] =
    ["HOME", "USER", "LOGNAME", "PATH", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"];

/// Whether workers inherit a variable of hostler's environment: an allow-list, `LC_*` and the names in `pass`.
pub fn reaches_workers(name: &str, pass: &[String]) -> bool {
    WORKER_VARIABLES.contains(&name) || name.starts_with("LC_") || pass.iter().any(|wanted| wanted == name)
}

/// A worker's environment, from hostler's own.
pub fn worker_environment(environment: &Environment, pass: &[String]) -> BTreeMap<OsString, OsString> {
    let allowed = |name: &str| reaches_workers(name, pass);
    let reached = environment.iter().filter(|(name, _)| name.to_str().is_some_and(allowed));
    reached.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The polling interval. A launcher takes about ten milliseconds.
const LOOK: Duration = Duration::from_millis(2);

impl Tracked {
    /// Waits for the process that runs a different program than its launcher and has this argument. If
    /// the system does not show descendants, it is the launcher itself, which dies with it.
    pub async fn launched_by(launcher: &Child, argument: &OsStr) -> io::Result<Self> {
        let Some(root) = i32::try_from(launcher.pid()).ok().and_then(Pid::from_raw).filter(|_| table::tells()) else {
            return Self::behind(launcher, launcher.pid());
        };
        loop {
            let descendants = table::descendants(root, &[], None);
            let found = descendants.iter().find(|(pid, row)| !row.is_dead && runs(*pid, root, argument));
            if let Some((pid, _)) = found {
                return Self::behind(launcher, pid.as_raw_pid().unsigned_abs());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Between fork and exec a child looks like the launcher, including its arguments.
fn runs(pid: Pid, launcher: Pid, argument: &OsStr) -> bool {
    let program = |pid: Pid| -> Option<PathBuf> { std::fs::read_link(format!("/proc/{pid}/exe")).ok() };
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has_it = arguments.split(|byte| *byte == 0).skip(1).any(|one| one == argument.as_encoded_bytes());
    has_it && program(pid).is_some_and(|own| Some(own) != program(launcher))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::process::Launch;

    #[tokio::test]
    async fn the_process_behind_a_launcher_is_found_by_an_argument() {
        // A shell that keeps running, with the wanted child and another one.
        let script = "/bin/sleep 50 & /bin/sleep 60 & wait";
        let launcher = Child::start(&Launch::new("/bin/sh").args(["-c", script, "60"])).await.unwrap();
        let found = Tracked::launched_by(&launcher, OsStr::new("60")).await.unwrap();
        assert_ne!(found.pid(), launcher.pid());
        let arguments = std::fs::read(format!("/proc/{}/cmdline", found.pid())).unwrap();
        assert_eq!(arguments, b"/bin/sleep\x0060\0");
    }
}

/// A file open for writing cannot be executed. Editors and compilers finish within a moment.
const WRITING: Duration = Duration::from_millis(500);

/// Starts a program of the tools folders, which may be open for writing.
pub async fn spawn_when_written(launch: &Launch) -> Result<Child, SpawnError> {
    let begun = Instant::now();
    loop {
        match Child::start(launch).await {
            Err(error) if error.source.kind() == ErrorKind::ExecutableFileBusy && begun.elapsed() < WRITING => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

/// Why a program cannot be started, and what to do.
pub fn cannot_run(path: &Path, error: &SpawnError) -> Diagnosis {
    let error = &error.source;
    match error.kind() {
        ErrorKind::NotFound if path.exists() => match interpreter(path) {
            // Editors hide it, and the system treats it as part of the name.
            Some(interpreter) if interpreter.ends_with('\r') => Diagnosis::new(
                format!(
                    "it has Windows line endings, so its first line names `{}\\r`, which does not exist",
                    interpreter.trim_end()
                ),
                "save it with Unix line endings (`sed -i 's/\\r$//' FILE`)",
            ),
            Some(interpreter) => Diagnosis::new(
                format!("its first line names {interpreter}, which does not exist"),
                "install it, or correct the line",
            ),
            None => Diagnosis::new("its loader does not exist", "build it for this machine"),
        },
        ErrorKind::NotFound => Diagnosis::new("the file is missing", "restore it, or refresh to remove it"),
        ErrorKind::PermissionDenied => {
            Diagnosis::new("it is not executable", format!("run `chmod +x {}`", path.display()))
        }
        ErrorKind::ExecutableFileBusy => Diagnosis::new("another process is writing it", "try again later"),
        // Hostler's own words, not the system's.
        ErrorKind::Other => Diagnosis::new(error.to_string(), "see what `hostler doctor` says of sandboxes"),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => Diagnosis::new(
            "it is neither a program for this machine nor a script that begins with `#!`",
            "build it for this machine, or write `#!/usr/bin/env python3` or the like as its first line",
        ),
        _ => Diagnosis::new(format!("it cannot be started: {error}"), "run it by hand to see why"),
    }
}

fn interpreter(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(256).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.split('\n').next()?.strip_prefix("#!")?.trim_matches([' ', '\t']).to_owned())
}
