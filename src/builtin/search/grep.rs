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

use super::Walk;
use super::glob::Pattern;
use super::matches::{Hits, Lines};
use crate::builtin::{About, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "they are arguments, which a model passes by name")]
pub(super) struct Params {
    /// A regular expression, such as `fn \w+` or `TODO|FIXME`.
    #[schemars(length(min = 1))]
    pub pattern: String,
    /// The folder or file to search, absolute or relative to the first allowed folder (`.`).
    #[serde(default = "crate::builtin::here")]
    pub path: String,
    /// Only matching files: `*.rs` by file name, `src/**/*.rs` by path.
    #[serde(default)]
    pub glob: Option<String>,
    /// Treat the pattern as plain text.
    #[serde(default)]
    pub literal: bool,
    /// Ignore the difference between upper and lower case.
    #[serde(default)]
    pub ignore_case: bool,
    /// Lines of context around each match.
    #[serde(default)]
    #[schemars(range(max = 20))]
    pub context: usize,
    /// What to return.
    #[serde(default)]
    pub output: Output,
    /// The most matching lines to return, or files if only those are returned.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: usize,
    /// Include hidden files.
    #[serde(default)]
    pub hidden: bool,
    /// Include files that .gitignore excludes.
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
    /// The files, each with its number of matching lines.
    Files,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    /// The files with matches, by path.
    pub files: Vec<InFile>,
    /// The number of all matching lines.
    pub total: usize,
    /// The number of all files with matches.
    pub total_files: usize,
    /// The number of files that were not fully searched: unreadable, or with lines longer than 8 MB.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsearched: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct InFile {
    /// The file, as other tools accept it.
    pub path: String,
    /// The number of its matching lines.
    pub count: usize,
    /// Its lines with their numbers: `12: text` is a match, `13- text` is context, `--` is a gap.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The longest line that is held in memory, in bytes.
const LONGEST_LINE: usize = 8 << 20;

/// The largest automaton of a pattern, in bytes.
const LARGEST: usize = 10 << 20;

pub(super) fn about() -> About {
    About::new(
        "grep",
        "Search files for a regular expression.\n\nIgnored, hidden and binary files are skipped, and links are not followed. Every \
         pattern takes time proportional to the text.",
    )
    .reads("read_only", Risk::Low)
    .path_argument("path")
    .timeout(Duration::from_mins(1))
}

pub(super) fn search(roots: &Roots, params: &Params, stop: &Stop) -> Result<Found, Fault> {
    let matcher = matcher(params)?;
    let only = params.glob.as_deref().map(Pattern::new).transpose()?;
    let mut walk = Walk::at(roots, roots.locate(&params.path)?)?;
    (walk.hidden, walk.ignored) = (params.hidden, params.ignored);
    let hits = Mutex::new(Hits::up_to(params.limit.max(1), params.output == Output::Lines));
    let (is_one_file, unsearched) = (walk.is_file(), AtomicUsize::new(0));
    walk.each(stop, || {
        let (mut searcher, matcher, walk) = (searcher(params), matcher.clone(), &walk);
        let (only, hits, unsearched) = (only.as_ref().filter(|_| !is_one_file), &hits, &unsearched);
        move |below: &Path, name: &OsStr| {
            if only.is_none_or(|only| only.fits(below, name)) {
                let file = Readable { walk, below, stop };
                if !in_file(&file, &matcher, &mut searcher, hits, params) && !stop.is_set() {
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

/// A file to search.
struct Readable<'a> {
    walk: &'a Walk,
    below: &'a Path,
    stop: &'a Stop,
}

/// A file that ends early when the call is cancelled.
struct Stoppable<'a>(File, &'a Stop);

impl Read for Stoppable<'_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        if self.1.is_set() { Ok(0) } else { self.0.read(piece) }
    }
}

/// Returns whether the file could be searched.
fn in_file(
    readable: &Readable<'_>,
    matcher: &RegexMatcher,
    searcher: &mut Searcher,
    hits: &Mutex<Hits>,
    params: &Params,
) -> bool {
    let Readable { walk, below, stop } = *readable;
    let file = match walk.open(below).map(cap_std::fs::File::into_std) {
        Ok(file) => file,
        // A file may disappear meanwhile.
        Err(error) => return error.kind() != io::ErrorKind::PermissionDenied,
    };
    // Or be replaced by a pipe.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return true;
    }
    let shows = params.output == Output::Lines;
    let mut lines = Lines::up_to(if shows { params.limit } else { 0 });
    let result = searcher.search_reader(matcher, Stoppable(file, stop), &mut lines);
    if result.is_ok() && lines.count > 0 {
        hits.lock().add(below, lines);
    }
    result.is_ok()
}

fn matcher(params: &Params) -> Result<RegexMatcher, Fault> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(params.ignore_case).fixed_strings(params.literal).crlf(true);
    builder.size_limit(LARGEST).dfa_size_limit(LARGEST);
    builder.build(&params.pattern).map_err(|error| {
        let why = error.to_string();
        let why = why.trim().lines().last().unwrap_or_default().trim_start_matches("error: ");
        let message = format!(
            "`{}` is not a valid pattern: {why}; pass `literal` to search for plain text",
            params.pattern.chars().take(100).collect::<String>()
        );
        Fault::new(Code::InvalidParams, message)
    })
}

fn searcher(params: &Params) -> Searcher {
    let context = if params.output == Output::Lines { params.context } else { 0 };
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(params.output == Output::Lines)
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
    fn an_endless_file_ends_when_the_call_is_cancelled() {
        let (stop, mut lines) = (Stop::default(), Lines::up_to(1));
        let mut file = Stoppable(File::open("/dev/zero").unwrap(), &stop);
        assert!(file.read(&mut [1; 64]).unwrap() > 0);
        stop.set();
        assert_eq!(file.read(&mut [1; 64]).unwrap(), 0);
        let mut searcher = SearcherBuilder::new().binary_detection(BinaryDetection::none()).build();
        searcher.search_reader(RegexMatcher::new("x").unwrap(), file, &mut lines).unwrap();
        assert_eq!(lines.count, 0);
    }

    #[test]
    fn a_cancelled_search_stops_reading() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "hit\n").unwrap();
        let roots = Roots::new(vec![folder.path().to_owned()]);
        let params: Params = serde_json::from_value(serde_json::json!({"pattern": "hit"})).unwrap();
        let walk = Walk::at(&roots, roots.locate(".").unwrap()).unwrap();
        let found = |stop: &Stop| {
            let hits = Mutex::new(Hits::up_to(1, true));
            let file = Readable { walk: &walk, below: Path::new("a"), stop };
            assert!(in_file(&file, &matcher(&params).unwrap(), &mut searcher(&params), &hits, &params));
            hits.into_inner().total
        };
        let stop = Stop::default();
        assert_eq!(found(&stop), 1);
        stop.set();
        assert_eq!(found(&stop), 0);
    }
}
