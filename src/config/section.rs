//! One TOML table, read key by key: typed values with their line, and an error for every unknown key.
//!
//! Both `hostler.toml` and the `[tool.hostler]` table of a tool file's header are read through this, so an unknown key gets
//! the same message in both: its name, its line and the nearest known key.

use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared_policy::DeclaredPolicy;
use super::origin::{Origin, Place, Setting};
use super::toml_error::{self, TomlError};
use super::value::{FromToml, describe};

/// A TOML text and its place in a file.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file the text was read from.
    pub file: Arc<PathBuf>,
    /// The TOML text itself.
    pub text: Arc<str>,
    /// The line of `file` on which `text` begins (1 for a whole file; more for a header block).
    pub first_line: usize,
    /// Whether it is the header of a tool file, which the operator's settings override.
    pub is_header: bool,
}

impl Source {
    /// The 1-based line of the file that holds this byte of the text.
    pub fn line_at(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        self.first_line + before.split(|byte| *byte == b'\n').count() - 1
    }

    /// The file and line of a byte of the text.
    pub fn place_at(&self, offset: usize) -> Place {
        Place { file: Arc::clone(&self.file), line: self.line_at(offset) }
    }

    fn origin_at(&self, offset: usize) -> Origin {
        let place = self.place_at(offset);
        if self.is_header { Origin::Header(place) } else { Origin::File(place) }
    }
}

/// One thing that is wrong in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// The full key, `tool.brave.timeout`; empty when the text is not TOML.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        write!(f, "{}; {}", self.what, self.fix)
    }
}

/// Parses a text into a table.
pub fn parse(source: &Source) -> Result<DeTable<'_>, Problem> {
    DeTable::parse(&source.text).map(Spanned::into_inner).map_err(|error| {
        let TomlError { at, what, fix } = toml_error::explain(source, &error);
        Problem { place: source.place_at(at), key: String::new(), what: format!("not valid TOML: {what}"), fix }
    })
}

/// A table being read. Every key that is read counts as known; [`Section::finish`] reports the others.
pub struct Section<'a> {
    source: &'a Source,
    prefix: String,
    table: &'a DeTable<'a>,
    known: RefCell<Vec<&'static str>>,
    problems: &'a RefCell<Vec<Problem>>,
}

impl<'a> Section<'a> {
    /// Begins reading `table`; `prefix` is its full name (`""` for the top, `"limits"`, `"tool.hostler"`).
    pub fn new(
        source: &'a Source,
        prefix: impl Into<String>,
        table: &'a DeTable<'a>,
        problems: &'a RefCell<Vec<Problem>>,
    ) -> Self {
        Self { source, prefix: prefix.into(), table, known: RefCell::default(), problems }
    }

    /// The value of a key. A value of another type is reported and counts as absent.
    pub fn take<T: FromToml>(&self, key: &'static str) -> Option<Setting<T>> {
        self.known.borrow_mut().push(key);
        let value = self.table.get(key)?;
        let at = value.span().start;
        match T::from_toml(value.get_ref()) {
            Ok(taken) => Some(Setting { value: taken, origin: self.source.origin_at(at) }),
            Err(wrong) => {
                // A value in place of names may be a secret.
                let what = if key == "secrets" { "expected a list of names".to_owned() } else { wrong.what };
                let fix = if key == "secrets" { "write [\"NAME\"]".to_owned() } else { wrong.fix };
                self.report(at, self.full_key(key), what, fix);
                None
            }
        }
    }

