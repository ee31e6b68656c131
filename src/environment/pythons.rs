//! No Python to build on: which one was wanted and by whom, why there is none, and what would help.

use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::settings::{Variable, place_of};
use super::trouble::Trouble;
use crate::config::origin::Setting;
use crate::pep723::{UnsupportedPython, oldest_minor};

/// A minor version: `(3, 12)`.
pub type Minor = (u64, u64);

/// Whether uv failed at a Python that it wanted to fetch, not at a package: only the former is named by its address.
pub(super) fn is_about_fetching(stderr: &str) -> bool {
    fetched_from(stderr).is_some() || stderr.contains("Failed to extract archive: cpython-")
}

/// The address that uv failed to fetch a Python from.
fn fetched_from(stderr: &str) -> Option<&str> {
    let (_, rest) =
        stderr.split_once("Failed to download `http").or_else(|| stderr.split_once("Failed to download http"))?;
    Some(rest.split_once("://")?.1)
}

/// Whether uv's reason is a Python that it did not find, could not start or could not fetch. What it warns of beside another
/// reason does not count.
pub(super) fn is_about_pythons(reason: &str) -> bool {
    let words = [
        "No interpreter found",
        "No download found",
        "no Python can fit",
        "Failed to inspect Python interpreter",
        "Querying Python at",
    ];
    is_about_fetching(reason) || words.iter().any(|words| reason.contains(words))
}

impl Trouble<'_> {
    /// Why there is no Python, and the ways to one.
    pub(super) fn no_python(&self) -> Option<String> {
        if !is_about_pythons(self.reason) {
            return None;
        }
        if let Some(python) = &self.settings.python {
            let (what, fix) = self.not_the_operators(python);
            return Some(format!("{what}. {fix}"));
        }
        let own = self.header.and_then(|header| header.requires_python.as_deref());
        let wish = own.unwrap_or(">=3.9");
        let named = format!("requires-python = \"{wish}\"{}", self.place("requires-python"));
        if let Some(hindrance) = UnsupportedPython::of(wish) {
            let (what, fix) = hindrance.explain(&named);
            return Some(format!("{what}; {fix}"));
        }
        let what = own.map_or_else(
            || "no Python from 3.9 on works here".to_owned(),
            |_| format!("no Python that fits {named} works here"),
        );
        let range = VersionSpecifiers::from_str(wish).ok();
        let oldest = range.as_ref().and_then(oldest_minor).unwrap_or((3, 9));
        let wider = self.pythons.iter().any(|python| *python >= oldest);
        let wider = wider.then(|| format!("write requires-python = \">={}.{}\"", oldest.0, oldest.1));
        let steps: Vec<String> =
            [Some("install one".to_owned()), wider, self.way_to_fetch()].into_iter().flatten().collect();
        Some(format!("{what}{}{}. {}", self.there_are(), self.why_none(), either(&steps)))
    }

    /// `python` under `[environment]` names one that is not there.
    pub(super) fn not_the_operators(&self, python: &Setting<String>) -> (String, String) {
        let (wish, place) = (&python.value, place_of(&python.origin));
        let what = if wish.contains('/') {
            format!("no Python works at {wish}")
        } else {
            format!("no Python {wish} works here")
        };
        let steps: Vec<String> = [
            Some("correct that line".to_owned()),
            Some("take it out".to_owned()),
            (!wish.contains('/')).then(|| "install that Python".to_owned()),
            self.way_to_fetch(),
        ]
        .into_iter()
        .flatten()
        .collect();
        let what = format!("{place} says python = \"{wish}\", and {what}{}{}", self.there_are(), self.why_none());
        (what, either(&steps))
    }

    /// ` (there are 3.11, 3.13)`
    fn there_are(&self) -> String {
        let all: Vec<String> = self.pythons.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
        if all.is_empty() { String::new() } else { format!(" (what works: {})", all.join(", ")) }
    }

    /// Why none was fetched either. uv speaks of the first one that it could not start, though others were meant to serve.
    fn why_none(&self) -> String {
        if is_about_fetching(self.stderr) {
            return format!(", and fetching one from {} failed", self.source());
        }
        let broken = self.reason.split_once("Querying Python at `").and_then(|(_, rest)| rest.split('`').next());
        let broken =
            broken.map(|path| format!(": {path} does not run (a version manager's stand-in?)")).unwrap_or_default();
        match self.forbids_fetching() {
            Some((name, place)) => format!("{broken}, and uv may fetch none: {name} is set in {place}"),
            None => broken,
        }
    }

    /// The variable that keeps uv from fetching a Python, and where it is set.
    fn forbids_fetching(&self) -> Option<(&'static str, String)> {
        let says = |name: &'static str, no: &[&str]| {
            let Variable { value, place } = self.settings.variable(name)?;
            no.contains(&value.to_ascii_lowercase().as_str()).then_some((name, place))
        };
        let offline = says("UV_OFFLINE", &["1", "true", "yes", "on", "y", "t"]);
        offline.or_else(|| says("UV_PYTHON_DOWNLOADS", &["never", "manual", "false", "0"]))
    }

    fn way_to_fetch(&self) -> Option<String> {
        if is_about_fetching(self.stderr) {
            if let Some(proxy) = self.settings.proxy(Some("https://github.com")) {
                return Some(format!("correct or unset {proxy}"));
            }
            let mirror = "set UV_PYTHON_INSTALL_MIRROR or HTTPS_PROXY under [environment.env] in hostler.toml";
            return Some(mirror.to_owned());
        }
        self.forbids_fetching().map(|(name, _)| format!("unset {name}"))
    }

    /// `github.com`, from where uv fetches.
    fn source(&self) -> &str {
        fetched_from(self.stderr).and_then(|address| address.split('/').next()).unwrap_or("its source")
    }
}

/// `Do this, do that, or do the third`.
fn either(steps: &[String]) -> String {
    let text = match steps {
        [first @ .., last] if !first.is_empty() => {
            let comma = if first.len() > 1 { "," } else { "" };
            format!("{}{comma} or {last}", first.join(", "))
        }
        _ => steps.concat(),
    };
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
#[path = "pythons_tests.rs"]
mod tests;
