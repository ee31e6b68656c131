//! A table of TOML, read key by key: typed values with their line, and an error for every unknown key.
//!
//! Both `hostler.toml` and the `[tool.hostler]` table of a tool file's header are read through this, so an unknown key gets
//! the same message in both: its name, its line and the nearest known key.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::declared_policy::DeclaredPolicy;
use super::mode::{FIVE, Modes};
use super::origin::{Diagnosis, Origin, Place, Problem, Setting};
use super::value::{FromToml, kind};

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
    /// The file and line of a byte of the text.
    pub(crate) fn place_at(&self, offset: usize) -> Place {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = self.first_line + before.split(|byte| *byte == b'\n').count() - 1;
        Place { file: Arc::clone(&self.file), line }
    }

    /// Parses the text. Of a line that is not TOML, at most a key is shown: the rest may be a secret.
    pub fn parse(&self) -> Result<DeTable<'_>, Problem> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        let Some(error) = errors.iter().min_by_key(|error| start(error)) else { return Ok(table.into_inner()) };
        // What a line lacks is noticed where the next one begins.
        let lacks = error.span().is_none_or(|span| span.is_empty());
        let end = if lacks { self.text[..start(error)].trim_end().len() } else { start(error) };
        let is_duplicate = error.message().starts_with("duplicate key");
        let key = error.span().and_then(|span| self.text.get(span)).filter(|_| is_duplicate);
        let is_unclosed = errors.iter().any(|error| error.message().starts_with("unclosed"));
        let (what, fix) = match key {
            Some(key) => (format!("`{}` is defined twice", key.trim()), "keep one of the two"),
            None if is_unclosed => (error.message().to_owned(), "correct this line, or close what begins above it"),
            None => (
                error.message().replace('\n', ", "),
                "correct this line: TOML has `key = value`, with strings in quotes and lists in brackets",
            ),
        };
        let (what, fix) = (format!("not valid TOML: {what}"), fix.to_owned());
        Err(Problem { place: self.place_at(end), key: String::new(), what, fix })
    }
}

/// A table being read, of one file or of several that are stacked. Every key that is read counts as known;
/// [`Section::finish`] reports the others.
pub struct Section<'a> {
    prefix: String,
    /// Where the strongest file has it.
    place: Option<Place>,
    /// The table in each file that has it, the weakest first.
    tables: Vec<(&'a Source, &'a DeTable<'a>)>,
    known: RefCell<Vec<&'static str>>,
    problems: &'a RefCell<Vec<Problem>>,
    /// The modes that it can name.
    pub(super) modes: &'a Modes,
}

/// A key of a table with its value.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: &'a DeValue<'a>,
    source: &'a Source,
    at: usize,
}

impl<'a> Entry<'a> {
    /// The entry of this table.
    pub fn origin(&self) -> Origin {
        let place = self.source.place_at(self.at);
        if self.source.is_header { Origin::Header(place) } else { Origin::File(place) }
    }

    /// One item of its list.
    #[must_use]
    pub fn item(self, item: &'a Spanned<DeValue<'a>>) -> Self {
        Self { value: item.get_ref(), at: item.span().start, ..self }
    }
}

