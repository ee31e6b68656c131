//! Workers of Python tool files: environment, interpreter, and the shim, or the file itself if it serves itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::events::EventSender;
use super::handshake::{Handshake, Support};
use super::launch::{Described, WorkerSpec};
use super::launch::{Launcher, StartNote, StartNotes, Starting};
use super::shim::Shims;
use super::sources::Sources;
use crate::environment::{EnvironmentSpec, Environments, Lease};
use crate::outcome::{Code, Fault};
use crate::process::{Child, Launch, Own, Walls, limit_behind, worker_environment};

/// What a Python worker is started with besides the common parts.
#[derive(Debug, Clone)]
pub struct PythonSpec {
    /// The SHA-256 of the source to run, which may differ from the file's current content.
    pub fingerprint: [u8; 32],
    /// Its environment.
    pub environment: EnvironmentSpec,
    /// Whether the interpreter is started through `uv run`.
    pub through_uv: bool,
    /// Its working directory; hostler's own if `None`.
    pub directory: Option<PathBuf>,
    /// Inherited variables besides the default ones.
    pub pass_env: Vec<String>,
    /// Additional variables.
    pub env: Vec<(String, String)>,
    /// The command line of its program.
    pub args: Vec<String>,
}

/// Starts Python workers.
pub struct PythonLauncher {
    /// The common parts.
    pub spec: Arc<WorkerSpec>,
    /// The Python parts.
    pub python: Arc<PythonSpec>,
    /// Provides environments.
    pub environments: Arc<Environments>,
    /// Provides the shim.
    pub shims: Shims,
    /// Provides the source.
    pub sources: Sources,
    /// Receives type descriptions.
    pub described: Described,
}

impl Launcher for PythonLauncher {
    fn name(&self) -> &str {
        &self.spec.pack
    }

    fn launch(&self, events: EventSender, notes: StartNotes) -> Starting {
        let (spec, python) = (Arc::clone(&self.spec), Arc::clone(&self.python));
        let (environments, described) = (Arc::clone(&self.environments), Arc::clone(&self.described));
        let (shims, sources) = (self.shims.clone(), self.sources.clone());
        Box::pin(async move {
            let lease = environments.ensure(&python.environment, &|line| notes(StartNote(line.to_owned()))).await?;
            notes(StartNote(format!("starting {}", spec.pack)));
            let interpreter = interpreter(&python, &environments, &lease).await?;
            let launch = if spec.is_bare {
                itself(interpreter, &spec, &python, &sources)?
            } else {
                shimmed(interpreter, &spec, &python, &shims, &sources)?
            };
            let own = own_of_interpreter(&launch, &shims);
            let launch = launch.args(&python.args); // after that: paths in it open nothing
            let walls = spec.walls.as_ref().map(|walls| with_interpreter(walls, &own));
            let launch = match &spec.launcher {
                Some(launcher) => launcher.wrap(launch, own).await.map_err(|reason| reason.unlaunched(&spec.pack))?,
                None => launch,
            };
            let launch = launch.with_new_privileges(spec.new_privileges).with_walls(walls);
            let child = Child::start(&launch)
                .await
                .map_err(|error| error.limit().unwrap_or_else(|| Fault::new(Code::StartupFailed, error.to_string())))?;
            let launched = python.through_uv.then_some(environments);
            let support = Support { lease: Some(lease), described: Some(described), launched };
            Handshake::new(spec, child, events, support).ready().await
        })
    }
}

/// The interpreter of a worker with its variables; see `docs/architecture.md`.
async fn interpreter(python: &PythonSpec, environments: &Environments, lease: &Lease) -> Result<Launch, Fault> {
    let launch = if python.through_uv {
        Launch::new(environments.uv(&|_| {}).await?)
            .args(["run", "--no-project", "--no-config", "--no-env-file", "--offline", "--no-python-downloads"])
            .arg("--cache-dir")
            .arg(environments.run_cache())
            .arg("--python")
            .arg(&lease.python)
            .arg("python")
    } else {
        Launch::new(&lease.python)
    };
    let launch = python.directory.iter().fold(launch, Launch::within);
    let launch = launch.envs(worker_environment(environments.environment(), &python.pass_env));
    Ok(python.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value)))
}

