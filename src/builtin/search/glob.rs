//! `glob`

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::walk::Walk;
use crate::builtin::{About, Builtin, Call, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::config::tool::Effects;
use crate::outcome::{Code, Fault};

pub(super) struct Glob(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Which files: `*.rs` by their names in any folder, `src/**/*.rs` by their paths; `{a,b}` is either.
    pub pattern: String,
    /// The folder to look in; relative paths begin at the first folder that tools may reach, which `.` is.
    #[serde(default = "crate::builtin::here")]
    pub path: String,
    /// The most files to return.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: usize,
    /// Look at hidden files too.
    #[serde(default)]
    pub hidden: bool,
    /// Look at what .gitignore names, too.
    #[serde(default)]
    pub ignored: bool,
}

fn usual() -> usize {
    1000
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Files {
    /// The paths, in their order, as other tools take them.
    pub files: Vec<String>,
    /// How many there are in all.
    pub total: usize,
}

impl Builtin for Glob {
    type Params = Wanted;
    type Answer = Files;

    fn about(&self) -> About {
        About::new(
            "glob",
            "Find files by their names.\n\nWhat .gitignore names and hidden files are left out, and links are not followed.",
        )
        .effects(Effects::Pure)
        .risk("read_only", Risk::Low)
        .timeout(Duration::from_mins(1))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Files, Fault> {
        let roots = self.0.clone();
        call.blocking(move |stop| find(&roots, &wanted, stop)).await
    }
}

/// A pattern of names or of paths.
pub(super) struct Pattern {
    /// A set of one: it knows short ways for the common forms.
    glob: GlobSet,
    is_of_names: bool,
}

impl Pattern {
    pub fn new(text: &str) -> Result<Self, Fault> {
        let whole = text.strip_prefix("./").unwrap_or(text);
        if whole.starts_with('/') || whole.split('/').any(|step| step == "..") {
            let message = format!("`{text}` leads elsewhere: a pattern goes down from `path`; name the folder there");
            return Err(Fault::new(Code::InvalidParams, message));
        }
        let wrong = |error: globset::Error| {
            Fault::new(Code::InvalidParams, format!("`{text}` is no pattern of files: {}", error.kind()))
        };
        let glob = GlobBuilder::new(whole).literal_separator(true).build().map_err(wrong)?;
        let glob = GlobSetBuilder::new().add(glob).build().map_err(wrong)?;
        Ok(Self { glob, is_of_names: !whole.contains('/') })
    }

    /// Whether a file is meant: by its path below the start, or by its name alone.
    pub fn fits(&self, below: &Path, name: &OsStr) -> bool {
        if self.is_of_names { self.glob.is_match(name) } else { self.glob.is_match(below) }
    }
}

fn find(roots: &Roots, wanted: &Wanted, stop: &Stop) -> Result<Files, Fault> {
    let pattern = Pattern::new(&wanted.pattern)?;
    let mut walk = Walk::at(roots, roots.locate(&wanted.path)?)?;
    (walk.hidden, walk.ignored) = (wanted.hidden, wanted.ignored);
    let found: Mutex<Vec<OsString>> = Mutex::default();
    walk.each(stop, || {
        let mut own = Handed { own: Vec::new(), to: &found };
        let pattern = &pattern;
        move |below: &Path, name: &OsStr| {
            if pattern.fits(below, name) {
                own.own.push(below.as_os_str().to_owned());
            }
        }
    });
    let mut found = found.into_inner();
    let total = found.len();
    // As bytes: taking paths apart to compare them would take longer than finding them.
    let limit = wanted.limit.max(1);
    if limit < total {
        found.select_nth_unstable(limit);
        found.truncate(limit);
    }
    found.sort_unstable();
    let files = found.iter().map(|below| walk.shown(Path::new(below))).collect();
    Ok(Files { files, total })
}

/// What one thread found, handed over when it is done.
struct Handed<'a> {
    own: Vec<OsString>,
    to: &'a Mutex<Vec<OsString>>,
}

impl Drop for Handed<'_> {
    fn drop(&mut self) {
        self.to.lock().append(&mut self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_for_somebody_who_waits_no_more() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let roots = Roots::new(vec![folder.path().to_owned()]);
        let wanted: Wanted = serde_json::from_value(serde_json::json!({"pattern": "a"})).unwrap();
        let stop = Stop::default();
        assert_eq!(find(&roots, &wanted, &stop).unwrap().total, 1);
        stop.say();
        assert_eq!(find(&roots, &wanted, &stop).unwrap().total, 0);
    }
}