    /// A sub-table as a section of its own.
    pub fn section(&self, key: &'static str) -> Option<Section<'a>> {
        self.known.borrow_mut().push(key);
        self.subsection(key)
    }

    /// Every sub-table that is not known by name, in order: `[tool.NAME]`.
    pub fn named_sections(&self) -> Vec<(String, Section<'a>)> {
        let known = self.known.borrow().clone();
        let tables = self.table.iter().filter(|(_, value)| value.get_ref().is_table());
        let names = tables.map(|(key, _)| key.get_ref().to_string());
        let unknown = names.filter(|name| !known.contains(&name.as_str()));
        unknown.filter_map(|name| self.subsection(&name).map(|section| (name, section))).collect()
    }

    /// Every key with its raw value, for tables with arbitrary keys (`[secrets]`, `config`).
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Spanned<DeValue<'a>>)> + '_ {
        self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), value))
    }

    /// Where the table begins.
    pub fn place(&self) -> Place {
        let first = self.table.iter().map(|(key, _)| key.span().start).min().unwrap_or(0);
        // Its head is above its first key, unless it is an inline table.
        let name = self.prefix.rsplit_once("tool.").map_or(self.prefix.as_str(), |(_, name)| name);
        let above = self.source.text.get(..first).unwrap_or_default();
        let mut head = above.match_indices('[').filter(|(at, _)| {
            let line = &above[*at..].lines().next().unwrap_or_default();
            (above[..*at].is_empty() || above[..*at].ends_with('\n')) && line.contains(name)
        });
        self.source.place_at(head.next_back().map_or(first, |(at, _)| at))
    }

    /// The origin of a value that [`Section::entries`] gave.
    pub fn origin_of(&self, value: &Spanned<DeValue<'_>>) -> Origin {
        self.source.origin_at(value.span().start)
    }

    /// Reports something that is wrong with one of this table's values.
    pub fn report_value(&self, key: &str, value: &Spanned<DeValue<'_>>, what: String, fix: String) {
        self.report(value.span().start, self.full_key(key), what, fix);
    }

    /// Reports keys of a header's `[tool]` that belong into another table. The tables in it are other tools'.
    pub fn report_misplaced(&self) {
        for (key, value) in self.table {
            let name = key.get_ref().as_ref();
            let place = place_in_header(name).filter(|_| !value.get_ref().is_table());
            if let Some(place) = place {
                self.report(key.span().start, self.full_key(name), MISPLACED.to_owned(), place);
            }
        }
    }

    /// Ends the reading: every unknown key is reported. `named` allows sub-tables of any name
    /// ([`Section::named_sections`]).
    pub fn finish(self, named: bool) {
        let known = self.known.borrow();
        for (key, value) in self.table {
            let name = key.get_ref().as_ref();
            if known.contains(&name) || (named && value.get_ref().is_table()) {
                continue;
            }
            let near = nearest(name, known.iter().copied());
            let function = self.function_table(name, value).filter(|_| near.is_none());
            let place = if self.source.is_header { place_in_header(name) } else { self.place_in_file(name) };
            let (what, fix) = match (function, place, near) {
                (Some(fix), _, _) => ("unknown key", fix),
                (None, Some(place), _) => (MISPLACED, place),
                (None, None, Some(near)) => ("unknown key", format!("did you mean `{near}`?")),
                (None, None, None) => {
                    let mut keys = known.clone();
                    keys.sort_unstable();
                    ("unknown key", format!("remove it; the keys here are {}", keys.join(", ")))
                }
            };
            self.report(key.span().start, self.full_key(name), what.to_owned(), fix);
        }
    }

    /// `[tool.a.ask]`, where `ask` may be a function of `a`.
    fn function_table(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let pack = self.prefix.strip_prefix("tool.").filter(|_| !self.source.is_header)?;
        let is_table = value.get_ref().is_table() && !pack.contains('.');
        is_table.then(|| format!("write [tool.\"{pack}.{name}\"] if `{name}` is a function of `{pack}`"))
    }

    /// Where a key of hostler.toml belongs. A function has few settings of its own: the others are its file's.
    fn place_in_file(&self, name: &str) -> Option<String> {
        let pack = self.prefix.strip_prefix("tool.").and_then(|of| of.split_once('.')).map(|(pack, _)| pack);
        match pack.filter(|_| is_tool_key(name)) {
            Some(pack) => Some(format!("move it to [tool.{pack}]")),
            None => place_in_file(name),
        }
    }

    fn subsection(&self, key: &str) -> Option<Section<'a>> {
        let value = self.table.get(key)?;
        let Some(table) = value.get_ref().as_table() else {
            let name = self.full_key(key);
            let what = format!("expected a table, got {}", describe(value.get_ref()));
            let fix = format!("write it as [{name}]");
            self.report(value.span().start, name, what, fix);
            return None;
        };
        Some(Section::new(self.source, self.full_key(key), table, self.problems))
    }

    fn full_key(&self, key: &str) -> String {
        if self.prefix.is_empty() { key.to_owned() } else { format!("{}.{key}", self.prefix) }
    }

    fn report(&self, at: usize, key: String, what: String, fix: String) {
        self.problems.borrow_mut().push(Problem { place: self.source.place_at(at), key, what, fix });
    }
}

