//! Where the measurements take place: a folder of its own, a cache that is kept between runs, uv, commands.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use hostler::{Environment, Hostler, HostlerBuilder};
use tempfile::TempDir;

use crate::Fallible;
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::relay;
use crate::tools;

/// Each side of a comparison has a hostler of its own, unless `--shared` says otherwise.
const ALONE: &str = "[shared]\nenabled = false\n";

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Rounds of every comparison.
    pub rounds: usize,
    /// Calls of one side in one round, one after the other.
    pub calls: usize,
    /// Calls of one side in one round, many under way.
    pub flight: usize,
    /// Process starts of one side.
    pub starts: usize,
}

impl Counts {
    pub const FULL: Self = Self { rounds: 15, calls: 1500, flight: 15_000, starts: 25 };
    /// Enough to see that everything still runs and answers rightly.
    pub const QUICK: Self = Self { rounds: 3, calls: 100, flight: 500, starts: 3 };
}

/// How workers are launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    Uv,
    Direct,
}

impl Launcher {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uv => "uv",
            Self::Direct => "direct",
        }
    }
}

/// Everything the measurements share.
pub struct Ground {
    pub counts: Counts,
    work: TempDir,
    cache: PathBuf,
    path: OsString,
    /// One worker of hostler, as hostler itself starts it: interpreter, shim, tool file.
    worker: Vec<String>,
    /// Configuration files that were written.
    configs: AtomicUsize,
}

/// The tool whose warm calls are measured.
pub const ADD: Dialect<'static> = Dialect::Mcp("sums_add");
pub const ADD_INLINE: Dialect<'static> = Dialect::Inline("sums_add");
/// The same by the control face.
pub const ADD_BY_RPC: Dialect<'static> = Dialect::Rpc("sums.add");

impl Ground {
    pub fn prepare(counts: Counts) -> Fallible<Self> {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("budgets");
        let cache = kept.join("cache");
        fs::create_dir_all(&cache)?;
        let path = path_with_uv(&kept)?;
        let mut ground =
            Self { counts, work: tempfile::tempdir()?, cache, path, worker: Vec::new(), configs: AtomicUsize::new(0) };
        tools::write_adder(&ground.folder("one"), "sums")?;
        for launcher in [Launcher::Uv, Launcher::Direct] {
            fs::write(ground.config(launcher), format!("[tool]\nlauncher = \"{}\"\n{ALONE}", launcher.word()))?;
        }
        ground.worker = ground.worker_of_a_call()?;
        Ok(ground)
    }

    /// A folder for this run.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Where hostler keeps what it read of tool files.
    pub fn catalogues(&self) -> PathBuf {
        self.cache.join("hostler/catalogue")
    }

    fn config(&self, launcher: Launcher) -> PathBuf {
        self.folder(&format!("launch-{}.toml", launcher.word()))
    }

    /// The same for hostler within this process.
    pub fn builder(&self, folder: &str) -> HostlerBuilder {
        self.builder_with(folder, &[])
    }

    /// The same, with these variables.
    pub fn builder_with(&self, folder: &str, variables: &[(&str, &str)]) -> HostlerBuilder {
        let own = [
            ("XDG_CACHE_HOME".into(), self.cache.clone().into_os_string()),
            ("XDG_CONFIG_HOME".into(), self.folder("no-config").into_os_string()),
            ("PATH".into(), self.path.clone()),
        ];
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let environment: Environment = env::vars_os().chain(own).chain(variables).collect();
        let config = self.config(Launcher::Direct);
        Hostler::builder()
            .tools(self.folder(folder))
            .config(config)
            .environment(environment)
            .directory(self.work.path())
    }

