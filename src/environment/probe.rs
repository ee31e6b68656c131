//! What is asked of uv: where it is, which it is, which Pythons it finds, whether it reaches its index. Nothing is fetched or
//! installed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::circumstances::{NO_ANSWER, known_advice};
use super::failure::reason;
use super::pythons::Minor;
use super::settings::EnvironmentSettings;
use super::store::Environments;
use super::unfit::unfit_uv;
use crate::outcome::Fault;
use crate::process::{Exit, Launch, inherited_environment, run};

/// Reaching an index takes this long at most.
const INDEX_LIMIT: Duration = Duration::from_secs(15);
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Every Python that uv does not know yet is started once.
const PYTHONS_LIMIT: Duration = Duration::from_secs(20);
/// A small package that every index has.
const ASKED_FOR: &str = "packaging";

/// `(0, 9, 1)`
pub type UvVersion = (u64, u64, u64);
/// Older ones do not know `uv sync --script --active`, which builds are made with.
pub const OLDEST_UV: UvVersion = (0, 8, 0);

/// What uv says of itself and of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// It answered.
    Yes,
    /// It did not: why, and what to do.
    No {
        /// uv's own words.
        reason: String,
        /// What to do about it, where that is known.
        advice: Option<String>,
    },
}

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
fn asking(uv: &Path, settings: &EnvironmentSettings) -> Launch {
    let launch = Launch::new(uv).envs(inherited_environment(&settings.hidden));
    settings.variables().fold(launch, |launch, (name, value)| launch.env(name, value))
}

impl Environments {
    /// Where uv is; none when it would have to be fetched.
    pub fn find_uv(&self) -> Result<Option<PathBuf>, Fault> {
        super::find::find_uv(self.settings.uv.as_ref(), &self.cache.join("uv"))
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

    /// An index that answers and does not have what every index should have.
    fn doubted_index(&self) -> Option<String> {
        let index = self.settings.other_index(None)?;
        Some(format!(
            "{index} has no `{ASKED_FOR}`: it is no package index, or one with few packages. Correct or unset {}",
            index.name
        ))
    }

    /// Asks the package index for something, with the variables and certificates that builds have.
    pub async fn reach_index(&self, uv: &Path) -> Reached {
        let no = |reason: String| Reached::No { advice: known_advice(&reason, &self.settings, None), reason };
        let folder = self.cache.join(format!(".doctor-index.{}", std::process::id()));
        let wish = folder.join("wish.in");
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&wish, ASKED_FOR));
        if let Err(error) = written {
            return no(format!("{}: {error}", folder.display()));
        }
        let launch = asking(uv, &self.settings)
            .args(["pip", "compile", "--no-deps", "--no-cache", "--no-config", "--color", "never"])
            .arg(&wish);
        let done = run(&launch, INDEX_LIMIT, |_| {}).await;
        let _ = std::fs::remove_dir_all(&folder);
        match done {
            Ok(done) if done.succeeded() => Reached::Yes,
            Ok(done) if done.exit.is_none() => no(format!("{NO_ANSWER} {} s", INDEX_LIMIT.as_secs())),
            Ok(done) => {
                let advice = known_advice(&done.stderr, &self.settings, None).or_else(|| self.doubted_index());
                Reached::No { reason: reason(&done.stderr), advice }
            }
            Err(error) => no(error.to_string()),
        }
    }
}
