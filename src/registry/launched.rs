//! What a file's program needs to run, and the command that starts it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FileEntry;
use crate::config::Environment;
use crate::discovery::Kind;
use crate::process::{CommandLauncher, Own};

impl FileEntry {
    /// What its program needs, as far as it is known before it starts.
    pub fn own(&self) -> Vec<Own> {
        let file = &self.file.path;
        match self.file.kind {
            Kind::Builtin => {
                let roots = self.config.builtin.roots.iter().flat_map(|roots| &roots.value);
                roots.cloned().map(Own::Path).collect()
            }
            Kind::Executable => vec![Own::Program(file.clone())],
            Kind::Python | Kind::Internal => vec![Own::FolderOf(file.clone())],
        }
    }

    /// Whether a call of a built-in tool has to run in a process with walls: a sandbox is required, or set under its name. `bash` runs its
    /// commands in such processes.
    pub fn needs_process(&self) -> bool {
        let pack = &self.file.pack;
        let mut limiting = self.settings.sandbox.iter().filter(|sandbox| sandbox.limits_access());
        let is_own = self.config.has_sandbox_of(pack);
        self.file.kind == Kind::Builtin && pack != "bash" && limiting.any(|sandbox| is_own || sandbox.is_required)
    }

    /// The operator's command that starts its processes, if there is one. While what they reach is recorded, hostler starts them itself.
    pub fn launcher(&self, environment: &Environment) -> Option<Arc<CommandLauncher>> {
        let settings = &self.settings;
        let launcher = &settings.launcher;
        let command = launcher.value.command().filter(|_| self.config.recorder_of(&self.file.pack).is_none())?;
        let is_path = command.program.contains('/');
        let written = Path::new(&command.program);
        let program = if is_path { launcher.origin.path(written, environment) } else { PathBuf::from(written) };
        Some(Arc::new(CommandLauncher {
            command: Arc::clone(command),
            program,
            place: launcher.origin.to_string(),
            pack: self.file.pack.clone(),
            file: self.file.path.clone(),
            own: self.own(),
            variables: settings.env.keys().chain(&settings.pass_env.value).cloned().collect(),
            environment: CommandLauncher::needed(environment),
        }))
    }
}
