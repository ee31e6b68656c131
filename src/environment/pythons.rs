//! Which Python an environment was to have, where uv found none or packages have no wheel for it, and the ways to another one.

use std::collections::BTreeSet;

use super::explain::Failure;
use super::settings::{PROXIES, UV_PYTHON, place_of};
use super::uv::{Minor, minor_of};
use crate::config::origin::Setting;
use crate::pep723::UnsupportedPython;

/// The oldest that workers run on.
const OLDEST: Minor = (3, 9);

/// No Python to build on: which one was asked for and where, and what would help.
impl Failure<'_> {
    /// Why there is no Python, and the ways to one.
    pub(super) fn no_python(&self) -> (String, String) {
        if let Some(python) = &self.settings.python {
            return self.no_configured_python(python);
        }
        let range = self.header.and_then(|header| header.requires_python.as_deref());
        if let Some(hindrance) = range.and_then(UnsupportedPython::of) {
            let (what, fix) = hindrance.explain(&self.requires_python());
            return (what, fix.to_owned());
        }
        let what = match range {
            Some(_) => format!("no Python that satisfies {} works here{}", self.requires_python(), self.found()),
            None => format!("no Python 3.9 or newer works here{}", self.found()),
        };
        (what, format!("install one, widen requires-python, or {}", self.download()))
    }

    /// `python` under `[environment]` names an interpreter that does not work.
    pub(super) fn no_configured_python(&self, python: &Setting<String>) -> (String, String) {
        let (python, place) = (&python.value, place_of(&python.origin));
        let what = format!("python = \"{python}\" ({place}): no such Python works here{}", self.found());
        if python.contains('/') {
            return (what, "correct or remove that line".to_owned());
        }
        (what, format!("correct or remove that line, install that Python, or {}", self.download()))
    }

    pub(super) fn requires_python(&self) -> String {
        let range = self.header.and_then(|header| header.requires_python.as_deref()).unwrap_or(">=3.9");
        format!("requires-python = \"{range}\"{}", self.place("requires-python"))
    }

    /// ` (found: 3.11, 3.13)`
    fn found(&self) -> String {
        let all: Vec<String> = self.pythons.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
        if all.is_empty() { String::new() } else { format!(" (found: {})", all.join(", ")) }
    }

    /// How uv can download one: without the variable that forbids it, or from where it can be reached.
    fn download(&self) -> String {
        if self.reason.contains("Failed to download") {
            let proxy = self.settings.first_of(PROXIES);
            let proxy = proxy.map_or("set HTTPS_PROXY or".to_owned(), |set| format!("correct {set} or set"));
            return format!("{proxy} UV_PYTHON_INSTALL_MIRROR under [environment.env] in hostler.toml");
        }
        let forbidding = [
            ("UV_OFFLINE", ["1", "true", "yes", "on", "y", "t"].as_slice()),
            ("UV_PYTHON_DOWNLOADS", ["never", "manual", "false", "0"].as_slice()),
        ];
        let set = forbidding.iter().find_map(|(name, values)| {
            self.settings.first_of(&[name]).filter(|set| values.contains(&set.value.to_ascii_lowercase().as_str()))
        });
        match set {
            Some(set) => format!("unset {} ({}) to let uv download one", set.name, set.place),
            None => "let uv download one".to_owned(),
        }
    }
}

/// Packages without a wheel for this Python.
impl Failure<'_> {
    /// `Python 3.14`, or `this Python` where uv did not come so far.
    pub(super) fn chosen_python(&self) -> String {
        self.chosen.map_or("this Python".to_owned(), |(major, minor)| format!("Python {major}.{minor}"))
    }

    /// ` (requires-python = "<3.14")`: an example of an older Python, where the header decides.
    pub(super) fn older_python(&self) -> String {
        let chosen = self.chosen.filter(|_| self.asked().is_none());
        chosen.map(|chosen| format!(" ({})", self.requires(None, chosen))).unwrap_or_default()
    }

    /// `3.9, 3.12 and 3.13`: the Pythons whose wheels uv saw.
    pub(super) fn python_tags(&self) -> Option<String> {
        let mut all: Vec<String> = self.tags().into_iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
        let last = all.pop()?;
        Some(if all.is_empty() { last } else { format!("{} and {last}", all.join(", ")) })
    }

    /// The Python that uv looked for wheels of, from its ``You require CPython 3.15 (`cp315`)``.
    pub(super) fn tagged_python(&self) -> Option<String> {
        let version = self.reason.split("You require CPython ").nth(1)?.split(' ').next()?;
        minor_of(version).map(|(major, minor)| format!("{major}.{minor}"))
    }

    /// What to write for a Python that there are wheels for, where the chosen one is set.
    pub(super) fn choose_tagged(&self) -> Option<String> {
        let tags = self.tags();
        let (first, (major, last)) = (*tags.first()?, *tags.last()?);
        let other = "use another version or package";
        if (major, last) < OLDEST {
            return Some(other.to_owned());
        }
        Some(match self.asked() {
            Some(set) => format!("correct {set}, or {other}"),
            None => format!("write {}, or {other}", self.requires(Some(first.max(OLDEST)), (major, last + 1))),
        })
    }

    /// The interpreter that is asked for whatever the header says, and where.
    fn asked(&self) -> Option<String> {
        let python = self.settings.python.as_ref();
        let set = python.map(|set| format!("python = \"{}\" ({})", set.value, place_of(&set.origin)));
        set.or_else(|| self.settings.first_of(&[UV_PYTHON]).map(|set| set.to_string()))
    }

    /// `requires-python = ">=3.10,<3.14"`, with the header's own least version if that is in between.
    fn requires(&self, least: Option<Minor>, below: Minor) -> String {
        let range = self.header.and_then(|header| header.requires_python.as_deref()).unwrap_or_default();
        let own = range.split(',').find_map(|part| minor_of(part.trim().strip_prefix(">=")?.trim()));
        let least = least.max(own.filter(|own| *own < below));
        let least = least.map(|(major, minor)| format!(">={major}.{minor},")).unwrap_or_default();
        format!("requires-python = \"{least}<{}.{}\"", below.0, below.1)
    }

    /// The Pythons of the wheels that uv names, from the oldest on: ``Python ABI tags: `cp310`, `cp313`, `cp313t` ``.
    fn tags(&self) -> BTreeSet<Minor> {
        let listed = self.reason.split("following Python ABI tag").nth(1).and_then(|rest| rest.split_once(": "));
        let listed = listed.and_then(|(_, rest)| rest.split("hint:").next()).unwrap_or_default();
        let minors = listed.split('`').skip(1).step_by(2).filter_map(|tag| {
            let (major, minor) = tag.strip_prefix("cp")?.split_at_checked(1)?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        minors.collect()
    }
}
