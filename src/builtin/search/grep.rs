//! `grep`

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::glob::Pattern;
use super::hits::{Hits, Lines};
use super::walk::Walk;
use crate::builtin::{About, Builtin, Call, Roots, Stop};
use crate::config::facts::Risk;
use crate::config::tool::Effects;
use crate::outcome::{Code, Fault};

pub(super) struct Grep(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "they are a model's arguments, which it names one by one")]
pub(super) struct Wanted {
    /// A regular expression, such as `fn \w+` or `TODO|FIXME`.
    #[schemars(length(min = 1))]
    pub pattern: String,
    /// The folder or file to search; relative paths begin at the first folder that tools may reach, which `.` is.
    #[serde(default = "here")]
    pub path: String,
    /// Only files that fit: `*.rs` by their names, `src/**/*.rs` by their paths.
    #[serde(default)]
    pub glob: Option<String>,
    /// Take the pattern as plain text.
    #[serde(default)]
    pub literal: bool,
    /// Make no difference between capital and small letters.
    #[serde(default)]
    pub ignore_case: bool,
    /// How many lines around each match to show.
    #[serde(default)]
    #[schemars(range(max = 20))]
    pub context: usize,
    /// What to show.
    #[serde(default)]
    pub output: Output,
    /// The most matching lines to show, or files where only those are shown.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: usize,
    /// Look at hidden files too.
    #[serde(default)]
    pub hidden: bool,
    /// Look at what .gitignore names, too.
    #[serde(default)]
    pub ignored: bool,
}

fn here() -> String {
    ".".to_owned()
}

fn usual() -> usize {
    200
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Output {
    /// The lines.
    #[default]
    Lines,
    /// The files, each with how many lines match.
    Files,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    /// The files that hold matches, in the order of their paths.
    pub files: Vec<InFile>,
    /// How many lines match in all, also those that are not shown.
    pub total: usize,
    /// In how many files.
    pub total_files: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct InFile {
    /// The file, as other tools take it.
    pub path: String,
    /// How many of its lines match.
    pub count: usize,
    /// Its lines with their numbers: `12: text` matches, `13- text` stands around one, `--` is a gap.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

/// Larger automata are refused: a pattern that needs one would hold up everybody.
const LARGEST: usize = 10 << 20;

impl Builtin for Grep {
    type Params = Wanted;
    type Answer = Found;

    fn about(&self) -> About {
        About::new(
            "grep",
            "Search files for a regular expression.\n\nWhat .gitignore names, hidden and binary files are left out, and links \
             are not followed. Any pattern is searched for in time proportional to the text.",
        )
        .effects(Effects::Pure)
        .risk("read_only", Risk::Low)
        .timeout(Duration::from_mins(1))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Found, Fault> {
        let roots = self.0.clone();
        call.blocking(move |stop| search(&roots, &wanted, stop)).await
    }
}

fn search(roots: &Roots, wanted: &Wanted, stop: &Stop) -> Result<Found, Fault> {
    let matcher = matcher(wanted)?;
    let only = wanted.glob.as_deref().map(Pattern::new).transpose()?;
    let mut walk = Walk::at(roots, roots.locate(&wanted.path)?)?;
    (walk.hidden, walk.ignored) = (wanted.hidden, wanted.ignored);
    let hits = Mutex::new(Hits::up_to(wanted.limit.max(1), wanted.output == Output::Lines));
    let is_one_file = walk.is_file();
    walk.each(stop, || {
        let (mut searcher, matcher, walk) = (searcher(wanted), matcher.clone(), &walk);
        let (only, hits) = (only.as_ref().filter(|_| !is_one_file), &hits);
        move |below: &Path, name: &OsStr| {
            if only.is_none_or(|only| only.fits(below, name)) {
                in_file(walk, below, stop, (&matcher, &mut searcher), hits, wanted);
            }
        }
    });
    let hits = hits.into_inner();
    let (total, total_files) = (hits.total, hits.total_files);
    let shown =
        |(below, count, lines): (PathBuf, usize, Vec<String>)| InFile { path: walk.shown(&below), count, lines };
    Ok(Found { files: hits.into_files().map(shown).collect(), total, total_files })
}

fn in_file(
    walk: &Walk,
    below: &Path,
    stop: &Stop,
    (matcher, searcher): (&RegexMatcher, &mut Searcher),
    hits: &Mutex<Hits>,
    wanted: &Wanted,
) {
    // What was there a moment ago may be gone, or be something else.
    let Ok(file) = walk.open(below).map(cap_std::fs::File::into_std) else { return };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return;
    }
    let shows = wanted.output == Output::Lines;
    let mut lines = Lines::up_to(if shows { wanted.limit } else { 0 });
    let result = searcher.search_reader(matcher, Heeding { file, stop }, &mut lines);
    if result.is_ok() && lines.count > 0 {
        hits.lock().add(below, lines);
    }
}

/// A file that ends when nobody waits for what is in it: a large one would be read to its end otherwise.
struct Heeding<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for Heeding<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.stop.is_said() { Ok(0) } else { self.file.read(into) }
    }
}

fn matcher(wanted: &Wanted) -> Result<RegexMatcher, Fault> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(wanted.ignore_case).fixed_strings(wanted.literal).line_terminator(Some(b'\n'));
    builder.size_limit(LARGEST).dfa_size_limit(LARGEST);
    builder.build(&wanted.pattern).map_err(|error| {
        let why = error.to_string();
        let why = why.trim().lines().last().unwrap_or_default().trim_start_matches("error: ");
        let message = format!(
            "`{}` cannot be searched for: {why}; with `literal` it is taken as plain text",
            wanted.pattern.chars().take(100).collect::<String>()
        );
        Fault::new(Code::InvalidParams, message)
    })
}

fn searcher(wanted: &Wanted) -> Searcher {
    let context = if wanted.output == Output::Lines { wanted.context } else { 0 };
    SearcherBuilder::new()
        .line_number(wanted.output == Output::Lines)
        .binary_detection(BinaryDetection::quit(0))
        .before_context(context)
        .after_context(context)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_ends_when_nobody_waits() {
        let (stop, mut lines) = (Stop::default(), Lines::up_to(1));
        let mut file = Heeding { file: File::open("/dev/zero").unwrap(), stop: &stop };
        assert!(file.read(&mut [1; 64]).unwrap() > 0);
        stop.say();
        let mut searcher = SearcherBuilder::new().binary_detection(BinaryDetection::none()).build();
        searcher.search_reader(RegexMatcher::new("x").unwrap(), file, &mut lines).unwrap();
        assert_eq!(lines.count, 0);
    }
}
