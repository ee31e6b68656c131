//! What to start: program, arguments, the whole environment, the directory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use crate::config::Environment;

/// A process to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program, as a path.
    pub program: PathBuf,
    /// Its arguments. Never a secret: arguments are public on a machine.
    pub args: Vec<OsString>,
    /// Its whole environment; nothing else is passed on.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory; hostler's own when none is given.
    pub directory: Option<PathBuf>,
}

impl Launch {
    /// A program with nothing said yet.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: BTreeMap::new(), directory: None }
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

    /// Starts it in a folder.
    #[must_use]
    pub fn within(mut self, folder: impl Into<PathBuf>) -> Self {
        self.directory = Some(folder.into());
        self
    }

    /// Sets one variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Sets many variables.
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
    /// The program as it was asked for.
    pub program: String,
    /// The system's reason.
    #[source]
    pub source: io::Error,
}

/// Variables that every worker gets, where hostler itself has them.
const WORKER_VARIABLES: [&str; 10] =
    ["HOME", "USER", "LOGNAME", "PATH", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"];

/// Whether a variable of hostler's environment reaches workers: those of an allow-list, `LC_*` and the names in `pass`.
pub fn reaches_workers(name: &str, pass: &[String]) -> bool {
    WORKER_VARIABLES.contains(&name) || name.starts_with("LC_") || pass.iter().any(|wanted| wanted == name)
}

/// The environment of a worker, out of hostler's own.
pub fn worker_environment(environment: &Environment, pass: &[String]) -> BTreeMap<OsString, OsString> {
    let allowed = |name: &str| reaches_workers(name, pass);
    let reached = environment.iter().filter(|(name, _)| name.to_str().is_some_and(allowed));
    reached.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
