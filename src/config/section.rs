//! One TOML table, read key by key: typed values with their line, and an error for every key nobody asked for.
//!
//! Both `hostler.toml` and the `[tool.hostler]` table of a tool file's header are read through this, so a misspelt
//! key is answered the same way in both: by name, line and the nearest key that exists.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::homes;
use super::mistaken::{self, Mistake};
use super::origin::{Origin, Place, Setting};
use super::value::{FromToml, ITEM};

/// A TOML text and where it stands, so that a byte offset becomes a line a person can open.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file the text was read from.
    pub file: Arc<PathBuf>,
    /// The TOML text itself.
    pub text: Arc<str>,
    /// The line of `file` on which `text` begins (1 for a whole file; more for a header block).
    pub first_line: usize,
    /// Whether values read from here are a header's wishes or an operator's word.
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

/// One thing that is wrong in a settings file, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands.
    pub place: Place,
    /// The full key, `tool.brave.timeout`; empty when the text is not TOML at all.
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

/// Parses a text into a table, or says which line keeps it from being TOML.
pub fn parse(source: &Source) -> Result<DeTable<'_>, Problem> {
    DeTable::parse(&source.text).map(Spanned::into_inner).map_err(|error| {
        let Mistake { at, what, fix } = mistaken::explain(source, &error);
        Problem { place: source.place_at(at), key: String::new(), what: format!("not valid TOML: {what}"), fix }
    })
}

