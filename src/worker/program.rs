//! Workers that are executables: the file itself is started and keeps running.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::events::EventSender;
use super::handshake::{Handshake, Support};
use super::launch::WorkerSpec;
use super::launch::{Launcher, StartNote, StartNotes, Starting};
use crate::outcome::{Code, Fault};
use crate::process::{EnvFilter, Launch, cannot_run, spawn_when_written};

/// Tells a program how it was started.
const MODE: &str = "HOSTLER_TOOL_MODE";

/// Starts executables as workers.
pub struct ProgramLauncher {
    /// The program.
    pub spec: Arc<WorkerSpec>,
    /// The variables that it does not inherit.
    pub env_filter: EnvFilter,
    /// Additional variables.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory; hostler's own if `None`.
    pub directory: Option<PathBuf>,
}

impl ProgramLauncher {
    fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut env = self.env_filter.for_programs();
        env.insert(MODE.into(), "worker".into());
        env.extend(self.env.clone());
        env
    }
}

impl Launcher for ProgramLauncher {
    fn name(&self) -> &str {
        &self.spec.pack
    }

    fn launch(&self, events: EventSender, notes: StartNotes) -> Starting {
        let (spec, env) = (Arc::clone(&self.spec), self.environment());
        let launch =
            Launch::new(&spec.file).envs(env).with_new_privileges(spec.new_privileges).with_walls(spec.walls.clone());
        let launch = Launch { directory: self.directory.clone(), ..launch };
        Box::pin(async move {
            let launch = match &spec.launcher {
                Some(launcher) => {
                    launcher.wrap(launch, Vec::new()).await.map_err(|reason| reason.unlaunched(&spec.pack))?
                }
                None => launch,
            };
            notes(StartNote(format!("starting {}", spec.pack)));
            let child = spawn_when_written(&launch).await.map_err(|error| {
                let reason = cannot_run(&spec.file, &error);
                let other =
                    || Fault::new(Code::CommandNotFound, format!("{} could not be started: {reason}", spec.pack));
                error.limit().unwrap_or_else(other)
            })?;
            Handshake::new(spec, child, events, Support::default()).ready().await
        })
    }
}
