//! `glob`

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Walk;
use crate::builtin::{About, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// `*.rs` matches file names in any folder, `src/**/*.rs` matches paths; `{a,b}` matches either.
    pub pattern: String,
    /// The folder to search, absolute or relative to the first allowed folder (`.`).
    #[serde(default = "crate::builtin::here")]
    pub path: String,
    /// The most files to return.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: usize,
    /// Include hidden files.
    #[serde(default)]
    pub hidden: bool,
    /// Include files that .gitignore excludes.
    #[serde(default)]
    pub ignored: bool,
}

fn usual() -> usize {
    1000
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Files {
    /// The paths, sorted, as other tools accept them.
    pub files: Vec<String>,
    /// The number of all matching files.
    pub total: usize,
}

pub(super) fn about() -> About {
    About::new(
        "glob",
        "Find files by name or path.\n\nIgnored and hidden files are skipped, and links are not followed.",
    )
    .reads("read_only", Risk::Low)
    .path_argument("path")
    .timeout(Duration::from_mins(1))
}

/// A pattern of file names or of paths.
pub(super) struct Pattern {
    /// A set of one, which has fast paths for common patterns.
    glob: GlobSet,
    is_of_names: bool,
}

impl Pattern {
    pub fn new(text: &str) -> Result<Self, Fault> {
        let whole = text.strip_prefix("./").unwrap_or(text);
        if whole.starts_with('/') || whole.split('/').any(|step| step == "..") {
            let message = format!("`{text}` leaves `path`; patterns are relative to it, so pass the folder as `path`");
            return Err(Fault::new(Code::InvalidParams, message));
        }
        let wrong = |error: globset::Error| {
            Fault::new(Code::InvalidParams, format!("`{text}` is not a valid pattern: {}", error.kind()))
        };
        let glob = GlobBuilder::new(whole).literal_separator(true).build().map_err(wrong)?;
        let glob = GlobSetBuilder::new().add(glob).build().map_err(wrong)?;
        Ok(Self { glob, is_of_names: !whole.contains('/') })
    }

    /// Whether a file matches, by its path below the start or by its name alone.
    pub fn fits(&self, below: &Path, name: &OsStr) -> bool {
        if self.is_of_names { self.glob.is_match(name) } else { self.glob.is_match(below) }
    }
}

pub(super) fn find(roots: &Roots, params: &Params, stop: &Stop) -> Result<Files, Fault> {
    let pattern = Pattern::new(&params.pattern)?;
    let mut walk = Walk::at(roots, roots.locate(&params.path)?)?;
    (walk.hidden, walk.ignored) = (params.hidden, params.ignored);
    let (sender, found) = channel();
    walk.each(stop, || {
        let (sender, pattern) = (sender.clone(), &pattern);
        move |below: &Path, name: &OsStr| {
            if pattern.fits(below, name) {
                let _ = sender.send(below.as_os_str().to_owned());
            }
        }
    });
    drop(sender);
    let mut found: Vec<OsString> = found.into_iter().collect();
    let total = found.len();
    // Compared as bytes: comparing path components would take longer than the search.
    let limit = params.limit.max(1);
    if limit < total {
        found.select_nth_unstable(limit);
        found.truncate(limit);
    }
    found.sort_unstable();
    let files = found.iter().map(|below| walk.shown(Path::new(below))).collect();
    Ok(Files { files, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_search_finds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let roots = Roots::new(vec![folder.path().to_owned()]);
        let params: Params = serde_json::from_value(serde_json::json!({"pattern": "a"})).unwrap();
        let stop = Stop::default();
        assert_eq!(find(&roots, &params, &stop).unwrap().total, 1);
        stop.set();
        assert_eq!(find(&roots, &params, &stop).unwrap().total, 0);
    }
}
