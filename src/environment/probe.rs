//! What is asked of uv: where it is, which it is, which Pythons it finds. Nothing is fetched or installed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::failure::reason;
use super::pythons::Minor;
use super::settings::EnvironmentSettings;
use super::store::Environments;
use super::trouble::Trouble;
use super::unfit::unfit_uv;
use crate::config::Environment;
use crate::outcome::Fault;
use crate::process::{Exit, Launch, run};

const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Every Python that uv does not know yet is started once.
const PYTHONS_LIMIT: Duration = Duration::from_secs(20);

/// `(0, 9, 1)`
pub type UvVersion = (u64, u64, u64);
/// Older ones do not know `uv sync --script --active`, which builds are made with.
pub const OLDEST_UV: UvVersion = (0, 8, 0);

pub(super) async fn version(uv: &Path, settings: &EnvironmentSettings) -> Option<UvVersion> {
    let done = run(&asking(uv, settings).arg("--version"), VERSION_LIMIT, |_| {}).await.ok()?;
    // Other programs have versions too.
    let text = done.stdout.strip_prefix("uv ")?.split_whitespace().next()?.to_owned();
    let mut numbers = text.split(['.', '-', '+']).map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0)))
}

pub(super) async fn pythons(uv: &Path, settings: &EnvironmentSettings) -> Option<Vec<Minor>> {
    let list = ["python", "list", "--only-installed", "--offline", "--no-config", "--output-format", "json"];
    let done = run(&asking(uv, settings).args(list), PYTHONS_LIMIT, |_| {}).await.ok()?;
    let found: Vec<FoundPython> = serde_json::from_str(&done.stdout).ok()?;
    let minors: BTreeSet<Minor> = found.iter().filter_map(|python| minor_of(&python.version)).collect();
    Some(minors.into_iter().collect())
}

/// One line of `uv python list`.
#[derive(Deserialize)]
struct FoundPython {
    version: String,
}

fn minor_of(version: &str) -> Option<Minor> {
    let mut numbers = version.split('.').map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// uv with what builds have, about to be asked something.
pub(super) fn asking(uv: &Path, settings: &EnvironmentSettings) -> Launch {
    let launch = Launch::new(uv).envs(settings.withheld.inherited());
    settings.variables().fold(launch, |launch, (name, value)| launch.env(name, value))
}

impl Environments {
    /// What environments are built with, as a text that differs where they would.
    pub fn identity(&self) -> String {
        let (uv, python) = (self.settings.uv.as_ref(), self.settings.python.as_ref());
        let said = (uv.map(|said| &said.value), python.map(|said| &said.value));
        let variables: Vec<(&str, &str)> = self.settings.variables().collect();
        format!("{said:?} {variables:?} {}", self.cache.display())
    }

    /// The variables that hostler was started with.
    pub fn environment(&self) -> &Environment {
        self.settings.withheld.environment()
    }

    /// Where uv is; none when it would have to be fetched.
    pub fn find_uv(&self) -> Result<Option<PathBuf>, Fault> {
        super::find::find_uv(&self.settings, &self.cache.join("uv"))
    }

    /// Why the Python that the operator names does not serve, and what to do; none where it does or nobody names one.
    pub async fn missing_python(&self, uv: &Path) -> Option<(String, String)> {
        let settings = &self.settings;
        let python = settings.python.as_ref()?;
        let find =
            ["python", "find", "--no-project", "--no-config", "--offline", "--no-python-downloads", "--color", "never"];
        let done = run(&asking(uv, settings).args(find).arg(&python.value), PYTHONS_LIMIT, |_| {}).await.ok()?;
        if done.succeeded() {
            return None;
        }
        let (pythons, reason) = (pythons(uv, settings).await.unwrap_or_default(), reason(&done.stderr));
        let (file, stderr) = (Path::new(""), done.stderr.as_str());
        let trouble =
            Trouble { file, is_locked: false, header: None, settings, pythons: &pythons, reason: &reason, stderr };
        let (what, mut fix) = trouble.not_the_operators(python);
        if !python.value.contains('/') {
            fix.push_str(" (uv also tries to fetch it at the first build)");
        }
        Some((what, fix))
    }

    /// The folder that everything is built in.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// uv's version as numbers, `(0, 9, 1)`; none when it does not run or says nothing of the kind.
    pub async fn uv_version(&self, uv: &Path) -> Option<UvVersion> {
        version(uv, &self.settings).await
    }

    /// Asked where uv ended before the interpreter that it was to run said anything: the fault of a uv that runs nothing.
    pub async fn unfit_launcher(&self, exit: Exit, stderr: &str) -> Option<Fault> {
        let uv = self.uv(&|_| {}).await.ok()?;
        let version = version(&uv, &self.settings).await;
        let is_unfit = version.is_none_or(|version| version < OLDEST_UV);
        is_unfit.then(|| unfit_uv(&uv, version, &self.settings, exit, stderr))
    }

    /// The Pythons that uv would build on: those that are there and run. None where uv did not say.
    pub async fn pythons(&self, uv: &Path) -> Option<Vec<Minor>> {
        pythons(uv, &self.settings).await
    }
}
