//! `grep`

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::glob::Pattern;
use super::hits::{Hits, Lines};
use super::walk::Walk;
use crate::builtin::{About, Builtin, Call, Roots, Stop};
use crate::config::declared_policy::Risk;
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
    #[serde(default = "crate::builtin::here")]
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
    /// How many files were not searched to their end: they may not be read, or hold lines longer than 8 MB.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsearched: usize,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A longer line is not held in memory, in bytes.
const LONGEST_LINE: usize = 8 << 20;

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
    let (is_one_file, unsearched) = (walk.is_file(), AtomicUsize::new(0));
    walk.each(stop, || {
        let (mut searcher, matcher, walk) = (searcher(wanted), matcher.clone(), &walk);
        let (only, hits, unsearched) = (only.as_ref().filter(|_| !is_one_file), &hits, &unsearched);
        move |below: &Path, name: &OsStr| {
            if only.is_none_or(|only| only.fits(below, name)) {
                let file = Readable { walk, below, stop };
                if !in_file(&file, &matcher, &mut searcher, hits, wanted) && !stop.is_said() {
                    unsearched.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    let hits = hits.into_inner();
    let (total, total_files) = (hits.total, hits.total_files);
    let shown =
        |(below, count, lines): (PathBuf, usize, Vec<String>)| InFile { path: walk.shown(&below), count, lines };
    let files = hits.into_files().map(shown).collect();
    Ok(Found { files, total, total_files, unsearched: unsearched.into_inner() })
}

/// A file that was found.
struct Readable<'a> {
    walk: &'a Walk,
    below: &'a Path,
    stop: &'a Stop,
}

/// A file that ends where nobody waits for what is in it any more: it may be larger than anybody's patience.
struct Stoppable<'a>(File, &'a Stop);

impl Read for Stoppable<'_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        if self.1.is_said() { Ok(0) } else { self.0.read(piece) }
    }
}

/// Says whether it could be searched.
fn in_file(
    readable: &Readable<'_>,
    matcher: &RegexMatcher,
    searcher: &mut Searcher,
    hits: &Mutex<Hits>,
    wanted: &Wanted,
) -> bool {
    let Readable { walk, below, stop } = *readable;
    let file = match walk.open(below).map(cap_std::fs::File::into_std) {
        Ok(file) => file,
        // What was there a moment ago may be gone.
        Err(error) => return error.kind() != io::ErrorKind::PermissionDenied,
    };
    // Or be something else.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return true;
    }
    let shows = wanted.output == Output::Lines;
    let mut lines = Lines::up_to(if shows { wanted.limit } else { 0 });
    let result = searcher.search_reader(matcher, Stoppable(file, stop), &mut lines);
    if result.is_ok() && lines.count > 0 {
        hits.lock().add(below, lines);
    }
    result.is_ok()
}

fn matcher(wanted: &Wanted) -> Result<RegexMatcher, Fault> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(wanted.ignore_case).fixed_strings(wanted.literal).crlf(true);
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
        .line_terminator(LineTerminator::crlf())
        .line_number(wanted.output == Output::Lines)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST_LINE))
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
        let mut file = Stoppable(File::open("/dev/zero").unwrap(), &stop);
        assert!(file.read(&mut [1; 64]).unwrap() > 0);
        stop.say();
        assert_eq!(file.read(&mut [1; 64]).unwrap(), 0);
        let mut searcher = SearcherBuilder::new().binary_detection(BinaryDetection::none()).build();
        searcher.search_reader(RegexMatcher::new("x").unwrap(), file, &mut lines).unwrap();
        assert_eq!(lines.count, 0);
    }

    #[test]
    fn a_search_that_nobody_waits_for_reads_no_file_on() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "hit\n").unwrap();
        let roots = Roots::new(vec![folder.path().to_owned()]);
        let wanted: Wanted = serde_json::from_value(serde_json::json!({"pattern": "hit"})).unwrap();
        let walk = Walk::at(&roots, roots.locate(".").unwrap()).unwrap();
        let found = |stop: &Stop| {
            let hits = Mutex::new(Hits::up_to(1, true));
            let file = Readable { walk: &walk, below: Path::new("a"), stop };
            assert!(in_file(&file, &matcher(&wanted).unwrap(), &mut searcher(&wanted), &hits, &wanted));
            hits.into_inner().total
        };
        let stop = Stop::default();
        assert_eq!(found(&stop), 1);
        stop.say();
        assert_eq!(found(&stop), 0);
    }
}