/// A table being read. Every key that is asked for is remembered; [`Section::finish`] reports the rest.
pub struct Section<'a> {
    source: &'a Source,
    prefix: String,
    table: &'a DeTable<'a>,
    asked: RefCell<Vec<&'static str>>,
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
        Self { source, prefix: prefix.into(), table, asked: RefCell::default(), problems }
    }

    /// The value of a key, or `None` when it is not there. A value of a wrong kind is reported and counts as absent.
    pub fn take<T: FromToml>(&self, key: &'static str) -> Option<Setting<T>> {
        self.asked.borrow_mut().push(key);
        let value = self.table.get(key)?;
        let at = value.span().start;
        match T::from_toml(value.get_ref()) {
            Ok(taken) => Some(Setting { value: taken, origin: self.source.origin_at(at) }),
            Err(fix) => {
                let of_list = fix.starts_with(ITEM).then(|| "an item of this list".to_owned());
                let found = of_list.unwrap_or_else(|| describe(value.get_ref()));
                self.report(at, self.full_key(key), format!("{found} does not fit here"), fix);
                None
            }
        }
    }

    /// Takes a key for known whose value somebody else has looked at.
    pub fn ask(&self, key: &'static str) {
        self.asked.borrow_mut().push(key);
    }

    /// A sub-table as a section of its own.
    pub fn section(&self, key: &'static str) -> Option<Section<'a>> {
        self.asked.borrow_mut().push(key);
        self.subsection(key)
    }

    /// Every sub-table that no `take` or `section` asked for by name, in order: `[tool.NAME]`.
    pub fn named_sections(&self) -> Vec<(String, Section<'a>)> {
        let asked = self.asked.borrow().clone();
        let tables = self.table.iter().filter(|(_, value)| value.get_ref().is_table());
        let names = tables.map(|(key, _)| key.get_ref().to_string());
        let unknown = names.filter(|name| !asked.contains(&name.as_str()));
        unknown.filter_map(|name| self.subsection(&name).map(|section| (name, section))).collect()
    }

    /// Every key with its raw value, for tables whose keys are the person's own (`[secrets]`, `config`).
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Spanned<DeValue<'a>>)> + '_ {
        self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), value))
    }

    /// Where the table begins.
    pub fn place(&self) -> Place {
        let first = self.table.iter().map(|(key, _)| key.span().start).min().unwrap_or(0);
        // Its head stands above its first key, unless it is written within braces.
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

    /// The line of a value as it stands in the file, with something else in the value's place.
    pub fn line_with(&self, value: &Spanned<DeValue<'_>>, instead: &str) -> String {
        let (text, span) = (&self.source.text, value.span());
        let start = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let end = text[span.end..].find('\n').map_or(text.len(), |end| span.end + end);
        let margin = if self.source.is_header { "# " } else { "" };
        format!("{margin}{}{instead}{}", &text[start..span.start], &text[span.end..end])
    }

    /// A line with another key.
    fn renamed(&self, key: Range<usize>, instead: &str) -> String {
        let rest = self.source.text[key.end..].lines().next().unwrap_or_default();
        let margin = if self.source.is_header { "# " } else { "" };
        format!("write exactly `{margin}{instead}{rest}`")
    }

    /// Reports something that is wrong with one of this table's values.
    pub fn report_value(&self, key: &str, value: &Spanned<DeValue<'_>>, what: String, fix: String) {
        self.report(value.span().start, self.full_key(key), what, fix);
    }

    /// Reports keys that belong elsewhere, in a header's `[tool]`, whose tables are others'.
    pub fn report_misplaced(&self) {
        for (key, value) in self.table {
            let name = key.get_ref().as_ref();
            let home = homes::in_header(name).filter(|_| !value.get_ref().is_table());
            if let Some(home) = home {
                self.report(key.span().start, self.full_key(name), OUT_OF_PLACE.to_owned(), home);
            }
        }
    }

    /// Ends the reading: every key that was never asked for is reported, with the nearest one that was.
    /// `named` allows sub-tables of any name ([`Section::named_sections`]).
    pub fn finish(self, named: bool) {
        let asked = self.asked.borrow();
        for (key, value) in self.table {
            let name = key.get_ref().as_ref();
            if asked.contains(&name) || (named && value.get_ref().is_table()) {
                continue;
            }
            if let Some(fix) =
                self.function_table(name, value).filter(|_| nearest(name, asked.iter().copied()).is_none())
            {
                self.report(key.span().start, self.full_key(name), "unknown key".to_owned(), fix);
                continue;
            }
            let is_top = self.source.is_header && self.prefix.is_empty();
            let ours = homes::called_otherwise(name, value.get_ref().is_array()).filter(|_| is_top);
            if let Some(ours) = ours {
                let fix = format!("here it is called `{ours}`: {}", self.renamed(key.span(), ours));
                self.report(key.span().start, self.full_key(name), "unknown key".to_owned(), fix);
                continue;
            }
            let home = if self.source.is_header { homes::in_header(name) } else { self.home_in_file(name) };
            let (what, fix) = match home {
                Some(home) => (OUT_OF_PLACE, home),
                None => ("unknown key", unknown_key_fix(name, &asked)),
            };
            self.report(key.span().start, self.full_key(name), what.to_owned(), fix);
        }
    }

    /// `[tool.a.ask]`, where `ask` is meant as a function of `a`.
    fn function_table(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let pack = self.prefix.strip_prefix("tool.").filter(|_| !self.source.is_header)?;
        let is_meant = value.get_ref().is_table() && !pack.contains('.');
        let quoted = format!("[tool.\"{pack}.{name}\"]");
        is_meant.then(|| format!("if `{name}` is a function of `{pack}`, its table is called {quoted}"))
    }

    /// A function has few settings of its own: its worker is the file's.
    fn home_in_file(&self, name: &str) -> Option<String> {
        let pack = self.prefix.strip_prefix("tool.").and_then(|of| of.split_once('.')).map(|(pack, _)| pack);
        match pack {
            Some(pack) if homes::is_of_packs(name) => {
                Some(format!("a function has none of its own: write it under [tool.{pack}]"))
            }
            _ => homes::in_file(name),
        }
    }

    fn subsection(&self, key: &str) -> Option<Section<'a>> {
        let value = self.table.get(key)?;
        let Some(table) = value.get_ref().as_table() else {
            let is_list = value.get_ref().is_array() || value.get_ref().is_str();
            let fix = match self.full_key(key) {
                of if of == "tool" && is_list => "did you mean `tools`, the folders of tools?".to_owned(),
                of => format!("write it as a table: [{of}]"),
            };
            let found = describe(value.get_ref());
            self.report(value.span().start, self.full_key(key), format!("{found} does not fit here"), fix);
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

/// What is said of a key that another table has.
const OUT_OF_PLACE: &str = "this table has no such key";

fn unknown_key_fix(name: &str, known: &[&'static str]) -> String {
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let mut names = known.to_vec();
    names.sort_unstable();
    format!("remove it; the keys here are {}", names.join(", "))
}

/// No name is longer.
const LONGEST_NAME: usize = 200;

/// The name nearest to `name`, when one is near enough to be what was meant.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Comparing takes the product of the lengths, and nobody means a name by a text.
    if name.len() > LONGEST_NAME {
        return None;
    }
    let scored = known.into_iter().map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let best = scored.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (best.0 >= 0.8).then_some(best.1)
}

/// Whether one name is another with a slip of the pen: a letter more, less, other or two in the wrong order, of long names
/// two such slips. Stricter than [`nearest`], for names that are not among a few known ones.
pub fn is_slip_of(written: &str, meant: &str) -> bool {
    let shorter = written.len().min(meant.len());
    if written == meant || shorter < 3 || written.len().max(meant.len()) > LONGEST_NAME {
        return false;
    }
    let most = if shorter < 7 { 1 } else { 2 };
    strsim::damerau_levenshtein(&written.to_ascii_lowercase(), &meant.to_ascii_lowercase()) <= most
}

/// A value as a message calls it.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string \"{text}\""),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("{flag}"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