impl<'a> Section<'a> {
    /// Begins reading whole texts, the weakest first.
    pub fn top(tables: Vec<(&'a Source, &'a DeTable<'a>)>, problems: &'a RefCell<Vec<Problem>>) -> Self {
        Self { prefix: String::new(), place: None, tables, known: RefCell::default(), problems, modes: &FIVE }
    }

    /// The same, and it can name these modes.
    #[must_use]
    pub(super) fn naming(self, modes: &'a Modes) -> Self {
        Self { modes, ..self }
    }

    /// Every key with its value, of the weakest file first.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + '_ {
        self.tables.iter().flat_map(|&(source, table)| {
            let entry = move |(key, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| Entry {
                key: key.get_ref(),
                value: value.get_ref(),
                source,
                at: key.span().start,
            };
            table.iter().map(entry)
        })
    }

    /// The value of a key. A value of another type is reported and counts as absent.
    pub fn take<T: FromToml>(&self, key: &'static str) -> Option<Setting<T>> {
        self.take_as(key, T::from_toml)
    }

    /// The value of a key as `read` understands it.
    pub fn take_as<T>(
        &self,
        key: &'static str,
        read: impl Fn(&DeValue<'_>) -> Result<T, Diagnosis>,
    ) -> Option<Setting<T>> {
        self.take_each(key, read).pop()
    }

    /// The value of a key in each file that has it, as `read` understands it.
    pub fn take_each<T>(
        &self,
        key: &'static str,
        read: impl Fn(&DeValue<'_>) -> Result<T, Diagnosis>,
    ) -> Vec<Setting<T>> {
        self.known.borrow_mut().push(key);
        let mut taken = Vec::new();
        for entry in self.entries().filter(|entry| entry.key == key && !self.is_of_a_pack(entry)) {
            match read(entry.value) {
                Ok(value) => taken.push(Setting { value, origin: entry.origin() }),
                Err(Diagnosis { what, fix }) => self.report(&entry, what, fix),
            }
        }
        taken
    }

    /// A sub-table as a section of its own; an empty one where there is none.
    pub fn section(&self, key: &'static str) -> Section<'a> {
        self.known.borrow_mut().push(key);
        self.subsection(key)
    }

    /// Every sub-table that is not known by name: `[tool.NAME]`.
    pub fn named_sections(&self) -> Vec<(&'a str, Section<'a>)> {
        let known = self.known.borrow().clone();
        let mut names: Vec<&str> =
            self.entries().filter(|entry| entry.value.is_table()).map(|entry| entry.key).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !known.contains(name) || !TABLE_KEYS.contains(name));
        names.into_iter().map(|name| (name, self.subsection(name))).collect()
    }

    /// Whether an entry of `[tool]` is the table of a pack that has the name of a key: `[tool.secrets]` for `secrets.py`.
    fn is_of_a_pack(&self, entry: &Entry<'_>) -> bool {
        self.prefix == "tool" && !entry.source.is_header && entry.value.is_table() && !TABLE_KEYS.contains(&entry.key)
    }

    fn subsection(&self, key: &str) -> Section<'a> {
        let prefix = self.full_key(key);
        let mut section = Section { prefix, ..Section::top(Vec::new(), self.problems) }.naming(self.modes);
        for entry in self.entries().filter(|entry| entry.key == key) {
            if let Some(table) = entry.value.as_table() {
                section.place = Some(entry.source.place_at(entry.at));
                section.tables.push((entry.source, table));
            } else {
                let what = format!("expected a table, got {}", kind(entry.value));
                self.report(&entry, what, format!("write it as [{}]", section.prefix));
            }
        }
        section
    }

    /// Where the table begins.
    pub fn place(&self) -> Option<Place> {
        self.place.clone()
    }

    /// Reports something that is wrong with one of this table's values.
    pub fn report(&self, entry: &Entry<'_>, what: impl Into<String>, fix: impl Into<String>) {
        let (place, key) = (entry.source.place_at(entry.at), self.full_key(entry.key));
        self.problems.borrow_mut().push(Problem { place, key, what: what.into(), fix: fix.into() });
    }

    /// Ends the reading: every unknown key is reported. `named` allows sub-tables of any name
    /// ([`Section::named_sections`]).
    pub fn finish(self, named: bool) {
        let mut known = self.known.borrow().clone();
        known.sort_unstable();
        for entry in self.entries() {
            if known.contains(&entry.key) || (named && entry.value.is_table()) {
                continue;
            }
            if let Some(home) = home_of(entry.key, entry.source.is_header) {
                self.report(&entry, "this key is not valid here", format!("move it to {home}"));
                continue;
            }
            let near = nearest(entry.key, known.iter().copied()).filter(|near| self.may_mean(&entry, near));
            let fix = near.map(|near| format!("did you mean `{near}`?")).or_else(|| self.function_table(&entry));
            let fix = fix.unwrap_or_else(|| format!("remove it; the keys here are {}", known.join(", ")));
            self.report(&entry, "unknown key", fix);
        }
    }

    /// Whether a key may have been meant. A table of a tool is rather one of a function than a key that takes none.
    fn may_mean(&self, entry: &Entry<'_>, near: &str) -> bool {
        TABLE_KEYS.contains(&near) || self.function_table(entry).is_none()
    }

    /// What to write for `[tool.a.ask]`, where `ask` may be a function of `a`.
    fn function_table(&self, entry: &Entry<'_>) -> Option<String> {
        let pack = self.prefix.strip_prefix("tool.").filter(|pack| !pack.contains('.') && !entry.source.is_header)?;
        let (key, is_table) = (entry.key, entry.value.is_table());
        is_table.then(|| format!("write [tool.\"{pack}.{key}\"] if `{key}` is a function of `{pack}`"))
    }

    fn full_key(&self, key: &str) -> String {
        if self.prefix.is_empty() { key.to_owned() } else { format!("{}.{key}", self.prefix) }
    }
}

/// Keys of a tool that its header may set, and hostler.toml too.
const TOOL_KEYS: [&str; 23] = [
    "timeout",
    "question_timeout",
    "startup_timeout",
    "idle_timeout",
    "max_queue",
    "max_cpu",
    "max_memory",
    "max_workers",
    "concurrency",
    "max_calls",
    "max_lifetime",
    "max_rss",
    "effects",
    "secrets",
    "protocol",
    "large",
    "share",
    "journal",
    "task",
    "task_after",
    "cwd",
    "icon",
    "sandbox",
];

/// Keys of a tool whose values are tables.
const TABLE_KEYS: [&str; 3] = ["env", "config", "sandbox"];

/// Keys of a tool that only hostler.toml may set.
pub(super) const OPERATOR_KEYS: [&str; 6] =
    ["min_workers", "launcher", "validate", "host_access", "client_access", "pass_env"];

/// Whether a key may be set in `[tool.hostler]` of a header.
pub(crate) fn is_header_key(key: &str) -> bool {
    key == "pack" || TOOL_KEYS.contains(&key) || DeclaredPolicy::has_key(key)
}

/// Where a key belongs that is in another place.
fn home_of(key: &str, in_header: bool) -> Option<&'static str> {
    let home = match key {
        "dependencies" | "requires-python" if in_header => "the top of the tool file's header, above its first [table]",
        "dependencies" | "requires-python" => "[tool.NAME] in hostler.toml, or the top of the tool file's header",
        "pack" => "[tool.hostler] in the header of the tool file",
        "hostler" => "[tool.hostler]",
        "uv" if in_header => "[tool.uv]",
        key if in_header && is_header_key(key) => "[tool.hostler]",
        "tools" | "log" => "the top of hostler.toml, above its first [table]",
        "uv" | "python" | "build_timeout" | "keep" => "[environment] in hostler.toml",
        "max_output" | "max_concurrent_calls" => "[limits] in hostler.toml",
        "schema_timeout" | "on_schema_failure" => "[executables] in hostler.toml",
        "ignore" => "[check] in hostler.toml",
        "envelope" | "max_result" | "instructions" => "[mcp] in hostler.toml",
        "enable" | "disable" | "roots" => "[builtin] in hostler.toml",
        "bodies" | "keep_calls" | "keep_size" => "[journal] in hostler.toml",
        "serve" if in_header => "[tool.hostler]",
        "as" => "[tool.NAME] in hostler.toml, with the name of a pack or of a function",
        "protocol" | "serve" | "output" | "input_option" | "ask" | "env" | "config" | "functions"
        | "new_privileges" | "python_path" | "args" => "[tool.NAME] in hostler.toml, with the name of a pack",
        key if is_header_key(key) || OPERATOR_KEYS.contains(&key) => {
            "[tool] in hostler.toml for every tool, or [tool.NAME] for one"
        }
        _ => return None,
    };
    Some(home)
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
