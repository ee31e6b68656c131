//! What uv is asked: its version, the Pythons it finds, its cache, whether the index answers. Nothing is installed. Where it
//! turns out that uv itself does not work, that is the fault, whichever header it was given.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::explain::{Failure, reason};
use super::settings::{EnvironmentSettings, place_of, without_password};
use super::store::Environments;
use crate::config::Environment;
use crate::outcome::{Code, Details, Fault};
use crate::process::{Exit, Finished, Launch, run};

const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Every Python that uv does not know yet is started once.
const PYTHONS_LIMIT: Duration = Duration::from_secs(20);
const INDEX_LIMIT: Duration = Duration::from_secs(15);
const CACHE_LIMIT: Duration = Duration::from_secs(5);
/// A small package that every index has.
const PROBE_PACKAGE: &str = "packaging";

/// A minor version of Python: `(3, 12)`.
pub type Minor = (u64, u64);
/// `(0, 9, 1)`
pub type UvVersion = (u64, u64, u64);
/// Older ones do not have `uv sync --script --active`.
pub const OLDEST_UV: UvVersion = (0, 8, 0);

/// Why the package index does not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexProblem {
    /// uv's own words.
    pub reason: String,
    /// What to do about it, where that is known.
    pub fix: Option<String>,
}

/// The folder that uv keeps its downloads in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UvCache {
    /// The folder, which may not exist yet.
    pub folder: PathBuf,
    /// Where it is set, if it is.
    pub place: Option<String>,
}

/// uv with the variables that builds have.
pub(super) fn command(uv: &Path, settings: &EnvironmentSettings) -> Launch {
    let launch = Launch::new(uv).envs(settings.env_filter.inherited());
    let launch = launch.within_that_of(settings.env_filter.environment());
    settings.variables().fold(launch, |launch, (name, value)| launch.env(name, value))
}

pub(super) async fn version(uv: &Path, settings: &EnvironmentSettings) -> Option<UvVersion> {
    let done = run(&command(uv, settings).arg("--version"), VERSION_LIMIT, |_| {}).await.ok()?;
    let text = done.stdout.strip_prefix("uv ")?.split_whitespace().next()?.to_owned();
    let mut numbers = text.split(['.', '-', '+']).map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0)))
}

pub(super) async fn pythons(uv: &Path, settings: &EnvironmentSettings) -> Option<Vec<Minor>> {
    let list = ["python", "list", "--only-installed", "--offline", "--no-config", "--output-format", "json"];
    let done = run(&command(uv, settings).args(list), PYTHONS_LIMIT, |_| {}).await.ok()?;
    let found: Vec<FoundPython> = serde_json::from_str(&done.stdout).ok()?;
    let minors: BTreeSet<Minor> = found.iter().filter_map(|python| minor_of(&python.version)).collect();
    Some(minors.into_iter().collect())
}

/// One line of `uv python list`.
#[derive(Deserialize)]
struct FoundPython {
    version: String,
}

pub(super) fn minor_of(version: &str) -> Option<Minor> {
    let mut numbers = version.split('.').map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

impl Environments {
    /// What environments are built with, as a text that differs where they would.
    pub fn identity(&self) -> String {
        let configured = (self.settings.uv.as_ref().map(|uv| &uv.value), self.settings.asked_python());
        let variables: Vec<(&str, &str)> = self.settings.variables().collect();
        format!("{configured:?} {variables:?} {}", self.cache.display())
    }

    /// The variables that hostler was started with.
    pub fn environment(&self) -> &Environment {
        self.settings.env_filter.environment()
    }

    /// Where uv is; none when it would have to be downloaded.
    pub fn find_uv(&self) -> Result<Option<PathBuf>, Fault> {
        super::find::find_uv(&self.settings, &self.cache.join("uv"))
    }

    /// uv's version; none when it does not run.
    pub async fn uv_version(&self, uv: &Path) -> Option<UvVersion> {
        version(uv, &self.settings).await
    }

    /// The Pythons that uv would build on; none where uv did not answer.
    pub async fn pythons(&self, uv: &Path) -> Option<Vec<Minor>> {
        pythons(uv, &self.settings).await
    }

    /// Why the configured Python does not work, and what to do; none where it works or none is configured.
    pub async fn missing_python(&self, uv: &Path) -> Option<(String, String)> {
        let settings = &self.settings;
        let python = settings.python.as_ref()?;
        let find =
            ["python", "find", "--no-project", "--no-config", "--offline", "--no-python-downloads", "--color", "never"];
        let done = run(&command(uv, settings).args(find).arg(&python.value), PYTHONS_LIMIT, |_| {}).await.ok()?;
        if done.succeeded() {
            return None;
        }
        let pythons = pythons(uv, settings).await.unwrap_or_default();
        Some(Failure { pythons: &pythons, ..Failure::of(&done.stderr, settings) }.no_configured_python(python))
    }

    /// The folder that uv keeps its downloads in; none when uv does not say.
    pub async fn uv_cache(&self, uv: &Path) -> Option<UvCache> {
        let launch = command(uv, &self.settings).args(["cache", "dir", "--no-config", "--color", "never"]);
        let done = run(&launch, CACHE_LIMIT, |_| {}).await.ok().filter(Finished::succeeded)?;
        let folder = done.stdout.trim();
        let place = self.settings.first_of(&["UV_CACHE_DIR"]).map(|variable| variable.place);
        (!folder.is_empty()).then(|| UvCache { folder: folder.into(), place })
    }

    /// Asks the package index for a package, with the variables and certificates that builds have.
    pub async fn ask_index(&self, uv: &Path) -> Result<(), IndexProblem> {
        let folder = self.cache.join(format!(".doctor-index.{}", std::process::id()));
        let requirements = folder.join("probe.in");
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&requirements, PROBE_PACKAGE));
        written.map_err(|error| self.index_problem(&format!("{}: {error}", folder.display())))?;
        let launch = command(uv, &self.settings)
            .args(["pip", "compile", "--no-deps", "--no-cache", "--no-config", "--color", "never"])
            .arg(&requirements);
        let done = run(&launch, INDEX_LIMIT, |_| {}).await;
        let _ = std::fs::remove_dir_all(&folder);
        match done {
            Ok(done) if done.succeeded() => Ok(()),
            Ok(done) if done.exit.is_none() => {
                Err(self.index_problem(&format!("no answer within {} s", INDEX_LIMIT.as_secs())))
            }
            Ok(done) => Err(self.index_problem(&done.stderr)),
            Err(error) => Err(self.index_problem(&error.to_string())),
        }
    }

    fn index_problem(&self, stderr: &str) -> IndexProblem {
        let reason = without_password(&reason(stderr));
        let explained = || Failure::of(stderr, &self.settings).explain().map(|explained| explained.fix);
        let index = self.settings.index(None).filter(|_| reason.contains("was not found in the"));
        let fix = index.map(|index| format!("correct {index}: it does not have {PROBE_PACKAGE}")).or_else(explained);
        IndexProblem { reason, fix }
    }

    /// The fault of a uv that does not work at all, for a worker that ended before its interpreter started.
    pub async fn unfit_launcher(&self, exit: Exit, stderr: &str) -> Option<Fault> {
        let uv = self.uv(&|_| {}).await.ok()?;
        let version = version(&uv, &self.settings).await;
        let is_unfit = version.is_none_or(|version| version < OLDEST_UV);
        is_unfit.then(|| unfit_uv(&uv, version, &self.settings, exit, stderr))
    }
}