    /// A command that sees this ground's cache and uv, and nothing of the person's own settings.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_CACHE_HOME", &self.cache).env("XDG_CONFIG_HOME", self.folder("no-config"));
        command.env("XDG_STATE_HOME", self.folder("state"));
        command.env("PATH", &self.path).current_dir(self.work.path());
        // Some machines set it, and every start of an interpreter would then compile what it imports.
        command.env_remove("PYTHONDONTWRITEBYTECODE");
        command
    }

    /// `hostler serve` of a folder.
    pub fn serve(&self, folder: &str) -> Command {
        self.serve_by(folder, Launcher::Uv)
    }

    pub fn serve_by(&self, folder: &str, launcher: Launcher) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_hostler"));
        command.arg("serve").arg("--tools").arg(self.folder(folder)).arg("--config").arg(self.config(launcher));
        command
    }

    /// The same, with these settings.
    pub fn serve_with(&self, folder: &str, settings: &str) -> Fallible<Command> {
        // A file of its own: what runs follows changes of another's.
        let number = self.configs.fetch_add(1, Ordering::Relaxed);
        let config = self.folder(&format!("{folder}-{number}.toml"));
        fs::write(&config, format!("{settings}{ALONE}"))?;
        let mut command = self.command(env!("CARGO_BIN_EXE_hostler"));
        command.arg("serve").arg("--tools").arg(self.folder(folder)).arg("--config").arg(config);
        Ok(command)
    }

    /// hostler with one adding tool, greeted and warm.
    pub fn hostler(&self, streams: Streams) -> Fallible<Peer> {
        let mut peer = Peer::mcp(&mut self.serve("one"), streams)?;
        peer.ask_once(ADD)?;
        Ok(peer)
    }

    /// The same, asked without a handshake.
    pub fn hostler_inline(&self) -> Fallible<Peer> {
        let mut peer = Peer::spawn(&mut self.serve("one"), Streams::Pipes)?;
        peer.ask_once(ADD_INLINE)?;
        Ok(peer)
    }

    /// A relay to the same worker, which has said hello.
    pub fn relay_to_shim(&self) -> Fallible<Peer> {
        let mut peer = self.relay(&self.worker)?;
        peer.write(&hostler::bench::Hello::new("sums", &[], &[]).frame())?;
        peer.read_line(&mut Vec::new())?;
        peer.ask_once(Dialect::Worker)?;
        Ok(peer)
    }

    /// A relay to a worker of a dozen lines, which is what there would be without any shim.
    pub fn relay_to_bare(&self) -> Fallible<Peer> {
        let bare = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/budgets/peers/bare_worker.py");
        let mut peer = self.relay(&[self.python().to_owned(), "-I".to_owned(), bare.display().to_string()])?;
        peer.ask_once(Dialect::Worker)?;
        Ok(peer)
    }

    fn relay(&self, worker: &[String]) -> Fallible<Peer> {
        Peer::spawn(self.command(env::current_exe()?).arg(relay::ARGUMENT).args(worker), Streams::Pipes)
    }

    /// The interpreter that the workers run on.
    pub fn python(&self) -> &str {
        &self.worker[0]
    }

    /// Asks the kernel how hostler started a worker: no guess of ours can then be another worker than hostler's.
    fn worker_of_a_call(&self) -> Fallible<Vec<String>> {
        let mut peer = Peer::mcp(&mut self.serve_by("one", Launcher::Direct), Streams::Pipes)?;
        let pid = worker_pid(&mut peer, "sums_add")?;
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline"))?;
        Ok(line.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect())
    }
}

/// Makes one call and reads from its outcome which worker answered.
pub fn worker_pid(peer: &mut Peer, tool: &str) -> Fallible<u64> {
    let call = serde_json::json!({"name": tool, "arguments": {"a": 1, "b": 2}});
    let answer = peer.request("tools/call", &call)?;
    let pid = answer["_meta"]["hostler/outcome"]["metadata"]["worker"].as_u64();
    pid.ok_or_else(|| format!("no worker answered: {answer}").into())
}

/// `PATH` with uv on it. Where there is none, a copy is fetched once and kept.
fn path_with_uv(kept: &Path) -> Fallible<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    if which::which("uv").is_ok() {
        return Ok(path);
    }
    let own = kept.join("uv");
    if !own.join("bin/uv").is_file() {
        eprintln!("budgets: uv is not installed: fetching a copy into the target folder (once)");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&own).arg("uv");
        if !pip.stdout(Stdio::null()).status()?.success() {
            return Err("uv is not installed and pip could not fetch it".into());
        }
    }
    Ok(env::join_paths([own.join("bin")].into_iter().chain(env::split_paths(&path)))?)
}
