//! What `doctor` asks of uv: where it is, which it is, whether it reaches its index. Nothing is fetched or installed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure::{known_advice, reason};
use super::store::Environments;
use crate::outcome::Fault;
use crate::process::{Launch, inherited_environment, run};

/// Reaching an index takes this long at most.
const INDEX_LIMIT: Duration = Duration::from_secs(15);
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// A small package that every index has.
const ASKED_FOR: &str = "packaging";

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

impl Environments {
    /// Where uv is; none when it would have to be fetched.
    pub fn find_uv(&self) -> Result<Option<PathBuf>, Fault> {
        super::find::find_uv(self.settings.uv.as_deref(), &self.cache.join("uv"))
    }

    /// The folder that everything is built in.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// uv's version as numbers, `(0, 9, 1)`; none when it does not run or says nothing of the kind.
    pub async fn uv_version(&self, uv: &Path) -> Option<(u64, u64, u64)> {
        let launch = Launch::new(uv).arg("--version").envs(inherited_environment(&self.settings.hidden));
        let done = run(&launch, VERSION_LIMIT, |_| {}).await.ok()?;
        let text = done.stdout.split_whitespace().nth(1)?.to_owned();
        let mut numbers = text.split(['.', '-', '+']).map_while(|part| part.parse().ok());
        Some((numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0)))
    }

    /// Asks the package index for something, with the variables and certificates that builds have.
    pub async fn reach_index(&self, uv: &Path) -> Reached {
        let no = |reason: String| Reached::No { advice: known_advice(&reason), reason };
        let folder = self.cache.join(format!(".doctor-index.{}", std::process::id()));
        let wish = folder.join("wish.in");
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&wish, ASKED_FOR));
        if let Err(error) = written {
            return no(format!("{}: {error}", folder.display()));
        }
        let launch = Launch::new(uv)
            .args(["pip", "compile", "--no-deps", "--no-cache", "--no-config", "--color", "never"])
            .arg(&wish)
            .envs(inherited_environment(&self.settings.hidden));
        let launch = self.settings.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
        let done = run(&launch, INDEX_LIMIT, |_| {}).await;
        let _ = std::fs::remove_dir_all(&folder);
        match done {
            Ok(done) if done.succeeded() => Reached::Yes,
            Ok(done) if done.exit.is_none() => no(format!("no answer within {} s", INDEX_LIMIT.as_secs())),
            Ok(done) => Reached::No { reason: reason(&done.stderr), advice: known_advice(&done.stderr) },
            Err(error) => no(error.to_string()),
        }
    }
}
