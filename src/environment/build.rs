//! One build: in a staging folder that is renamed only when uv reported success, and removed otherwise.
//!
//! A uv that is killed while it installs leaves an environment that looks complete and is not; with the rename, a killed
//! build leaves nothing.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::explain::{build_fault, is_about_pythons, reason, refuse_ancient, unknown_extras};
use super::settings::{EnvironmentSettings, Progress, without_password};
use super::spec::EnvironmentSpec;
use super::staging::Staging;
use super::store::{MARKER, Marker};
use super::turn::{Gate, Turn};
use super::uv::{self, Minor, is_unfit, minor_of, unfit_uv};
use tokio::time::Instant;

use crate::outcome::{Code, Details, Fault};
use crate::process::{Exit, Launch, limit_behind, limit_in, run};

pub(super) struct Build<'a> {
    pub folder: &'a Path,
    pub settings: &'a EnvironmentSettings,
    pub spec: &'a EnvironmentSpec,
    pub lock: Option<&'a [u8]>,
    pub key: &'a str,
    pub uv: &'a Path,
    /// When the time for it is over.
    pub until: Instant,
}

impl Build<'_> {
    /// Builds the environment, unless another hostler does so meanwhile.
    pub(super) async fn run(&self, progress: Progress<'_>) -> Result<(), Fault> {
        let folder = self.folder;
        std::fs::create_dir_all(folder).map_err(|error| self.unwritable(folder, &error))?;
        let (place, gate) = Gate::of(folder, self.key);
        let gate = gate.map_err(|error| self.unwritable(&place, &error))?;
        let turn = gate.turn(&self.spec.name, self.until, progress).await;
        let home = folder.join(self.key);
        if is_built(&home) {
            return Ok(());
        }
        match turn {
            Turn::Late => Err(self.late(", because another hostler is building it and does not finish")),
            Turn::Beside => self.build(&home, Staging::beside(folder, self.key), progress).await,
            Turn::Held => {
                let work = self.build(&home, Staging::alone(folder, self.key), progress);
                tokio::select! {
                    built = work => built,
                    never = gate.beat() => never,
                }
            }
        }
    }

    async fn build(&self, home: &Path, staging: io::Result<Staging>, progress: Progress<'_>) -> Result<(), Fault> {
        let staging = staging.map_err(|error| self.unwritable(self.folder, &error))?;
        self.sync(&staging, progress).await?;
        if self.spec.wheels_only {
            self.compile(&staging.environment()).await;
        }
        self.finish(&staging, home)
    }

    /// Compiles the modules without what an interpreter otherwise runs of packages at its start (`-S`). A module that does not compile is
    /// its importer's affair.
    async fn compile(&self, environment: &Path) {
        let launch = Launch::new(environment.join("bin/python"))
            .args(["-I", "-S", "-m", "compileall", "-q", "-j", "0"])
            .arg(environment.join("lib"))
            .within_that_of(self.settings.env_filter.environment());
        let limit = self.until.saturating_duration_since(Instant::now());
        let done = run(&launch, limit, |line| tracing::debug!(line, tool = self.spec.name, "compileall")).await;
        if !done.is_ok_and(|done| done.succeeded()) {
            tracing::debug!(tool = self.spec.name, "not all modules of the environment are compiled");
        }
    }

    async fn sync(&self, staging: &Staging, progress: Progress<'_>) -> Result<(), Fault> {
        // A configured interpreter is used whatever the header says.
        if self.settings.python.is_none() {
            refuse_ancient(self.spec)?;
        }
        let script = self.stage_script(staging).map_err(|error| self.unwritable(staging.folder(), &error))?;
        progress(&format!("building the environment of {}", self.spec.name));
        let settings = self.settings;
        let launch = self.uv_sync(&script).arg("--active");
        // An interpreter that compiles runs what packages put beside them (`.pth`).
        let launch = if self.spec.wheels_only { launch } else { launch.arg("--compile-bytecode") };
        let launch = launch.env("VIRTUAL_ENV", staging.environment());
        let done = run(&launch, self.until.saturating_duration_since(Instant::now()), |line| {
            let line = &without_password(line);
            if is_progress(line) {
                progress(&format!("{}: {}", self.spec.name, line.trim()));
            }
            tracing::debug!(line, tool = self.spec.name, "uv");
        });
        let done = done
            .await
            .map_err(|error| error.limit().unwrap_or_else(|| Fault::new(Code::EnvironmentFailed, error.to_string())))?;
        match done.exit {
            Some(_) if done.succeeded() => {
                if !staging.environment().join("bin/python").exists() && uv::version(self.uv, settings).await.is_none()
                {
                    return Err(unfit_uv(self.uv, None, settings, Exit::Code(0), &done.stderr));
                }
                for warning in unknown_extras(self.spec, &done.stderr) {
                    tracing::warn!("{warning}");
                }
                Ok(())
            }
            Some(exit) => Err(self.explain(staging, &script, exit, done.stderr).await),
            None => Err(self.late("")),
        }
    }

    fn late(&self, why: &str) -> Fault {
        let limit = humantime::format_duration(self.settings.build_timeout);
        let text = format!(
            "the environment of {} was not built within {limit}{why}; raise `build_timeout` under [environment] in \
             hostler.toml",
            self.spec.name
        );
        Fault::new(Code::EnvironmentFailed, text)
    }

    /// The fault of a failed build. Where uv itself does not work, or found no Python, it is asked once more.
    async fn explain(&self, staging: &Staging, script: &Path, exit: Exit, stderr: String) -> Fault {
        if let Some(limit) = exit.limit().or_else(|| limit_in(&stderr)) {
            let what = format!("the environment of {} was not built: {limit}", self.spec.name);
            let stderr = Some(stderr.trim().to_owned());
            return Fault::new(Code::ResourceExhausted, what).with(Details { stderr, ..Details::default() });
        }
        if is_unfit(&stderr) {
            let version = uv::version(self.uv, self.settings).await;
            return unfit_uv(self.uv, version, self.settings, exit, &stderr);
        }
        let stderr = if hides_its_reason(&stderr) {
            self.reason_without_environment(script).await.unwrap_or(stderr)
        } else {
            stderr
        };
        let is_about_pythons = is_about_pythons(&reason(&stderr));
        let pythons = if is_about_pythons { uv::pythons(self.uv, self.settings).await } else { None };
        let (pythons, chosen) = (pythons.unwrap_or_default(), python_of(&staging.environment()));
        build_fault(self.spec, self.settings, &pythons, chosen, self.lock.is_some(), &stderr)
    }

    fn uv_sync(&self, script: &Path) -> Launch {
        let settings = self.settings;
        let mut launch = Launch::new(self.uv)
            .args(["sync", "--script"])
            .arg(script)
            .args(["--no-config", "--color", "never"])
            .envs(settings.env_filter.inherited())
            .within_that_of(settings.env_filter.environment());
        if self.lock.is_some() {
            launch = launch.arg("--locked");
        }
        if self.spec.wheels_only {
            launch = launch.arg("--no-build");
        }
        if let Some(python) = &settings.python {
            launch = launch.args(["--python", &python.value]);
        }
        settings.variables().fold(launch, |launch, (name, value)| launch.env(name, value))
    }

    /// Where no interpreter fits, uv complains about the staged environment; a dry run without one gives the reason.
    async fn reason_without_environment(&self, script: &Path) -> Option<String> {
        let mut launch = self.uv_sync(script).arg("--dry-run");
        launch.env.remove(OsStr::new("VIRTUAL_ENV"));
        let done = run(&launch, Duration::from_secs(30), |_| {}).await.ok()?;
        (done.exit.is_some() && !done.succeeded()).then_some(done.stderr)
    }

    /// uv reads the header from a staged file, because the tool file may have an encoding that uv rejects. Relative paths in
    /// the header only work in the original file.
    fn stage_script(&self, staging: &Staging) -> std::io::Result<PathBuf> {
        if self.spec.relative_sources {
            return Ok(self.spec.file.clone());
        }
        let script = staging.folder().join("script.py");
        std::fs::write(&script, &self.spec.header)?;
        if let Some(lock) = self.lock {
            std::fs::write(staging.folder().join("script.py.lock"), lock)?;
        }
        Ok(script)
    }

    fn finish(&self, staging: &Staging, home: &Path) -> Result<(), Fault> {
        let built = staging.environment();
        let marker = Marker::of(&built, &self.spec.header);
        let marker = marker.ok_or_else(|| {
            let text = format!(
                "uv reported success but the environment of {} has no interpreter; is the disk full?",
                self.spec.name
            );
            Fault::new(Code::EnvironmentFailed, text)
        })?;
        let bytes = serde_json::to_vec_pretty(&marker).unwrap_or_default();
        std::fs::write(built.join(MARKER), bytes).map_err(|error| self.unwritable(&built, &error))?;
        // Another hostler may have built beside this one, and its environment may be in use.
        if is_built(home) {
            return Ok(());
        }
        // A previous one is unusable: it has no marker, or its interpreter is gone.
        let _ = std::fs::remove_dir_all(home);
        match std::fs::rename(&built, home) {
            Err(_) if is_built(home) => Ok(()),
            renamed => renamed.map_err(|error| self.unwritable(home, &error)),
        }
    }

    fn unwritable(&self, path: &Path, error: &std::io::Error) -> Fault {
        if let Some(limit) = limit_behind(error) {
            let text = format!("cannot write the environment of {}: {}: {limit}", self.spec.name, path.display());
            return Fault::new(Code::ResourceExhausted, text);
        }
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::ResourceExhausted,
            _ => Code::EnvironmentFailed,
        };
        let text = format!(
            "cannot write the environment of {}: {}: {error}; free space or correct the permissions, or set XDG_CACHE_HOME \
             to another folder",
            self.spec.name,
            path.display()
        );
        Fault::new(code, text)
    }
}

/// The Python of an environment, as `pyvenv.cfg` says it.
fn python_of(environment: &Path) -> Option<Minor> {
    let text = std::fs::read_to_string(environment.join("pyvenv.cfg")).ok()?;
    let version = text.lines().find_map(|line| line.strip_prefix("version_info")?.trim_start().strip_prefix('='))?;
    minor_of(version.trim())
}

/// Whether there is a usable environment.
fn is_built(home: &Path) -> bool {
    Marker::read(home).is_some_and(|marker| marker.interpreter_unchanged())
}

fn hides_its_reason(stderr: &str) -> bool {
    stderr.contains("Failed to inspect Python interpreter from active virtual environment")
}

fn is_progress(line: &str) -> bool {
    let line = line.trim_start();
    ["Resolved", "Downloading", "Downloaded", "Building", "Built", "Prepared", "Installed", "Bytecode"]
        .iter()
        .any(|word| line.starts_with(word))
}
