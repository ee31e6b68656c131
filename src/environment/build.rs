//! One build: staged aside, renamed only when uv reported success, thrown away otherwise.
//!
//! A uv that is killed while it installs leaves an environment that later looks whole and is not; a rename after
//! success is what makes a killed build one that never was.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure::{build_fault, reason, refuse_ancient, unknown_extras};
use super::marker::{MARKER, Marker};
use super::probe;
use super::pythons::is_about_pythons;
use super::recipe::EnvironmentSpec;
use super::settings::{EnvironmentSettings, Said};
use super::staging::Staging;
use super::unfit::{says_nothing_of_use, unfit_uv};
use crate::outcome::{Code, Fault};
use crate::process::{Exit, Launch, run};

pub(super) struct Build<'a> {
    pub folder: &'a Path,
    pub settings: &'a EnvironmentSettings,
    pub spec: &'a EnvironmentSpec,
    pub lock: Option<&'a [u8]>,
    pub key: &'a str,
    pub uv: &'a Path,
}

impl Build<'_> {
    /// Builds the environment, unless another hostler does so meanwhile.
    pub(super) async fn run(&self, said: Said<'_>) -> Result<(), Fault> {
        let folder = self.folder;
        std::fs::create_dir_all(folder).map_err(|error| self.unwritable(folder, &error))?;
        // Between processes: whoever holds this file's lock builds. The lock goes with the process, however it ends.
        let gate = folder.join(format!(".{}.lock", self.key));
        let gate_file = OpenOptions::new().create(true).truncate(false).write(true).open(&gate);
        let gate_file = gate_file.map_err(|error| self.unwritable(&gate, &error))?;
        let mut announced = false;
        while gate_file.try_lock().is_err() {
            if !announced {
                said(&format!("another hostler is building the environment of {}", self.spec.name));
                announced = true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let home = folder.join(self.key);
        if Marker::read(&home).is_some_and(|marker| marker.interpreter_unchanged()) {
            return Ok(());
        }
        let staging = Staging::new(folder, self.key).map_err(|error| self.unwritable(folder, &error))?;
        self.sync(&staging, said).await?;
        self.finish(&staging, &home)
    }

    async fn sync(&self, staging: &Staging, said: Said<'_>) -> Result<(), Fault> {
        // Whoever sets an interpreter builds on that one, whatever the header says.
        if self.settings.python.is_none() {
            refuse_ancient(self.spec)?;
        }
        let script = self.stage_script(staging).map_err(|error| self.unwritable(staging.folder(), &error))?;
        said(&format!("building the environment of {}", self.spec.name));
        let settings = self.settings;
        let launch = self.uv_sync(&script).arg("--active").arg("--compile-bytecode");
        let launch = launch.env("VIRTUAL_ENV", staging.environment());
        let done = run(&launch, settings.build_timeout, |line| {
            if is_progress(line) {
                said(&format!("{}: {}", self.spec.name, line.trim()));
            }
            tracing::debug!(line, tool = self.spec.name, "uv");
        });
        let done = done.await.map_err(|error| Fault::new(Code::EnvironmentFailed, error.to_string()))?;
        match done.exit {
            Some(_) if done.succeeded() => {
                if !staging.environment().join("bin/python").exists()
                    && probe::version(self.uv, settings).await.is_none()
                {
                    return Err(unfit_uv(self.uv, None, settings, Exit::Code(0), &done.stderr));
                }
                for told in unknown_extras(self.spec, &done.stderr) {
                    tracing::warn!("{told}");
                }
                Ok(())
            }
            Some(exit) => Err(self.explain(&script, exit, done.stderr).await),
            None => {
                let limit = humantime::format_duration(settings.build_timeout);
                let text = format!(
                    "the environment of {} was not built within {limit}; raise `build_timeout` under [environment]",
                    self.spec.name
                );
                Err(Fault::new(Code::EnvironmentFailed, text))
            }
        }
    }

    /// What a uv that gave up means. Where it was no uv that serves, or where no Python was found, it is asked once more.
    async fn explain(&self, script: &Path, exit: Exit, stderr: String) -> Fault {
        if says_nothing_of_use(&stderr) {
            let version = probe::version(self.uv, self.settings).await;
            return unfit_uv(self.uv, version, self.settings, exit, &stderr);
        }
        let stderr = if hides_its_reason(&stderr) {
            self.reason_without_environment(script).await.unwrap_or(stderr)
        } else {
            stderr
        };
        let is_about_pythons = is_about_pythons(&reason(&stderr));
        let pythons = if is_about_pythons { probe::pythons(self.uv, self.settings).await } else { None };
        build_fault(self.spec, self.settings, &pythons.unwrap_or_default(), self.lock.is_some(), &stderr)
    }

    fn uv_sync(&self, script: &Path) -> Launch {
        let settings = self.settings;
        let mut launch = Launch::new(self.uv)
            .args(["sync", "--script"])
            .arg(script)
            .args(["--no-config", "--color", "never"])
            .envs(settings.withheld.inherited());
        if self.lock.is_some() {
            launch = launch.arg("--locked");
        }
        if let Some(python) = &settings.python {
            launch = launch.args(["--python", &python.value]);
        }
        settings.variables().fold(launch, |launch, (name, value)| launch.env(name, value))
    }

    /// Where no interpreter fits, uv speaks of the environment that is not there yet; asked without one, it says why.
    async fn reason_without_environment(&self, script: &Path) -> Option<String> {
        let mut launch = self.uv_sync(script).arg("--dry-run");
        launch.env.remove(OsStr::new("VIRTUAL_ENV"));
        let done = run(&launch, Duration::from_secs(30), |_| {}).await.ok()?;
        (done.exit.is_some() && !done.succeeded()).then_some(done.stderr)
    }

    /// uv reads the header from a file of its own: the tool file may have an encoding that uv does not take. Only where
    /// the header names relative paths must it be read where it stands.
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
            let text =
                format!("uv reported success and built no interpreter for {}; is the disk full?", self.spec.name);
            Fault::new(Code::EnvironmentFailed, text)
        })?;
        let bytes = serde_json::to_vec_pretty(&marker).unwrap_or_default();
        std::fs::write(built.join(MARKER), bytes).map_err(|error| self.unwritable(&built, &error))?;
        // What stands there is unusable: no marker, or an interpreter that is gone.
        let _ = std::fs::remove_dir_all(home);
        std::fs::rename(&built, home).map_err(|error| self.unwritable(home, &error))
    }

    fn unwritable(&self, path: &Path, error: &std::io::Error) -> Fault {
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::ResourceExhausted,
            _ => Code::EnvironmentFailed,
        };
        let text = format!(
            "the environment of {} cannot be written: {}: {error}. Make room or correct the permissions, or set \
             XDG_CACHE_HOME to another place",
            self.spec.name,
            path.display()
        );
        Fault::new(code, text)
    }
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