const MISPLACED: &str = "this key is not valid here";

/// Keys of a tool that its header may set, and hostler.toml too.
const TOOL_KEYS: [&str; 13] = [
    "timeout",
    "startup_timeout",
    "idle_timeout",
    "max_queue",
    "max_memory",
    "max_workers",
    "concurrency",
    "max_calls",
    "max_lifetime",
    "max_rss",
    "effects",
    "secrets",
    "protocol",
];
/// Keys of a tool that only hostler.toml may set.
const OPERATOR_KEYS: [&str; 8] =
    ["min_workers", "launcher", "validate", "host_access", "pass_env", "env", "config", "functions"];

/// Whether a key may be set in `[tool.NAME]` of hostler.toml.
fn is_tool_key(key: &str) -> bool {
    TOOL_KEYS.contains(&key) || DeclaredPolicy::KEYS.contains(&key) || OPERATOR_KEYS.contains(&key)
}

/// Whether a key may be set in `[tool.hostler]` of a header.
pub(crate) fn is_header_key(key: &str) -> bool {
    key == "pack" || TOOL_KEYS.contains(&key) || DeclaredPolicy::KEYS.contains(&key)
}

/// Where a key of a header belongs.
fn place_in_header(key: &str) -> Option<String> {
    let place = match key {
        "dependencies" | "requires-python" => "move it above the first [table] of the header",
        "hostler" => "write [tool.hostler]",
        "uv" => "write [tool.uv]",
        "project" => "move `dependencies` and `requires-python` to the top of the header",
        key if is_header_key(key) => "move it to [tool.hostler]",
        key if OPERATOR_KEYS.contains(&key) => "a header cannot set it: move it to [tool.NAME] in hostler.toml",
        _ => return None,
    };
    Some(place.to_owned())
}

/// Where a key of hostler.toml belongs.
fn place_in_file(key: &str) -> Option<String> {
    let place = match key {
        "tools" | "log" => "move it above the first [table]",
        "uv" | "python" | "build_timeout" | "keep" => "move it to [environment]",
        "max_output" | "max_concurrent_calls" => "move it to [limits]",
        "schema_timeout" | "on_schema_failure" => "move it to [executables]",
        "ignore" => "move it to [check]",
        "envelope" => "move it to [mcp]",
        "enable" | "disable" | "roots" => "move it to [builtin]",
        "pack" | "dependencies" | "requires-python" => "move it to the header of the tool file",
        "config" | "env" | "protocol" | "functions" => "move it to [tool.NAME], with the name of a pack",
        key if is_tool_key(key) => "move it to [tool] for every tool, or to [tool.NAME] for one",
        _ => return None,
    };
    Some(place.to_owned())
}

/// Longer names are not compared: that takes the product of the lengths.
const LONGEST_NAME: usize = 200;

/// The name nearest to `name`, when one is near enough.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let scored = known.into_iter().map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let best = scored.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (best.0 >= 0.8).then_some(best.1)
}

/// Whether a name is another with one typo, or two in a long name. Stricter than [`nearest`], for names that are not among
/// a few known ones.
pub fn is_typo_of(written: &str, right: &str) -> bool {
    let shorter = written.len().min(right.len());
    if written == right || shorter < 3 || written.len().max(right.len()) > LONGEST_NAME {
        return false;
    }
    let most = if shorter < 7 { 1 } else { 2 };
    strsim::damerau_levenshtein(&written.to_ascii_lowercase(), &right.to_ascii_lowercase()) <= most
}
