//! What uv's error means to the author of a header, by the table `uv_errors.toml`: what is wrong and what to do.
//!
//! uv explains its resolution; an author needs the line to change. uv's own reason always follows, and errors without a rule are
//! passed on unchanged.

use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use super::settings::{EnvironmentSettings, host_of, without_password};
use super::spec::EnvironmentSpec;
use super::uv::Minor;
use crate::outcome::{Code, Details, Fault};
use crate::pep723::{Metadata, UnsupportedPython, normalised, package_of};
use crate::process::shell_word;

/// A build that uv gave up, with all that its explanation may name.
pub(super) struct Failure<'t> {
    pub file: &'t Path,
    pub is_locked: bool,
    pub header: Option<&'t Metadata>,
    pub settings: &'t EnvironmentSettings,
    /// The interpreters that work here, as far as uv was asked for them.
    pub pythons: &'t [Minor],
    /// The one that the environment was to have, where uv came so far.
    pub chosen: Option<Minor>,
    /// All that uv wrote.
    pub stderr: &'t str,
    /// Its error on one line.
    pub reason: String,
}

/// What is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Explanation {
    pub code: Code,
    pub what: String,
    pub fix: String,
    /// Where uv's reason says it.
    at: usize,
}

/// One row of `uv_errors.toml`.
#[derive(Deserialize)]
struct Rule {
    needles: Vec<String>,
    what: String,
    fix: String,
    code: Option<Code>,
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Table {
        rule: Vec<Rule>,
    }
    toml::from_str::<Table>(include_str!("uv_errors.toml")).map(|table| table.rule).unwrap_or_default()
});

/// The most of uv's words that follow an explanation.
const MOST_WORDS: usize = 400;

/// The fault of a build that uv gave up. `pythons` are the interpreters that work here, `chosen` is the environment's.
pub(super) fn build_fault(
    spec: &EnvironmentSpec,
    settings: &EnvironmentSettings,
    pythons: &[Minor],
    chosen: Option<Minor>,
    is_locked: bool,
    stderr: &str,
) -> Fault {
    let (file, header) = (spec.file.as_path(), spec.written.as_deref());
    let failure = Failure { file, is_locked, header, settings, pythons, chosen, stderr, reason: reason(stderr) };
    let Explanation { code, what, fix, at } = failure.explain().unwrap_or_else(|| Explanation {
        code: Code::EnvironmentFailed,
        what: "uv failed".to_owned(),
        fix: format!("correct the header of {}", file.display()),
        at: 0,
    });
    let reason = without_password(&excerpt(&failure.reason, at));
    let message = format!(
        "cannot build the environment of {}: {what}; {fix} (the next call tries again). uv: {reason}",
        spec.name
    );
    let stderr = Some(without_password(stderr.trim())).filter(|text| !text.is_empty());
    Fault::new(code, message).with(Details { stderr, ..Details::default() })
}

/// A header that allows only versions of Python that workers do not run on. uv would build such an environment, or search for
/// an interpreter at length.
pub(super) fn refuse_ancient(spec: &EnvironmentSpec) -> Result<(), Fault> {
    let Some(header) = spec.written.as_deref() else { return Ok(()) };
    let Some(range) = header.requires_python.as_deref() else { return Ok(()) };
    if UnsupportedPython::of(range) != Some(UnsupportedPython::TooOld) {
        return Ok(());
    }
    let line = header.line_of("requires-python").unwrap_or(header.first_line);
    let (what, fix) =
        UnsupportedPython::TooOld.explain(&format!("requires-python = \"{range}\" ({}:{line})", spec.file.display()));
    let message = format!("cannot build the environment of {}: {what}; {fix}", spec.name);
    Err(Fault::new(Code::EnvironmentFailed, message))
}

/// Extras that packages do not have: uv installs the package without them and only warns.
pub(super) fn unknown_extras(spec: &EnvironmentSpec, stderr: &str) -> Vec<String> {
    let warnings = stderr.lines().filter_map(|line| line.trim().strip_prefix("warning: The package `"));
    let message = |line: &str| {
        let (package, extra) = line.split_once("` does not have an extra named `")?;
        let (package, extra) = (package_of(package), extra.trim_end_matches('`'));
        let line = spec.written.as_deref().and_then(|header| header.line_of(&format!("{package}[")));
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        Some(format!("{}{line}: {package} has no extra \"{extra}\"; uv installed nothing for it", spec.file.display()))
    };
    warnings.filter_map(message).collect()
}