/// What an interpreter reads: its environment, its libraries and the files that it is started with.
fn own_of_interpreter(launch: &Launch, shims: &Shims) -> Vec<Own> {
    let environment = launch.program.ancestors().nth(2).map(Path::to_owned);
    let arguments = launch.args.iter().map(PathBuf::from).filter(|path| path.is_absolute());
    let shims = shims.folder().to_owned();
    let paths = environment.into_iter().chain(arguments).chain([shims]).map(Own::Path);
    paths.chain([Own::Installation(launch.program.clone())]).collect()
}

/// Walls that let the interpreter read that.
fn with_interpreter(walls: &Arc<Walls>, own: &[Own]) -> Arc<Walls> {
    let mut walls = Walls::clone(walls);
    walls.own.extend(own.iter().cloned());
    Arc::new(walls)
}

/// The shim, which loads the file.
fn shimmed(
    interpreter: Launch,
    spec: &WorkerSpec,
    python: &PythonSpec,
    shims: &Shims,
    sources: &Sources,
) -> Result<Launch, Fault> {
    let shim = shims.lay_out().map_err(|error| unwritten(shims.folder(), &error))?;
    let source = sources.of(&spec.file, python.fingerprint).map_err(|error| unread(spec, &error))?;
    let source = source.ok_or_else(|| lost_fault(spec))?;
    Ok(interpreter.arg("-I").arg(shim).arg(&spec.file).arg(source))
}

/// Runs the file itself, as `uv run FILE` would: it may import its neighbours and read its own file. A copy could do
/// neither, so this version can start only while the file is unchanged. `-u` disables buffering, which would hold
/// answers back.
fn itself(interpreter: Launch, spec: &WorkerSpec, python: &PythonSpec, sources: &Sources) -> Result<Launch, Fault> {
    if !sources.is_still(&spec.file, python.fingerprint).map_err(|error| unread(spec, &error))? {
        return Err(lost_fault(spec));
    }
    // Lines are UTF-8 in every locale.
    let launch = interpreter.env("PYTHONIOENCODING", "utf-8");
    Ok(launch.args(["-s", "-u"]).arg(&spec.file))
}

/// The shim could not be written to the cache: the disk is full, or the folder is not writable.
fn unwritten(folder: &Path, error: &io::Error) -> Fault {
    let place = folder.display();
    if let Some(limit) = limit_behind(error) {
        return Fault::new(Code::ResourceExhausted, format!("cannot write the worker shim below {place}: {limit}"));
    }
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let (code, cure) = if is_full {
        (Code::ResourceExhausted, "Make room on that disk (`hostler warm --prune` removes unused environments)")
    } else {
        (Code::SystemError, "Check its permissions, and that it is a folder")
    };
    let text =
        format!("cannot write the worker shim below {place}: {error}. {cure}, or set XDG_CACHE_HOME to another folder");
    Fault::new(code, text)
}

/// A limit of the system is in the way of the file.
fn unread(spec: &WorkerSpec, error: &io::Error) -> Fault {
    let why = limit_behind(error).map_or_else(|| error.to_string(), |limit| limit.to_string());
    Fault::new(Code::ResourceExhausted, format!("{} could not be started: {why}", spec.pack))
}

/// Neither the file nor a copy has the source of this version. A new call uses the current file.
fn lost_fault(spec: &WorkerSpec) -> Fault {
    let (pack, file) = (&spec.pack, spec.file.display());
    let message = format!("{pack} could not be started: {file} has changed and no copy of its earlier version exists");
    Fault::new(Code::StartupFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritable_shim_names_the_folder_and_the_next_step() {
        let message = |kind: io::ErrorKind| unwritten(Path::new("/c/shims"), &kind.into());
        let full = message(io::ErrorKind::StorageFull);
        assert_eq!(full.code, Code::ResourceExhausted);
        assert!(
            full.message.contains("below /c/shims: ") && full.message.contains("Make room on that disk"),
            "{full:?}"
        );
        let closed = message(io::ErrorKind::PermissionDenied);
        assert_eq!(closed.code, Code::SystemError);
        assert!(closed.message.contains("Check its permissions"), "{closed:?}");
    }
}