/// Whether this is no error of a build: none at all, or a command line that this uv does not know.
pub(super) fn is_unfit(stderr: &str) -> bool {
    let is_error = |line: &str| line.starts_with("error") || line.trim_start().starts_with(['×', 'x']);
    let unknown = ["unexpected argument", "unrecognized subcommand", "unrecognized option", "invalid value"];
    !stderr.lines().any(is_error)
        || stderr.lines().any(|line| unknown.iter().any(|words| line.starts_with(&format!("error: {words}"))))
}

/// The fault of a uv that cannot build anything, whichever header it is given.
pub(super) fn unfit_uv(
    uv: &Path,
    version: Option<UvVersion>,
    settings: &EnvironmentSettings,
    exit: Exit,
    stderr: &str,
) -> Fault {
    let stderr = without_password(stderr.trim());
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    let how = format!("{exit}{}", last.map(|line| format!(": {line}")).unwrap_or_default());
    let uv = uv.display();
    let update = "update it (`uv self update`)";
    let (what, fix) = match version {
        Some(_) if exit.signal_name().is_some() => (format!("uv ({uv}) was killed ({how})"), "call again"),
        None => (format!("uv ({uv}) does not work ({how})"), "install uv again (https://docs.astral.sh/uv)"),
        Some((major, minor, patch)) if (major, minor, patch) < OLDEST_UV => {
            (format!("uv ({uv}) is {major}.{minor}.{patch}; hostler needs 0.8 or newer"), update)
        }
        Some((major, minor, patch)) => {
            (format!("uv ({uv}, {major}.{minor}.{patch}) failed without a reason ({how})"), update)
        }
    };
    let other = match &settings.uv {
        Some(configured) => format!("correct `environment.uv` at {}", place_of(&configured.origin)),
        None => "remove it from PATH, and hostler uses another".to_owned(),
    };
    let stderr = Some(stderr).filter(|text| !text.is_empty());
    Fault::new(Code::EnvironmentFailed, format!("{what}; {fix}, or {other}"))
        .with(Details { stderr, ..Details::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_without_a_build_error_means_an_unfit_uv() {
        for stderr in [
            "",
            "sh: 1: exec: nothing: not found\n",
            "error: unexpected argument '--script' found\n\nUsage: uv sync\n",
            "error: unrecognized subcommand 'sync'\n",
        ] {
            assert!(is_unfit(stderr), "{stderr}");
        }
        for stderr in ["error: Failed to build `x`\n", "Resolved 1 package\n  × No solution found\n"] {
            assert!(!is_unfit(stderr), "{stderr}");
        }
    }

    #[test]
    fn an_unfit_uv_is_named_with_its_version_and_its_last_line() {
        let message = |version, exit, stderr| {
            unfit_uv(Path::new("/b/uv"), version, &EnvironmentSettings::default(), exit, stderr).message
        };
        for (version, exit, stderr, words) in [
            (None, Exit::Code(127), "\nsh: nothing: not found\n", "(exit status 127: sh: nothing: not found)"),
            (None, Exit::Code(0), "", "(exit status 0)"),
            (Some((0, 9, 0)), Exit::Signal(9), "", "SIGKILL"),
            (Some((0, 4, 0)), Exit::Code(2), "error: …", "0.4.0"),
            (Some((0, 9, 0)), Exit::Code(2), "", "0.9.0"),
        ] {
            let message = message(version, exit, stderr);
            assert!(message.contains("/b/uv") && message.contains(words), "{message}");
        }
    }
}