impl<'t> Failure<'t> {
    /// What uv wrote where no header is concerned.
    pub(super) fn of(stderr: &'t str, settings: &'t EnvironmentSettings) -> Self {
        let file = Path::new("");
        Self {
            file,
            is_locked: false,
            header: None,
            settings,
            pythons: &[],
            chosen: None,
            stderr,
            reason: reason(stderr),
        }
    }

    /// What the first rule that applies says.
    pub(super) fn explain(&self) -> Option<Explanation> {
        RULES.iter().find_map(|rule| {
            let (at, word) = rule.needles.iter().find_map(|needle| capture(&self.reason, needle))?;
            let code = rule.code.unwrap_or(Code::EnvironmentFailed);
            Some(Explanation { code, what: self.fill(&rule.what, word)?, fix: self.fill(&rule.fix, word)?, at })
        })
    }

    fn fill(&self, template: &str, word: &str) -> Option<String> {
        let mut pieces = template.split('{');
        let mut text = pieces.next()?.to_owned();
        for piece in pieces {
            let (name, rest) = piece.split_once('}')?;
            text = text + &self.field(name, word)? + rest;
        }
        Some(text)
    }

    /// The text of one field; none where the rule does not apply to this header or these settings.
    fn field(&self, name: &str, word: &str) -> Option<String> {
        if let Some(names) = name.strip_prefix("set ") {
            return Some(self.in_force(&names.split(' ').collect::<Vec<_>>()));
        }
        match name {
            "word" => Some(without_password(word)),
            "place" => Some(self.place(word.trim_start_matches("file://"))),
            "dependency" => Some(self.dependency(package_of(word))),
            "direct" => self.direct().map(|declared| self.quoted(declared)),
            "conflict" => self.conflict(),
            "rejected" => self.rejected(),
            "requires_python" => Some(self.requires_python()),
            "no_python" => Some(self.no_python().0),
            "get_python" => Some(self.no_python().1),
            "chosen_python" => Some(self.chosen_python()),
            "older_python" => Some(self.older_python()),
            "python_tags" => self.python_tags(),
            "tagged_python" => self.tagged_python(),
            "choose_tagged" => self.choose_tagged(),
            "platform" => Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
            "lock" => self.lock(),
            "relock" => Some(format!("`uv lock --script {}`", shell_word(&self.file.to_string_lossy()))),
            "cause" => {
                Some(cause(self.stderr).map(|cause| without_password(&format!(": {cause}"))).unwrap_or_default())
            }
            "host" => self.url().map(|url| host_of(url).to_owned()),
            "index" => Some(self.settings.index(self.header).map_or("the package index".to_owned(), |set| {
                format!("the index {} ({} in {})", set.value, set.name, set.place)
            })),
            "network" => Some(self.settings.network(self.header)),
            _ => None,
        }
    }

    /// ` (NAME = value (place))` of the first of these variables that is set.
    fn in_force(&self, names: &[&str]) -> String {
        self.settings.first_of(names).map(|set| format!(" ({set})")).unwrap_or_default()
    }

    /// `"rich==99" (/t/a.py:3)`; an indirect dependency is marked as such.
    fn dependency(&self, package: &str) -> String {
        self.declared(package)
            .map_or_else(|| format!("{package}, which a dependency needs,"), |declared| self.quoted(declared))
    }

    fn declared(&self, package: &str) -> Option<&str> {
        let mut all = self.header?.dependencies.iter();
        all.find(|declared| normalised(package_of(declared)) == normalised(package)).map(String::as_str)
    }

    fn quoted(&self, dependency: &str) -> String {
        format!("\"{}\"{}", without_password(dependency), self.place(dependency))
    }

    /// ` (/t/a.py:3)`: the line of a word in the header.
    pub(super) fn place(&self, word: &str) -> String {
        let line = self.header.and_then(|header| header.line_of(word));
        line.map(|line| format!(" ({}:{line})", self.file.display())).unwrap_or_default()
    }

    /// The dependency with an address of its own that uv speaks of.
    fn direct(&self) -> Option<&str> {
        let is_named = |declared: &&String| {
            declared.split_once('@').is_some_and(|(name, address)| {
                self.reason.contains(address.trim()) || self.reason.contains(&format!("`{} @ ", package_of(name)))
            })
        };
        self.header?.dependencies.iter().find(is_named).map(String::as_str)
    }

