//! What uv needs beside itself: an index that it reaches and a cache that it can write. Asked, not tried out: nothing is
//! fetched or installed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::circumstances::{NO_ANSWER, known_advice};
use super::failure::reason;
use super::probe::asking;
use super::store::Environments;
use super::trouble::without_password;
use crate::process::{Finished, run};

/// Reaching an index takes this long at most.
const INDEX_LIMIT: Duration = Duration::from_secs(15);
const CACHE_LIMIT: Duration = Duration::from_secs(5);
/// A small package that every index has.
const ASKED_FOR: &str = "packaging";

/// What uv says of the index.
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

/// The folder that uv keeps what it fetched in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UvCache {
    /// Where it is, or will be.
    pub folder: PathBuf,
    /// Where that is set; none when nobody set it.
    pub place: Option<String>,
}

impl Environments {
    /// Where uv keeps what it fetched; none when it does not say.
    pub async fn uv_cache(&self, uv: &Path) -> Option<UvCache> {
        let launch = asking(uv, &self.settings).args(["cache", "dir", "--no-config", "--color", "never"]);
        let done = run(&launch, CACHE_LIMIT, |_| {}).await.ok().filter(Finished::succeeded)?;
        let folder = done.stdout.trim();
        let place = self.settings.variable("UV_CACHE_DIR").map(|variable| variable.place);
        (!folder.is_empty()).then(|| UvCache { folder: folder.into(), place })
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
                Reached::No { reason: without_password(&reason(&done.stderr)), advice }
            }
            Err(error) => no(error.to_string()),
        }
    }
}