    /// The dependencies that uv says cannot hold together, or the one that cannot hold at all.
    fn conflict(&self) -> Option<String> {
        let header = self.header?;
        let requirements = self.reason.split("you require ").skip(1).flat_map(|rest| {
            let end = rest.find([',', ':']).unwrap_or(rest.len());
            rest[..end].split(" and ").map(package_of)
        });
        let packages: Vec<String> = requirements.map(normalised).collect();
        let is_named = |declared: &&String| packages.contains(&normalised(package_of(declared)));
        let named: Vec<String> =
            header.dependencies.iter().filter(is_named).map(|declared| self.quoted(declared)).collect();
        (!named.is_empty()).then(|| named.join(" and "))
    }

    /// What of the header uv could not parse: a dependency, or a key of `[tool.uv]`.
    fn rejected(&self) -> Option<String> {
        let header = self.header?;
        if let Some(declared) = header.dependencies.iter().find(|declared| self.reason.contains(declared.as_str())) {
            return Some(self.quoted(declared));
        }
        let word = self.reason.split('`').skip(1).step_by(2).filter(|word| header.line_of(word).is_some()).last();
        let word = word.unwrap_or("[tool.uv");
        Some(format!("[tool.uv]{}", self.place(word)))
    }

    /// The lock beside the file, with the line that uv names.
    fn lock(&self) -> Option<String> {
        let line =
            capture(&self.reason, "parse error at line *,").map(|(_, line)| format!(":{line}")).unwrap_or_default();
        self.is_locked.then(|| format!("{}.lock{line}", self.file.display()))
    }

    fn url(&self) -> Option<&str> {
        ["for url (*)", "An index URL (*)", "An index (*)"]
            .iter()
            .find_map(|mark| capture(&self.reason, mark))
            .map(|(_, url)| url)
    }
}

/// Whether uv's reason is an interpreter that it did not find, could not start or could not download.
pub(super) fn is_about_pythons(reason: &str) -> bool {
    let rule = RULES.iter().find(|rule| rule.what == "{no_python}");
    rule.is_some_and(|rule| rule.needles.iter().any(|words| reason.contains(words)))
}

/// The offset of a needle in uv's words, and the word at its `*`.
fn capture<'t>(text: &'t str, needle: &str) -> Option<(usize, &'t str)> {
    let (before, after) = match needle.split_once('*') {
        None => return text.find(needle).map(|at| (at, "")),
        Some(("", after)) => {
            let at = text.find(after)?;
            return text[..at].split_whitespace().last().map(|word| (at - word.len(), word));
        }
        Some(both) => both,
    };
    let at = text.find(before)?;
    let rest = &text[at + before.len()..];
    let end = if after.is_empty() { rest.find([' ', ',']).unwrap_or(rest.len()) } else { rest.find(after)? };
    Some((at, &rest[..end]))
}

/// The line of a compiler, or the last exception of a build's traceback, that says why it failed.
fn cause(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim);
    let fatal = lines.clone().find(|line| line.contains(": fatal error: "));
    fatal.or_else(|| lines.rfind(|line| line.contains("Error: ") && !line.contains("Failed to build")))
}

/// The part of a long text that says what was recognised, ending at a word.
fn excerpt(text: &str, at: usize) -> String {
    if text.len() <= MOST_WORDS {
        return text.to_owned();
    }
    let (start, dots) = if at > MOST_WORDS / 2 { (at, "… ") } else { (0, "") };
    let end = text.floor_char_boundary(start + MOST_WORDS);
    let end = if end < text.len() { text[..end].rfind(' ').unwrap_or(end) } else { end };
    let rest = if end < text.len() { " … (`--json` shows all of it)" } else { "" };
    format!("{dots}{}{rest}", text[start..end].trim_end_matches([',', ';']))
}

/// uv's error on one line, without the progress before it.
pub(super) fn reason(stderr: &str) -> String {
    let is_progress = |line: &&str| {
        let talk = ["Using ", "Creating ", "Resolved ", "Prepared ", "Downloading ", "Downloaded ", "warning:"];
        talk.iter().any(|word| line.trim_start().starts_with(word))
    };
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let start = lines.iter().position(|line| line.trim_start().starts_with(['×', 'x']) || line.starts_with("error"));
    let error = lines[start.unwrap_or(0)..].iter().filter(|line| !is_progress(line));
    let words = error.flat_map(|line| undrawn(line).split_whitespace());
    let text = words.collect::<Vec<_>>().join(" ").replace(": cause: ", ": ").replace(" cause: ", ": ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    if text.is_empty() { "no reason given".to_owned() } else { text.trim_end_matches('.').to_owned() }
}

/// A line without the drawing that uv puts before its parts.
fn undrawn(line: &str) -> &str {
    let line = line.trim_start();
    ["×", "x ", "├─▶", "╰─▶", "│"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
